"""Decides on which nodes a job may run whatever is free there: by pool, driver, labels, price and taints.

The launcher of an elastic job is allocated nothing, so it fits on every node that it may use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf
from typing import Protocol

from msgspec.structs import replace

from cockpit.model.ids import NodeName
from cockpit.model.labels import Taint, is_tolerated
from cockpit.model.node import Node, NodeState, Placement
from cockpit.model.spec import JobSpec
from cockpit.sched.shape import Shape, shape_of

PRICE = "price"
"""The node label with the node's price."""


class Place(Protocol):
    """The attributes that eligibility depends on: those of a node, or of a node class."""

    @property
    def pool(self) -> str: ...
    @property
    def dedicated(self) -> bool: ...
    @property
    def driver_version(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def taints(self) -> Collection[Taint]: ...
    @property
    def price_milli(self) -> int | None: ...


def suits(place: Place, shape: Shape) -> bool:
    """Return whether the place has what the shape asks for, and admits it."""
    return _is_asked_for(place, shape) and not _is_apart(place, shape) and not _untolerated(place, shape)


def suits_some_day(place: Place, shape: Shape) -> bool:
    """Return whether the place suits the shape now, or will when its present price, which changes, is low enough."""
    if place.price_milli is None or shape.max_price_milli is None:
        return suits(place, shape)
    return suits(place, replace(shape, max_price_milli=None))


def may_hold(place: Place, spec: JobSpec) -> bool:
    """Return whether the place suits a job that is not submitted yet, node names that it asks for aside."""
    return suits(place, shape_of(spec))


def excluding_taints_and_pools(places: Iterable[Place], shape: Shape) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the taints and the dedicated pools that alone keep the shape off places that have what it asks for."""
    taints: dict[str, None] = {}
    pools: dict[str, None] = {}
    for place in places:
        if _is_asked_for(place, shape):
            if _is_apart(place, shape):
                pools[place.pool] = None
            taints |= dict.fromkeys(_untolerated(place, shape))
    return tuple(sorted(taints)), tuple(sorted(pools))


def _is_asked_for(place: Place, shape: Shape) -> bool:
    return (
        shape.pool in (None, place.pool)
        and shape.driver_version in (None, place.driver_version)
        and all(place.labels.get(key) == value for key, value in shape.selector)
        and (shape.max_price_milli is None or price_milli(place) <= shape.max_price_milli)
    )


def price_milli(place: Place) -> float:
    """Return the present price in thousandths, else the one of the label: 0 without a label, infinite where the label
    is not a number."""
    if place.price_milli is not None:
        return place.price_milli
    try:
        return 1000 * float(place.labels.get(PRICE, "0"))
    except ValueError:
        return inf


def _is_apart(place: Place, shape: Shape) -> bool:
    # a job enters a dedicated pool only by naming it, or by node names that come from a pool that it may use
    return place.dedicated and shape.pool != place.pool and not shape.by_pool


def _untolerated(place: Place, shape: Shape) -> list[str]:
    return [each.text for each in place.taints if not is_tolerated(each, shape.tolerations)]


def may_launch(node: Node, shape: Shape, *, in_service: bool = True) -> bool:
    """Return whether the launcher may run on the node."""
    return (
        (not in_service or node.state is NodeState.UP)
        and all(node.labels.get(key) == value for key, value in shape.launcher)
        and all(is_tolerated(each, shape.tolerations) for each in node.taints)
    )


def launcher_node(shape: Shape, placement: Placement, nodes: Mapping[NodeName, Node]) -> NodeName:
    """Return the node of a worker, if the launcher may run there; else the first node of the cluster where it may."""
    workers = (part.node for part in placement if part.node in nodes)
    others: Iterable[NodeName] = nodes
    # beside a worker first: then the launcher needs no further node
    usable = (name for group in (workers, others) for name in group if may_launch(nodes[name], shape))
    return next(usable, placement[0].node)
