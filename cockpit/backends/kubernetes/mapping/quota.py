"""The use of a cluster's quota tree, KubeQueue's test of a waiting job, and the tree as rows of queues.

KubeQueue takes a job from its queue if no node from the job's leaf up to the root would exceed its max: used + request
<= max. What counts as used:

1. A job that was taken from its queue counts with its whole request until it ends, whether it has pods or not.
2. Of other jobs the placed pods count, as do those that belong to no job.
3. A job counts to the node that its labels name, else to the one with its namespace.
"""

from __future__ import annotations

from collections import Counter as Sums
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.kubernetes.mapping.kube_queue import QUOTA_LABELS, queue_of_node
from cockpit.backends.kubernetes.mapping.quantities import pod_tres, requested, tres_amounts
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ENDED, JobState
from cockpit.model.quota import JOBS, RESOURCES, SEPARATOR, Amounts, QuotaTree, places
from cockpit.model.reasons import QuotaFull, QuotaMaxJobs
from cockpit.model.view import QueueKind, QueueRow
from cockpit.sched.rules.limits import NO_SCOPE, Counter, Running
from cockpit.sched.rules.quotas import NO_LEAF, Quotas, counter

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.kube_queue import KubeQueue
    from cockpit.backends.kubernetes.objects.pod import Pod

_ONE = 1000
MOST_BORROWERS = 3
_SHOWN = tuple(each for each in RESOURCES.values() if each != JOBS)


class QuotaShortage(NamedTuple):
    """Why a job does not fit into the quota tree."""

    limit: QuotaFull | QuotaMaxJobs
    borrowers: tuple[tuple[str, float], ...]
    after: JobId | None
    fits_at: Millis | None


class _Counted(NamedTuple):
    """A job that counts to the tree."""

    job: JobId
    ends_at: Millis | None
    """When its time limit is over; None: it has none, or has not started."""
    leaf: str
    amounts: Amounts


class QuotaLeaves:
    """Finds the node of the quota tree that a job belongs to."""

    def __init__(self, tree: QuotaTree | None) -> None:
        self.quotas = Quotas(tree)
        shares = self.quotas.shares.values()
        self._by_name = {share.path.rpartition("/")[2]: share.path for share in shares}
        parents = {share.line[1] for share in shares if len(share.line) > 1}
        # Without the root, which has all there is and cannot borrow.
        self.borrowing = tuple(share for share in shares if share.path not in parents and len(share.line) > 1)
        """The leaves."""

    def can_be_named(self, path: str) -> bool:
        """Return whether a job of any namespace can name this leaf by a label."""
        return self._by_name.get(path.rpartition(SEPARATOR)[2]) == path

    def of(self, namespace: str, label: Callable[[str], str]) -> str:
        """Return the path of the job's leaf; NO_LEAF: it belongs to none. `label`: returns a label of the job."""
        named = next(filter(None, map(label, QUOTA_LABELS)), "")
        return self._by_name[named] if named in self._by_name else self.quotas.leaf(namespace)


