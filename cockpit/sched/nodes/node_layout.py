"""Groups the nodes into classes, and caches everything that stays the same while nodes and partitions do."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import msgspec

from cockpit.model.ids import NodeName
from cockpit.model.labels import Taint
from cockpit.model.node import Card, Node, NodeState
from cockpit.model.reasons import Reason
from cockpit.model.spec import NodeSpec
from cockpit.sched.nodes.cards import accepts, can_be_whole, share_taken, shareable
from cockpit.sched.nodes.eligibility import suits
from cockpit.sched.nodes.node_free import NodeFree, node_free_of
from cockpit.sched.nodes.reservation_windows import reserving
from cockpit.sched.rules.partitions import memberships, totalled
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot


class NodeClass(msgspec.Struct, frozen=True):
    """A class of nodes that the same shapes may use: pool, driver version, labels, taints, partitions, reservations,
    state and cards agree; CPUs and memory may differ."""

    number: int
    pool: str
    dedicated: bool
    driver_version: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    up: bool
    cards: tuple[Card, ...]
    """The cards of one such node."""
    partitions: tuple[str, ...]
    """The partitions of the nodes; empty: they run no jobs."""
    reservations: tuple[str, ...]
    """The past, current and future reservations that the nodes are part of."""
    price_milli: int | None = None
    excluded: NodeName | None = None
    """The only node of the class, if it is excluded for some jobs."""

    @property
    def whole_cards(self) -> int:
        return sum(map(can_be_whole, self.cards))


class NodeLayout:
    """The nodes, their classes, and caches that hold while nodes, partitions and reservations stay the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        nodes, self.cluster, self.reservations = snapshot.nodes, snapshot.cluster, dict(snapshot.reservations)
        self.version = snapshot.nodes_version
        self.nodes = tuple(nodes.values())
        self.position = {name: order for order, name in enumerate(nodes)}
        partitions = memberships(snapshot.cluster, self.nodes)
        reservations = reserving(snapshot.reservations, self.nodes)
        self.totalled = totalled(snapshot.cluster)
        """Partitions whose nodes are known only by their totals (members of a fleet)."""
        self._forget()
        self.class_of: list[int] = []
        # nodes with an equal key are interchangeable for every shape; ten thousand nodes have a few classes
        node_classes: dict[object, NodeClass] = {}
        for node, belongs, kept in zip(self.nodes, partitions, reservations, strict=True):
            up = node.state is NodeState.UP
            cards = tuple((card.model, card.slices, can_be_whole(card)) for card in node.cards)
            labels = tuple(sorted(node.labels.items())) if node.labels else ()
            # a class of its own, so that shapes which exclude the node are kept off by their classes alone
            excluded = node.name if node.name in snapshot.excluded else None
            kind = (node.pool, node.dedicated, node.driver_version, labels, node.taints, node.price_milli)
            key = (*kind, up, cards, belongs, kept, excluded)
            node_class = node_classes.get(key)
            if node_class is None:
                node_class = node_classes[key] = _node_class(len(node_classes), node, belongs, kept, excluded)
            self.class_of.append(node_class.number)
        self.node_classes = tuple(node_classes.values())
        self.members: list[list[int]] = [[] for _ in self.node_classes]
        for order, number in enumerate(self.class_of):
            self.members[number].append(order)
        self.sizes = _by_size(self.nodes, self.class_of)

    def _forget(self) -> None:
        """Begin with empty caches."""
        self.never: dict[Shape, Reason | None] = {}
        """The reason for which a shape could not start even on empty nodes; None: it could (cache of
        `feasible.infeasible`)."""
        self.possible: set[Shape] = set()
        """Shapes for which `never` is None."""
        self.groups: dict[object, Any] = {}
        """Cache of `limited_shapes`: groups of nodes on which a replica holds the same amounts."""
        self.some_day: set[tuple[int, object]] = set()
        """Cache of `refusals`: rules version and class, for classes that nothing stops for good."""
        self.fit_cache: dict[object, Any] = {}
        """The placement policy that the last pass used, with all that it computed; the next one takes it out."""
        self._classes_for: dict[object, list[NodeClass]] = {}
        self._nodes_for: dict[object, frozenset[int]] = {}
        self.single_class = _SingleClasses(self)

    def with_own_caches(self) -> NodeLayout:
        """Return a layout of the same nodes with caches of its own."""
        other = copy(self)
        other._forget()  # noqa: SLF001 - same class
        return other

    def of(self, snapshot: Snapshot) -> bool:
        """Return whether the layout still holds for the snapshot."""
        same_nodes = self.version == snapshot.nodes_version
        return same_nodes and self.cluster == snapshot.cluster and self.reservations == snapshot.reservations

    def classes_for(self, shape: Shape, spec: NodeSpec) -> list[NodeClass]:
        """Return the classes in service that the shape may use and whose cards, if all were free, suffice for one
        replica."""
        key = shape if spec is shape.specs[0] else (shape, spec)
        node_classes = self._classes_for.get(key)
        if node_classes is None:
            node_classes = [
                node_class
                for node_class in self.node_classes
                if node_class.up and admits(node_class, shape) and _has_cards(node_class, spec)
            ]
            self._classes_for[key] = node_classes
        return node_classes

    def nodes_for(self, shape: Shape, spec: NodeSpec) -> frozenset[int]:
        """Return the orders of the nodes of those classes; node names that the job asks for are not considered."""
        key = shape if spec is shape.specs[0] else (shape, spec)
        orders = self._nodes_for.get(key)
        if orders is None:
            # a set, not a list: callers intersect it with the nodes that jobs leave
            orders = frozenset(
                order for node_class in self.classes_for(shape, spec) for order in self.members[node_class.number]
            )
            self._nodes_for[key] = orders
        return orders


