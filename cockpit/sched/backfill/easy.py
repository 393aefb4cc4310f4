"""Who may start before the first job that waits for room: nobody, or (EASY) whoever does not delay it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self

import msgspec
from msgspec.structs import replace

from cockpit.model.cluster import Backfill
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import BehindHead, Reason, WouldDelay
from cockpit.sched.backfill.head_reservation import AnyReservation, is_certain, reserve, within
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.placement import Fit, JobPlacement, find_placement
from cockpit.sched.shape import Shape, alternative

BackfillConflicts = Mapping[tuple[JobId, str], WouldDelay]
"""By job and partition."""


class InOrder(msgspec.Struct):
    """One pass in which nothing passes the first job that waits for room."""

    _now: Millis
    _backfill: Backfill
    _fit: Fit | None
    head: JobId | None = None
    """The first job that waits for room."""
    has_reservation: bool = False
    """Whether some job has its reservation."""
    refusals_may_change: bool = False
    """Somebody would delay the head on the nodes that are tightest now, perhaps not on others once these are taken."""
    _reservation: AnyReservation | None = None
    _pending_index: Index | None = None
    """As things stood when a reservation became certain that nobody has asked for yet."""
    _reserved_for: tuple[Job, Shape] | None = None
    """Whose reservation it is, and what it was tried as; None: no job has one."""

    @property
    def reservation(self) -> AnyReservation | None:
        """The head's reservation; None: nobody knows when it has room, or not within the window."""
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
        """Room for the job now; else why not (None: no room), and the first of these gets a reservation."""
        job_placement = find_placement(index, shape, self._fit)
        if job_placement is None:
            if not self.has_reservation:
                self._keep_room(index, job, shape)
            if self.head is None:
                self.head = job.id
            return None
        if self.head is None or self.head == job.id:  # it does not stand in its own way in another partition
            return job_placement
        return self.place_behind_head(index, job, shape, job_placement)

    def settle(self) -> None:
        """Work out what was put off, before anything changes that it depends on."""
        if self._pending_index is not None:
            _ = self.reservation

    def _keep_room(self, index: Index, job: Job, shape: Shape) -> None:
        """Give the job its reservation, where it can have one."""
        if is_certain(index, self._backfill) and not shape.is_uneven:
            self._pending_index = index
        else:
            self._reservation = reserve(index, self._now, self._backfill, job, shape)
        if self._pending_index is not None or self._reservation is not None:
            self._reserved_for, self.has_reservation = (job, shape), True

    def place_behind_head(
        self, _index: Index, _job: Job, _shape: Shape, _job_placement: JobPlacement
    ) -> JobPlacement | Reason:
        """The room found, other room, or why the job has to wait behind the head."""
        assert self.head is not None
        return BehindHead(self.head)

    def place_after_evictions(
        self, index_after: Index, job: Job, shape: Shape, *, suspends: bool = False
    ) -> JobPlacement | None:
        """Room where others have given way, unless somebody ahead would be delayed by it. `still`: some of them stand
        still, and so leave later than was known."""
        before = self.reservation
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
        """The job starts there."""

    def allows(self, _index: Index, job: JobId, _end: Millis, _placement: Placement) -> bool:
        """Whether nobody is delayed if the job holds this until then."""
        return self.head in (None, job)

    def extended(self, _index: Index, _job: JobId, _end: Millis, _placement: Placement) -> None:
        """A job that runs, or is about to, holds this too."""

    def is_due_after(self, now: Millis) -> bool:
        """Whether the head's moment is still to come."""
        if self._pending_index is not None and self._pending_index.departures[0][0] > now:
            return True
        return self.reservation is None or self.reservation.reserved_at > now

    def involves(self, jobs: Collection[JobId]) -> bool:
        """Whether one of these is the first that waits, or has its reservation."""
        return self.head in jobs or (self._reserved_for is not None and self._reserved_for[0].id in jobs)

    def resumed(self, now: Millis) -> Self:
        """The same line at a later moment; what happens then leaves this one as it is."""
        return replace(self, _now=now)

    def conflicts(self, _index: Index) -> BackfillConflicts:
        """Whom a job would delay, where that is not the same for all of its shape."""
        return {}

    def fails_from(self, _reason: Reason | None) -> int:
        """The time limit, in seconds, from which on every job of a shape fails of which one failed for this reason."""
        return 0

    def end(self, job: Job) -> Millis:
        """When it is gone at the latest if it starts now."""
        return Millis(self._now + 1000 * job.spec.time_limit_seconds)


class Easy(InOrder):
    """One pass in which others may pass the head as long as its reservation holds."""

    def place_behind_head(
        self, index: Index, job: Job, shape: Shape, job_placement: JobPlacement
    ) -> JobPlacement | Reason:
        reservation = self.reservation if self._pending_index is not None else self._reservation
        end = Millis(self._now + 1000 * job.spec.time_limit_seconds)
        if (
            reservation is None
            or reservation.head == job.id
            or reservation.admits(job.id, end, job_placement.placement)
        ):
            return job_placement
        if not index.single_node:
            reserved = reservation.reserved_nodes
            other = find_placement(index, shape, self._fit, avoid=reserved)
            if other is not None and reservation.admits(job.id, end, other.placement):
                return other
            self.refusals_may_change |= len(reserved) > 1  # of a head on one node, nothing but that node matters
        if job_placement.spec_index + 1 < len(shape.specs):
            return self._by_another(index, job, shape, job_placement.spec_index + 1)
        return WouldDelay(reservation.head, reservation.reserved_at)

    def _by_another(self, index: Index, job: Job, shape: Shape, first: int) -> JobPlacement | Reason:
        """The same by the alternatives from that one on: the first that can start wins."""
        assert self._reservation is not None
        rest = replace(shape, specs=shape.specs[first:])
        job_placement = find_placement(index, rest, self._fit)
        there = self.place_behind_head(index, job, rest, job_placement) if job_placement is not None else None
        if isinstance(there, JobPlacement):
            return JobPlacement(first + there.spec_index, there.placement)
        return WouldDelay(self._reservation.head, self._reservation.reserved_at)

    def started(self, _index: Index, job: Job, placement: Placement) -> None:
        if self._reservation is not None and self._reservation.head != job.id:
            self._reservation = self._reservation.beside(job.id, self.end(job), placement)

    def allows(self, _index: Index, job: JobId, end: Millis, placement: Placement) -> bool:
        reservation = self.reservation
        return reservation is None or reservation.head == job or reservation.admits(job, end, placement)

    def extended(self, _index: Index, job: JobId, end: Millis, placement: Placement) -> None:
        if self._reservation is not None and self._reservation.head != job:
            self._reservation = self._reservation.beside(job, end, placement)

    def fails_from(self, reason: Reason | None) -> int:
        """Delaying the head is a matter of the time limit."""
        if reason is None or not isinstance(reason, WouldDelay):  # of None it takes a while, and most are None
            return 0
        return (reason.reserved_at - self._now) // 1000 + 1
