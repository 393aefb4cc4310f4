"""How many members of a gang the nodes could take now, and what is missing for the others."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.mapping.gang_places import places_of
from cockpit.backends.kubernetes.mapping.gangs import gang_reason
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.node_filters import NodePods, PlacedPod
from cockpit.backends.kubernetes.mapping.pod_needs import needs_of
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.model.ids import JobId, Millis
from cockpit.model.pod_reasons import GangIncomplete, MembersPlaced, MembersToPlace
from cockpit.present.columns import Context
from cockpit.present.outlook import outlook_lines
from cockpit.present.reasons import reason_sentence
from cockpit.present.spans import plain
from tests.backends.kubernetes.objects import GPU, a_job, a_pod, a_pytorch_job, a_running_pod, merged
from tests.backends.kubernetes.test_explaining import NODES, PODS, a_node, running
from tests.backends.kubernetes.test_explaining import a_pod as a_manifest
from tests.backends.kubernetes.test_gangs import a_group, in_gang
from tests.backends.kubernetes.test_scheduling import a_request, with_pods
from tests.doubles.kubernetes_api import FakeApi


def member(name: str, cards: int = 8, **spec: Any) -> Pod:
    return a_pod(name, spec={**a_request(cards), **spec})


def nodes(*used: int, **changes: Any) -> dict[str, NodePods]:
    """Nodes n1, n2 … of 8 cards, of which so many are used; by the job with the number of the node."""
    made = {}
    for number, cards in enumerate(used, 1):
        pod = a_running_pod(f"p{number}", f"n{number}", spec=a_request(cards))
        placed = [PlacedPod(needs_of(pod.spec, "team-b", {}), JobId(number))] if cards else []
        made[f"n{number}"] = NodePods(with_pods(f"n{number}", **changes), placed)
    return made


def looked(job: KubeJob, there: dict[str, NodePods]) -> tuple[MembersToPlace, list[JobId], str]:
    reason = gang_reason(job)
    assert reason is not None
    found = places_of(job, reason, there)
    assert found is not None
    whole = GangIncomplete("", reason.least, reason.ready, by_nodes=found[0])
    return *found, reason_sentence(whole, Millis(0), UTC).partition("; by the nodes themselves, ")[2]


@pytest.mark.req("KU-05")
def test_the_members_that_fit_are_named_with_their_nodes_and_the_others_with_what_they_lack() -> None:
    job = in_gang(a_job(*(member(f"w{number}") for number in range(8))), a_group(8))
    found, held, said = looked(job, nodes(0, 4, 0, 0, 4, 8))
    assert (found.missing, found.fitting, found.when_empty) == (8, 3, 1)
    assert found.places == (MembersPlaced(1, 3, ("n1", "n3", "n4")),)
    assert held == [JobId(6), JobId(2), JobId(5)]
    assert said == (
        "3 of the 8 missing pods fit now: 1 on each of 3 nodes (n1, n3 and n4); "
        "5 more nodes with 8 H100 free are needed; "
        "of the other nodes 2 have 4 H100 free, 1 has no H100 free"
    )


@pytest.mark.req("KU-05")
def test_several_members_share_a_node_and_the_placed_ones_are_not_missing() -> None:
    placed = a_running_pod("w0", "n9", spec=a_request(2))
    job = in_gang(a_job(placed, *(member(f"w{number}", 2) for number in range(1, 7))), a_group(7))
    found, held, said = looked(job, nodes(4, 7))
    assert (found.missing, found.fitting, found.when_empty) == (6, 2, 4)
    assert found.places == (MembersPlaced(2, 1, ("n1",)),)
    assert held == [JobId(2)]
    assert said == (
        "2 of the 6 missing pods fit now: 2 on n1; 4 more pods need 2 H100 each; an empty node takes 4 of "
        "them; of the other nodes 1 has 1 H100 free"
    )


@pytest.mark.req("KU-05")
def test_members_that_are_not_created_are_missing_too_and_unlike_ones_do_not_block_each_other() -> None:
    small = merged(a_request(1), {})
    workload = a_pytorch_job(2)
    master = a_pod("m", spec=small, metadata={"labels": {"training.kubeflow.org/replica-type": "master"}})
    job = in_gang(a_job(master, workload=workload), a_group(3))
    # The master waits, and its two workers have not been created.
    found, _, _ = looked(job, nodes(0))
    assert (found.missing, found.fitting) == (3, 1)
    # The large member has the empty node, the small one the node that is partly used.
    job = in_gang(a_job(member("small", 1), member("large", 8)), a_group(2))
    found, held, said = looked(job, nodes(0, 4))
    assert (found.fitting, found.looked_at, held) == (2, None, [])
    assert said == "all 2 missing pods fit now: 1 on each of 2 nodes (n1 and n2)"


@pytest.mark.req("KU-05")
def test_a_member_that_no_node_could_take_is_said_so() -> None:
    job = in_gang(a_job(member("a", 16), member("b", 16)), a_group(2))
    found, _, said = looked(job, nodes(0))
    assert (found.fitting, found.when_empty) == (0, 0)
    assert said.startswith("none of the 2 missing pods fits now; no node could take such a pod even if it were empty")
    # Nothing is evicted for a gang's members, whatever their priority.
    job = in_gang(a_job(member("a", 8, priority=100), member("b", 8, priority=100)), a_group(2))
    assert looked(job, nodes(8))[0].fitting == 0
    # Without nodes that the user may see there is nothing to say.
    reason = gang_reason(job)
    assert reason is not None
    assert places_of(job, reason, {}) is None


@pytest.mark.req("KU-05", "SC-13")
async def test_explain_counts_the_members_of_a_gang_that_fit(backend: KubernetesBackend, server: FakeApi) -> None:
    for name in ("n1", "n2", "n3"):
        server.create(NODES, a_node(name))
    server.create(PODS, running("other", "n1", 4))
    server.create(PODS, running("full", "n2", 8))
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "train",
        "pod-group.scheduling.sigs.k8s.io/min-available": "3",
    }
    message = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    for number in range(3):
        scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        pod = a_manifest(f"w{number}", 8, metadata={"labels": labels}, status={"conditions": [scheduled]})
        server.create(PODS, pod)
    rows = {row.name: row for row in await backend.jobs()}
    outlook = await backend.explain(rows["w0"].id)
    assert outlook.explanation is not None
    reason = outlook.explanation.reason
    assert isinstance(reason, GangIncomplete)
    assert reason.by_nodes is not None
    assert (reason.by_nodes.missing, reason.by_nodes.fitting) == (3, 1)
    assert set(outlook.holders) == {rows["other"].id, rows["full"].id}
    said = "\n".join(plain(each) for each in outlook_lines(outlook, Context(now=Millis(0), zone=UTC)))
    assert "1 of the 3 missing pods fits now: 1 on n3; 2 more nodes with 8 H100 free are needed" in said
    assert "of the other nodes 1 has 4 H100 free, 1 has no H100 free" in said
    assert GPU in said
