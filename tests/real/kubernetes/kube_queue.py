"""KubeQueue's kinds in the test cluster, as definitions of the tests' own out of the documented fields, and what
KubeQueue does for a job, done by the test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.real.kubernetes.cluster import RealKubernetes

GPU = "nvidia.com/gpu"
UNITS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/queueunits"
TREES = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees"
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "format": "int32"}
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_QUANTITIES = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _definition(group: str, version: str, plural: str, kind: str, **parts: Any) -> dict[str, Any]:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    schema = {"openAPIV3Schema": _object(**parts)}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # The groups belong to Kubernetes, which wants them approved.
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


DEFINITIONS = (
    _definition(
        "scheduling.x-k8s.io",
        "v1alpha1",
        "queueunits",
        "QueueUnit",
        spec=_object(
            consumerRef=_object(apiVersion=_TEXT, kind=_TEXT, name=_TEXT, namespace=_TEXT),
            priority=_NUMBER,
            priorityClassName=_TEXT,
            queue=_TEXT,
            resource=_QUANTITIES,
        ),
        status=_object(phase=_TEXT, message=_TEXT, lastUpdateTime={"type": "string", "format": "date-time"}),
    ),
    _definition(
        "scheduling.x-k8s.io",
        "v1alpha1",
        "queues",
        "Queue",
        spec=_object(queuePolicy=_TEXT, priority=_NUMBER, priorityClassName=_TEXT),
    ),
    _definition(
        "scheduling.sigs.k8s.io",
        "v1beta1",
        "elasticquotatrees",
        "ElasticQuotaTree",
        spec=_object(
            root=_object(
                name=_TEXT,
                min=_QUANTITIES,
                max=_QUANTITIES,
                namespaces={"type": "array", "items": _TEXT},
                attributes=_ANYTHING,
                # A schema cannot contain itself.
                children={"type": "array", "items": _ANYTHING},
            )
        ),
    ),
)


def serve_kube_queue(cluster: RealKubernetes) -> None:
    """Define the kinds, and let administrators of a namespace read and change its queue units."""
    cluster.admin.apply(*DEFINITIONS)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "queue-units", "labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}},
        "rules": [{"apiGroups": ["scheduling.x-k8s.io"], "resources": ["queueunits"], "verbs": ["*"]}],
    }
    cluster.admin.apply(role)


def a_queued_job(name: str, cards: int, seconds: int | None = None) -> dict[str, Any]:
    """Return a Job that KubeQueue is to queue; its pod runs on a fake node until the Job is deleted."""
    resources = {"limits": {GPU: cards}}
    container = {"name": "main", "image": "none", "resources": resources}
    template = {"spec": {"containers": [container], "restartPolicy": "Never", "nodeSelector": {"type": "kwok"}}}
    # Fake pods run on until they are deleted.
    deadline = {} if seconds is None else {"activeDeadlineSeconds": seconds}
    return {"metadata": {"name": name}, "spec": {"suspend": True, "template": template, **deadline}}


def enqueue(cluster: RealKubernetes, namespace: str, job: Mapping[str, Any], cards: int, priority: int = 0) -> None:
    """Make the queue unit of a Job, as KubeQueue does when it sees the Job."""
    name = job["metadata"]["name"]
    consumer = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "namespace": namespace}
    spec = {"consumerRef": consumer, "priority": priority, "resource": {GPU: cards}}
    status = {"phase": "Enqueued", "message": "the queueunit is enqueued after created"}
    cluster.admin.create(
        UNITS.format(namespace),
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "QueueUnit",
            "metadata": {"name": f"{name}-job-qu"},
            "spec": spec,
            "status": status,
        },
    )


def dequeue(cluster: RealKubernetes, namespace: str, name: str) -> None:
    """Let the Job go, as KubeQueue does when its turn has come."""
    unit = f"{UNITS.format(namespace)}/{name}-job-qu"
    status = {"phase": "Dequeued", "message": "Dequeued because schedule successfully"}
    cluster.admin.merge(unit, {"status": status})
    cluster.admin.merge(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}", {"spec": {"suspend": False}})


def a_tree(namespace: str, *, most: int) -> dict[str, Any]:
    """Return a quota tree of 16 cards: 8 for this namespace, which may have `most`, and 8 for `others`."""
    team = {"name": "team", "namespaces": [namespace], "min": {GPU: 8}, "max": {GPU: most}}
    others = {"name": "others", "namespaces": ["others"], "min": {GPU: 8}}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "tree", "namespace": "kube-system"},
        "spec": {"root": {"name": "root", "min": {GPU: 16}, "max": {GPU: 16}, "children": [team, others]}},
    }
