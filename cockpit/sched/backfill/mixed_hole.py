"""The earliest hole for a job whose replicas are not alike, under backfill by which nobody is delayed: all of them at
one moment, each on a node of its own, where the most demanding kind chooses first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cockpit.model.ids import Millis
from cockpit.model.spec import NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.placement import Found, by_demand, joined
from cockpit.sched.shape import Shape


class Courses(Protocol):
    """What is planned on the nodes."""

    def opening(
        self, index: Index, shape: Shape, spec: NodeSpec, span: int, stay: int, after: Millis
    ) -> tuple[Millis, list[int]] | None:
        """The first moment at which enough nodes have room, and all the nodes that have it then."""
        ...

    def among(self, index: Index, shape: Shape, number: int, orders: Sequence[int], moment: Millis, span: int) -> Found:
        """Room for an alternative on the best of these nodes, which have it from the moment on."""
        ...

    def next_change(self, moment: Millis) -> Millis | None:
        """When somebody comes or leaves next, on the nodes that were looked at."""
        ...


def mixed_hole(
    courses: Courses, index: Index, shape: Shape, span: int, stay: int, within: tuple[Millis, Millis]
) -> tuple[Millis, Found] | None:
    """`within`: no sooner than the one, no later than the other."""
    kinds = by_demand(shape.kinds)
    after: Millis | None = within[0]
    while after is not None:
        openings = [_first_opening(courses, index, kind, span, stay, after) for kind in kinds]
        moment = max((each for each in openings if each is not None), default=within[1])
        if None in openings or moment > within[1]:
            return None
        found = _all_at(courses, index, kinds, span, stay, moment)
        if found is not None:
            return moment, joined(shape, found)
        after = courses.next_change(moment)
    return None


def _first_opening(courses: Courses, index: Index, kind: Shape, span: int, stay: int, after: Millis) -> Millis | None:
    openings = (courses.opening(index, kind, spec, span, stay, after) for spec in kind.specs)
    return min((each[0] for each in openings if each is not None), default=None)


def _all_at(
    courses: Courses, index: Index, kinds: Sequence[Shape], span: int, stay: int, moment: Millis
) -> dict[Shape, Found] | None:
    taken: set[int] = set()
    found: dict[Shape, Found] = {}
    for kind in kinds:
        place = _place_at(courses, index, kind, span, stay, moment, taken)
        if place is None:
            return None
        taken |= {order for order, _ in index.located(place.placement)}
        found[kind] = place
    return found


def _place_at(
    courses: Courses, index: Index, kind: Shape, span: int, stay: int, moment: Millis, taken: set[int]
) -> Found | None:
    """On nodes that are not taken, by the first alternative that has room there then."""
    for number, spec in enumerate(kind.specs):
        opening = courses.opening(index, kind, spec, span, stay, moment)
        if opening is not None and opening[0] == moment:
            left = [order for order in opening[1] if order not in taken]
            if len(left) >= kind.nodes:
                return courses.among(index, kind, number, left, moment, span)
    return None
