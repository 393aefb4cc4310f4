"""Decides whether the scheduling policy promises a queued job a latest start.

It does if three conditions hold:

1. The order of the queue is fixed: `priority/basic`, and no partition of a higher tier shares the job's nodes.
2. No rule takes resources away from a job that has them.
3. The scheduler has reserved a moment for the job. Under EASY and without backfill that is the first waiting job; under
   conservative backfill, every waiting job. In strict order without limits, the plan by time limits is such a moment
   for the other jobs too, because no job starts before them.

A promised start still moves if an assumption of the plan fails: a job runs over its limit, a node fails, a held job
ahead is released. `moves` finds out which of these it was.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from cockpit.model.cluster import BackfillKind, Cluster, PriorityKind
from cockpit.model.forecast import NoBound
from cockpit.model.ids import Millis
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Node
from cockpit.sched.decisions import Reserved
from cockpit.sched.policy import Policy
from cockpit.sched.queue_order import partitions_of
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
    """The range of likely starts, which holds the likely one. `end_at`: the careful plan's start, None if unknown."""
    wait = likely_at - now
    soonest, longest = (SOONEST, 1.0) if unstable is None else (SOONEST_REORDERED, LONGEST_REORDERED)
    last = max(end_at or likely_at, Millis(now + int(longest * wait)))
    return Millis(now + int(soonest * wait)), last


class Ends:
    """Computes when jobs have really released their nodes if they use their whole time limits: after their grace to
    end."""

    def __init__(self, snapshot: Snapshot, reservations: Iterable[Reserved]) -> None:
        jobs, ends = snapshot.jobs, list[tuple[Millis, Millis]]()
        for job_id in snapshot.occupied:
            job, end = jobs.get(job_id), snapshot.ends.get(job_id)
            if job is not None and end is not None and job.state in OCCUPYING:
                # a job that is ending already is killed at a known moment
                ends.append((end, job.ending.kill_at if job.ending is not None else _with_grace(job, end)))
        for each in reservations:
            if (job := jobs.get(each.job)) is not None:
                end = Millis(each.reserved_at + 1000 * job.spec.time_limit_seconds)
                ends.append((end, _with_grace(job, end)))
        ends.sort()
        self._ends = [end for end, _ in ends]
        # A job may start on other nodes than the plan says, so the grace of any job that ends by then may delay it.
        self._free_at = list(accumulate((gone for _, gone in ends), max))

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
