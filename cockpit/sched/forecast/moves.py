"""Find why a job's latest start is another than before, from the two states that the plans were made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from cockpit.model.forecast import (
    BoundMove,
    CameAhead,
    Edited,
    EndedEarly,
    LeftQueue,
    LimitFreed,
    MoveCause,
    MovedUp,
    NodeLost,
    NodeReturned,
    NodesTaken,
    RanLonger,
    Replanned,
    RulesChanged,
)
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import NodeState
from cockpit.model.reasons import BehindHead, NodesReserved, NotEvaluated, WouldDelay
from cockpit.sched.alternatives import is_of_room
from cockpit.sched.entries import by_seniority
from cockpit.sched.explain import reason_of
from cockpit.sched.plan import Plan
from cockpit.sched.snapshot import Snapshot

MOST_CAUSES = 3
"""Causes that are kept of one move: more explain no more."""
MOST_MOVES = 5
"""Moves that are kept of one job; then the oldest goes."""
_WAITS_ITS_TURN = (WouldDelay, BehindHead, NodesReserved, NotEvaluated)


class Basis(msgspec.Struct, frozen=True):
    """A state, the plan for it, and the latest starts that follow from them."""

    snapshot: Snapshot
    plan: Plan
    bounds: Mapping[JobId, Millis]


class BoundHistory:
    """The latest starts that jobs were given last, and how these have moved."""

    def __init__(self) -> None:
        self._basis: Basis | None = None
        self._moves: dict[JobId, tuple[BoundMove, ...]] = {}

    def follow(self, basis: Basis) -> None:
        """Take over what is promised now, and note what has moved."""
        before, self._basis = self._basis, basis
        if before is None:
            return
        queued = {job.id for job in basis.snapshot.queue}
        self._moves = {job: moves for job, moves in self._moves.items() if job in queued}
        difference = _Difference(before, basis)
        starting = {start.job for start in basis.plan.starts}
        for job, bound in before.bounds.items():
            after = basis.bounds.get(job)
            if job in queued and job not in starting and after != bound:
                move = BoundMove(basis.snapshot.now, bound, after, difference.causes(job, later=_later(bound, after)))
                self._moves[job] = (*self._moves.get(job, ()), move)[-MOST_MOVES:]

    def of(self, job: JobId) -> tuple[BoundMove, ...]:
        """The last moves of the job's bound, oldest first."""
        return self._moves.get(job, ())


def _later(before: Millis, after: Millis | None) -> bool:
    return after is None or after > before


