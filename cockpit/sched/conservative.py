"""Conservative backfilling: in the order of the queue, each job gets the earliest hole that those before it leave.

After Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM
SP2 with Backfilling", 2001. Planned anew in each cycle, so that an early end moves everybody up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from heapq import heapify, heappop, heappush
from typing import Self

from msgspec.structs import replace

from cockpit.model.cluster import Backfill
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import BehindHead, Reason, WouldDelay
from cockpit.model.spec import NodeSpec
from cockpit.sched.course import NEVER, Course, Window
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.placement import Fit, Found, eligible, find, find_among, has_room
from cockpit.sched.shape import Shape, alternative


class Conservative:
    """One pass: the courses of the nodes, with what the pass has started and reserved so far."""

    guarded = False
    """Nobody is guarded more than others."""

    def __init__(self, now: Millis, backfill: Backfill, fit: Fit | None) -> None:
        self._holes: dict[JobId, Reserved] = {}
        self._now = now
        self._fit = fit
        self._grain = 1000 * backfill.resolution_seconds or 1
        self._horizon = Millis(now + 1000 * backfill.window_seconds) if backfill.window_seconds else NEVER
        self._courses: dict[int, Course] = {}
        self._not_before: dict[Shape, tuple[int, Millis]] = {}
        """The hole that a shape found last, and how long it asked for: whoever asks for as much finds none sooner."""

    @property
    def head(self) -> JobId | None:
        """The first job that waits for room."""
        return next(iter(self._holes), None)

    @property
    def reservations(self) -> list[Reserved]:
        """In the order of the queue."""
        return list(self._holes.values())

    def place(self, index: Index, job: Job, shape: Shape) -> Found | Reason | None:
        """Room for the job now and for as long as it asks; else why not (None: no room), and its hole is reserved."""
        span = 1000 * job.spec.time_limit_seconds
        hole = self._hole(index, shape, self._rounded(span) + (self._grain if self._now % self._grain else 0))
        if hole is None:
            return self._no_hole(index, shape)
        moment, found = hole
        if moment == self._now:
            return found
        head = self.head
        if job.id not in self._holes:  # else it has one in another partition
            self._reserve(index, job.id, found.placement, moment, self._rounded(moment + span))
            self._holes[job.id] = Reserved(
                job.id, moment, alternative(job.spec, shape, found.spec_index), found.placement
            )
        return WouldDelay(head, moment) if head is not None and has_room(index, shape) else None

    def place_cleared(self, cleared: Index, job: Job, shape: Shape, *, still: bool = False) -> Found | None:  # noqa: ARG002 - nobody waits ahead
        """Room where others have given way; only for the first job that waits, who delays nobody ahead."""
        if self.head not in (None, job.id):
            return None
        self._courses.clear()  # whatever has started is in the index by now
        return find(cleared, shape, self._fit)

    def started(self, index: Index, job: Job, placement: Placement) -> None:
        end = self._rounded(self._now + 1000 * job.spec.time_limit_seconds)
        self._reserve(index, job.id, placement, self._now, end)

    def is_due_after(self, now: Millis) -> bool:
        """Whether every hole begins later."""
        return all(each.reserved_at > now for each in self._holes.values())

    def resumed(self, now: Millis) -> Self:
        """The same line at a later moment; what happens then leaves this one as it is."""
        fresh = copy(self)
        fresh._now = now  # noqa: SLF001 - of its own kind
        fresh._holes, fresh._not_before = self._holes.copy(), self._not_before.copy()  # noqa: SLF001 - of its own kind
        courses = {order: course.copy() for order, course in self._courses.items()}
        fresh._courses = courses  # noqa: SLF001 - of its own kind
        return fresh

    def fails_from(self, _reason: Reason | None) -> int:
        """Every job gets a hole of its own, whatever became of others of its shape."""
        return NEVER

    def _no_hole(self, index: Index, shape: Shape) -> Reason | None:
        """There may be room now, but none within the window that lasts."""
        head = self.head
        return BehindHead(head) if head is not None and has_room(index, shape) else None

    def _reserve(self, index: Index, job: JobId, placement: Placement, start: Millis, end: Millis) -> None:
        for order, part in index.located(placement):
            if order in self._courses:  # else it is made of an index that has the job
                self._courses[order].reserve(start, end, job, part)

    def _hole(self, index: Index, shape: Shape, span: int) -> tuple[Millis, Found] | None:
        """The earliest over the shape's alternatives, of equally early ones the first."""
        known_span, after = self._not_before.get(shape, (span, self._now))
        if known_span > span or after < self._now:
            after = self._now
        holes = [
            (hole[0], number, hole[1])
            for number, spec in enumerate(shape.specs)
            if (hole := self._opening(index, shape, spec, span, after)) is not None
        ]
        if not holes:
            return None
        moment, number, orders = min(holes)
        self._not_before[shape] = (span, moment)
        if moment > self._horizon:
            return None
        rooms = [self._course(index, order).narrowest(moment, Millis(moment + span)) for order in orders]
        return moment, find_among(rooms, shape, number, self._fit)

    def _opening(
        self, index: Index, shape: Shape, spec: NodeSpec, span: int, after: Millis
    ) -> tuple[Millis, list[int]] | None:
        """The first moment at which enough nodes have room for so long, and all the nodes that have it then."""
        waiting = []
        later = replace(shape, barred=()) if shape.barred else shape  # by reservations that may be over then
        for order in sorted(eligible(index, later, spec)):
            windows = self._course(index, order).windows(spec, span, exclusive=shape.exclusive, after=after)
            if index.floor.reservations:
                windows = _outside(_kept(index, order, shape), windows, span)
            if (window := next(windows, None)) is not None:
                waiting.append((*window, order, windows))
        heapify(waiting)
        open_until: dict[int, Millis] = {}
        while waiting:
            moment = waiting[0][0]
            while waiting and waiting[0][0] == moment:
                _, latest, order, windows = heappop(waiting)
                open_until[order] = latest
                if (window := next(windows, None)) is not None:
                    heappush(waiting, (*window, order, windows))
            orders = [order for order, latest in open_until.items() if latest >= moment]
            if len(orders) >= shape.nodes:
                return moment, sorted(orders)
        return None

    def _course(self, index: Index, order: int) -> Course:
        if order not in self._courses:
            room = index.rooms[order]
            ends = index.ends
            if self._grain > 1:
                ends = {job: self._rounded(ends[job]) for job in room.tenants if job in ends}
            self._courses[order] = Course(self._now, room, ends)
        return self._courses[order]

    def _rounded(self, moment: int) -> Millis:
        return Millis(-(-moment // self._grain) * self._grain)


def _kept(index: Index, order: int, shape: Shape) -> list[tuple[int, int]]:
    """The spans of time, soonest first, in which a node is kept from the shape."""
    floor = index.floor
    found = [floor.reservations[name] for name in floor.kinds[floor.kind_of[order]].reservations]
    kept = sorted((each.start_at, each.end_at) for each in found if each.name != shape.reservation)
    named = [(each.end_at, NEVER + 1) for each in found if each.name == shape.reservation]
    return kept + named


def _outside(kept: Sequence[tuple[int, int]], windows: Iterator[Window], span: int) -> Iterator[Window]:
    """What of the windows is left for a job that stays for the span and must be gone before, or come after."""
    for earliest, latest in windows:
        first = earliest
        for start, end in kept:
            if min(latest, start - span) >= first:
                yield first, Millis(min(latest, start - span))
            first = Millis(max(first, end))
            if first > latest:
                break
        else:
            yield first, latest
