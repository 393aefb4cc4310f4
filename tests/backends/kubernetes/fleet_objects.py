"""Objects of a fleet's host, of the fields that Karmada and ACK One document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.backends.kubernetes.objects import GPU, merged

if TYPE_CHECKING:
    from tests.doubles.kubernetes_api import FakeApi

ACK, KARMADA = "policy.one.alibabacloud.com/v1alpha1", "policy.karmada.io/v1alpha1"
JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
POLICIES = "/apis/{}/namespaces/team-a/propagationpolicies"
BINDINGS = "/apis/work.karmada.io/v1alpha2/namespaces/team-a/resourcebindings"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy"
RESULT = "Binding has been scheduled successfully. Result: {cn-1:0,[{master 1} {worker 2}]}"


def serve_fleet(server: FakeApi, *dialects: str) -> None:
    """Serve the kinds of a fleet's host, with the policies of these dialects."""
    server.kinds |= {f"/apis/{each}": ("propagationpolicies",) for each in dialects or (ACK,)}
    server.kinds |= {
        "/apis/work.karmada.io/v1alpha2": ("resourcebindings",),
        "/apis/cluster.karmada.io/v1alpha1": ("clusters",),
    }


def a_member(
    name: str = "cn-1", *, cards: int = 16, used: int = 0, ready: bool = True, **changes: Any
) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "220"}
    base = {
        "metadata": {"name": name},
        "spec": {"apiEndpoint": f"https://{name}.example:6443", "syncMode": "Push"},
        "status": {
            "kubernetesVersion": "v1.30.1",
            "conditions": [
                {"type": "Ready", "status": str(ready), "message": "cluster is not reachable" * (not ready)}
            ],
            "nodeSummary": {"totalNum": 2, "readyNum": 2},
            "resourceSummary": {
                "allocatable": {**amounts, GPU: str(cards)},
                "allocated": {"cpu": "8", "memory": "16Gi", "pods": "4", GPU: str(used)},
            },
        },
    }
    return merged(base, changes)


def a_policy(name: str = "example-policy", **spec: Any) -> dict[str, Any]:
    """The policy of the documentation, which selects every PyTorchJob of its namespace."""
    base = {
        "propagateDeps": True,
        "failover": {
            "application": {"decisionConditions": {"tolerationSeconds": 30}, "purgeMode": "Immediately"},
        },
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "customSchedulingType": "Gang"}},
        "resourceSelectors": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}],
    }
    return {"kind": "PropagationPolicy", "metadata": {"name": name}, "spec": merged(base, spec)}


def a_binding(
    *clusters: str, job: str = "train", status: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """The binding of a PyTorchJob to these members."""
    resource = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "namespace": "team-a", "name": job}
    base = {
        "metadata": {"name": f"{job}-pytorchjob"},
        "spec": {"resource": resource, "clusters": [{"name": each} for each in clusters]},
        "status": status or {},
    }
    return merged(base, changes)


def unscheduled(message: str = "0/2 clusters are available: 2 clusters have too little free.") -> dict[str, Any]:
    return {"conditions": [{"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": message}]}


def reported(cluster: str, *conditions: str, **more: Any) -> dict[str, Any]:
    """What a member reports of its object, whose last condition is its state."""
    status = {"conditions": [{"type": each, "status": "True"} for each in conditions], **more}
    return {"clusterName": cluster, "applied": True, "health": "Healthy", "status": status}
