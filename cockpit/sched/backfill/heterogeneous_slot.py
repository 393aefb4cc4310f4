"""The earliest hole for a job whose replicas are not alike, under backfill by which nobody is delayed: all of them at
one moment, each on a node of its own, where the most demanding kind chooses first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cockpit.model.ids import Millis
from cockpit.model.spec import NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.placement import JobPlacement, by_demand, joined
from cockpit.sched.shape import Shape


class Timelines(Protocol):
    """What is planned on the nodes."""

    def opening(
        self, index: Index, shape: Shape, spec: NodeSpec, span: int, stay: int, after: Millis
    ) -> tuple[Millis, list[int]] | None:
        """The first moment at which enough nodes have room, and all the nodes that have it then."""
        ...

    def among(
        self, index: Index, shape: Shape, number: int, orders: Sequence[int], moment: Millis, span: int
    ) -> JobPlacement:
        """Room for an alternative on the best of these nodes, which have it from the moment on."""
        ...

    def next_change(self, moment: Millis) -> Millis | None:
        """When somebody comes or leaves next, on the nodes that were looked at."""
        ...


def earliest_heterogeneous_slot(
    timelines: Timelines, index: Index, shape: Shape, span: int, stay: int, within: tuple[Millis, Millis]
) -> tuple[Millis, JobPlacement] | None:
    """`within`: no sooner than the one, no later than the other."""
    replica_groups = by_demand(shape.replica_groups)
    after: Millis | None = within[0]
    while after is not None:
        openings = [_first_opening(timelines, index, group, span, stay, after) for group in replica_groups]
        moment = max((each for each in openings if each is not None), default=within[1])
        if None in openings or moment > within[1]:
            return None
        found = _all_at(timelines, index, replica_groups, span, stay, moment)
        if found is not None:
            return moment, joined(shape, found)
        after = timelines.next_change(moment)
    return None


def _first_opening(
    timelines: Timelines, index: Index, group: Shape, span: int, stay: int, after: Millis
) -> Millis | None:
    openings = (timelines.opening(index, group, spec, span, stay, after) for spec in group.specs)
    return min((each[0] for each in openings if each is not None), default=None)


def _all_at(
    timelines: Timelines, index: Index, replica_groups: Sequence[Shape], span: int, stay: int, moment: Millis
) -> dict[Shape, JobPlacement] | None:
    taken: set[int] = set()
    found: dict[Shape, JobPlacement] = {}
    for group in replica_groups:
        place = _place_at(timelines, index, group, span, stay, moment, taken)
        if place is None:
            return None
        taken |= {order for order, _ in index.located(place.placement)}
        found[group] = place
    return found


def _place_at(
    timelines: Timelines, index: Index, group: Shape, span: int, stay: int, moment: Millis, taken: set[int]
) -> JobPlacement | None:
    """On nodes that are not taken, by the first alternative that has room there then."""
    for number, spec in enumerate(group.specs):
        opening = timelines.opening(index, group, spec, span, stay, moment)
        if opening is not None and opening[0] == moment:
            left = [order for order in opening[1] if order not in taken]
            if len(left) >= group.nodes:
                return timelines.among(index, group, number, left, moment, span)
    return None
