"""Decides what a pass can take over from the pass before it.

Most passes follow a submission, and nothing else has happened but the starts of the last pass. Then all verdicts of
that pass still hold: no resources came free, no job moved up, and a job that would have delayed another would do so
even more by starting later. Two exceptions: if the first waiting job needs several nodes and another job has started,
other nodes may now be the tightest; and a start may have reached a limit that now stops a waiting job whose resources
are kept. In the ordinary case the pass continues with the new jobs alone; if anything else has happened, it goes
through the whole queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.model.accounts import Usage
from cockpit.model.ids import JobId
from cockpit.model.node import Placement
from cockpit.sched.equivalence import QueueEntry
from cockpit.sched.fifo_queue import FifoQueue
from cockpit.sched.index import Index, refresh_index
from cockpit.sched.pass_queue import PassQueue
from cockpit.sched.placement import fits_now
from cockpit.sched.plan import Plan
from cockpit.sched.policy import BEST_FIT, Policy
from cockpit.sched.snapshot import Snapshot

Changes = Mapping[JobId, Placement | None]
"""The placement that each changed job holds now, by job; None: nothing any more."""


def next_index(last: Plan | None, snapshot: Snapshot) -> Index:
    """Return the index of this snapshot. It continues the index that the last pass left if the starts of that pass have
    happened; it is the same object if nothing else has."""
    if last is None:
        return refresh_index(None, snapshot)
    if snapshot.version == last.version:
        return last.index
    # the starts of the last pass are in its index already, so only the other changes are applied to it
    # None: the rules or the nodes changed, or too much happened to know what
    rest = _changes_beside_starts(last, snapshot)
    if (
        rest is None or last.scheduling_pass.eviction_planner is not None
    ):  # its index also has nominated jobs, which have not started
        return refresh_index(last.index, snapshot)
    return last.scheduling_pass.index.after(rest, snapshot)


def can_start_any(last: Plan | None, snapshot: Snapshot, index: Index) -> bool:
    """Return whether a pass might do anything but state reasons: some waiting job fits, or others may be evicted, moved
    or grown. `index`: the one that `next_index` returned."""
    rules = index.equivalence.rules
    if rules.may_evict or index.layout.totalled or snapshot.suspended or snapshot.nominated or snapshot.elastic:
        return True
    fifo = last.priorities.fifo if last is not None else None
    if fifo is None:
        return True
    # the same cheap tests as in `schedule_queue`: of a long queue few shapes need a search
    widest, most_cards = index.most_cpus, index.most_cards
    tried: set[int] = set()
    for entry in fifo.follow(snapshot, index.equivalence):
        if entry.cpus <= widest and entry.cards <= most_cards and entry.shape_number not in tried:
            if fits_now(index, entry.equivalence_class.shape):
                return True
            tried.add(entry.shape_number)
    return False


def arrivals_since(
    last: Plan, snapshot: Snapshot, index: Index, policy: Policy, queue: PassQueue
) -> Sequence[QueueEntry] | None:
    """Return the entries that joined the queue since the last pass; None if anything else has happened since. `index`
    and `queue`: those of the new snapshot."""
    scheduling_pass = last.scheduling_pass
    # another index object means that something besides the pass's own starts has changed what is free
    if index is not scheduling_pass.index or scheduling_pass.eviction_planner is not None or snapshot.nominated:
        return None  # where jobs may be evicted, a new job may preempt others or be nominated
    # only in order of submission are new jobs behind all others; and those that left must be the starts, no other jobs
    if not isinstance(queue, FifoQueue) or queue.before != last.version or queue.left_count != len(last.starts):
        return None
    if policy is not scheduling_pass.policy and policy != scheduling_pass.policy:
        return None
    if policy.fraction_fit is not BEST_FIT:
        return None  # gradient descent looks at the whole queue for each of its members
    if policy.backfill.window_seconds or policy.backfill.resolution_seconds:
        return None  # reservations beyond the window come within it, and moments are rounded to the clock
    return queue.arrivals if _verdicts_hold(last, snapshot, index) else None


def _changes_beside_starts(last: Plan, snapshot: Snapshot) -> Changes | None:
    """Return the changes since the last pass, without its own starts. None: the changes are not known."""
    scheduling_pass = last.scheduling_pass
    if snapshot.changes_from != last.version or not scheduling_pass.initial_index.is_of_rules(snapshot):
        return None
    # of several changes of one job the last one counts
    changes = dict(snapshot.changes)
    if not last.starts:
        return changes
    ends = scheduling_pass.index.ends
    for start in last.starts:
        job, held = start.job, snapshot.occupied.get(start.job)
        if held == start.placement and snapshot.ends.get(job) == ends.get(job):
            changes.pop(job, None)
        else:  # it has ended since, or something kept it from starting
            changes[job] = held
    return changes


def _verdicts_hold(last: Plan, snapshot: Snapshot, index: Index) -> bool:
    """Return whether neither the passing time nor the starts change a verdict of the last pass, and the new jobs are
    behind all others."""
    now = snapshot.now
    return (
        not snapshot.reservations
        and snapshot.quota is None  # jobs within a guarantee go first, so a new job may not be the last
        # no moment has come at which time alone changes a verdict: a begin time, an end that was planned, a reservation
        and ((next_at := last.scheduling_pass.next_at()) is None or next_at > now)
        and (not index.departures or index.departures[0][0] > now)
        and last.scheduling_pass.backfiller.is_due_after(now)
        # the last pass asks for another one by its `next_at`, which may still be a millisecond ahead
        and not last.scheduling_pass.others_may_start()
        # budgets are judged by past usage
        and _same(snapshot.usage, last.scheduling_pass.snapshot.usage)
        and _same(snapshot.qos_usage, last.scheduling_pass.snapshot.qos_usage)
    )


def _same(one: Mapping[Any, Usage], other: Mapping[Any, Usage]) -> bool:
    # usage is another mapping whenever it changes, so that identity answers nearly always
    return one is other or one == other
