"""What does not change while a cluster's nodes stay what they are: their kinds, and which of them serve whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

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
    """Nodes that the same requests may use: pool, driver version, labels, taints, partitions, reservations, service and
    cards agree; CPUs and memory need not."""

    number: int
    pool: str
    dedicated: bool
    driver_version: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    up: bool
    cards: tuple[Card, ...]
    """Of one such node."""
    partitions: tuple[str, ...]
    """Empty: it runs no jobs."""
    reservations: tuple[str, ...]
    """By which it is, was or will be kept."""

    @property
    def whole_cards(self) -> int:
        return sum(map(can_be_whole, self.cards))


class NodeLayout:
    """What does not change while the nodes and whom they serve stay the same, and what was found out about it."""

    def __init__(self, snapshot: Snapshot) -> None:
        nodes, self.cluster, self.reservations = snapshot.nodes, snapshot.cluster, dict(snapshot.reservations)
        self.version = snapshot.nodes_version
        self.nodes = tuple(nodes.values())
        self.position = {name: order for order, name in enumerate(nodes)}
        partitions = memberships(snapshot.cluster, self.nodes)
        reservations = reserving(snapshot.reservations, self.nodes)
        self.totalled = totalled(snapshot.cluster)
        """Partitions of which only totals are known."""
        self.never: dict[Shape, Reason | None] = {}
        self.possible: set[Shape] = set()
        """Shapes for which that is None."""
        self.groups: dict[object, Any] = {}
        """Of `lawful`: nodes on which a replica holds the same."""
        self.some_day: set[tuple[int, object]] = set()
        """Of `refusals`: by version of the rules the requests that nothing stops for good."""
        self.fit_cache: dict[object, Any] = {}
        """What policies worked out; one that works takes its own away meanwhile."""
        self._classes_for: dict[object, list[NodeClass]] = {}
        self._nodes_for: dict[object, frozenset[int]] = {}
        self.single_class = _SingleClasses(self)
        self.class_of: list[int] = []
        node_classes: dict[object, NodeClass] = {}
        for node, belongs, kept in zip(self.nodes, partitions, reservations, strict=True):
            up = node.state is NodeState.UP
            cards = tuple((card.model, card.slices, can_be_whole(card)) for card in node.cards)
            labels = tuple(sorted(node.labels.items())) if node.labels else ()
            alike = (node.pool, node.dedicated, node.driver_version, labels, node.taints, up, cards, belongs, kept)
            node_class = node_classes.get(alike)
            if node_class is None:
                node_class = node_classes[alike] = _node_class(len(node_classes), node, belongs, kept)
            self.class_of.append(node_class.number)
        self.node_classes = tuple(node_classes.values())
        self.members: list[list[int]] = [[] for _ in self.node_classes]
        for order, number in enumerate(self.class_of):
            self.members[number].append(order)
        self.sizes = _by_size(self.nodes, self.class_of)

    def of(self, snapshot: Snapshot) -> bool:
        """Whether it is still that of the snapshot."""
        same_nodes = self.version == snapshot.nodes_version
        return same_nodes and self.cluster == snapshot.cluster and self.reservations == snapshot.reservations

    def classes_for(self, shape: Shape, spec: NodeSpec) -> list[NodeClass]:
        """Kinds in service that the shape may use and whose cards, all free, suffice for one replica."""
        asked = shape if spec is shape.specs[0] else (shape, spec)
        found = self._classes_for.get(asked)
        if found is None:
            found = [
                node_class
                for node_class in self.node_classes
                if node_class.up and admits(node_class, shape) and _has_cards(node_class, spec)
            ]
            self._classes_for[asked] = found
        return found

    def nodes_for(self, shape: Shape, spec: NodeSpec) -> frozenset[int]:
        """The nodes of those kinds, by order; pins count nothing here."""
        asked = shape if spec is shape.specs[0] else (shape, spec)
        found = self._nodes_for.get(asked)
        if found is None:
            found = frozenset(
                order for node_class in self.classes_for(shape, spec) for order in self.members[node_class.number]
            )
            self._nodes_for[asked] = found
        return found


class _SingleClasses(dict[Shape, int | None]):
    """By shape the number of the only kind that serves it, where it asks for CPUs and memory on one node alone: then
    the tightest node is the best. None for other shapes. Fills as it is asked."""

    def __init__(self, layout: NodeLayout) -> None:
        super().__init__()
        self._layout = layout

    def __missing__(self, shape: Shape) -> int | None:
        (spec, *others) = shape.specs
        chooses = (
            shape.nodes > 1 or others or shape.is_uneven or spec.card_milli or shape.exclusive or shape.node_names
        ) or not spec.cpus
        node_classes = self._layout.classes_for(shape, spec) if not chooses else []
        number = self[shape] = node_classes[0].number if len(node_classes) == 1 else None
        return number


def _node_class(number: int, node: Node, partitions: tuple[str, ...], reservations: tuple[str, ...]) -> NodeClass:
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
    )


def _by_size(nodes: Sequence[Node], class_of: Sequence[int]) -> list[tuple[NodeFree, list[Node]]]:
    """Nodes that are equal when empty, with the empty room of one of them."""
    sizes: dict[tuple[int, int, int], tuple[NodeFree, list[Node]]] = {}
    for node, node_class in zip(nodes, class_of, strict=True):
        size = (node_class, node.cpus, node.memory_mib)
        if size not in sizes:
            sizes[size] = (node_free_of(node, 0, node_class, ()), [])
        sizes[size][1].append(node)
    return list(sizes.values())


def admits(node_class: NodeClass, shape: Shape) -> bool:
    """Whether the kind suits the shape and serves it."""
    return suits(node_class, shape) and serves(node_class, shape)


def serves(node_class: NodeClass, shape: Shape) -> bool:
    """Whether it is in the shape's partition, and not kept from it by a reservation."""
    return (
        shape.partition in node_class.partitions
        and (not shape.reservation or shape.reservation in node_class.reservations)
        and not any(name in node_class.reservations for name in shape.barred)
    )


def _has_cards(node_class: NodeClass, spec: NodeSpec) -> bool:
    usable = [card for card in node_class.cards if accepts(spec, card)]
    if spec.shares_a_card:
        return any(share_taken(card, spec.card_milli) <= shareable(card) for card in usable)
    return spec.whole_cards <= sum(map(can_be_whole, usable))
