"""Finds why a job's predicted start has moved, from the two states and plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice

import msgspec

from cockpit.model.forecast import (
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
    OtherEdited,
    PromisedStart,
    RanLonger,
    Replanned,
    RulesChanged,
    SharesLimit,
    StartMove,
)
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import NodeState
from cockpit.model.reasons import (
    ArrayFull,
    BehindHead,
    LimitReached,
    NodesReserved,
    NotEvaluated,
    QuotaFull,
    QuotaMaxJobs,
    WouldDelay,
)
from cockpit.sched.equivalence import by_seniority
from cockpit.sched.explain import reason_of
from cockpit.sched.plan import Plan
from cockpit.sched.rules.counters import holders
from cockpit.sched.shortage import is_short_of_resources
from cockpit.sched.snapshot import Snapshot

MOST_CAUSES = 3
"""The number of causes kept for one move; more would explain no more."""
MOST_MOVES = 5
"""The number of moves kept for one job; the oldest is dropped."""
NEVER = 1 << 62
_LIMITS = (ArrayFull, LimitReached, QuotaFull, QuotaMaxJobs)
_WAITS_ITS_TURN = (WouldDelay, BehindHead, NodesReserved, NotEvaluated)


class Basis(msgspec.Struct, frozen=True):
    """A state, the plan for it, and the latest starts that follow from them."""

    snapshot: Snapshot
    plan: Plan
    bounds: Mapping[JobId, Millis]


class BoundHistory:
    """The promised latest starts of jobs, and how they have moved.

    A promise is a start that a user was shown, until the job starts or leaves the queue; only promises are worth
    storing.
    """

    def __init__(self, stored: Iterable[PromisedStart] = ()) -> None:
        """`stored`: the promises of an earlier engine; moves while no engine ran are noted too."""
        self._stored = {each.job: each for each in stored}
        self._basis: Basis | None = None
        self._moves = {job: each.moves for job, each in self._stored.items()}
        self._promised: dict[JobId, Millis | None] = {job: each.latest_at for job, each in self._stored.items()}

    def follow(self, basis: Basis) -> None:
        """Take over the current bounds, and note which have moved."""
        # jobs that left the queue have kept or broken their promise: it is over either way
        before, self._basis = self._basis, basis
        queued = {job.id for job in basis.snapshot.queue}
        self._moves = {job: moves for job, moves in self._moves.items() if job in queued}
        self._promised = {job: bound for job, bound in self._promised.items() if job in queued}
        difference = PlanDifference(before, basis) if before is not None else None
        starting = {start.job for start in basis.plan.starts}
        # after a restart there is no earlier plan to compare with: only the stored promises can have moved
        for job, bound in (before.bounds if before is not None else self._promised).items():
            after = basis.bounds.get(job)
            # a job that starts has no bound any more, which is no move
            if bound is not None and job in queued and job not in starting and after != bound:
                why = difference.causes(job, later=_later(bound, after)) if difference else (EngineRestarted(),)
                move = StartMove(basis.snapshot.now, bound, after, why)
                self._moves[job] = (*self._moves.get(job, ()), move)[-MOST_MOVES:]
        for job in self._promised:
            if job not in starting:
                self._promised[job] = basis.bounds.get(job)

    def promise(self, jobs: Iterable[JobId]) -> None:
        """Remember that a user was shown the latest starts of these jobs, where they have one and do not start now."""
        if self._basis is None:
            return
        # a job that starts now has nothing to be promised
        bounds, now = self._basis.bounds, self._basis.snapshot.now
        self._promised.update((job, bounds[job]) for job in jobs if bounds.get(job, now) > now)

    @property
    def promised(self) -> Mapping[JobId, Millis | None]:
        """The current promises; None: one that was withdrawn and may be made again."""
        return self._promised

    def unsaved(self) -> tuple[list[PromisedStart], list[JobId]]:
        """Return the promises that are new or have moved since `saved`, and the jobs whose promises are over."""
        current = [PromisedStart(job, bound, self.of(job)) for job, bound in self._promised.items()]
        changed = [each for each in current if self._stored.get(each.job) != each]
        return changed, [job for job in self._stored if job not in self._promised]

    def saved(self, changed: Iterable[PromisedStart], over: Iterable[JobId]) -> None:
        """Note that the store has these changes."""
        self._stored.update((each.job, each) for each in changed)
        for job in over:
            self._stored.pop(job, None)

    def of(self, job: JobId) -> tuple[StartMove, ...]:
        """Return the last moves of the job's bound, oldest first."""
        return self._moves.get(job, ())


def _later(before: Millis, after: Millis | None) -> bool:
    return after is None or after > before


