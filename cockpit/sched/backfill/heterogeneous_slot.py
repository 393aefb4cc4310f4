"""Finds the earliest slot for a job whose replicas differ, under conservative backfill.

All replicas start at one moment, each on a node of its own. The steps:

1. Find the first moment at which each kind of replica by itself fits; the latest of these is the candidate.
2. Place all kinds at the candidate moment, the most demanding first, on different nodes; if that leaves too few nodes
   for some kind, find nodes for all kinds together.
3. If they do not fit together, go on at the next moment at which any timeline changes or an advance reservation ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cockpit.model.ids import Millis
from cockpit.model.spec import NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.placement import JobPlacement, by_demand, joined, place_together
from cockpit.sched.shape import Shape


class Timelines(Protocol):
    """The node timelines of a conservative plan."""

    def opening(
        self, index: Index, shape: Shape, spec: NodeSpec, span: int, stay: int, after: Millis
    ) -> tuple[Millis, list[int]] | None:
        """The first moment at which enough nodes hold a replica, and all nodes that do then; None: there is none."""
        ...

    def among(
        self, index: Index, shape: Shape, number: int, orders: Sequence[int], moment: Millis, span: int
    ) -> JobPlacement:
        """Place an alternative on the best of these nodes, all of which hold a replica from the moment on."""
        ...

    def next_change(self, index: Index, moment: Millis) -> Millis | None:
        """The next moment at which a job comes or leaves, on the nodes whose timelines were used, or an advance
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
        # 1.
        openings = [_first_opening(timelines, index, group, span, stay, after) for group in replica_groups]
        # before the latest of the groups' first openings, some group fits nowhere
        moment = max((each for each in openings if each is not None), default=within[1])
        if None in openings or moment > within[1]:
            return None
        # 2.
        placements = _all_at(timelines, index, replica_groups, span, stay, moment)
        if placements is not None:
            return moment, joined(shape, placements)
        # groups that choose one after the other may block each other; the matching finds a choice if there is one
        together = _together_at(timelines, index, shape, span, stay, moment)
        if together is not None:
            return moment, together
        # 3.
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