class _SingleClasses(dict[Shape, int | None]):
    """A cache of the number of the only node class that serves a shape, for shapes that ask for CPUs and memory on one
    node: then the tightest node is the best fit and one look-up finds it. The value is None for all other shapes.
    Entries are made on first access."""

    def __init__(self, layout: NodeLayout) -> None:
        super().__init__()
        self._layout = layout

    def __missing__(self, shape: Shape) -> int | None:
        (spec, *others) = shape.specs
        # anything that makes one node better than another beyond the tightest, or that needs more than one node
        chooses = (
            shape.nodes > 1 or others or shape.is_uneven or spec.card_milli or shape.exclusive or shape.node_names
        ) or not spec.cpus
        node_classes = self._layout.classes_for(shape, spec) if not chooses else []
        number = self[shape] = node_classes[0].number if len(node_classes) == 1 else None
        return number


def _node_class(
    number: int, node: Node, partitions: tuple[str, ...], reservations: tuple[str, ...], excluded: NodeName | None
) -> NodeClass:
    return NodeClass(
        number=number,
        pool=node.pool,
        dedicated=node.dedicated,
        driver_version=node.driver_version,
        labels=node.labels,
        taints=node.taints,
        up=node.state is NodeState.UP,
        cards=node.cards,
        partitions=partitions,
        reservations=reservations,
        price_milli=node.price_milli,
        excluded=excluded,
    )


def _by_size(nodes: Sequence[Node], class_of: Sequence[int]) -> list[tuple[NodeFree, list[Node]]]:
    """Group nodes that are equal when empty, each group with the empty state of one of them."""
    # feasibility depends only on class and size, so ten thousand nodes are judged as a few groups
    sizes: dict[tuple[int, int, int], tuple[NodeFree, list[Node]]] = {}
    for node, node_class in zip(nodes, class_of, strict=True):
        size = (node_class, node.cpus, node.memory_mib)
        if size not in sizes:
            sizes[size] = (node_free_of(node, 0, node_class, ()), [])
        sizes[size][1].append(node)
    return list(sizes.values())


def admits(node_class: NodeClass, shape: Shape) -> bool:
    """Return whether jobs of the shape may run on the class: it has what they ask for, is in their partition, and is
    not reserved."""
    return suits(node_class, shape) and serves(node_class, shape)


def serves(node_class: NodeClass, shape: Shape) -> bool:
    """Return whether the class is in the shape's partition, and neither a reservation nor the job's own exclusion
    keeps it from the shape."""
    return (
        shape.partition in node_class.partitions
        and (not shape.reservation or shape.reservation in node_class.reservations)
        and not any(name in node_class.reservations for name in shape.barred)
        and not (node_class.excluded and any(name == node_class.excluded for name, _ in shape.excluded))
    )


def _has_cards(node_class: NodeClass, spec: NodeSpec) -> bool:
    usable = [card for card in node_class.cards if accepts(spec, card)]
    if spec.shares_a_card:
        # by whole slots: a share of a sliced card rounds up to them
        return any(share_taken(card, spec.card_milli) <= shareable(card) for card in usable)
    return spec.whole_cards <= sum(map(can_be_whole, usable))
