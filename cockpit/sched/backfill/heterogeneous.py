"""Backfill for a job whose replicas differ (helpers, or tasks that may be spread).

All replicas start at one moment, each on a node of its own. Counting nodes does not say whether all of them fit
together: replicas of several kinds compete for nodes.

EASY backfill (`reserve_heterogeneous`): each candidate moment gets an index of its own, in which the jobs that end by
then are gone, and the head of the queue is placed in it as if it started.

Conservative backfill (`earliest_heterogeneous_slot`):

1. Find the first moment at which each kind of replica by itself fits; the latest of these is the candidate.
2. Place all kinds at the candidate moment, the most demanding first, on different nodes; if that leaves too few nodes
   for some kind, find nodes for all kinds together.
3. If they do not fit together, try again at the next moment at which any timeline changes or an advance reservation
   ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from msgspec.structs import replace

from cockpit.model.cluster import Backfill
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.nodes.reservation_windows import closed
from cockpit.sched.placement import JobPlacement, by_demand, find_placement, joined, place_together
from cockpit.sched.shape import Shape


class HeterogeneousReservation:
    """The reservation of a head whose replicas differ; see `head_reservation.HeadReservation`."""

    def __init__(
        self, head: JobId, shape: Shape, reserved_at: Millis, then: Index, job_placement: JobPlacement
    ) -> None:
        """`shape`: as it may be placed at its moment; `then`: the index of that moment; `job_placement`: where the head
        fits in it."""
        self.head, self.shape, self.reserved_at = head, shape, reserved_at
        self._then, self._job_placement = then, job_placement

    def admits(self, job: JobId, end: Millis, placement: Placement) -> bool:
        """Return whether the head still fits at its moment if the job holds this placement until `end`."""
        # replicas of several kinds compete for nodes, so counting nodes does not suffice: the head is placed again
        return end <= self.reserved_at or find_placement(self._index_with(job, placement), self.shape) is not None

    def beside(self, job: JobId, end: Millis, placement: Placement) -> HeterogeneousReservation:
        """Return the reservation after the start of a job that was admitted."""
        if end <= self.reserved_at:
            return self
        # `admits` has found a placement in the same index, so `or self` is only for the type
        return _reservation(self.head, self.shape, self.reserved_at, self._index_with(job, placement)) or self

    def within(self, index: Index) -> HeterogeneousReservation | None:
        """Return the reservation for the same moment in another index; None: the head would be delayed."""
        gone = (job for job, end in index.ends.items() if end <= self.reserved_at)
        return _reservation(self.head, self.shape, self.reserved_at, _without(index, gone))

    def reservation(self) -> Reserved:
        return Reserved(self.head, self.reserved_at, self._job_placement.spec_index, self._job_placement.placement)

    @cached_property
    def reserved_nodes(self) -> frozenset[int]:
        """Orders of the nodes that the head would get by the present plan."""
        return frozenset([order for order, _ in self._then.located(self._job_placement.placement)])

    def _index_with(self, job: JobId, placement: Placement) -> Index:
        """Return the index of the head's moment with this job in it too; the job may hold something there already."""
        then = self._then.fork()
        # an elastic job that grows holds something already: its new workers are added to what it has
        then.apply([(job, (*then.placed.get(job, ()), *placement))], {})
        return then


def reserve_heterogeneous(
    index: Index, now: Millis, backfill: Backfill, head: Job, shape: Shape, *, since: Millis
) -> HeterogeneousReservation | None:
    """Find the first moment at which the head fits, like `head_reservation.reserve`. `since`: the moment before which
    some kind of its replicas cannot fit."""
    then, span = index.fork(), 1000 * head.spec.time_limit_seconds
    window = 1000 * backfill.window_seconds
    for moment, gone in _changes(index, since, 1000 * backfill.resolution_seconds):
        if window and moment > now + window:
            return None
        then.apply([(job, None) for job in gone], {})
        open_then = _open(index, shape, moment, span)
        reservation = _reservation(head.id, open_then, moment, then) if open_then is not None else None
        if reservation is not None:
            return reservation
    return None


def _reservation(head: JobId, shape: Shape, reserved_at: Millis, then: Index) -> HeterogeneousReservation | None:
    job_placement = find_placement(then, shape)
    return (
        HeterogeneousReservation(head, shape, reserved_at, then, job_placement) if job_placement is not None else None
    )


def _without(index: Index, gone: Iterable[JobId]) -> Index:
    then = index.fork()
    then.apply([(job, None) for job in gone], {})
    return then


