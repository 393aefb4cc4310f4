"""Reserves resources for the head, so that the first waiting job starts no later because of jobs that start before it.

EASY backfilling in its simple form (Lifka, "The ANL/IBM SP scheduling system", 1995): running jobs are assumed to use
their whole time limits; the head's moment is the first at which it fits; a later job may start now if it ends by then,
or if the head still fits beside it.

`reserve_by_nodes` is the general way:

1. Give up at once where jobs without a known end block the head on too many nodes.
2. Go through the moments at which running jobs end (or reservations do), soonest first; round them up to the
   resolution, and give up beyond the window.
3. Take the ended jobs out of their nodes; collect the nodes that now hold a replica, for each alternative.
4. Leave out the nodes on which the head would run into an advance reservation.
5. The first moment with enough nodes is the head's.

`single_node_reservation` and `heterogeneous` do the same for jobs on one node without cards, which is far
quicker, and for jobs whose replicas differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from operator import itemgetter
from typing import Protocol

from msgspec.structs import replace

from cockpit.model.cluster import Backfill
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.backfill.heterogeneous import HeterogeneousReservation, reserve_heterogeneous
from cockpit.sched.backfill.single_node_reservation import reserve_single_node
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.nodes.node_free import NodeFree, best_fit_rank, shortfall
from cockpit.sched.nodes.reservation_windows import closed
from cockpit.sched.placement import allocated, eligible, fits_now, fitting
from cockpit.sched.shape import Shape

NodesFree = dict[int, NodeFree]
"""Nodes that hold one replica of the head at its moment, by their order."""


class Reservation(Protocol):
    """The reservation of a head, whatever the head asks for."""

    head: JobId
    shape: Shape
    reserved_at: Millis

    @property
    def reserved_nodes(self) -> frozenset[int]:
        """Orders of the nodes that the head would get by the present plan."""
        ...

    def admits(self, job: JobId, end: Millis, placement: Placement, /) -> bool:
        """Return whether the head still fits at its moment if the job holds this placement until `end`."""
        ...

    def beside(self, job: JobId, end: Millis, placement: Placement, /) -> Reservation:
        """Return the reservation after the start of a job that was admitted."""
        ...

    def reservation(self) -> Reserved:
        """Return where and when the head starts by the present plan."""
        ...


class HeadReservation:
    """The reservation of a head whose replicas are alike: all nodes on which it could run at its moment."""

    def __init__(
        self,
        head: JobId,
        shape: Shape,
        reserved_at: Millis,
        nodes_free: Sequence[NodesFree],
        position: Mapping[NodeName, int],
    ) -> None:
        self.head = head
        self.reserved_at = reserved_at
        self.shape = shape
        self._nodes_free = nodes_free
        """The nodes for each of the head's alternatives."""
        self._position = position

    def admits(self, job: JobId, end: Millis, placement: Placement) -> bool:
        """Return whether the head still fits at its moment if the job holds this placement until `end`."""
        # a job that is gone by the head's moment delays nothing; any other may take a node only while enough are left
        # for one alternative
        return end <= self.reserved_at or any(
            len(nodes_free) - sum(node_free is None for _, node_free in self._met(nodes_free, spec, job, placement))
            >= self.shape.nodes
            for nodes_free, spec in zip(self._nodes_free, self.shape.specs, strict=True)
        )

    def beside(self, job: JobId, end: Millis, placement: Placement) -> HeadReservation:
        """Return the reservation after the start of a job that was admitted."""
        if end <= self.reserved_at:
            return self
        # only nodes where the head still fits stay in the reservation, so later jobs are judged against what is left
        beside = []
        for nodes_free, spec in zip(self._nodes_free, self.shape.specs, strict=True):
            met = dict(self._met(nodes_free, spec, job, placement))
            left = ((order, met.get(order, node_free)) for order, node_free in nodes_free.items())
            beside.append({order: node_free for order, node_free in left if node_free is not None})
        return HeadReservation(self.head, self.shape, self.reserved_at, beside, self._position)

    @property
    def places(self) -> list[Collection[int]]:
        """The orders of those nodes, by alternative."""
        return [nodes_free.keys() for nodes_free in self._nodes_free]

    def reservation(self) -> Reserved:
        spec_index = self._spec_index()
        placement = allocated(self.shape, self.shape.specs[spec_index], self._chosen())
        return Reserved(self.head, self.reserved_at, spec_index, placement)

    @cached_property
    def reserved_nodes(self) -> frozenset[int]:
        """Orders of the nodes that the head would get by the present plan."""
        return frozenset([node_free.order for node_free in self._chosen()])

    def _spec_index(self) -> int:
        return next(number for number, nodes_free in enumerate(self._nodes_free) if len(nodes_free) >= self.shape.nodes)

    def _chosen(self) -> list[NodeFree]:
        number = self._spec_index()
        spec = self.shape.specs[number]
        # the same order as a real placement, so that the nodes shown are those that the head would get
        ranked = sorted(self._nodes_free[number].values(), key=lambda node_free: best_fit_rank(node_free, spec))
        return ranked[: self.shape.nodes]

    def _met(
        self, nodes_free: NodesFree, spec: NodeSpec, job: JobId, placement: Placement
    ) -> Iterator[tuple[int, NodeFree | None]]:
        """Yield the nodes on which the job still is at the head's moment, with what it leaves free; None: a replica of
        the head no longer fits there."""
        for part in placement:
            order = self._position[part.node]
            if (node_free := nodes_free.get(order)) is not None:
                enough = node_free.cpus - part.cpus >= spec.cpus  # a cheap test that avoids most new NodeFree values
                left = node_free.with_tenant(job, part) if enough else None
                yield order, left if left is not None and _fits(left, self.shape, spec) else None


