"""What a pass can take over from the one before it.

Most passes follow a submission, and nothing else has happened but what the last pass started. Then all that it found
holds still: no room has come free, nobody has moved up, and a job that would have delayed another would do so later the
more. (Not where the head is a gang and somebody has started: once some nodes are taken, others are the tightest.) So
the pass goes on with those that came. Where anything else has happened, the whole queue is gone through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.model.accounts import Usage
from cockpit.model.ids import JobId
from cockpit.model.node import Placement
from cockpit.sched.equivalence import QueueEntry
from cockpit.sched.fifo_queue import FifoQueue
from cockpit.sched.index import Index, refreshed
from cockpit.sched.pass_queue import PassQueue
from cockpit.sched.placement import has_room
from cockpit.sched.plan import Plan
from cockpit.sched.policy import BEST_FIT, Policy
from cockpit.sched.snapshot import Snapshot

Changes = Mapping[JobId, Placement | None]
"""Who holds something now, or (None) nothing any more."""


def following(last: Plan | None, snapshot: Snapshot) -> Index:
    """The index of this snapshot; from what the last pass left, where its starts have come true, and the very same
    where nothing else has happened."""
    if last is None:
        return refreshed(None, snapshot)
    if snapshot.version == last.version:
        return last.index
    rest = _beside_starts(last, snapshot)
    if rest is None or last.round.eviction_planner is not None:  # what was promised is in what the pass left
        return refreshed(last.index, snapshot)
    return last.round.index.after(rest, snapshot)


def may_start(last: Plan | None, snapshot: Snapshot, index: Index) -> bool:
    """Whether a pass may come to anything but reasons: somebody who waits has room, or others may give way, move or
    grow. `index`: what follows the last plan."""
    rules = index.equivalence.rules
    if rules.takes_room or index.layout.totalled or snapshot.suspended or snapshot.promised or snapshot.elastic:
        return True
    fifo = last.priorities.fifo if last is not None else None
    if fifo is None:
        return True
    widest, most_cards = index.widest, index.most_cards
    tried: set[int] = set()
    for entry in fifo.follow(snapshot, index.equivalence):
        if entry.cpus <= widest and entry.cards <= most_cards and entry.shape not in tried:
            if has_room(index, entry.equivalence_class.shape):
                return True
            tried.add(entry.shape)
    return False


def only_came(
    last: Plan, snapshot: Snapshot, index: Index, policy: Policy, queue: PassQueue
) -> Sequence[QueueEntry] | None:
    """What the last pass has not seen of the queue; None where more has happened than that they came. `index` and
    `queue`: what followed for the snapshot."""
    round_ = last.round
    if index is not round_.index or round_.eviction_planner is not None or snapshot.promised:
        return None  # with a clearing, whoever came may take room from those that run, or has some kept for it
    if not isinstance(queue, FifoQueue) or queue.before != last.version or queue.left != len(last.starts):
        return None
    if policy is not round_.policy and policy != round_.policy:
        return None
    if policy.fraction_fit is not BEST_FIT:
        return None  # gradient descent looks at the whole queue for each of its members
    if policy.backfill.window_seconds or policy.backfill.resolution_seconds:
        return None  # what was beyond the window comes within it, and moments are rounded to the clock
    return queue.came if _still_so(last, snapshot, index) else None


def _beside_starts(last: Plan, snapshot: Snapshot) -> Changes | None:
    """What is otherwise than the last pass left it; None where nobody knows."""
    round_ = last.round
    if snapshot.changes_from != last.version or not round_.given.is_of_rules(snapshot):
        return None
    changes = dict(snapshot.changes)
    if not last.starts:
        return changes
    ends = round_.index.ends
    for start in last.starts:
        job, held = start.job, snapshot.occupied.get(start.job)
        if held == start.placement and snapshot.ends.get(job) == ends.get(job):
            changes.pop(job, None)
        else:  # it has ended since, or something kept it from starting
            changes[job] = held
    return changes


def _still_so(last: Plan, snapshot: Snapshot, index: Index) -> bool:
    """Whether time and who started have changed nothing, and those that came are behind everybody."""
    now = snapshot.now
    return (
        not snapshot.reservations
        and snapshot.quota is None  # whoever is within what is kept for them goes first
        and ((next_at := last.round.next_at()) is None or next_at > now)
        and (not index.departures or index.departures[0][0] > now)
        and last.round.backfiller.is_due_after(now)
        and not (last.starts and last.round.backfiller.fickle)
        and not last.round.backfiller.keeps_for({start.job for start in last.starts})  # of several partitions
        and _same(snapshot.usage, last.round.snapshot.usage)
        and _same(snapshot.qos_usage, last.round.snapshot.qos_usage)
    )


def _same(one: Mapping[Any, Usage], other: Mapping[Any, Usage]) -> bool:
    return one is other or one == other