def _changes(index: Index, since: Millis, grain: int) -> Iterator[tuple[Millis, list[JobId]]]:
    """Yield the moments, none before `since`, at which jobs leave or an advance reservation ends, with the jobs that
    have left."""

    def moment(at: int) -> Millis:
        # jobs that leave before `since` are gathered at `since`: no placement is tried before that
        at = max(at, since)
        return Millis(-(-at // grain) * grain if grain else at)

    leaving = [(moment(end), job) for end, job, _ in index.departures]
    over = sorted(moment(each.end_at) for each in index.layout.reservations.values())
    # both are sorted: departures are, and rounding up keeps their order
    changes = merge(leaving, ((at, None) for at in over), key=itemgetter(0))
    for at, here in groupby(changes, key=itemgetter(0)):
        yield at, [job for _, job in here if job is not None]


def _open(index: Index, shape: Shape, moment: Millis, span: int) -> Shape | None:
    """Return the shape off the nodes that advance reservations keep from a job that starts at that moment; None: the
    reservation that it names ends too soon."""
    reservations = index.layout.reservations
    named = reservations.get(shape.reservation)
    if named is not None and moment + span > named.end_at:
        return None
    return replace(shape, barred=tuple(sorted(closed(reservations, shape.reservation, moment, moment + span))))


class Timelines(Protocol):
    """The node timelines of a conservative plan."""

    def opening(
        self, index: Index, shape: Shape, spec: NodeSpec, span: int, stay: int, after: Millis
    ) -> tuple[Millis, list[int]] | None:
        """Return the first moment at which enough nodes hold a replica, and all nodes that do then; None: there is
        none."""
        ...

    def among(
        self, index: Index, shape: Shape, number: int, orders: Sequence[int], moment: Millis, span: int
    ) -> JobPlacement:
        """Place an alternative on the best of these nodes, all of which hold a replica from the moment on."""
        ...

    def next_change(self, index: Index, moment: Millis) -> Millis | None:
        """Return the next moment at which a job comes or leaves, on the nodes whose timelines were used, or an advance
        reservation ends."""
        ...


def earliest_heterogeneous_slot(
    timelines: Timelines, index: Index, shape: Shape, span: int, stay: int, within: tuple[Millis, Millis]
) -> tuple[Millis, JobPlacement] | None:
    """Find the earliest slot. `span`: the stay in whole steps of the plan, in ms; `stay`: the time limit in ms;
    `within`: the first and the last moment allowed."""
    replica_groups = by_demand(shape.replica_groups)
    after: Millis | None = within[0]
    while after is not None:
        # 1. the first moment of each kind by itself
        openings = [_first_opening(timelines, index, group, span, stay, after) for group in replica_groups]
        # before the latest of the groups' first openings, some group fits nowhere
        moment = max((each for each in openings if each is not None), default=within[1])
        if None in openings or moment > within[1]:
            return None
        # 2. all kinds at that moment
        placements = _all_at(timelines, index, replica_groups, span, stay, moment)
        if placements is not None:
            return moment, joined(shape, placements)
        # groups that choose one after the other may block each other; the matching finds a choice if there is one
        together = _together_at(timelines, index, shape, span, stay, moment)
        if together is not None:
            return moment, together
        # 3. the next moment
        # between two changes nothing comes free, so the next moment worth a try is the next change
        after = timelines.next_change(index, moment)
    return None


def _first_opening(
    timelines: Timelines, index: Index, group: Shape, span: int, stay: int, after: Millis
) -> Millis | None:
    openings = (timelines.opening(index, group, spec, span, stay, after) for spec in group.specs)
    return min((each[0] for each in openings if each is not None), default=None)


def _all_at(
    timelines: Timelines, index: Index, replica_groups: Sequence[Shape], span: int, stay: int, moment: Millis
) -> dict[Shape, JobPlacement] | None:
    """Place all kinds at this moment, one after the other; None where too few nodes are left to one of them."""
    taken: set[int] = set()
    placements: dict[Shape, JobPlacement] = {}
    for group in replica_groups:
        place = _place_at(timelines, index, group, span, stay, moment, taken)
        if place is None:
            return None
        taken |= {order for order, _ in index.located(place.placement)}
        placements[group] = place
    return placements


def _together_at(
    timelines: Timelines, index: Index, shape: Shape, span: int, stay: int, moment: Millis
) -> JobPlacement | None:
    """Place all kinds at this moment on nodes that are chosen for all of them at once; None where no choice serves
    all."""

    def holding(group: Shape, number: int) -> Sequence[int]:
        opening = timelines.opening(index, group, group.specs[number], span, stay, moment)
        return opening[1] if opening is not None and opening[0] == moment else ()

    def place(group: Shape, number: int, orders: Sequence[int]) -> JobPlacement:
        return timelines.among(index, group, number, orders, moment, span)

    return place_together(shape, holding, place)


def _place_at(
    timelines: Timelines, index: Index, group: Shape, span: int, stay: int, moment: Millis, taken: set[int]
) -> JobPlacement | None:
    """Place one kind of replica on nodes that are not taken, by the first alternative that fits then."""
    for number, spec in enumerate(group.specs):
        opening = timelines.opening(index, group, spec, span, stay, moment)
        if opening is not None and opening[0] == moment:
            left = [order for order in opening[1] if order not in taken]
            if len(left) >= group.nodes:
                return timelines.among(index, group, number, left, moment, span)
    return None
