"""Find why a job's latest start is another than before, from the two states that the plans were made for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice

import msgspec

from cockpit.model.forecast import (
    BoundMove,
    CameAhead,
    Edited,
    EndedEarly,
    EngineRestarted,
    LeftQueue,
    LimitFreed,
    MoveCause,
    MovedUp,
    NodeLost,
    NodeReturned,
    NodesTaken,
    PromisedStart,
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
NEVER = 1 << 62
_WAITS_ITS_TURN = (WouldDelay, BehindHead, NodesReserved, NotEvaluated)


class Basis(msgspec.Struct, frozen=True):
    """A state, the plan for it, and the latest starts that follow from them."""

    snapshot: Snapshot
    plan: Plan
    bounds: Mapping[JobId, Millis]


class BoundHistory:
    """The latest starts that jobs were given last, and how these have moved.

    Promised is what somebody was shown, until the job starts or leaves the queue; only promises are worth storing.
    """

    def __init__(self, stored: Iterable[PromisedStart] = ()) -> None:
        """`stored`: the promises that an earlier engine made; what moved while no engine ran is noted all the same."""
        self._stored = {each.job: each for each in stored}
        self._basis: Basis | None = None
        self._moves = {job: each.moves for job, each in self._stored.items()}
        self._promised: dict[JobId, Millis | None] = {job: each.latest_at for job, each in self._stored.items()}

    def follow(self, basis: Basis) -> None:
        """Take over what is promised now, and note what has moved."""
        before, self._basis = self._basis, basis
        queued = {job.id for job in basis.snapshot.queue}
        self._moves = {job: moves for job, moves in self._moves.items() if job in queued}
        self._promised = {job: bound for job, bound in self._promised.items() if job in queued}
        difference = _Difference(before, basis) if before is not None else None
        starting = {start.job for start in basis.plan.starts}
        for job, bound in (before.bounds if before is not None else self._promised).items():
            after = basis.bounds.get(job)
            if bound is not None and job in queued and job not in starting and after != bound:
                why = difference.causes(job, later=_later(bound, after)) if difference else (EngineRestarted(),)
                move = BoundMove(basis.snapshot.now, bound, after, why)
                self._moves[job] = (*self._moves.get(job, ()), move)[-MOST_MOVES:]
        for job in self._promised:
            if job not in starting:
                self._promised[job] = basis.bounds.get(job)

    def promise(self, jobs: Iterable[JobId]) -> None:
        """Remember that somebody was shown the latest starts of these, as far as they have one and do not start now."""
        if self._basis is None:
            return
        bounds, now = self._basis.bounds, self._basis.snapshot.now
        self._promised.update((job, bounds[job]) for job in jobs if bounds.get(job, now) > now)

    @property
    def promised(self) -> Mapping[JobId, Millis | None]:
        """The promises that stand; None: one that was withdrawn and may be made again."""
        return self._promised

    def unsaved(self) -> tuple[list[PromisedStart], list[JobId]]:
        """The promises that are new or have moved since `saved`, and the jobs whose promises are over."""
        current = [PromisedStart(job, bound, self.of(job)) for job, bound in self._promised.items()]
        changed = [each for each in current if self._stored.get(each.job) != each]
        return changed, [job for job in self._stored if job not in self._promised]

    def saved(self, changed: Iterable[PromisedStart], over: Iterable[JobId]) -> None:
        """Note that the store has these changes."""
        self._stored.update((each.job, each) for each in changed)
        for job in over:
            self._stored.pop(job, None)

    def of(self, job: JobId) -> tuple[BoundMove, ...]:
        """The last moves of the job's bound, oldest first."""
        return self._moves.get(job, ())


def _later(before: Millis, after: Millis | None) -> bool:
    return after is None or after > before


