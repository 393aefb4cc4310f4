"""Decides which jobs may start before the first job that waits for resources (the head of the queue).

`StrictOrder`: none. `Easy`: every job that does not delay the head. EASY backfilling, per pass:

1. The first job that does not fit becomes the head and gets a reservation: the earliest moment at which enough running
   jobs have ended by their time limits (`head_reservation.reserve`). If no such moment is known, the next job that does
   not fit gets the reservation.
2. A later job that fits may start if it ends before that moment, or if the head still fits beside it (`admits`).
3. If it would delay the head on the nodes of best fit, nodes outside the reservation are tried.
4. If that fails too, the job's next alternatives are tried in the same way.
5. Each start that lasts beyond the reserved moment narrows the reservation (`beside`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar, Self

import msgspec
from msgspec.structs import replace

from cockpit.model.cluster import Backfill
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import BehindHead, Reason, WouldDelay
from cockpit.sched.backfill.head_reservation import Reservation, is_certain, reserve, within
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.placement import Fit, JobPlacement, find_placement
from cockpit.sched.shape import Shape, alternative

BackfillConflicts = Mapping[tuple[JobId, str], WouldDelay]
"""The job ahead that a waiting job would delay and that job's reserved moment, by waiting job and partition."""


class StrictOrder(msgspec.Struct):
    """The state of one pass without backfill: no job starts before the first waiting job."""

    plans_beyond_reservations: ClassVar[bool] = False
    """Whether a job that an advance reservation keeps off now is planned for a moment behind it. Without backfill it is
    passed over instead: else nothing would start until the advance reservation is over."""

    _now: Millis
    _backfill: Backfill
    _fit: Fit | None
    head: JobId | None = None
    """The first waiting job."""
    has_reservation: bool = False
    """Whether some job has a reservation."""
    refusals_may_change: bool = False
    """Whether a job was refused because it would delay the head on the nodes that are tightest now. Once those nodes
    are taken, it may not delay it, so the verdict does not hold for a later pass."""
    _reservation: Reservation | None = None
    _pending_index: Index | None = None
    """The index for which the reservation has yet to be computed; None: it is computed. A pass in which no later job
    fits never needs it."""
    _reserved_for: tuple[Job, Shape] | None = None
    """The job that has the reservation, and the shape that was tried; None: no job has one."""

    @property
    def reservation(self) -> Reservation | None:
        """The head's reservation; None: its moment is not known, or is beyond the window."""
        if self._pending_index is not None and self._reserved_for is not None:
            self._reservation = reserve(self._pending_index, self._now, self._backfill, *self._reserved_for)
            self._pending_index = None
        return self._reservation

    @property
    def reservations(self) -> list[Reserved]:
        if self.reservation is None or self._reserved_for is None:
            return []
        (job, shape), reserved = self._reserved_for, self.reservation.reservation()
        return [replace(reserved, spec_index=alternative(job.spec, shape, reserved.spec_index))]

    def place(self, index: Index, job: Job, shape: Shape) -> JobPlacement | Reason | None:
        """Place the job now, or return why not; None: it does not fit. The first job that does not fit gets the
        reservation."""
        job_placement = find_placement(index, shape, self._fit)
        # 1. the first job that does not fit becomes the head
        if job_placement is None:
            if not self.has_reservation:
                self._reserve_for_head(index, job, shape)
            if self.head is None:
                self.head = job.id
            return None
        if self.head is None or self.head == job.id:  # a job of several partitions cannot delay itself
            return job_placement
        return self.place_behind_head(index, job, shape, job_placement)

    def compute_deferred(self) -> None:
        """Compute a deferred reservation before the index that it depends on changes."""
        if self._pending_index is not None:
            _ = self.reservation

    def _reserve_for_head(self, index: Index, job: Job, shape: Shape) -> None:
        """Give the job the reservation if it can have one."""
        # the moment exists for certain, so it can be computed when it is first needed
        if is_certain(index, self._backfill) and not shape.is_uneven:
            self._pending_index = index
        else:
            self._reservation = reserve(index, self._now, self._backfill, job, shape)
        if self._pending_index is not None or self._reservation is not None:
            self._reserved_for, self.has_reservation = (job, shape), True

    def place_behind_head(
        self, _index: Index, _job: Job, _shape: Shape, _job_placement: JobPlacement
    ) -> JobPlacement | Reason:
        """Return this placement, another one, or why the job has to wait behind the head."""
        assert self.head is not None
        return BehindHead(self.head)

    def place_after_evictions(
        self, index_after: Index, job: Job, shape: Shape, *, suspends: bool = False
    ) -> JobPlacement | None:
        """Place the job in an index in which victims have been evicted, unless that delays a job ahead. `suspends`:
        some victims are suspended, and so leave later than was known before."""
        before = self.reservation
        # a suspended job ends later than was known: test the head's reservation against the later ends
        if suspends and before is not None and self.head != job.id:
            self._reservation = within(before, index_after)
            if self._reservation is None:
                self._reservation = before
                return None
        job_placement = self.place(index_after, job, shape)
        if not isinstance(job_placement, JobPlacement):
            self._reservation = before
            return None
        return job_placement

    def started(self, _index: Index, _job: Job, _placement: Placement) -> None:
        """Note that the job starts there."""

    def evicted(self, _index: Index) -> None:
        """Note that some running jobs leave sooner than was known, as this index says."""

    def allows(self, _index: Index, job: JobId, _end: Millis, _placement: Placement) -> bool:
        """Return whether no waiting job is delayed if the job holds this until `end`."""
        return self.head in (None, job)

    def extended(self, _index: Index, _job: JobId, _end: Millis, _placement: Placement) -> None:
        """Note that a job that runs, or is about to, holds this too."""

    def is_due_after(self, now: Millis) -> bool:
        """Return whether the reserved moment of the head is still to come."""
        if self._pending_index is not None and self._pending_index.departures[0][0] > now:
            return True
        return self.reservation is None or self.reservation.reserved_at > now

    def involves(self, jobs: Collection[JobId]) -> bool:
        """Return whether one of these jobs is the head or has the reservation."""
        return self.head in jobs or (self._reserved_for is not None and self._reserved_for[0].id in jobs)

    def jobs_with_reservation(self) -> set[JobId]:
        """Return the waiting jobs that may keep other jobs from starting."""
        kept = {self.head} if self.head is not None else set()
        return kept | {self._reserved_for[0].id} if self._reserved_for is not None else kept

    def resumed(self, now: Millis) -> Self:
        """Return the same state at a later moment; this object stays as it is."""
        return replace(self, _now=now)

    def conflicts(self, _index: Index) -> BackfillConflicts:
        """Return the job that each waiting job would delay, by job and partition, where that differs between jobs of
        one shape; empty here."""
        return {}

    def fails_from(self, _reason: Reason | None) -> int:
        """Return the time limit, in seconds, from which on every job of a shape fails if one has failed for this
        reason."""
        return 0

    def end(self, job: Job) -> Millis:
        """Return the latest end of the job if it starts now."""
        return Millis(self._now + 1000 * job.spec.time_limit_seconds)


