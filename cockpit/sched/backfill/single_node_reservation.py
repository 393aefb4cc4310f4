"""Reserves resources for a head that asks for CPUs and memory on one node of a class without cards.

For such a job sums of free CPUs and memory decide, so no future `NodeFree` values need be made: without this module an
EASY replay of KTH-SP2 (PF-03) takes a quarter longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Allocation, Placement
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.shape import Shape

if TYPE_CHECKING:
    from cockpit.sched.nodes.node_layout import NodeLayout

Free = dict[int, tuple[int, int]]
"""Free CPUs and memory in MiB by order of the node."""


class SingleNodeReservation(msgspec.Struct):
    """The reservation of a head on one node; see `head_reservation.HeadReservation`."""

    head: JobId
    shape: Shape
    reserved_at: Millis
    _free: Free
    """The nodes that hold the head at its moment, with what is free on them then."""
    _layout: NodeLayout
    _reserved: frozenset[int] | None = None

    def admits(self, _job: JobId, end: Millis, placement: Placement) -> bool:
        """Return whether the head still fits at its moment if a job holds this placement until `end`."""
        if end <= self.reserved_at:
            return True
        position, free_by_node, (spec,) = self._layout.position, self._free, self.shape.specs
        # each node of the reservation could hold the head; the job may take all of them but one
        lost = 0
        for part in placement:
            free = free_by_node.get(position[part.node])
            if free is not None and (free[0] - part.cpus < spec.cpus or free[1] - part.memory_mib < spec.memory_mib):
                lost += 1
        return len(free_by_node) > lost

    def beside(self, _job: JobId, end: Millis, placement: Placement) -> SingleNodeReservation:
        """Return the reservation after the start of a job that was admitted."""
        if end <= self.reserved_at:
            return self
        met = self._met(placement)
        left = self._free | met
        for order in self._lost(met):
            del left[order]
        return SingleNodeReservation(self.head, self.shape, self.reserved_at, left, self._layout)

    def reservation(self) -> Reserved:
        (spec,) = self.shape.specs
        name = self._layout.nodes[self._chosen].name
        return Reserved(self.head, self.reserved_at, 0, (Allocation(0, name, spec.cpus, spec.memory_mib),))

    @property
    def reserved_nodes(self) -> frozenset[int]:
        """Order of the node that the head would get by the present plan."""
        if self._reserved is None:
            self._reserved = frozenset((self._chosen,))
        return self._reserved

    @property
    def _chosen(self) -> int:
        """The order of the node with least CPUs and memory free."""
        # as `Index.tightest` chooses, so that the node shown is the one that the head would get
        return min(self._free, key=lambda order: (self._free[order], order))

    def _met(self, placement: Placement) -> Free:
        """Return what a job with this placement would leave free on the nodes of the reservation that it uses."""
        position, free = self._layout.position, self._free
        left: Free = {}
        for part in placement:
            order = position[part.node]
            if order in free:
                cpus, memory_mib = free[order]
                left[order] = (cpus - part.cpus, memory_mib - part.memory_mib)
        return left

    def _lost(self, met: Mapping[int, tuple[int, int]]) -> list[int]:
        (spec,) = self.shape.specs
        return [order for order, (cpus, memory) in met.items() if cpus < spec.cpus or memory < spec.memory_mib]


def reserve_single_node(
    index: Index, now: Millis, head: JobId, shape: Shape, node_class: int
) -> SingleNodeReservation | None:
    """Find the first moment at which the head, which does not fit now, fits on a node of that class; None: not
    known."""
    (spec,) = shape.specs
    layout, nodes_free = index.layout, index.nodes_free
    # with one node there is nothing to choose, and no sums by node are needed
    if index.single_node:
        return _reserve_there(index, now, head, shape)
    freed: Free = {}
    usable: Free = {}
    moment = now
    for end, _, located in index.departures:
        # all departures of one moment count before the moment is judged
        if end > moment:
            if usable:
                break
            moment = end
        for order, part in located:
            # nodes of other classes cannot hold the head, so their departures do not matter
            if layout.class_of[order] == node_class:
                cpus, memory_mib = freed.get(order) or (nodes_free[order].cpus, nodes_free[order].memory_mib)
                free = freed[order] = (cpus + part.cpus, memory_mib + part.memory_mib)
                if free[0] >= spec.cpus and free[1] >= spec.memory_mib:
                    usable[order] = free
    return SingleNodeReservation(head, shape, moment, usable, layout) if usable else None


def _reserve_there(index: Index, now: Millis, head: JobId, shape: Shape) -> SingleNodeReservation | None:
    """Find the moment in a cluster with a single node, where every departure is on that node; 3 % of the replay."""
    node_free, (spec,) = index.nodes_free[0], shape.specs
    cpus, memory_mib, wanted, least_memory = node_free.cpus, node_free.memory_mib, spec.cpus, spec.memory_mib
    leaving = iter(index.departures)
    for end, _, located in leaving:
        for _, part in located:
            cpus += part.cpus
            memory_mib += part.memory_mib
        if cpus >= wanted and memory_mib >= least_memory:
            moment = max(end, now)
            break
    else:
        return None
    # what else comes free at that moment is free beside the head, and decides which jobs it admits
    for end, _, located in leaving:
        if end > moment:
            break
        for _, part in located:
            cpus += part.cpus
            memory_mib += part.memory_mib
    return SingleNodeReservation(head, shape, moment, {0: (cpus, memory_mib)}, index.layout)