class _Difference:
    """What happened between two plans, as far as it moves a bound.

    What happened is found once for all jobs, as short lists; a job's causes are those that concern jobs ahead of it.
    Gone through for each of a thousand jobs that conservative backfill has planned, the queue would take a second.
    """

    def __init__(self, before: Basis, after: Basis) -> None:
        self._before, self._after = before, after
        self._queued = {job.id: job for job in before.snapshot.queue}
        self._queued_now = {job.id: job for job in after.snapshot.queue}
        self._ranks, self._ranks_now = _ranks(before.plan), _ranks(after.plan)

    def causes(self, job: JobId, *, later: bool) -> tuple[MoveCause, ...]:
        """The first that apply; `Replanned` where none does."""
        # A change of the job itself or of the rules may have any effect. Where nothing explains the direction of the
        # move, something that helped others, or hindered those ahead, does: a node that returns serves a job ahead.
        sources = (self._delays, self._moved_up, self._gains) if later else (self._gains, self._delays, self._moved_up)
        changed = [*([Edited()] if self._is_edited(job) else []), *self._rules]
        for source in sources:
            if found := tuple(islice(dict.fromkeys(chain(changed, source(job))), MOST_CAUSES)):
                return found
        return (Replanned(),)

    def _delays(self, job: JobId) -> Iterator[MoveCause]:
        yield from map(NodeLost, self._lost)
        yield from self._overran
        yield from map(CameAhead, (other for other in self._came if self._is_ahead_now(other, job)))
        yield from map(LimitFreed, (other for other in self._freed if self._was_ahead(other, job)))

    def _gains(self, job: JobId) -> Iterator[MoveCause]:
        yield from map(NodeReturned, self._returned)
        yield from map(EndedEarly, self._ended_early)
        yield from map(LeftQueue, (other for other in self._left if self._was_ahead(other, job)))

    def _moved_up(self, job: JobId) -> Iterator[MoveCause]:
        """Those ahead first: they have the right to it. Behind them, conservative backfill may have used a gap."""
        started = [other for other in self._started if other in self._ranks]
        yield from map(MovedUp, sorted(started, key=lambda other: not self._was_ahead(other, job)))
        yield from map(MovedUp, (other for other in self._sooner if self._was_ahead(other, job)))

    def _is_edited(self, job: JobId) -> bool:
        return _asked(self._queued[job]) != _asked(self._queued_now[job])

    @cached_property
    def _rules(self) -> Sequence[MoveCause]:
        before, after = self._before.snapshot, self._after.snapshot
        if before.rules_version == after.rules_version:
            return ()
        return [NodesTaken(each) for each in after.reservations if each not in before.reservations] or (RulesChanged(),)

    @cached_property
    def _lost(self) -> Sequence[NodeName]:
        return sorted(_in_service(self._before.snapshot) - _in_service(self._after.snapshot))

    @cached_property
    def _returned(self) -> Sequence[NodeName]:
        return sorted(_in_service(self._after.snapshot) - _in_service(self._before.snapshot))

    @cached_property
    def _overran(self) -> Sequence[MoveCause]:
        """Those that hold resources for longer than the first plan assumed, the longest first."""
        ends, ends_now, now = self._before.snapshot.ends, self._after.snapshot.ends, self._after.snapshot.now
        held = (job for job in self._after.snapshot.occupied if job in self._before.snapshot.occupied and job in ends)
        until = ((ends_now.get(job), job) for job in held)
        found = [(end, job) for end, job in until if end is None or end > ends[job] or ends[job] <= now]
        return [RanLonger(job, end) for end, job in sorted(found, key=lambda each: (-(each[0] or NEVER), each[1]))]

    @cached_property
    def _ended_early(self) -> Sequence[JobId]:
        """Those that are gone, before their limits and the grace that bounds reckon with were over."""
        before, now = self._before.snapshot, self._after.snapshot.now
        gone = (job for job in before.occupied if job not in self._after.snapshot.occupied)
        return [job for job in gone if before.ends.get(job, NEVER) + _grace_ms(before.jobs.get(job)) > now]

    @cached_property
    def _started(self) -> Sequence[JobId]:
        return [job for job in self._after.snapshot.occupied if job not in self._before.snapshot.occupied]

    @cached_property
    def _came(self) -> Sequence[JobId]:
        """Those that wait, or have started since, and had no place in the queue, or a later one."""
        waiting = [job for job, each in self._queued_now.items() if not each.held_by]
        return [job for job in (*waiting, *self._started) if self._is_new(job)]

    def _is_new(self, job: JobId) -> bool:
        before, now = self._queued.get(job), self._after.snapshot.jobs.get(job)
        if before is None or before.held_by or now is None:
            return True
        return by_seniority(now) < by_seniority(before)

    @cached_property
    def _freed(self) -> Sequence[JobId]:
        """Those that a rule stopped before, and none does now."""
        stopped = [job for job, each in self._queued.items() if not each.held_by and not self._waited_its_turn(each)]
        return [job for job in stopped if self._is_free_now(job)]

    def _waited_its_turn(self, job: Job) -> bool:
        return waits_its_turn(self._before.plan, job)

    def _is_free_now(self, job: JobId) -> bool:
        now = self._queued_now.get(job)
        if now is None:
            return job in self._after.snapshot.occupied
        return not now.held_by and waits_its_turn(self._after.plan, now)

    @cached_property
    def _left(self) -> Sequence[JobId]:
        """Those that were in the queue and neither wait nor run, or are held now, or have a later place."""
        return [job for job, each in self._queued.items() if not each.held_by and self._has_left(job)]

    def _has_left(self, job: JobId) -> bool:
        now = self._queued_now.get(job)
        if now is None:
            return job not in self._after.snapshot.occupied
        return bool(now.held_by) or by_seniority(now) > by_seniority(self._queued[job])

    @cached_property
    def _sooner(self) -> Sequence[JobId]:
        bounds = self._after.bounds
        return [job for job, bound in self._before.bounds.items() if job in bounds and bounds[job] < bound]

    def _was_ahead(self, other: JobId, job: JobId) -> bool:
        return other != job and self._ranks[other] < self._ranks[job]

    def _is_ahead_now(self, other: JobId, job: JobId) -> bool:
        """One that started since may have been behind: then the plan let it start only where that delays nobody."""
        if other in self._ranks_now:
            return self._ranks_now[other] < self._ranks_now[job]
        known = self._after.snapshot.jobs.get(other)
        return known is None or by_seniority(known) < by_seniority(self._queued_now[job])


def waits_its_turn(plan: Plan, job: Job) -> bool:
    """Whether a queued job starts by this plan, or waits only for resources or for the jobs ahead of it."""
    if any(start.job == job.id for start in plan.starts):
        return True
    reason = reason_of(plan, job)
    return isinstance(reason, _WAITS_ITS_TURN) or is_of_room(reason)


def _ranks(plan: Plan) -> dict[JobId, int]:
    return {job: rank for rank, job in enumerate(plan.order)}


def _in_service(snapshot: Snapshot) -> set[NodeName]:
    return {name for name, node in snapshot.nodes.items() if node.state is NodeState.UP}


def _grace_ms(job: Job | None) -> int:
    return 1000 * job.spec.end_grace_seconds if job is not None else 0


def _asked(job: Job) -> object:
    """What it asks for and where: what an edit changes of it."""
    return job.spec, job.partitions, job.account, job.qos, job.held_by