class Easy(StrictOrder):
    """The state of one pass under EASY backfill: later jobs may start before the head as long as they do not
    delay it."""

    plans_beyond_reservations: ClassVar[bool] = True

    def place_behind_head(
        self, index: Index, job: Job, shape: Shape, job_placement: JobPlacement
    ) -> JobPlacement | Reason:
        reservation = self.reservation if self._pending_index is not None else self._reservation
        end = Millis(self._now + 1000 * job.spec.time_limit_seconds)
        # 2. the nodes of best fit
        if (
            reservation is None
            or reservation.head == job.id
            or reservation.admits(job.id, end, job_placement.placement)
        ):
            return job_placement
        # 3. nodes that the head does not need
        reserved = reservation.reserved_nodes
        other = find_placement(index, shape, self._fit, avoid=reserved)
        if other is not None and reservation.admits(job.id, end, other.placement):
            return other
        self.refusals_may_change |= len(reserved) > 1  # a head on one node waits for that node alone
        # 4. the job's further alternatives
        if job_placement.spec_index + 1 < len(shape.specs):
            return self._by_another(index, job, shape, job_placement.spec_index + 1)
        return WouldDelay(reservation.head, reservation.reserved_at)

    def _by_another(self, index: Index, job: Job, shape: Shape, first: int) -> JobPlacement | Reason:
        """Try the alternatives from number `first` on: the first that can start is taken."""
        assert self._reservation is not None
        rest = replace(shape, specs=shape.specs[first:])
        job_placement = find_placement(index, rest, self._fit)
        result = self.place_behind_head(index, job, rest, job_placement) if job_placement is not None else None
        if isinstance(result, JobPlacement):
            return JobPlacement(first + result.spec_index, result.placement)
        return WouldDelay(self._reservation.head, self._reservation.reserved_at)

    def started(self, _index: Index, job: Job, placement: Placement) -> None:
        if self._reservation is not None and self._reservation.head != job.id:
            self._reservation = self._reservation.beside(job.id, self.end(job), placement)

    def evicted(self, index: Index) -> None:
        # the nodes that the victims leave before the head's moment are more than the reservation knows
        if self._reservation is not None and (wider := within(self._reservation, index)) is not None:
            self._reservation = wider

    def allows(self, _index: Index, job: JobId, end: Millis, placement: Placement) -> bool:
        reservation = self.reservation
        return reservation is None or reservation.head == job or reservation.admits(job, end, placement)

    def extended(self, _index: Index, job: JobId, end: Millis, placement: Placement) -> None:
        if self._reservation is not None and self._reservation.head != job:
            self._reservation = self._reservation.beside(job, end, placement)

    def fails_from(self, reason: Reason | None) -> int:
        """Return the shortest time limit that reaches beyond the reservation: shorter jobs do not delay the head."""
        if reason is None or not isinstance(reason, WouldDelay):  # None first: isinstance is slow, most are None
            return 0
        return (reason.reserved_at - self._now) // 1000 + 1
