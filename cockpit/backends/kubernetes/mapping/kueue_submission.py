"""A job that is not submitted yet, as Kueue would see it, and why a queue would not look at it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.mapping.kueue import KUEUE
from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects, stopped_by
from cockpit.backends.kubernetes.mapping.pod_needs import matches
from cockpit.backends.kubernetes.objects.kueue import KueueWorkload, KueueWorkloadSpec, PodSet
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.model.pod_reasons import QueueWaits

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.model.ids import Millis

DEFAULT_QUEUE = "default"
"""The queue of a namespace that takes the jobs which name none."""


def default_queue(namespace: str, queues: Mapping[str, Collection[str]]) -> str:
    """Return the queue that takes the jobs of a namespace which name none; empty: they wait for no queue. `queues`: the
    names of Kueue's queues by namespace."""
    return DEFAULT_QUEUE if DEFAULT_QUEUE in queues.get(namespace, ()) else ""


def new_workload(job: KubeJob, queue: str, uid: str, priority: int, at: Millis) -> KueueWorkload:
    """Return the workload that Kueue makes of a job which is submitted at this moment. `queue`: the local queue."""
    meta = ObjectMeta(
        name=job.meta.name,
        namespace=job.meta.namespace,
        uid=uid,
        creation_timestamp=datetime.fromtimestamp(at / 1000, UTC),
    )
    pod_sets = tuple(PodSet(each.role.lower() or "main", each.count, each.template) for each in job.groups)
    return KueueWorkload(meta, KueueWorkloadSpec(queue, priority=priority, pod_sets=pod_sets))


def refusal(objects: KueueObjects, workload: KueueWorkload, labels: Mapping[str, str] | None) -> QueueWaits | None:
    """Return why Kueue would not look at the quotas for a job; None: it would. `labels`: those of its namespace; None:
    the user may not read them."""
    namespace, name = workload.metadata.namespace, workload.spec.queue_name
    local = next(
        (each for each in objects.local_queues if (each.metadata.namespace, each.metadata.name) == (namespace, name)),
        None,
    )
    if local is not None and (local.spec.stop_policy or "None") != "None":
        return QueueWaits(
            KUEUE, name, "Suspended", f"queue {name} of the namespace has stopPolicy {local.spec.stop_policy}"
        )
    above = local.spec.cluster_queue if local is not None else ""
    queue = next((each for each in objects.cluster_queues if each.metadata.name == above), None)
    if queue is None:
        # A user who may read no cluster queue knows nothing of this one.
        is_hidden = local is None or not objects.cluster_queues
        return QueueWaits(KUEUE, name) if is_hidden else _misconfigured(name, f"there is no cluster queue {above}")
    if labels is not None and not matches(queue.spec.namespace_selector, labels):
        return _misconfigured(name, f"cluster queue {above} takes no jobs of namespace {namespace} (namespaceSelector)")
    if why := stopped_by(queue):
        return QueueWaits(KUEUE, name, "Suspended", f"cluster queue {above}: {why}")
    return None


def _misconfigured(queue: str, message: str) -> QueueWaits:
    return QueueWaits(KUEUE, queue, "Misconfigured", message, never=True)