def within(reservation: Reservation, index: Index) -> Reservation | None:
    """Return the reservation for the same moment in another index, in which some jobs leave later; None: the head would
    be delayed."""
    if isinstance(reservation, HeterogeneousReservation):
        return reservation.within(index)
    shape, layout = reservation.shape, index.layout
    gone = {job for job, end in index.ends.items() if end <= reservation.reserved_at}
    nodes_by_alternative: list[NodesFree] = []
    for number, spec in enumerate(shape.specs):
        places: Collection[int] = eligible(index, shape, spec)
        if isinstance(reservation, HeadReservation) and layout.reservations:
            # step 4 has left out nodes that an advance reservation closes; `eligible` would bring them back
            places = reservation.places[number]
        nodes_free = {order: index.nodes_free[order].without(gone) for order in places}
        nodes_by_alternative.append(
            {order: node_free for order, node_free in nodes_free.items() if _fits(node_free, shape, spec)}
        )
    return (
        HeadReservation(reservation.head, shape, reservation.reserved_at, nodes_by_alternative, layout.position)
        if _enough(nodes_by_alternative, shape)
        else None
    )


def is_certain(index: Index, backfill: Backfill) -> bool:
    """Return whether `reserve` certainly finds a moment for every job that can start at all, if its replicas
    are alike."""
    return len(index.ends) == len(index.placed) and not (index.layout.reservations or backfill.window_seconds)


def reserve(index: Index, now: Millis, backfill: Backfill, head: Job, shape: Shape) -> Reservation | None:
    """Find the first moment at which the head, which does not fit now, will fit, if running jobs end by their time
    limits. None: the moment is not known, or is beyond the window."""
    if shape.spread is not None or shape.components:
        return reserve_heterogeneous(index, now, backfill, head, shape, since=now)
    if shape.helpers:
        return _reserve_for_all(index, now, backfill, head, shape)
    if (node_class := _class_of_sums(index, backfill, shape)) is not None:
        return reserve_single_node(index, now, head.id, shape, node_class)
    return reserve_by_nodes(index, now, backfill, head, shape)