class _Difference:
    """What happened between two plans, as far as it moves a bound."""

    def __init__(self, before: Basis, after: Basis) -> None:
        self._before, self._after = before, after
        self._queued = {job.id: job for job in before.snapshot.queue}
        self._queued_now = {job.id: job for job in after.snapshot.queue}
        self._ranks, self._ranks_now = _ranks(before.plan), _ranks(after.plan)

    def causes(self, job: JobId, *, later: bool) -> tuple[MoveCause, ...]:
        """The first that apply; `Replanned` where none does."""
        found: dict[MoveCause, None] = {}
        delays, gains = self._delays(job), self._gains(job)
        # A change of the job itself or of the rules may have any effect. Where nothing explains the direction of the
        # move, something that helped others, or hindered those ahead, does: a node that returns serves a job ahead.
        ordered = (delays, self._moved_up(job), gains) if later else (gains, delays, self._moved_up(job))
        changed = list(self._changed(job))
        for causes in ordered:
            for cause in (*changed, *causes):
                found[cause] = None
                if len(found) == MOST_CAUSES:
                    break
            if found:
                break
        return tuple(found) or (Replanned(),)

    def _delays(self, job: JobId) -> Iterator[MoveCause]:
        yield from self._lost()
        yield from self._overran()
        yield from self._came(job)
        yield from self._freed(job)

    def _gains(self, job: JobId) -> Iterator[MoveCause]:
        nodes, nodes_now = _in_service(self._before.snapshot), _in_service(self._after.snapshot)
        yield from (NodeReturned(name) for name in sorted(nodes_now - nodes))
        yield from (EndedEarly(other) for other in self._ended_early())
        ahead, ahead_now = self._ahead(job), self._ahead_now(job)
        gone = [other for other in ahead if not self._is_there(other)]
        behind = [other for other in ahead if other in self._queued_now and other not in ahead_now]
        yield from (LeftQueue(other) for other in (*gone, *behind))

    def _changed(self, job: JobId) -> Iterator[MoveCause]:
        if _asked(self._queued[job]) != _asked(self._queued_now[job]):
            yield Edited()
        before, after = self._before.snapshot, self._after.snapshot
        if before.rules_version != after.rules_version:
            taken = [name for name in after.reservations if name not in before.reservations]
            yield from map(NodesTaken, taken)
            if not taken:
                yield RulesChanged()

    def _lost(self) -> Iterator[MoveCause]:
        lost = _in_service(self._before.snapshot) - _in_service(self._after.snapshot)
        yield from (NodeLost(name) for name in sorted(lost))

    def _overran(self) -> Iterator[MoveCause]:
        """Those that hold resources for longer than the first plan assumed, the longest overrun first."""
        ends, ends_now, now = self._before.snapshot.ends, self._after.snapshot.ends, self._after.snapshot.now
        found = []
        for job in self._after.snapshot.occupied:
            if job not in self._before.snapshot.occupied or job not in ends:
                continue
            until = ends_now.get(job)
            if until is None or until > ends[job] or ends[job] <= now:
                found.append((until is not None, -(until or 0), job, until))
        yield from (RanLonger(job, until) for _, _, job, until in sorted(found))

    def _ended_early(self) -> Iterator[JobId]:
        before, now = self._before.snapshot, self._after.snapshot.now
        gone = (job for job in before.occupied if job not in self._after.snapshot.occupied)
        yield from (job for job in gone if before.ends.get(job, now + 1) > now)

    def _came(self, job: JobId) -> Iterator[MoveCause]:
        """Those ahead now, or started since, that were not ahead of it and not running."""
        before = {*self._ahead(job), *self._before.snapshot.occupied}
        waiting = (other for other in self._ahead_now(job) if other not in before)
        started = (other for other in self._started() if other not in before and not self._was_behind(other, job))
        yield from (CameAhead(other) for other in (*waiting, *started))

    def _freed(self, job: JobId) -> Iterator[MoveCause]:
        for other in self._ahead(job):
            if waits_its_turn(self._before.plan, self._queued[other]):
                continue
            now = self._queued_now.get(other)
            if waits_its_turn(self._after.plan, now) if now is not None else self._is_there(other):
                yield LimitFreed(other)

    def _moved_up(self, job: JobId) -> Iterator[MoveCause]:
        bounds, bounds_now = self._before.bounds, self._after.bounds
        ahead = self._ahead(job)
        started = [other for other in self._started() if other in ahead or self._was_behind(other, job)]
        sooner = [other for other in ahead if other in bounds and bounds_now.get(other, bounds[other]) < bounds[other]]
        yield from map(MovedUp, (*sorted(started, key=lambda other: other not in ahead), *sooner))

    def _started(self) -> list[JobId]:
        return [other for other in self._after.snapshot.occupied if other not in self._before.snapshot.occupied]

    def _is_there(self, job: JobId) -> bool:
        """It waits or holds resources."""
        return job in self._queued_now or job in self._after.snapshot.occupied

    def _was_behind(self, other: JobId, job: JobId) -> bool:
        """It stood in the queue after the job, or came later: the plan lets it start only where that delays nobody."""
        if other in self._ranks:
            return self._ranks[other] > self._ranks[job]
        known = self._after.snapshot.jobs.get(other)
        return known is not None and by_seniority(known) > by_seniority(self._queued_now[job])

    def _ahead(self, job: JobId) -> dict[JobId, None]:
        return _before(job, self._ranks, self._queued)

    def _ahead_now(self, job: JobId) -> dict[JobId, None]:
        return _before(job, self._ranks_now, self._queued_now)


def waits_its_turn(plan: Plan, job: Job) -> bool:
    """Whether a queued job starts by this plan, or waits only for resources or for the jobs ahead of it."""
    if any(start.job == job.id for start in plan.starts):
        return True
    reason = reason_of(plan, job)
    return isinstance(reason, _WAITS_ITS_TURN) or is_of_room(reason)


def _ranks(plan: Plan) -> dict[JobId, int]:
    return {job: rank for rank, job in enumerate(plan.order)}


def _before(job: JobId, ranks: Mapping[JobId, int], queued: Mapping[JobId, Job]) -> dict[JobId, None]:
    """The jobs ahead of this one that nobody holds, in order."""
    own = ranks.get(job, len(ranks))
    return {
        other: None for other, rank in ranks.items() if rank < own and other in queued and not queued[other].held_by
    }


def _in_service(snapshot: Snapshot) -> set[NodeName]:
    return {name for name, node in snapshot.nodes.items() if node.state is NodeState.UP}


def _asked(job: Job) -> object:
    """What it asks for and where: what an edit changes of it."""
    return job.spec, job.partitions, job.account, job.qos, job.held_by
