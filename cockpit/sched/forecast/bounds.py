"""Decides whether the scheduling policy promises a queued job a latest start.

It does if six conditions hold:

1. The order of the queue is fixed: `priority/basic`, and no partition of a higher tier shares the job's nodes.
2. No rule takes resources away from a job that has them.
3. The scheduler has reserved a moment for the job. Under EASY and without backfill that is the first waiting job; under
   conservative backfill, every waiting job. In strict order without limits, the plan by time limits is such a moment
   for the other jobs too, because no job starts before them.
4. No job ahead waits for anything that ends by itself before that moment: a dependency, a begin time, a limit
   (`opens_at`), or its own end for a requeue. The scheduler reserves nothing for such a job; as soon as it may start,
   it comes first. Nor is a job ahead beyond the scheduler's window, where it has no reservation either.
5. No limit may stop the job at that moment, nor delay a job ahead of it (`shared_limits`).
6. Where the plan is rounded to a resolution, starts in between do not delay the job if every job uses its time limit.

A promised start still moves if an assumption of the plan fails: a job runs over its limit, a node fails, a held job
ahead is released. `moves` finds out which of these it was.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import accumulate
from operator import itemgetter

from cockpit.model.cluster import BackfillKind, Cluster, PriorityKind
from cockpit.model.forecast import NoBound
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Node
from cockpit.model.reasons import (
    ArrayFull,
    BeginsLater,
    LimitReached,
    NoAlternative,
    QuotaFull,
    QuotaMaxJobs,
    Reason,
    WaitsForJob,
)
from cockpit.sched.equivalence import partitions_of
from cockpit.sched.policy import Policy
from cockpit.sched.rules.partitions import nodes_of
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.snapshot import Snapshot

SOONEST, SOONEST_REORDERED = 1 / 3, 1 / 4
"""The range of likely starts begins after this fraction of the likely wait; the second where the order may change. On
the logs that tests/bench replays, one job in ten starts sooner."""
LONGEST_REORDERED = 3.5
"""The multiple of the likely wait after which the range ends at the soonest where the order may change. Jobs that come
ahead later are not predicted: without this factor one job in six starts after the range on the log KTH-SP2, with it one
in twenty."""


def unstable_order(job: Job, rules: Rulebook, nodes: Iterable[Node]) -> NoBound | None:
    """Return why other jobs may come before this one, or take what it waits for; None: the order is fixed."""
    cluster = rules.cluster
    # each member has jobs of its own, which the fleet does not order
    if cluster.members:
        return NoBound.OTHER_CLUSTERS
    if cluster.priority.kind is not PriorityKind.BASIC:
        weights = cluster.priority.weights
        changes = weights.age or weights.fairshare
        return NoBound.PRIORITIES_CHANGE if changes else NoBound.LATER_SUBMISSIONS
    if rules.may_evict:
        return NoBound.PREEMPTION
    return NoBound.LATER_SUBMISSIONS if _is_below_a_tier(job, cluster, nodes) else None


def is_strict(policy: Policy, rules: Rulebook) -> bool:
    """Return whether jobs start strictly in order: nothing passes the first that waits, and no limit lets others pass
    it."""
    return policy.backfill.kind is BackfillKind.OFF and not rules.binding


def likely_range(
    now: Millis, likely_at: Millis, end_at: Millis | None, unstable: NoBound | None
) -> tuple[Millis, Millis]:
    """Return the range of likely starts, which holds the likely one. `end_at`: the careful plan's start, None if
    unknown."""
    wait = likely_at - now
    soonest, longest = (SOONEST, 1.0) if unstable is None else (SOONEST_REORDERED, LONGEST_REORDERED)
    last = max(end_at or likely_at, Millis(now + int(longest * wait)))
    return Millis(now + int(soonest * wait)), last


def opens_at(reason: Reason, now: Millis) -> Millis | None:
    """Return from when on a job with this reason may start without any user's action; None: never, or it only
    waits for resources and for jobs ahead."""
    match reason:
        case NoAlternative():
            moments = (opens_at(one, now) for one in reason.specs)
            return min((each for each in moments if each is not None), default=None)
        case BeginsLater():
            return reason.begin_at
        case LimitReached() | QuotaFull():
            return None if reason.never else now
        case WaitsForJob() | ArrayFull() | QuotaMaxJobs():
            return now
        case _:
            return None


class GatesAhead:
    """The jobs ahead that something other than resources stops for now, as far as they may take the nodes of others."""

    def __init__(self, cluster: Cluster, nodes: Iterable[Node]) -> None:
        self._cluster, self._nodes = cluster, tuple(nodes)
        self._opens: dict[tuple[str, ...], Millis] = {}
        """By partitions: from when on the first job of them may come free."""
        self._names: dict[tuple[str, ...], frozenset[NodeName]] = {}

    def add(self, job: Job, at: Millis) -> None:
        """Note that the job may come free of what stops it from this moment on."""
        # one moment for each set of partitions is enough, and keeps `may_delay` quick behind thousands of jobs
        self._opens[job.partitions] = min(at, self._opens.get(job.partitions, at))

    def may_delay(self, job: Job, bound: Millis) -> bool:
        """Return whether one of them may come free by the bound, on nodes that the job may get."""
        names = self._nodes_of(job.partitions)
        return any(
            at <= bound and not names.isdisjoint(self._nodes_of(partitions)) for partitions, at in self._opens.items()
        )

    def _nodes_of(self, partitions: tuple[str, ...]) -> frozenset[NodeName]:
        if partitions not in self._names:
            each = (nodes_of(self._cluster, name, self._nodes) for name in partitions or ("",))
            self._names[partitions] = frozenset(node.name for nodes in each for node in nodes)
        return self._names[partitions]


class Ends:
    """Computes when jobs have really released their nodes if they use their whole time limits: after their grace to
    end.

    1. Each running job is gone at its end by the plan and its grace.
    2. A planned job starts as late as the jobs that end before it are gone, and ends later by that long, and its grace
       comes after that. So delays add up along the jobs that follow each other.
    3. A job may start on other nodes than the plan says, so the latest of all jobs that end before it counts.
    """

    def __init__(self, snapshot: Snapshot, starts: Iterable[tuple[JobId, Millis]]) -> None:
        """`starts`: the waiting jobs that are planned, with their starts by the plan."""
        jobs, ends = snapshot.jobs, list[tuple[Millis, Millis]]()
        # 1. running jobs
        for job_id in snapshot.occupied:
            job, end = jobs.get(job_id), snapshot.ends.get(job_id)
            if job is not None and end is not None and job.state in OCCUPYING:
                # a job that is ending already is killed at a known moment
                ends.append((end, job.ending.kill_at if job.ending is not None else _with_grace(job, end)))
        heapify(ends)
        # 2. soonest first, so that the ends of all jobs before it are known; what is popped is sorted
        passed: list[tuple[Millis, Millis]] = []
        gone = snapshot.now
        for job_id, start in sorted(starts, key=itemgetter(1)):
            while ends and ends[0][0] <= start:
                passed.append(heappop(ends))
                gone = max(gone, passed[-1][1])
            if (job := jobs.get(job_id)) is not None:
                length = 1000 * job.spec.time_limit_seconds
                heappush(ends, (Millis(start + length), _with_grace(job, Millis(max(start, gone) + length))))
        passed += sorted(ends)
        self._ends = [end for end, _ in passed]
        # 3. the latest end so far
        self._free_at = list(accumulate((gone for _, gone in passed), max))

    def after(self, moment: Millis) -> Millis:
        """Return the moment at which the resources are really free that the plan, which allows for no grace, takes to
        be free at `moment`."""
        before = bisect_right(self._ends, moment)
        return max(moment, self._free_at[before - 1]) if before else moment


def _with_grace(job: Job, end: Millis) -> Millis:
    return Millis(end + 1000 * job.spec.end_grace_seconds)


def _is_below_a_tier(job: Job, cluster: Cluster, nodes: Iterable[Node]) -> bool:
    """Return whether a partition of a higher tier shares a node with one of the job's: its jobs are considered
    first."""
    tiers = {each.name: each.priority_tier for each in cluster.partitions}
    # 1 is also the tier of jobs without a partition; with one tier no job is below another
    if len({1, *tiers.values()}) == 1:
        return False
    # iterated once for each partition
    nodes = tuple(nodes)
    for own in partitions_of(job):
        names = {node.name for node in nodes_of(cluster, own, nodes)}
        above = (name for name, tier in tiers.items() if tier > tiers.get(own, 1))
        if any(names.intersection(node.name for node in nodes_of(cluster, name, nodes)) for name in above):
            return True
    return False
