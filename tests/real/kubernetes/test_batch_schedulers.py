"""Gangs, Volcano's objects and elastic quotas on a real API server and scheduler, with definitions of the documented
fields: which of two kinds of one name is meant, what a user may see of them, and what a command of Volcano looks like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.model.job import JobState
from cockpit.model.pod_reasons import GangIncomplete, MemberState, Obstacle, PodsNotCreated, QueueWaits, Unschedulable
from cockpit.model.reasons import QuotaFull
from tests.real.kubernetes.cluster import ADMIN, ALICE, RBAC
from tests.real.kubernetes.conftest import CARDS, running_cluster
from tests.real.kubernetes.pods import create_pod, fake_pod, wait_for_phase
from tests.real.kubernetes.test_backend import cockpit_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
NODES = 2
VOLCANO, X, SIGS = "scheduling.volcano.sh", "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"
GPU = "nvidia.com/gpu"
_AMOUNTS = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _fields(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


_QUEUE = {
    "spec": _fields(weight={"type": "integer"}, capability=_AMOUNTS, parent={"type": "string"}),
    "status": _fields(state={"type": "string"}, allocated=_AMOUNTS, pending={"type": "integer"}),
}
_GROUP = {"spec": _fields(minMember={"type": "integer"}, queue={"type": "string"}), "status": _ANY}
_QUOTA = {"spec": _fields(min=_AMOUNTS, max=_AMOUNTS), "status": _fields(used=_AMOUNTS)}
_COMMAND = {"action": {"type": "string"}, "target": _ANY}


def _definition(
    group: str, version: str, plural: str, kind: str, fields: dict[str, Any], scope: str = "Namespaced"
) -> dict[str, Any]:
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _fields(**fields)},
        "subresources": {"status": {}} if "status" in fields else {},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Groups of Kubernetes' own names are kept for those who have this note.
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, test"}},
        "spec": {"group": group, "names": names, "scope": scope, "versions": [served]},
    }


DEFINITIONS = (
    _definition("batch.volcano.sh", "v1alpha1", "jobs", "Job", {"spec": _ANY, "status": _ANY}),
    _definition("bus.volcano.sh", "v1alpha1", "commands", "Command", _COMMAND),
    _definition(VOLCANO, "v1beta1", "queues", "Queue", _QUEUE, "Cluster"),
    _definition(VOLCANO, "v1beta1", "podgroups", "PodGroup", _GROUP),
    *(_definition(group, "v1alpha1", "podgroups", "PodGroup", _GROUP) for group in (X, SIGS)),
    *(_definition(group, "v1alpha1", "elasticquotas", "ElasticQuota", _QUOTA) for group in (X, SIGS)),
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealKubernetes]:
    """A cluster of these tests' own: the definitions would be served to all others."""
    with running_cluster(nodes=NODES) as made:
        made.admin.apply(*DEFINITIONS)
        # What an administrator who installs Volcano gives the users of namespaces.
        rules = [
            {"apiGroups": ["batch.volcano.sh", "bus.volcano.sh", VOLCANO, X, SIGS], "resources": ["*"], "verbs": ["*"]}
        ]
        label = {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}
        made.admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": "batch", "labels": label}, "rules": rules})
        yield made


def _set(cluster: RealKubernetes, path: str, name: str, content: dict[str, Any]) -> dict[str, Any]:
    """Create an object with its status, as its controller would."""
    made: dict[str, Any] = cluster.admin.create(path, {**content, "metadata": {"name": name, **content["metadata"]}})
    if "status" in content:
        cluster.admin.merge(f"{path}/{name}/status", {"status": content["status"]})
    return made


def _volcano_job(name: str, queue: str, *, pods: int, phase: str = "Pending") -> dict[str, Any]:
    container = {"name": "main", "image": "example/train:1", "resources": {"limits": {GPU: str(CARDS)}}}
    task = {"name": "worker", "replicas": pods, "template": {"spec": {"containers": [container]}}}
    spec = {"queue": queue, "minAvailable": pods, "tasks": [task]}
    status = {"state": {"phase": phase}, "conditions": [{"status": phase}]}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }


@pytest.mark.req("KU-05")
async def test_a_gang_by_labels_names_the_member_for_which_there_is_no_node(
    cluster: RealKubernetes, namespace: str
) -> None:
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "4"}
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        # The usual scheduler knows nothing of gangs: it places as many as it can, here one on each node.
        for number in range(NODES + 1):
            pod = fake_pod(f"g-{number}", cards=CARDS)
            pod["metadata"]["labels"] = labels
            path = create_pod(cluster.admin, namespace, pod)
            if number < NODES:
                wait_for_phase(cluster.admin, path, "Running")
        row = await until(
            backend,
            f"g-{NODES}",
            lambda row: (
                isinstance(row.reason, GangIncomplete)
                and row.reason.ready == NODES
                and isinstance(row.reason.missing[0].reason, Unschedulable)
            ),
        )
        assert isinstance(row.reason, GangIncomplete)
        refused, absent = row.reason.missing
        assert (refused.state, refused.names) == (MemberState.NO_NODE, (f"g-{NODES}",))
        assert isinstance(refused.reason, Unschedulable)
        assert {(each.nodes, each.obstacle) for each in refused.reason.excluded} == {
            (NODES, Obstacle.RESOURCE),
            (1, Obstacle.TAINT),
        }
        assert (absent.count, absent.state) == (1, MemberState.NOT_CREATED)
        # Its own look agrees: the members have all the nodes, and none is left for the two others.
        outlook = await backend.explain(row.id)
        assert outlook.explanation is not None
        assert isinstance(outlook.explanation.reason, GangIncomplete)
        found = outlook.explanation.reason.by_nodes
        assert found is not None
        assert (found.missing, found.fitting, found.when_empty) == (2, 0, 1)
        assert found.looked_at is not None
        assert (GPU, CARDS) in found.looked_at.wanted
        names = {each.name for each in outlook.named if each.job in outlook.holders}
        assert names == {f"g-{number}" for number in range(NODES)}


