"""What a pass can take over from the one before it.

Most passes follow a submission, and nothing else has happened but what the last pass started. Then all that it found
holds still: no room has come free, nobody has moved up, and a job that would have delayed another would do so later the
more. So the pass goes on with those that came. Where anything else has happened, the whole queue is gone through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.model.accounts import Usage
from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import JobId
from cockpit.model.job import Job, JobState
from cockpit.model.node import Placement
from cockpit.sched.entries import Entry, partitions_of
from cockpit.sched.index import Index, refreshed
from cockpit.sched.placement import has_room
from cockpit.sched.plan import Plan
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.shape import Shape
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
    if rest is None or last.round.clearing is not None:  # what was promised is in what the pass left
        return refreshed(last.index, snapshot)
    return last.round.index.after(rest, snapshot)


def may_start(index: Index, snapshot: Snapshot) -> bool:
    """Whether a pass may come to anything but reasons: somebody who waits has room, or others may give way, move or
    grow. `index`: that of the snapshot."""
    if index.book.rules.takes_room or snapshot.suspended or snapshot.promised or snapshot.elastic:
        return True
    widest, request, tried = index.widest, index.book.request, set[Shape]()
    for job in snapshot.queue:
        specs = job.spec.specs
        if specs[0].cpus <= widest or len(specs) > 1:
            tried.update([request(job, partition).shape for partition in partitions_of(job)])
    return any([has_room(index, shape) for shape in tried])


def only_came(last: Plan, snapshot: Snapshot, index: Index, policy: Policy) -> list[Entry] | None:
    """The entries that the last pass has not seen; None where more has happened than that they came. `index`: what
    followed for the snapshot."""
    round_ = last.round
    if index is not round_.index or round_.clearing is not None or snapshot.promised:
        return None  # with a clearing, whoever came may take room from those that run, or has some kept for it
    if policy != round_.policy or policy.fraction_fit is not FractionFit.BEST:
        return None  # gradient descent looks at the whole queue for each of its members
    if policy.backfill.window_seconds or policy.backfill.resolution_seconds:
        return None  # what was beyond the window comes within it, and moments are rounded to the clock
    if not _still_so(last, snapshot, index):
        return None
    came = _came(last, snapshot)
    if came is None or not index.book.has_place_for(len(came), len(snapshot.queue)):
        return None
    return [(job, partition) for job in came for partition in partitions_of(job)]


def _beside_starts(last: Plan, snapshot: Snapshot) -> Changes | None:
    """What is otherwise than the last pass left it; None where nobody knows."""
    if snapshot.changes_from != last.version or not last.index.is_of_rules(snapshot):
        return None
    changes, ends = dict(snapshot.changes), last.round.index.ends
    for start in last.starts:
        job, held = start.job, snapshot.occupied.get(start.job)
        if held == start.placement and snapshot.ends.get(job) == ends.get(job):
            changes.pop(job, None)
        else:  # it has ended since, or something kept it from starting
            changes[job] = held
    return changes


def _still_so(last: Plan, snapshot: Snapshot, index: Index) -> bool:
    """Whether time alone has changed nothing, and those that came are behind everybody."""
    now, cluster = snapshot.now, snapshot.cluster
    return (
        not snapshot.reservations
        and snapshot.quota is None  # whoever is within what is kept for them goes first
        and (last.next_at is None or last.next_at > now)
        and (not index.departures or index.departures[0][0] > now)
        and last.round.line.is_due_after(now)
        and not last.round.line.keeps_for({start.job for start in last.starts})  # of several partitions
        and cluster.priority.kind is PriorityKind.BASIC
        and (not cluster.partitions or all(each.priority_tier == 1 for each in cluster.partitions))
        and _same(snapshot.usage, last.round.snapshot.usage)
        and _same(snapshot.qos_usage, last.round.snapshot.qos_usage)
    )


def _came(last: Plan, snapshot: Snapshot) -> Sequence[Job] | None:
    """The jobs at the end of the queue that the last pass has not seen; None where others came, went or changed."""
    if snapshot.touched is None:
        return None
    waiting = {job for job in snapshot.touched if job in snapshot.jobs and snapshot.jobs[job].state is JobState.QUEUED}
    before = last.round.queued - len(last.starts)
    came = snapshot.queue[before:]
    if len(snapshot.queue) != before + len(waiting) or {job.id for job in came} != waiting:
        return None
    return came


def _same(one: Mapping[Any, Usage], other: Mapping[Any, Usage]) -> bool:
    return one is other or one == other