def _reserve_for_all(
    index: Index, now: Millis, backfill: Backfill, head: Job, shape: Shape
) -> HeterogeneousReservation | None:
    """Reserve for a job whose replicas differ. Its moment cannot be before each kind of replica fits by itself, which
    is quicker to find."""
    since = now
    for group in shape.replica_groups:
        if not fits_now(index, group):
            reservation = reserve(index, now, backfill, head, group)
            if reservation is None:
                return None
            # no group fits before its own moment, so the whole job cannot fit before the latest of these
            since = max(since, reservation.reserved_at)
    return reserve_heterogeneous(index, now, backfill, head, shape, since=since)


def reserve_by_nodes(index: Index, now: Millis, backfill: Backfill, head: Job, shape: Shape) -> HeadReservation | None:
    """Reserve in the general way, for any head whose replicas are alike; see the steps at the top of the module."""
    shape = replace(shape, barred=()) if shape.barred else shape  # the nodes barred now may be open later: see step 4
    places = [eligible(index, shape, spec) for spec in shape.specs]
    watched = places[0].union(*places[1:]) if len(places) > 1 else places[0]
    # 1. jobs without a known end
    if len(index.ends) < len(index.placed) and not _fits_some_day(index, shape, places):
        return None
    nodes_free: list[NodesFree] = [
        {node_free.order: node_free for node_free in fitting(index, shape, spec)} for spec in shape.specs
    ]
    window, grain = 1000 * backfill.window_seconds, 1000 * backfill.resolution_seconds
    left: dict[int, _Leaving] = {}
    # 2. the moments at which something ends
    for leaves_at, leaving in _changes(index, now, shape, watched):
        moment = Millis(-(-leaves_at // grain) * grain) if grain else leaves_at
        if window and moment > now + window:
            return None
        # 3. `left` gathers nodes until there could be enough: only then are NodeFree values made and tested
        left |= leaving
        if max(map(len, nodes_free)) + len(left) < shape.nodes:
            continue
        emptier = [each.node_free() for each in left.values()]
        left.clear()
        for alternative, spec, orders in zip(nodes_free, shape.specs, places, strict=True):
            alternative.update(
                (node_free.order, node_free)
                for node_free in emptier
                if node_free.order in orders and _fits(node_free, shape, spec)
            )
        # 4. nodes that an advance reservation closes
        usable = _unreserved(index, shape, nodes_free, moment, 1000 * head.spec.time_limit_seconds)
        # 5. enough nodes
        if _enough(usable, shape):
            return HeadReservation(head.id, shape, moment, usable, index.layout.position)
    return None  # it would fit only inside an advance reservation that ends too soon


def _class_of_sums(index: Index, backfill: Backfill, shape: Shape) -> int | None:
    """Return the node class of the quick way, where CPUs and memory alone decide and moments are not rounded; else
    None."""
    layout = index.layout
    if layout.reservations or backfill.window_seconds or backfill.resolution_seconds:
        return None
    node_class = layout.single_class[shape]
    return node_class if node_class is not None and not layout.node_classes[node_class].cards else None


def _unreserved(index: Index, shape: Shape, nodes_free: list[NodesFree], moment: Millis, span: int) -> list[NodesFree]:
    """Leave only the nodes on which the head would run into no advance reservation from this moment on."""
    layout = index.layout
    if not layout.reservations:
        return nodes_free
    named = layout.reservations.get(shape.reservation)
    # from here on every later moment is too late as well
    if named is not None and moment + span > named.end_at:
        return [{} for _ in nodes_free]
    in_the_way = closed(layout.reservations, shape.reservation, moment, moment + span)
    return [
        {
            order: node_free
            for order, node_free in each.items()
            if in_the_way.isdisjoint(layout.node_classes[node_free.node_class].reservations)
        }
        for each in nodes_free
    ]


def _changes(
    index: Index, now: Millis, shape: Shape, watched: Collection[int]
) -> Iterator[tuple[Millis, dict[int, _Leaving]]]:
    """Yield the moments, soonest first, at which jobs leave the watched nodes or an advance reservation ends."""
    emptying, reservations = _emptying(index, now, shape, watched), index.layout.reservations
    if not reservations:
        return emptying
    # the end of an advance reservation opens nodes that no job leaves, so it is a moment of its own
    over = sorted({Millis(each.end_at) for each in reservations.values() if each.end_at > now})
    return merge(emptying, ((end, {}) for end in over), key=itemgetter(0))


def _fits_some_day(index: Index, shape: Shape, places: Sequence[Collection[int]]) -> bool:
    """Return whether an alternative fits once all jobs whose end is known are gone."""
    lasting, layout = _lasting(index), index.layout
    for spec, orders in zip(shape.specs, places, strict=True):
        # equal nodes are judged once, by an empty one; only nodes with lasting jobs are judged one by one
        big = (node for empty, nodes in layout.sizes if _fits(empty, shape, spec) for node in nodes)
        blocked = {order for order, node_free in lasting.items() if not _fits(node_free, shape, spec)}
        if len({layout.position[node.name] for node in big}.intersection(orders) - blocked) >= shape.nodes:
            return True
    return False


def _lasting(index: Index) -> dict[int, NodeFree]:
    """Return the nodes with jobs whose end is not known, with only those jobs left, by order."""
    staying = [job for job in index.placed if job not in index.ends]
    orders = {order for job in staying for order, _ in index.located(index.placed[job])}
    return {order: index.nodes_free[order].without(index.ends) for order in orders}


def _emptying(
    index: Index, now: Millis, shape: Shape, watched: Collection[int]
) -> Iterator[tuple[Millis, dict[int, _Leaving]]]:
    """Yield the moments at which jobs leave, soonest first, with the watched nodes that by their sums may hold a
    replica then. Jobs over their time limit count as leaving now."""
    # the least that any alternative needs: a node below it cannot matter, whatever the alternative
    least_cpus = min([spec.cpus for spec in shape.specs])
    least_memory = min([spec.memory_mib for spec in shape.specs])
    least_cards = min([spec.whole_cards for spec in shape.specs])
    leaving: dict[int, _Leaving] = {}
    left: dict[int, _Leaving] = {}
    moment = now
    for end, job, located in index.departures:
        if end > moment:
            if left:
                yield moment, left
                left = {}
            moment = end
        # departures of one moment are gathered, and yielded when a later one comes
        for order, part in located:
            if order not in watched:
                continue
            node_free = leaving.get(order)
            if node_free is None:
                node_free = leaving[order] = _Leaving(index.nodes_free[order])
            # sums only: `_Leaving.node_free` makes the exact state later, for the few nodes that are tested
            node_free.leave(job, part)
            if node_free.cpus >= least_cpus and node_free.memory_mib >= least_memory and node_free.cards >= least_cards:
                left[order] = node_free
    if left:
        yield moment, left


class _Leaving:
    """A node that tenants leave one after the other. Sums are updated at once; the exact state is made when it is
    needed."""

    __slots__ = ("_ended_jobs", "_node_free", "cards", "cpus", "memory_mib")

    def __init__(self, node_free: NodeFree) -> None:
        self._node_free = node_free
        self._ended_jobs: list[JobId] = []
        self.cpus, self.memory_mib, self.cards = node_free.cpus, node_free.memory_mib, len(node_free.idle)
        """Free CPUs, free memory in MiB, and an upper bound of the idle cards."""

    def leave(self, job: JobId, part: Allocation) -> None:
        self._ended_jobs.append(job)
        self.cpus += part.cpus
        self.memory_mib += part.memory_mib
        # too many where slices share one card; as an upper bound it may only let a node through that is then tested
        # exactly
        self.cards += len(part.slices)

    def node_free(self) -> NodeFree:
        for job in self._ended_jobs:
            self._node_free = self._node_free.without_tenant(job)
        # the state now has these departures, so that a later call takes out only those that came since
        self._ended_jobs.clear()
        return self._node_free


def _enough(nodes_free: Sequence[NodesFree], shape: Shape) -> bool:
    return any(len(each) >= shape.nodes for each in nodes_free)


def _fits(node_free: NodeFree, shape: Shape, spec: NodeSpec) -> bool:
    return shortfall(node_free, spec, exclusive=shape.exclusive) is None
