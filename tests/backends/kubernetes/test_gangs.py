"""Which pods start together, and which of them a gang misses, out of pod groups and of the pods' labels."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.mapping.gangs import gang_reason
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.membership import BatchScheduling, Gang, GangKey, gang_key
from cockpit.backends.kubernetes.mapping.rows import reason_of
from cockpit.backends.kubernetes.objects.gang import PodGroup
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.resources import PYTORCH_JOBS
from cockpit.model.ids import Millis
from cockpit.model.pod_reasons import (
    GangIncomplete,
    Gated,
    MemberState,
    MissingMembers,
    NodesExcluded,
    Obstacle,
    PodsStarting,
    StartStep,
    Unschedulable,
)
from cockpit.present.reasons import reason_sentence
from tests.backends.kubernetes.objects import a_job, a_pod, a_pytorch_job, a_running_pod, an_ended_pod, merged

FULL = "0/20 nodes are available: 20 Insufficient nvidia.com/gpu."
X_LABEL = "scheduling.x-k8s.io/pod-group"


def a_group(least: int, phase: str = "Pending", **changes: Any) -> PodGroup:
    base = {
        "metadata": {"name": "train", "namespace": "team-a", "uid": "uid-group"},
        "spec": {"minMember": least},
        "status": {"phase": phase},
    }
    return msgspec.convert(merged(base, changes), PodGroup, strict=False)


def refused(name: str, message: str = FULL, **changes: Any) -> Pod:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    return a_pod(name, **merged({"status": {"conditions": conditions}}, changes))


def in_gang(job: KubeJob, group: PodGroup | None, *others: Pod) -> KubeJob:
    job.batch = BatchScheduling(Gang("train", (*job.pods, *others), group))
    return job


def sentence(reason: GangIncomplete) -> str:
    return reason_sentence(reason, Millis(0), UTC)


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    ("labels", "annotations", "name"),
    [
        ({X_LABEL: "g"}, {}, "g"),
        ({"pod-group.scheduling.sigs.k8s.io": "g"}, {}, "g"),
        ({"pod-group.scheduling.sigs.k8s.io/name": "g"}, {}, "g"),
        ({}, {"gang.scheduling.koordinator.sh/name": "g"}, "g"),
        ({}, {"scheduling.k8s.io/group-name": "g"}, "g"),
        ({"app": "g"}, {"note": "g"}, ""),
    ],
)
def test_a_pod_names_its_gang_in_the_way_of_each_scheduler(
    labels: dict[str, str], annotations: dict[str, str], name: str
) -> None:
    pod = a_pod(metadata={"labels": labels, "annotations": annotations})
    assert gang_key(pod.metadata) == (GangKey("team-a", name) if name else None)


@pytest.mark.req("KU-05")
def test_each_missing_member_is_named_with_its_own_reason() -> None:
    placed = a_running_pod("a")
    pulling = a_running_pod(
        "b", status={"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}
    )
    gated = a_pod("e", spec={"schedulingGates": [{"name": "x/gate"}]})
    job = a_job(placed, pulling, refused("d"), refused("c"), gated, workload=a_pytorch_job(7))
    found = gang_reason(in_gang(job, a_group(8)))
    assert found == GangIncomplete(
        "",
        8,
        2,
        (
            MissingMembers(
                2,
                MemberState.NO_NODE,
                ("c", "d"),
                reason=Unschedulable(2, 8, 20, (NodesExcluded(20, Obstacle.RESOURCE, "nvidia.com/gpu"),)),
            ),
            MissingMembers(1, MemberState.GATED, ("e",), reason=Gated(("x/gate",))),
            MissingMembers(1, MemberState.STARTING, reason=PodsStarting(StartStep.IMAGE, 1, "ErrImagePull")),
            MissingMembers(3, MemberState.NOT_CREATED),
        ),
    )
    assert sentence(found) == (
        "starts with 8 pods or not at all; 2 of them have a node; "
        "2 have no node (c and d): of 20 nodes 20 have too little free nvidia.com/gpu; 1 is kept back (e): x/gate; "
        "1 has a node and does not run: 1 pod cannot pull the image (ErrImagePull); 3 are not created"
    )
    assert reason_of(job) == found


@pytest.mark.req("KU-05")
def test_members_that_nobody_created_have_the_role_that_is_short() -> None:
    master = a_running_pod("m", metadata={"labels": {"training.kubeflow.org/replica-type": "master"}})
    found = gang_reason(in_gang(a_job(master, workload=a_pytorch_job(2)), a_group(3)))
    assert found is not None
    assert found.missing == (MissingMembers(2, MemberState.NOT_CREATED, role="Worker"),)
    assert sentence(found).endswith("; 2 are not created (Worker)")


@pytest.mark.req("KU-05")
def test_members_that_would_fit_and_those_not_looked_at_are_told_apart() -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Schedulable", "message": "fits"}]
    fits = a_pod("a", status={"conditions": conditions})
    job = a_job(fits, a_pod("b"), refused("c"), workload=a_pytorch_job(2))
    found = gang_reason(in_gang(job, a_group(3)))
    assert found is not None
    assert [(each.count, each.state, each.names) for each in found.missing] == [
        (1, MemberState.NO_NODE, ("c",)),
        (1, MemberState.NOT_CONSIDERED, ("b",)),
        (1, MemberState.WOULD_FIT, ("a",)),
    ]


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    "said",
    [
        (
            "pre-filter pod {} cannot find enough sibling pods, current pods number: 2, minMember of group: 4. no new "
            "claims to deallocate, PodGroup team-a/short gets rejected due to Pod {} is unschedulable even after "
            "PostFilter, not eligible due to failed to read from cycleState"
        ),
        "pre-filter pod {} cannot proceed due to gated pods in the same PodGroup. preemption: 0/21 nodes are available",
        "podGroup team-a/short failed recently. no new claims to deallocate.",
        (
            'GangGroup "team-a/short" gets rejected due to member Pod "team-a/c" is unschedulable with reason "0/21 '
            'nodes are available: 21 Insufficient nvidia.com/gpu.", alreadyWaitForBound: 0.'
        ),
        (
            "gangGroup [team-a/short] basic check: memberGangs [team-a/short] child pod not collect enough, current "
            "gang: team-a/short, podName: team-a/{}."
        ),
        "gangGroup team-a/short is scheduling and this pod has not been attempted.",
    ],
)
def test_pods_that_the_scheduler_leaves_alone_because_of_their_gang_wait_together(said: str) -> None:
    """As scheduler-plugins 0.35.4 writes it, and by its source Koordinator 1.8; each pod's name is in its own words."""
    pods = []
    for name in ("a", "b"):
        message = f"0/21 nodes are available: {said.format(name, name)}"
        conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
        pods.append(a_pod(name, status={"conditions": conditions}))
    found = gang_reason(in_gang(a_job(*pods, workload=a_pytorch_job(2)), a_group(4)))
    assert found is not None
    assert [(each.count, each.state, each.names) for each in found.missing] == [
        (2, MemberState.NOT_CONSIDERED, ("a", "b")),
        (2, MemberState.NOT_CREATED, ()),
    ]


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    ("pods", "group"),
    [
        ((a_running_pod("a"), a_running_pod("b"), refused("c")), a_group(2)),
        ((an_ended_pod("a"), a_running_pod("b"), refused("c")), a_group(2)),
        ((a_running_pod("a"), refused("b")), a_group(2, "Running")),
        ((a_running_pod("a"), refused("b")), a_group(0)),
    ],
    ids=["enough-nodes", "one-has-ended", "was-complete-once", "least-unknown"],
)
def test_a_complete_gang_leaves_the_rest_to_the_scheduler(pods: tuple[Pod, ...], group: PodGroup) -> None:
    job = in_gang(a_job(*pods, workload=a_pytorch_job(len(pods) - 1)), group)
    assert gang_reason(job) is None
    assert isinstance(reason_of(job), Unschedulable)


