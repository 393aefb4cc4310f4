"""Derives why each job of a pass does not start.

The pass notes only one verdict for each shape. The reason of a job is derived from that, and from what is in use after
the pass, when it is first read: in a replay most reasons never are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from cockpit.model.cluster import Backfill
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.reasons import (
    BehindHead,
    Held,
    Limit,
    NoAlternative,
    NodesReserved,
    NoEligibleNode,
    OfOne,
    Reason,
    WouldDelay,
    never_starts,
)
from cockpit.sched.backfill.easy import BackfillConflicts
from cockpit.sched.backfill.head_reservation import reserve
from cockpit.sched.decisions import Reserved
from cockpit.sched.equivalence import EquivalenceClass, partitions_of
from cockpit.sched.eviction.eviction_planner import EvictionPlanner
from cockpit.sched.feasible import infeasible, none_of
from cockpit.sched.gates import Gates
from cockpit.sched.index import Index
from cockpit.sched.limited_shapes import limit_now, limit_of_all
from cockpit.sched.nodes.reservation_windows import ReservationWindows
from cockpit.sched.placement import fits_now
from cockpit.sched.shape import Shape
from cockpit.sched.shortage import Shortages, with_shortage_changed


class PassNotes(NamedTuple):
    """The notes of a pass about jobs that do not start."""

    failed: Mapping[Shape, Reason | None]
    """The verdict on each shape; None: too few free resources."""
    narrowed: Mapping[EquivalenceClass, Shape]
    """The shape that was tried, for classes that a limit left only some alternatives."""
    exceeded: Mapping[EquivalenceClass, Limit]
    """The limit that a class would have broken by the placement that was possible."""


class BackfillState(Protocol):
    """The methods that the reasons need from the backfiller."""

    @property
    def reservations(self) -> list[Reserved]:
        """The reservations of waiting jobs, in the order of the queue."""
        ...

    def conflicts(self, index: Index) -> BackfillConflicts:
        """Return the job that each waiting job would delay, by job and partition, where that differs between jobs of
        one shape."""
        ...


class Refusals:
    """The reasons of the jobs that do not start, by the state after the last start of the pass."""

    def __init__(
        self,
        gates: Gates,
        windows: ReservationWindows,
        noted: PassNotes,
        backfiller: BackfillState,
        index: Index,
        eviction_planner: EvictionPlanner | None = None,
    ) -> None:
        """`eviction_planner`: the evictions of the pass, None where no rule allows any."""
        self.gates = gates
        self._backfiller = backfiller
        self.index = index
        """The index with the starts of the pass."""
        self._windows = windows
        self._failed, self._narrowed, self._exceeded = noted
        self.nominated = eviction_planner.nominated if eviction_planner is not None else {}
        """Nominated jobs, with the jobs whose end they wait for."""
        self._insufficient = eviction_planner.insufficient if eviction_planner is not None else {}
        self._layout = index.layout
        self._shortages = Shortages(index)
        self._shape_reasons: dict[Shape, Reason] = {}
        self._class_reasons: dict[EquivalenceClass, Reason | None] = {}
        self._permanent_reasons: dict[EquivalenceClass, Reason | None] = {}
        """What stops each class for good; None: nothing."""
        self._soonest: dict[tuple[EquivalenceClass, Reason], Millis | None] = {}

    def detach_caches(self) -> None:
        """Leave the caches to the next pass: what is derived from now on is computed with caches of its own."""
        self.describe()
        _ = self._backfiller.reservations
        self.index = self.index.with_own_caches()
        self.gates = self.gates.with_cache(self.index.equivalence)
        self._layout, self._shortages = self.index.layout, Shortages(self.index)

    def __len__(self) -> int:
        """The number of distinct shapes that failed."""
        return len(self._failed)

    def __eq__(self, other: object) -> bool:
        """Return whether every job certainly has the same reason in both. Two passes may differ in shapes that no job
        reaches."""
        if not isinstance(other, Refusals) or self._failed.keys() != other._failed.keys():
            return False
        if (self._exceeded, self.nominated, self._insufficient) != (
            other._exceeded,
            other.nominated,
            other._insufficient,
        ):
            return False
        if not self.gates.as_of(other.gates):
            return False
        return self._described() == other._described() and self._conflicts == other._conflicts

    __hash__ = None  # type: ignore[assignment] # it is compared, never a key

    def reason(self, job: Job, partition: str) -> Reason | None:
        """Return the reason for which the job does not start in that partition; None where no pass has considered such
        a job yet.

        1. A nominated job waits for the evictions.
        2. Else the first rule that stops the job or its class, or the verdict on its shape.
        3. If something will stop it for good, that is said instead of a reason that passes; a hold stays a hold.
        4. If it may preempt, but too little, the number of those jobs is added.
        """
        # 1. nominated
        if (nominated := self.nominated.get(job.id)) is not None:
            return nominated
        equivalence_class = self.gates.equivalence_class(job, partition)
        # 2. rules, then resources
        reason = self.gates.job_refusal(job) or self._of(equivalence_class, job)
        # 3. for good
        if reason is not None and not isinstance(reason, Held) and not never_starts(reason):
            reason = self.gates.permanent_job_refusal(job) or self._never(equivalence_class) or reason
        # 4. noted by the eviction planner for shape and key, since both decide which jobs it may preempt
        insufficient = self._insufficient.get((equivalence_class.shape, equivalence_class.preemption_key))
        if insufficient is not None and reason is not None:
            return with_shortage_changed(reason, lambda one: replace(one, preemptable=insufficient))
        return reason

    def never(self, job: Job) -> bool:
        """Return whether the job can start in none of its partitions, whatever comes free. Costs a few look-ups."""
        if self.gates.permanent_job_refusal(job) is not None:
            return True
        return all(self._never(self.gates.equivalence_class(job, name)) is not None for name in partitions_of(job))

    def soonest(self, job: Job, partition: str, reason: Reason) -> Millis | None:
        """Return about when the job can start there if, of the jobs ahead, only the one named in the reason delays it;
        None: not known."""
        equivalence_class = self.gates.equivalence_class(job, partition)
        key = equivalence_class, reason
        if key not in self._soonest:
            self._soonest[key] = self._moment(job, equivalence_class, reason)
        return self._soonest[key]

    def _moment(self, job: Job, equivalence_class: EquivalenceClass, reason: Reason) -> Millis | None:
        """Work out `soonest`: when limits leave room, what the reason names is over, and the resources come free."""
        open_at = self.gates.open_at(equivalence_class, self.index)
        if open_at is None:
            return None
        match reason:
            case WouldDelay():
                named = reason.reserved_at
            case NodesReserved():
                named = reason.end_at
            case BehindHead():
                named = next(
                    (each.reserved_at for each in self._backfiller.reservations if each.job == reason.ahead), open_at
                )
            case _:
                named = open_at
        shape = (
            self.gates.open_shape(equivalence_class)
            if self.gates.class_refusal(equivalence_class) is None
            else equivalence_class.shape
        )
        if infeasible(shape, self._layout) is not None:
            return None
        if fits_now(self.index, shape):
            return max(open_at, named)
        # without window and resolution: an estimate is wanted, however far ahead
        reservation = reserve(self.index, self.gates.now, Backfill(), job, shape)
        return max(open_at, named, reservation.reserved_at) if reservation is not None else None

    def _never(self, equivalence_class: EquivalenceClass) -> Reason | None:
        """Return what stops every job of the class for good, by each of its alternatives; None: nothing does. That
        answer is cached while nodes and rules stay the same."""
        # "something may start it" holds while nodes and rules stay; "nothing can" is kept for this pass alone, since
        # usage decays
        key = self.gates.rules_version, equivalence_class
        if key in self._layout.some_day:
            return None
        if equivalence_class not in self._permanent_reasons:
            self._permanent_reasons[equivalence_class] = self._permanent_reason(equivalence_class)
            if self._permanent_reasons[equivalence_class] is None:
                self._layout.some_day.add(key)
        return self._permanent_reasons[equivalence_class]

    def _permanent_reason(self, equivalence_class: EquivalenceClass) -> Reason | None:
        """Return what stops each alternative of the class for good; None: at least one of them may start at some
        time."""
        if equivalence_class.refused is not None and never_starts(equivalence_class.refused):
            return equivalence_class.refused
        each: list[OfOne] = []
        for shape, amounts in self.gates.alternatives(equivalence_class):
            never = infeasible(shape, self._layout)
            fits = never is None or not never_starts(never)
            reason = limit_of_all(self.gates, equivalence_class, shape, amounts, self._layout) if fits else never
            if not isinstance(reason, OfOne):
                return None
            each.append(reason)
        return none_of(each)

    def describe(self) -> None:
        """Derive everything now, for a caller that will read it later without time to wait."""
        self._described()
        _ = self._conflicts

    def _of(self, equivalence_class: EquivalenceClass, job: Job) -> Reason | None:
        """Return what stops the class, else the verdict on its shape as it applies to this job."""
        if equivalence_class not in self._class_reasons:
            self._class_reasons[equivalence_class] = self.gates.class_refusal(equivalence_class) or self._limit(
                equivalence_class
            )
        if (bound := self._class_reasons[equivalence_class]) is not None:
            return bound
        shape = self._narrowed.get(equivalence_class, equivalence_class.shape)
        reason = self._resource_reason(shape, job)
        if isinstance(reason, NoEligibleNode) and not equivalence_class.shape.node_names:
            reason = replace(reason, pins=())  # the names are those that a limit leaves, which the job does not ask for
        # a job that started later in the pass may have used up what a limit left to one of the alternatives
        is_limited = len(self.gates.open_shape(equivalence_class).specs) < len(shape.specs)
        if (is_limited or shape is not equivalence_class.shape) and isinstance(reason, OfOne | NoAlternative):
            return none_of(self._with_limits(equivalence_class, shape, reason))
        return reason

    def _limit(self, equivalence_class: EquivalenceClass) -> Limit | None:
        """Return the limit that the class would break on any nodes, or would have broken on those that it could get,
        with what is in use after the pass; None: there is none."""
        # a job that started after this class was considered may have used up what the limit left to it
        now = limit_now(self.gates, equivalence_class, self.gates.open_shape(equivalence_class), self._layout)
        if now is not None:
            return now
        noted = self._exceeded.get(equivalence_class)
        return self.gates.with_present_use(equivalence_class, noted) if noted is not None else None

    def _with_limits(
        self, equivalence_class: EquivalenceClass, shape: Shape, reason: OfOne | NoAlternative
    ) -> list[OfOne]:
        """Return the reasons of the alternatives that were tried, and the limits that stop the others, or them now."""
        left = iter(reason.specs if isinstance(reason, NoAlternative) else [reason] * len(shape.specs))
        each: list[OfOne] = []
        for one, amounts in self.gates.alternatives(equivalence_class):
            never = infeasible(one, self._layout)
            # a whole node or a slot may exceed a limit that what the job asks for does not
            limit = self.gates.exceeded(equivalence_class, amounts) or limit_now(
                self.gates, equivalence_class, one, self._layout
            )
            tried = next(left) if one.specs[0] in shape.specs else None
            # What no free node could help against goes first, whether the alternative was tried or a limit kept it out:
            # else the reason would change with each job that starts beside this one.
            if tried is not None and (limit is None or isinstance(never, OfOne) or never_starts(tried)):
                each.append(tried)
            elif tried is None and isinstance(never, OfOne):
                each.append(never)
            elif limit is not None:
                each.append(limit)
        return each

    def _resource_reason(self, shape: Shape, job: Job) -> Reason | None:
        """Return the verdict on the shape; else that on a shape barred from fewer reservations: what fails with more
        nodes fails with fewer."""
        barred = self._windows.against_job(job)
        # reservations are sorted by their start, so a shorter job runs into the first few of these
        for count in range(len(barred), -1, -1):
            tried = replace(shape, barred=barred[:count]) if count else shape
            if tried in self._failed:
                verdict = self._of_shape(tried)
                # a shorter job had to wait its turn there; this one fits on no node that it may use
                if count < len(barred) and isinstance(verdict, WouldDelay | BehindHead):
                    own = replace(shape, barred=barred)
                    if not fits_now(self.index, own):
                        return infeasible(own, self._layout) or self._shortages.reason(own)
                return self._of_job(job, tried, verdict)
        return None

    def _of_job(self, job: Job, shape: Shape, reason: Reason) -> Reason | None:
        """Return the reason of a job that fits now: which job it would delay depends on its own time limit and place in
        the queue."""
        if isinstance(reason, BehindHead):
            met = self._conflicts.get((job.id, shape.partition), reason)
            return met if met.ahead != job.id else None  # it is itself the first, and waits in another partition
        if isinstance(reason, WouldDelay) and self.gates.now + 1000 * job.spec.time_limit_seconds <= reason.reserved_at:
            return BehindHead(reason.ahead)  # it was not considered: it is beyond the depth
        return reason

    def _of_shape(self, shape: Shape) -> Reason:
        known = self._shape_reasons.get(shape)
        if known is None:
            known = self._shape_reasons[shape] = self._verdict(shape)
        return known

    def _verdict(self, shape: Shape) -> Reason:
        """Return the reason of a shape. Jobs that started later in the pass may have taken what was free when the
        verdict was noted."""
        # "would delay" and "behind the first job" say that the shape fitted then
        noted = self._failed[shape]
        if isinstance(noted, WouldDelay | BehindHead) and not fits_now(self.index, shape):
            noted = None
        return noted or infeasible(shape, self._layout) or self._shortages.reason(shape)

    @cached_property
    def _conflicts(self) -> BackfillConflicts:
        return self._backfiller.conflicts(self.index)

    def _described(self) -> dict[Shape, Reason]:
        return {shape: self._of_shape(shape) for shape in self._failed}