@pytest.mark.req("KU-04", "KU-05")
async def test_quotas_of_both_groups_are_listed_and_the_short_one_is_named(
    cluster: RealKubernetes, namespace: str
) -> None:
    def quota(group: str, name: str, where: str, used: int, most: int, parent: str = "") -> None:
        labels = {"quota.scheduling.koordinator.sh/parent": parent} if parent else {}
        content = {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"labels": labels},
            "spec": {"min": {GPU: 4}, "max": {GPU: most}},
            "status": {"used": {GPU: str(used)}},
        }
        _set(cluster, f"/apis/{group}/v1alpha1/namespaces/{where}/elasticquotas", name, content)

    quota(SIGS, "lab", namespace, 12, 16)
    quota(SIGS, "nlp", namespace, 4, 64, parent="lab")
    quota(X, "nlp", "default", 1, 8)
    message = "Insufficient quotas, quotaName: nlp, runtime: {}, used: {}, pod's request: {}, exceedDimensions: [x]"
    pod = fake_pod("big", cards=CARDS)
    pod["metadata"]["labels"] = {"quota.scheduling.koordinator.sh/name": "nlp"}
    pod["spec"]["schedulerName"] = "koord-scheduler"
    path = create_pod(cluster.admin, namespace, pod)
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    cluster.admin.merge(f"{path}/status", {"status": {"conditions": conditions}})
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        row = await until(backend, "big", lambda row: isinstance(row.reason, QueueWaits))
        rows = {each.path: each for each in (await backend.queues()).rows}
        assert {"lab", "lab/nlp", "default/nlp"} <= rows.keys()
        assert (rows["lab/nlp"].max, rows["lab/nlp"].waiting) == ({"gres/gpu": 64_000}, 1)
        assert (rows["default/nlp"].max, rows["default/nlp"].projects) == ({"gres/gpu": 8000}, ("default",))
        outlook = await backend.explain(row.id)
        assert outlook.explanation is not None
        assert outlook.explanation.reason == QuotaFull("lab", "gres/gpu", 16, 12, CARDS)


@pytest.mark.req("KU-03", "KU-07")
async def test_a_job_of_volcano_is_suspended_by_a_command_of_the_users_own(
    cluster: RealKubernetes, namespace: str
) -> None:
    jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"
    commands = f"/apis/bus.volcano.sh/v1alpha1/namespaces/{namespace}/commands"
    made = _set(cluster, jobs, "train", _volcano_job("train", "batch", pods=2))
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        row = await until(backend, "train", lambda row: row.reason == PodsNotCreated("Volcano Job"))
        assert (row.nodes, row.card_milli, row.partitions) == (2, 2000 * CARDS, ("batch",))
        await backend.hold(row.id)
        command = cluster.admin.get(f"{commands}/train-abortjob")
        assert (command["action"], command["target"]["uid"]) == ("AbortJob", made["metadata"]["uid"])
        # Its controller carries it out and removes it.
        cluster.admin.delete(f"{commands}/train-abortjob")
        cluster.admin.merge(f"{jobs}/train/status", {"status": {"state": {"phase": "Aborted"}}})
        await until(backend, "train", lambda row: row.state is JobState.QUEUED and row.reason is not None
                    and not isinstance(row.reason, PodsNotCreated))  # fmt: skip
        await backend.release(row.id)
        assert cluster.admin.get(f"{commands}/train-resumejob")["action"] == "ResumeJob"


@pytest.mark.req("KU-01", "KU-04")
async def test_who_may_not_see_queues_sees_the_jobs_and_the_servers_reason(
    cluster: RealKubernetes, namespace: str
) -> None:
    queue = {"apiVersion": f"{VOLCANO}/v1beta1", "kind": "Queue", "metadata": {}, "status": {"state": "Closed"}}
    _set(cluster, f"/apis/{VOLCANO}/v1beta1/queues", "shut", queue)
    job = _set(cluster, f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs", "late",
               _volcano_job("late", "shut", pods=1))  # fmt: skip
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "late", "controller": True,
             "uid": job["metadata"]["uid"]}  # fmt: skip
    group = {
        "apiVersion": f"{VOLCANO}/v1beta1",
        "kind": "PodGroup",
        "metadata": {"ownerReferences": [owner]},
        "spec": {"minMember": 1, "queue": "shut"},
        "status": {"phase": "Pending"},
    }
    _set(cluster, f"/apis/{VOLCANO}/v1beta1/namespaces/{namespace}/podgroups", "late-1", group)
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        await until(backend, "late", lambda row: row.reason == QueueWaits("Volcano", "shut", "Closed"))
        (row,) = [each for each in (await backend.queues()).rows if each.name == "shut"]
        assert row.stopped
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        await until(backend, "late", lambda row: row.reason == QueueWaits("Volcano", "shut", "InQueue"))
        trouble = (await backend.status()).trouble
        assert any(f"queues.{VOLCANO} cannot be read" in each and "forbidden" in each for each in trouble)
