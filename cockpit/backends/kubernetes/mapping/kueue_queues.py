"""Kueue's cohorts, cluster queues and queues of namespaces as a tree of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects, stopped_by
from cockpit.backends.kubernetes.mapping.quantities import quantity
from cockpit.backends.kubernetes.objects.kueue import ClusterQueue, KueueCohort, LocalQueue, ResourceGroup, UsedFlavor
from cockpit.backends.kubernetes.objects.meta import condition
from cockpit.model.quota import RESOURCES, SEPARATOR, Amounts
from cockpit.model.view import QueueKind, QueueRow

_MIB = 1024**2


def queue_rows(objects: KueueObjects) -> Iterator[QueueRow]:
    """Yield the cohorts, below each its cluster queues and cohorts, and below each cluster queue the queues of
    namespaces that lead to it.

    The nominal quota is the guarantee; with what it may borrow it is the most. What a cohort uses and has is the sum of
    all below it.
    """
    yield from _Tree(objects).rows()


class _Tree:
    def __init__(self, objects: KueueObjects) -> None:
        self._cohorts = {each.metadata.name: each for each in objects.cohorts}
        self._queues: dict[str, list[ClusterQueue]] = {}
        self._local: dict[str, list[LocalQueue]] = {}
        self._below: dict[str, list[str]] = {}
        for queue in sorted(objects.cluster_queues, key=lambda each: each.metadata.name):
            self._queues.setdefault(queue.cohort, []).append(queue)
        for local in sorted(objects.local_queues, key=lambda each: (each.metadata.namespace, each.metadata.name)):
            self._local.setdefault(local.spec.cluster_queue, []).append(local)
        # Cohorts that are only named, by a queue or as a parent, have no object.
        named = {queue.cohort for queue in objects.cluster_queues} | {_parent(each) for each in objects.cohorts}
        names = sorted((named | self._cohorts.keys()) - {""})
        for name in names:
            self._below.setdefault(_parent(self._cohorts.get(name)), []).append(name)

    def rows(self) -> Iterator[QueueRow]:
        for name in self._below.get("", ()):
            yield from self._cohort(name, "", 0)
        for queue in self._queues.get("", ()):
            yield from self._cluster_queue(queue, "", 0)

    def _cohort(self, name: str, above: str, level: int) -> Iterator[QueueRow]:
        path = f"{above}{name}"
        below: list[QueueRow] = []
        for queue in self._queues.get(name, ()):
            below += self._cluster_queue(queue, f"{path}{SEPARATOR}", level + 1)
        for each in self._below.get(name, ()):
            below += self._cohort(each, f"{path}{SEPARATOR}", level + 1)
        cohort = self._cohorts.get(name)
        direct = [row for row in below if row.level == level + 1]
        own = _quotas(cohort.spec.resource_groups, in_cohort=False)[0] if cohort is not None else {}
        nominal = _sum((own, *(row.min for row in direct)))
        yield QueueRow(
            kind=QueueKind.QUOTA,
            path=path,
            name=name,
            level=level,
            since=cohort.metadata.created_at if cohort is not None else None,
            waiting=sum(row.waiting for row in direct),
            running=sum(row.running for row in direct),
            used=_sum(row.used for row in direct),
            min=nominal,
            max={} if level else nominal,
            bounded=tuple(nominal),
        )
        yield from below

    def _cluster_queue(self, queue: ClusterQueue, above: str, level: int) -> Iterator[QueueRow]:
        name = queue.metadata.name
        nominal, most = _quotas(queue.spec.resource_groups, in_cohort=bool(queue.cohort))
        local = self._local.get(name, ())
        yield QueueRow(
            kind=QueueKind.QUOTA,
            path=f"{above}{name}",
            name=name,
            level=level,
            since=queue.metadata.created_at or None,
            waiting=queue.status.pending_workloads,
            running=queue.status.admitted_workloads,
            used=_used(queue.status.flavors_usage),
            min=nominal,
            max=most,
            projects=tuple(sorted({each.metadata.namespace for each in local})),
            bounded=tuple(nominal),
            stopped=stopped_by(queue),
            alone=not level,
        )
        for each in local:
            yield QueueRow(
                kind=QueueKind.QUOTA,
                path=f"{above}{name}{SEPARATOR}{each.metadata.name} ({each.metadata.namespace})",
                name=each.metadata.name,
                level=level + 1,
                since=each.metadata.created_at or None,
                waiting=each.status.pending_workloads,
                running=each.status.admitted_workloads,
                used=_used(each.status.flavors_usage),
                min={},
                max={},
                projects=(each.metadata.namespace,),
                stopped=_local_stopped_by(each),
            )


def _parent(cohort: KueueCohort | None) -> str:
    return "" if cohort is None else cohort.spec.parent_name or cohort.spec.parent


def _local_stopped_by(queue: LocalQueue) -> str:
    if (queue.spec.stop_policy or "None") != "None":
        return f"stopPolicy {queue.spec.stop_policy}"
    active = condition(queue.status.conditions, "Active")
    return active.message or active.reason if active is not None and not active.is_true else ""


def _quotas(groups: Iterable[ResourceGroup] | None, *, in_cohort: bool) -> tuple[Amounts, Amounts]:
    nominal: dict[str, Fraction] = {}
    borrowed: dict[str, Fraction | None] = {}
    flavors = (flavor for group in groups or () for flavor in group.flavors)
    for quota in (quota for flavor in flavors for quota in flavor.resources):
        own = quantity(quota.nominal_quota)
        nominal[quota.name] = nominal.get(quota.name, Fraction(0)) + own
        before = borrowed.get(quota.name, Fraction(0))
        limit = None if quota.borrowing_limit is None else quantity(quota.borrowing_limit)
        # Without a cohort there is nothing to borrow; in one without a limit, any amount.
        more = Fraction(0) if not in_cohort else limit
        borrowed[quota.name] = None if before is None or more is None else before + more
    most = {name: own + more for name, own in nominal.items() if (more := borrowed[name]) is not None}
    return _amounts(nominal), _amounts(most)


def _used(flavors: Iterable[UsedFlavor] | None) -> Amounts:
    total: dict[str, Fraction] = {}
    for flavor in flavors or ():
        for each in flavor.resources:
            total[each.name] = total.get(each.name, Fraction(0)) + quantity(each.total)
    return _amounts(total)


def _sum(given: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for each in given:
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount
    return total


def _amounts(given: Mapping[str, Fraction]) -> Amounts:
    """Return the amounts that cockpit counts, in thousandths of a CPU, a MiB or a card."""
    counted = {name: amount for name, amount in given.items() if name in RESOURCES}
    in_units = {name: amount / _MIB if name == "memory" else amount for name, amount in counted.items()}
    return {RESOURCES[name]: math.ceil(1000 * amount) for name, amount in in_units.items()}