class QuotaUse:
    """The use of each node of a quota tree at one moment."""

    def __init__(
        self,
        tree: QuotaTree,
        leaves: QuotaLeaves,
        jobs: Mapping[JobId, KubeJob],
        others: Iterable[Pod],
    ) -> None:
        """`others`: the placed pods that belong to no job."""
        self._tree, self._leaves = tree, leaves
        self._counted: list[_Counted] = []
        self._used: Sums[Counter] = Sums()
        self._waiting: Sums[str] = Sums()
        self._running: Sums[str] = Sums()
        for number, job in jobs.items():
            self._take(number, job)
        for pod in others:
            leaf = leaves.of(pod.metadata.namespace, pod.metadata.label)
            self._add(leaf, pod_tres(requested(pod.spec)))

    def shortage(self, job: KubeJob) -> QuotaShortage | None:
        """Return the first node where the job does not fit, and what is known of when it will; None: it fits, has its
        quota already, or belongs to no node."""
        leaf = self._leaf(job)
        if leaf == NO_LEAF or (job.turn is not None and job.turn.has_quota):
            return None
        wanted = _wanted(job)
        limits = self._leaves.quotas.joined(NO_SCOPE, leaf).running
        over = [each for each in limits if self._excess(each, wanted) > 0]
        if not over:
            return None
        first = over[0]
        after = None if any(wanted[each.resource] > each.allowed for each in over) else self._fits_after(over, wanted)
        return QuotaShortage(
            self._limit(first, wanted),
            () if first.resource == JOBS else tuple(self._borrowers(first)),
            after.job if after is not None else None,
            after.ends_at if after is not None else None,
        )

    def short(self, job: KubeJob) -> frozenset[str]:
        """Return the resources of which the job finds too little in the tree."""
        leaf, wanted = self._leaf(job), _wanted(job)
        limits = self._leaves.quotas.joined(NO_SCOPE, leaf).running if leaf != NO_LEAF else ()
        return frozenset(each.resource for each in limits if self._excess(each, wanted) > 0)

    def admits(self, job: KubeJob, less: Amounts, leaf: str = "") -> bool:
        """Return whether a job that waits would fit with so much less of each resource. `leaf`: the path of its node;
        empty: its own."""
        leaf, wanted = leaf or self._leaf(job), _wanted(job)
        if leaf == NO_LEAF:
            return False
        smaller = {name: amount - less.get(name, 0) for name, amount in wanted.items()}
        return all(self._excess(each, smaller) <= 0 for each in self._leaves.quotas.joined(NO_SCOPE, leaf).running)

    def holders(self, limit: QuotaFull | QuotaMaxJobs) -> list[JobId]:
        """Return the jobs that use the node's resource, the largest use first."""
        resource = limit.resource if isinstance(limit, QuotaFull) else JOBS
        used = [
            (each.amounts[resource], each.job)
            for each in self._counted
            if each.amounts.get(resource) and limit.queue in self._line(each.leaf)
        ]
        return [job for _, job in sorted(used, key=lambda each: (-each[0], each[1]))]

    def rows(self, queues: Iterable[KubeQueue], since: Millis) -> Iterator[QueueRow]:
        """Yield a row for each node of the tree, parents first. `since`: when the tree was made."""
        every = tuple(queues)
        for place in places(self._tree.root):
            queue, node = queue_of_node(place.path, every), place.node
            used = ((each, self._used[counter(place.path, each)]) for each in _SHOWN)
            yield QueueRow(
                kind=QueueKind.QUOTA,
                path=place.path,
                name=queue.metadata.name if queue is not None else place.path,
                level=place.depth,
                since=(queue.metadata.created_at if queue is not None else since) or None,
                waiting=self._waiting[place.path],
                running=self._running[place.path],
                used={each: amount for each, amount in used if amount},
                min={each: amount for each, amount in node.min.items() if each != JOBS},
                max={each: amount for each, amount in node.max.items() if each != JOBS},
                max_jobs=node.max[JOBS] // _ONE if JOBS in node.max else None,
                projects=node.namespaces,
                bounded=self._leaves.quotas.resources,
            )

    def _take(self, number: JobId, job: KubeJob) -> None:
        """Count a job (steps 1 and 2)."""
        leaf = self._leaf(job)
        if leaf == NO_LEAF or job.state in ENDED:
            return
        if job.waits_in_queue or not (job.turn is not None or job.placed):
            if job.state is JobState.QUEUED:
                self._count(self._waiting, leaf)
            if job.turn is not None and job.turn.has_quota:
                self._keep(number, leaf, None, _wanted(job))
            return
        placed = _sum(pod_tres(requested(pod.spec)) for pod in job.placed)
        amounts = _wanted(job) if job.turn is not None else {**placed, JOBS: _ONE}
        started, limit = job.started_at, job.deadline_seconds
        ends_at = Millis(started + 1000 * limit) if started is not None and limit is not None else None
        self._keep(number, leaf, ends_at, amounts)
        self._count(self._running, leaf)

    def _keep(self, number: JobId, leaf: str, ends_at: Millis | None, amounts: Amounts) -> None:
        self._counted.append(_Counted(number, ends_at, leaf, amounts))
        self._add(leaf, amounts)

    def _leaf(self, job: KubeJob) -> str:
        return job.turn.leaf if job.turn is not None else self._leaves.of(job.meta.namespace, job.named)

    def _add(self, leaf: str, amounts: Amounts) -> None:
        for path in self._line(leaf):
            for resource, amount in amounts.items():
                self._used[counter(path, resource)] += amount

    def _count(self, counts: Sums[str], leaf: str) -> None:
        counts.update(self._line(leaf))

    def _line(self, leaf: str) -> tuple[str, ...]:
        return self._leaves.quotas.shares[leaf].line if leaf != NO_LEAF else ()

    def _excess(self, limit: Running, wanted: Amounts) -> int:
        """Return by how much the limit would be exceeded. What a job does not request, nothing can lack."""
        request = wanted.get(limit.resource, 0)
        return self._used[limit.counter] + request - limit.allowed if request else 0

    def _limit(self, limit: Running, wanted: Amounts) -> QuotaFull | QuotaMaxJobs:
        if limit.resource == JOBS:
            return QuotaMaxJobs(limit.holder, limit.allowed // _ONE)
        allowed, used, request = limit.allowed, self._used[limit.counter], wanted[limit.resource]
        return QuotaFull(limit.holder, limit.resource, allowed / _ONE, used / _ONE, request / _ONE)

    def _borrowers(self, limit: Running) -> Iterator[tuple[str, float]]:
        """Yield the leaves below the full node that use more than their min, the largest first."""
        below = (each for each in self._leaves.borrowing if limit.holder in each.line)
        amounts = [(each.borrows(self._used, limit.resource), each.path) for each in below]
        for amount, path in sorted(amounts, key=lambda each: (-each[0], each[1]))[:MOST_BORROWERS]:
            if amount > 0:
                yield path, amount / _ONE

    def _fits_after(self, over: Iterable[Running], wanted: Amounts) -> _Counted | None:
        """Return the running job with whose end no limit is exceeded any more, as jobs reach their time limits one
        after the other; None: those with a time limit are too few."""
        left = {each.counter: self._excess(each, wanted) for each in over}
        known = [(each.ends_at, each) for each in self._counted if each.ends_at is not None]
        for _, ending in sorted(known, key=lambda each: (each[0], each[1].job)):
            for path in self._line(ending.leaf):
                for resource, amount in ending.amounts.items():
                    if (key := counter(path, resource)) in left:
                        left[key] -= amount
            if all(excess <= 0 for excess in left.values()):
                return ending
        return None


def _wanted(job: KubeJob) -> Amounts:
    """Return what the whole job requests: by its queue unit, else by its pods."""
    unit = job.turn.unit if job.turn is not None else None
    if unit is not None and unit.wants:
        return {**tres_amounts(unit.wants), JOBS: _ONE}
    return {**_sum(_times(count, pod_tres(each)) for count, each in job.sizes), JOBS: _ONE}


def _times(count: int, amounts: Amounts) -> Amounts:
    return {resource: count * amount for resource, amount in amounts.items()}


def _sum(several: Iterable[Amounts]) -> Amounts:
    total: Sums[str] = Sums()
    for each in several:
        total.update(each)
    return dict(total)
