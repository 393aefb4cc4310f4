"""Why Kueue does not admit a job, and Kueue's cluster queues as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from cockpit.backends.kubernetes.mapping.quantities import quantity, tres_amounts
from cockpit.backends.kubernetes.objects.kueue import ClusterQueue, KueueWorkload, LocalQueue
from cockpit.backends.kubernetes.objects.meta import condition
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.quota import Amounts
from cockpit.model.view import QueueKind, QueueRow

KUEUE = "Kueue"
_LONGEST = 400


def admission_reason(workload: KueueWorkload) -> QueueWaits | None:
    """Return why the workload is not admitted; None: it is."""
    if workload.is_admitted:
        return None
    queue = workload.spec.queue_name
    if not workload.spec.active:
        return QueueWaits(KUEUE, queue, "Inactive", "its admission was stopped (spec.active is false)")
    # Evicted says why it lost the quota that it had, until it is queued again.
    for kind in ("QuotaReserved", "Evicted"):
        found = condition(workload.status.conditions, kind)
        if found is not None and (kind == "Evicted") == found.is_true:
            return QueueWaits(KUEUE, queue, found.reason, found.message[:_LONGEST])
    checks = condition(workload.status.conditions, "QuotaReserved")
    if checks is not None and checks.is_true:
        return QueueWaits(KUEUE, queue, "AdmissionChecks", "it has its quota, and waits for admission checks")
    return QueueWaits(KUEUE, queue)


def queue_rows(queues: Iterable[ClusterQueue], local: Iterable[LocalQueue]) -> Iterator[QueueRow]:
    """Yield a row for each cluster queue: its nominal quota as the guarantee, with what it may borrow as the most."""
    namespaces: dict[str, list[str]] = {}
    for each in local:
        namespaces.setdefault(each.spec.cluster_queue, []).append(each.metadata.namespace)
    for queue in sorted(queues, key=lambda each: each.metadata.name):
        name = queue.metadata.name
        nominal, most = _quotas(queue)
        yield QueueRow(
            kind=QueueKind.QUOTA,
            path=name,
            name=name,
            level=0,
            since=queue.metadata.created_at or None,
            waiting=queue.status.pending_workloads,
            running=queue.status.admitted_workloads,
            used=_used(queue),
            min=nominal,
            max=most,
            projects=tuple(sorted(set(namespaces.get(name, ())))),
            bounded=tuple(nominal),
            alone=True,
        )


def _quotas(queue: ClusterQueue) -> tuple[Amounts, Amounts]:
    nominal: dict[str, Fraction] = {}
    borrowed: dict[str, Fraction | None] = {}
    in_cohort = bool(queue.spec.cohort or queue.spec.cohort_name)
    flavors = (flavor for group in queue.spec.resource_groups or () for flavor in group.flavors)
    for quota in (quota for flavor in flavors for quota in flavor.resources):
        own = quantity(quota.nominal_quota)
        nominal[quota.name] = nominal.get(quota.name, Fraction(0)) + own
        before = borrowed.get(quota.name, Fraction(0))
        limit = None if quota.borrowing_limit is None else quantity(quota.borrowing_limit)
        # Without a cohort there is nothing to borrow; in one without a limit, any amount.
        more = Fraction(0) if not in_cohort else limit
        borrowed[quota.name] = None if before is None or more is None else before + more
    most = {name: own + more for name, own in nominal.items() if (more := borrowed[name]) is not None}
    return tres_amounts(nominal), tres_amounts(most)


def _used(queue: ClusterQueue) -> Amounts:
    total: dict[str, Fraction] = {}
    for flavor in queue.status.flavors_usage or ():
        for each in flavor.resources:
            total[each.name] = total.get(each.name, Fraction(0)) + quantity(each.total)
    return tres_amounts(total)