@pytest.mark.req("KU-05")
def test_the_groups_own_sentence_is_shown_where_no_pod_has_one() -> None:
    said = [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughTasks", "message": "1/3 tasks\x1b[2J"}]
    job = in_gang(a_job(a_pod("a"), workload=a_pytorch_job(2)), a_group(3, status={"conditions": said}))
    found = gang_reason(job)
    assert found is not None
    assert found.message == "1/3 tasks\x1b[2J"
    assert "\x1b" not in sentence(found)


def changed(inventory: Inventory) -> dict[str, GangIncomplete | None]:
    """Return why each job that has changed waits for its gang, by the job's name."""
    jobs = (job for _, job in inventory.jobs.take_changes() if job is not None)
    return {job.meta.name: gang_reason(job) for job in jobs}


def of_gang(name: str, **changes: Any) -> Pod:
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}
    return refused(name, **merged({"metadata": {"labels": labels}}, changes))


@pytest.mark.req("KU-05")
def test_bare_pods_of_one_gang_are_jobs_that_wait_for_each_other(inventory: Inventory) -> None:
    inventory.jobs.pod_changed(None, of_gang("a"))
    first = changed(inventory)["a"]
    assert first is not None
    assert (first.gang, first.least, first.ready) == ("g", 3, 0)
    assert first.missing[-1] == MissingMembers(2, MemberState.NOT_CREATED)
    # A member that arrives, is placed or goes changes what the others wait for.
    inventory.jobs.pod_changed(None, other := of_gang("b"))
    assert {name: why.missing[-1].count for name, why in changed(inventory).items() if why} == {"a": 1, "b": 1}
    inventory.jobs.pod_changed(other, placed := of_gang("b", spec={"nodeName": "n1"}))
    assert {name: why.ready for name, why in changed(inventory).items() if why} == {"a": 1, "b": 1}
    inventory.jobs.pod_changed(placed, None)
    alone = changed(inventory)
    assert alone["a"] == first
    assert "b" not in alone


@pytest.mark.req("KU-05")
def test_a_pod_group_is_its_owners_before_there_is_a_pod(inventory: Inventory) -> None:
    inventory.jobs.workload_changed(PYTORCH_JOBS, None, a_pytorch_job(2))
    owner = {"ownerReferences": [{"uid": "uid-train", "kind": "PyTorchJob", "name": "train", "controller": True}]}
    assert changed(inventory) == {"train": None}
    inventory.schedulers.group_changed(None, group := a_group(3, metadata=owner))
    found = changed(inventory)["train"]
    assert found == GangIncomplete("", 3, 0, (MissingMembers(3, MemberState.NOT_CREATED),))
    inventory.schedulers.group_changed(group, None)
    assert changed(inventory) == {"train": None}


@pytest.mark.req("KU-05")
def test_only_the_job_of_a_gang_is_looked_at_when_one_of_its_pods_changes(inventory: Inventory) -> None:
    owner = [{"uid": "uid-train", "kind": "PyTorchJob", "name": "train", "controller": True}]
    pods = [of_gang(name, metadata={"ownerReferences": owner}) for name in ("a", "b")]
    inventory.jobs.workload_changed(PYTORCH_JOBS, None, a_pytorch_job(2))
    for pod in pods:
        inventory.jobs.pod_changed(None, pod)
    (found,) = changed(inventory).values()
    assert found is not None
    assert [(each.count, each.names) for each in found.missing] == [(2, ("a", "b")), (1, ())]