class PlanDifference:
    """The events between two plans that may move a bound.

    The events are found once for all jobs, as short lists; a job's causes are those events that concern jobs ahead of
    it. To go through the queue for each of a thousand jobs that conservative backfill has planned would take a second.
    """

    def __init__(self, before: Basis, after: Basis) -> None:
        self._before, self._after = before, after
        self._queued = {job.id: job for job in before.snapshot.queue}
        self._queued_now = {job.id: job for job in after.snapshot.queue}
        self._ranks, self._ranks_now = _ranks(before.plan), _ranks(after.plan)

    def knows(self, job: JobId) -> bool:
        """Return whether the job was in the order of both plans."""
        return job in self._ranks and job in self._ranks_now

    def causes(self, job: JobId, *, later: bool) -> tuple[MoveCause, ...]:
        """Return the first causes that apply; `Replanned` where none does."""
        # A change of the job itself or of the rules may have any effect. Causes that fit the direction of the move come
        # first; if there are none, others may explain it: a node that returns may serve a job ahead of this one.
        sources = (self._delays, self._moved_up, self._gains) if later else (self._gains, self._delays, self._moved_up)
        changed = [*([Edited()] if self._is_edited(job) else []), *self._rules]
        for source in (*sources, self._edits):
            if causes := tuple(islice(dict.fromkeys(chain(changed, source(job))), MOST_CAUSES)):
                return causes
        return (Replanned(),)

    def _delays(self, job: JobId) -> Iterator[MoveCause]:
        yield from map(NodeLost, self._lost)
        yield from self._overran
        yield from map(CameAhead, (other for other in self._came_ahead if self._is_ahead_now(other, job)))
        yield from map(LimitFreed, (other for other in self._freed if self._was_ahead(other, job)))
        yield from map(
            SharesLimit, (other for limited, other in self._used_up if limited == job or self._was_ahead(limited, job))
        )

    def _gains(self, job: JobId) -> Iterator[MoveCause]:
        yield from map(NodeReturned, self._returned)
        yield from map(EndedEarly, self._ended_early)
        yield from map(LeftQueue, (other for other in self._departed if self._was_ahead(other, job)))

    def _moved_up(self, job: JobId) -> Iterator[MoveCause]:
        """Yield jobs that started or moved up, those ahead of the job first. Jobs behind it may have filled a gap of
        the plan: they leave by the reserved moment, and their grace to end comes after it."""
        started = [other for other in self._started if other in self._ranks]
        yield from map(MovedUp, sorted(started, key=lambda other: not self._was_ahead(other, job)))
        yield from map(MovedUp, (other for other in self._sooner if self._was_ahead(other, job)))
        bound = self._after.bounds.get(job, NEVER)
        yield from map(CameAhead, (other for other, at in self._fillers if at <= bound and other != job))

    def _edits(self, job: JobId) -> Iterator[MoveCause]:
        yield from map(
            OtherEdited, (other for other in self._edited if other != job and self._is_ahead_now(other, job))
        )

    @cached_property
    def _edited(self) -> Sequence[JobId]:
        """Jobs that waited before and wait or run now, and were changed since."""
        now = self._after.snapshot.jobs
        return [job for job, each in self._queued.items() if job in now and now[job].spec != each.spec]

    def _is_edited(self, job: JobId) -> bool:
        # not the whole records: events such as a change of age are no edits
        return _editable_parts(self._queued[job]) != _editable_parts(self._queued_now[job])

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
        """Jobs that hold resources longer than the first plan assumed, the longest first."""
        ends, ends_now, now = self._before.snapshot.ends, self._after.snapshot.ends, self._after.snapshot.now
        held = (job for job in self._after.snapshot.occupied if job in self._before.snapshot.occupied and job in ends)
        until = ((ends_now.get(job), job) for job in held)
        # also jobs whose known end has passed although they still hold their resources
        late = [(end, job) for end, job in until if end is None or end > ends[job] or ends[job] <= now]
        return [RanLonger(job, end) for end, job in sorted(late, key=lambda each: (-(each[0] or NEVER), each[1]))]

    @cached_property
    def _ended_early(self) -> Sequence[JobId]:
        """Jobs that are gone before the end of their time limit and grace, which the bounds assumed, or will be."""
        before, after = self._before.snapshot, self._after.snapshot
        gone = [job for job in before.occupied if job not in after.occupied]
        early = [job for job in gone if before.ends.get(job, NEVER) + _grace_ms(before.jobs.get(job)) > after.now]
        held = (job for job in before.occupied if job in after.occupied)
        return [*early, *(job for job in held if after.ends.get(job, NEVER) < before.ends.get(job, NEVER))]

    @cached_property
    def _started(self) -> Sequence[JobId]:
        return [job for job in self._after.snapshot.occupied if job not in self._before.snapshot.occupied]

    @cached_property
    def _used_up(self) -> Sequence[tuple[JobId, JobId]]:
        """Waiting jobs that a limit stops now and did not before, each with jobs that have used it up since."""
        # only jobs that have started can have used up a limit, so without any the queue is not looked at
        snapshot, started = self._after.snapshot, {*self._started}
        stopped = [
            (job, reason)
            for job, each in (self._queued_now.items() if started else ())
            if job in self._queued
            and isinstance(reason := reason_of(self._after.plan, each), _LIMITS)
            and not isinstance(reason_of(self._before.plan, self._queued[job]), _LIMITS)
        ]
        return [
            (job, other)
            for job, reason in stopped
            for other in holders(snapshot, self._queued_now[job], reason)
            if other in started
        ]

    @cached_property
    def _came_ahead(self) -> Sequence[JobId]:
        """Jobs that wait or have started since, and were not in the queue before, or had a later place."""
        # a held job delays no other, so its coming moves nothing
        waiting = [job for job, each in self._queued_now.items() if not each.held_by]
        return [job for job in (*waiting, *self._started) if self._is_new(job)]

    def _is_new(self, job: JobId) -> bool:
        before, now = self._queued.get(job), self._after.snapshot.jobs.get(job)
        if before is None or before.held_by or now is None:
            return True
        # a place further ahead than before is as good as new
        return by_seniority(now) < by_seniority(before)

    @cached_property
    def _freed(self) -> Sequence[JobId]:
        """Jobs that a rule stopped before and no rule stops now."""
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
    def _departed(self) -> Sequence[JobId]:
        """Jobs that were in the queue and neither wait nor run now, or are held, or have a later place."""
        return [job for job, each in self._queued.items() if not each.held_by and self._has_left(job)]

    def _has_left(self, job: JobId) -> bool:
        now = self._queued_now.get(job)
        if now is None:
            return job not in self._after.snapshot.occupied
        return bool(now.held_by) or by_seniority(now) > by_seniority(self._queued[job])

    @cached_property
    def _fillers(self) -> Sequence[tuple[JobId, Millis]]:
        """Jobs that fill a gap of the plan, with their starts: those that have come since and started at once, and
        those that have a reservation now, and had none or a later one before."""
        # without a rank they were not in the queue of the first plan
        started = [(other, self._before.snapshot.now) for other in self._started if other not in self._ranks]
        before = {each.job: each.reserved_at for each in self._before.plan.reservations}
        reserved = [(each.job, each.reserved_at) for each in self._after.plan.reservations]
        return [*started, *((job, at) for job, at in reserved if at < before.get(job, NEVER))]

    @cached_property
    def _sooner(self) -> Sequence[JobId]:
        bounds = self._after.bounds
        return [job for job, bound in self._before.bounds.items() if job in bounds and bounds[job] < bound]

    def _was_ahead(self, other: JobId, job: JobId) -> bool:
        return other != job and self._ranks[other] < self._ranks[job]

    def _is_ahead_now(self, other: JobId, job: JobId) -> bool:
        """Return whether the other job is ahead now. A job that started since may have been behind: then the plan let
        it start only because it delays no other."""
        if other in self._ranks_now:
            return self._ranks_now[other] < self._ranks_now[job]
        # no rank now: it has started or is gone, so its seniority decides, or it counts as ahead
        known = self._after.snapshot.jobs.get(other)
        return known is None or by_seniority(known) < by_seniority(self._queued_now[job])


def waits_its_turn(plan: Plan, job: Job) -> bool:
    """Return whether a queued job starts by this plan, or waits only for resources or for the jobs ahead of it."""
    if any(start.job == job.id for start in plan.starts):
        return True
    reason = reason_of(plan, job)
    return isinstance(reason, _WAITS_ITS_TURN) or is_short_of_resources(reason)


def _ranks(plan: Plan) -> dict[JobId, int]:
    return {job: rank for rank, job in enumerate(plan.order)}


def _in_service(snapshot: Snapshot) -> set[NodeName]:
    return {name for name, node in snapshot.nodes.items() if node.state is NodeState.UP}


def _grace_ms(job: Job | None) -> int:
    return 1000 * job.spec.end_grace_seconds if job is not None else 0


def _editable_parts(job: Job) -> object:
    """Return the parts of a job that an edit changes: what it asks for, and where."""
    return job.spec, job.partitions, job.account, job.qos, job.held_by
