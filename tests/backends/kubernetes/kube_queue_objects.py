"""Objects of KubeQueue and quota trees, as the manifests and bodies that tests create."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cockpit.formats.quotatree import read_quota_tree
from tests.backends.kubernetes.objects import GPU, merged
from tests.backends.kubernetes.test_backend import a_job, a_pod
from tests.doubles.kubernetes_api import Reply

if TYPE_CHECKING:
    from cockpit.model.quota import QuotaTree
    from tests.doubles.kubernetes_api import FakeApi

UNITS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/queueunits"
QUEUES = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/kube-queue/queues"
TREES = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees"
SUSPENDED = {"annotations": {"scheduling.x-k8s.io/suspend": "true"}}
STARTED = "2026-03-01T09:00:00Z"
ENQUEUED = "Insufficient quota(nvidia.com/gpu) in quota root/a"


def jobs_of(namespace: str) -> str:
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs"


def a_unit(name: str, namespace: str = "team-a", cards: int = 8, **changes: Any) -> dict[str, Any]:
    """Return the queue unit of a PyTorchJob that requests so many cards."""
    consumer = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": name, "namespace": namespace}
    spec = {"consumerRef": consumer, "resource": {"cpu": "8", "memory": "64Gi", GPU: cards}}
    status = {"phase": "Enqueued", "message": ENQUEUED}
    return merged({"metadata": {"name": f"{name}-py-qu"}, "spec": spec, "status": status}, changes)


def amounts(cards: int, **more: Any) -> dict[str, Any]:
    return {"cpu": 64, "memory": "512Gi", GPU: cards, **more}


def a_tree(**of_a: Any) -> dict[str, Any]:
    """Return a tree of 16 cards for the teams a and b; each has 8 of its own, and team b may use all."""
    team_a = merged({"name": "a", "namespaces": ["team-a"], "min": {GPU: 8}, "max": amounts(12)}, of_a)
    team_b = {"name": "b", "namespaces": ["team-b"], "min": {GPU: 8}, "attributes": {"theirs": "stays"}}
    root = {"name": "root", "min": amounts(16), "max": amounts(16), "children": [team_a, team_b]}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "tree", "namespace": "kube-system"},
        "spec": {"root": root},
    }


def a_manifest(**of_a: Any) -> QuotaTree:
    """Return that tree as a user writes it, without what others add to its nodes."""
    tree = a_tree(**of_a)
    del tree["spec"]["root"]["children"][1]["attributes"]
    return read_quota_tree("tree.yaml", json.dumps(tree))


def run_job(server: FakeApi, name: str, namespace: str, *, seconds: int | None = None) -> None:
    """Create a job that KubeQueue has dequeued, and whose pod runs with 8 cards."""
    deadline = {} if seconds is None else {"runPolicy": {"activeDeadlineSeconds": seconds}}
    job = server.create(jobs_of(namespace), a_job(name, spec=deadline))
    server.create(UNITS.format(namespace), a_unit(name, namespace, status={"phase": "Dequeued"}))
    containers = [{"name": "main", "state": {"running": {"startedAt": STARTED}}}]
    status = {"phase": "Running", "containerStatuses": containers}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    server.create(pods, a_pod(job, f"{name}-master-0", spec={"nodeName": "n1"}, status=status))


def queue_job(server: FakeApi, name: str, namespace: str = "team-a", **unit: Any) -> None:
    """Create a job that KubeQueue has put into its queue."""
    server.create(jobs_of(namespace), a_job(name, metadata=SUSPENDED))
    server.create(UNITS.format(namespace), a_unit(name, namespace, **unit))


def serve_kube_queue(server: FakeApi) -> None:
    """Have the server serve the kinds of KubeQueue, and quota trees that the user may change."""
    allowed = json.dumps({"status": {"allowed": True}}).encode()
    server.answer_next("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Reply(body=allowed))
    server.kinds["/apis/scheduling.x-k8s.io/v1alpha1"] = ("queues", "queueunits")
    server.kinds["/apis/scheduling.sigs.k8s.io/v1beta1"] = ("elasticquotatrees",)
