"""The cards of a node by all ways in which clusters manage them, and what pods hold of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.cards.claims import ResourceClaims
from cockpit.backends.kubernetes.mapping.cards.device_plugins import DevicePlugins
from cockpit.backends.kubernetes.mapping.cards.gpu_share import GpuShare
from cockpit.backends.kubernetes.mapping.cards.hami import Hami
from cockpit.backends.kubernetes.mapping.cards.koordinator import Koordinator
from cockpit.backends.kubernetes.mapping.cards.requests import NO_UNITS, Units, units_of, wanted_parts
from cockpit.backends.kubernetes.mapping.cards.scheme import (
    CardScheme,
    NodeSource,
    PodSource,
    SchemeCards,
    Unreadable,
)
from cockpit.backends.kubernetes.mapping.cards.volcano import VolcanoVgpu
from cockpit.backends.kubernetes.mapping.quantities import requested
from cockpit.model.node import Card
from cockpit.model.spec import WHOLE_CARD

SCHEMES: tuple[CardScheme, ...] = (Hami(), VolcanoVgpu(), Koordinator(), GpuShare(), ResourceClaims(), DevicePlugins())
"""Each counts its cards by resources that those after it do not count again."""


class Place(NamedTuple):
    """What a pod holds of a node's cards."""

    card: int | None
    """The card's index; None: it is not told which."""
    milli: int
    among: tuple[int, ...]
    """The indices of the cards of which it may be one; empty: all."""


class NodeCards(NamedTuple):
    """All cards of a node."""

    cards: tuple[Card, ...] = ()
    managed: tuple[tuple[CardScheme, SchemeCards, int], ...] = ()
    """The schemes that manage some, with their cards, and the index of the first."""
    trouble: tuple[str, ...] = ()
    """What of the node's objects could not be read."""

    units: Units = NO_UNITS
    """For resources that count parts of cards: the amount that makes one card of this node."""
    counted: Mapping[str, tuple[int, ...]] = {}
    """The indices of the cards that each resource counts."""

    @property
    def tells(self) -> bool:
        """Whether some scheme may tell which cards a pod has."""
        return any(not isinstance(scheme, DevicePlugins) for scheme, _, _ in self.managed)


def cards_of(source: NodeSource) -> NodeCards:
    """Return the node's cards. A scheme whose register cannot be read has none, and its resources count none."""
    cards: list[Card] = []
    managed: list[tuple[CardScheme, SchemeCards, int]] = []
    trouble: list[str] = []
    others = source.offered.others
    for scheme in SCHEMES:
        left = source._replace(offered=source.offered._replace(others=others))
        try:
            own = scheme.cards(left)
        except Unreadable as error:
            trouble.append(str(error))
            others = tuple(each for each in others if each[0] not in error.resources)
            continue
        if own is not None:
            first = len(cards)
            managed.append((scheme, own, first))
            cards += (replace(card, index=first + place) for place, card in enumerate(own.cards.values()))
            others = tuple(each for each in others if each[0] not in own.resources)
    units = units_of({name: size for _, own, _ in managed for name, size in own.units.items()})
    counted = dict(pair for _, own, first in managed for pair in _counted(own, first))
    return NodeCards(tuple(cards), tuple(managed), tuple(trouble), units, counted)


def places_of(source: PodSource, node: NodeCards) -> tuple[tuple[Place, ...], str]:
    """Return what a pod holds of the node's cards, and what of the pod could not be read; empty: nothing."""
    trouble = ""
    for scheme, own, first in node.managed:
        try:
            shares = scheme.shares(source, own)
        except Unreadable as error:
            trouble = str(error)
            continue
        if shares is not None:
            index = {name: first + place for place, name in enumerate(own.cards)}
            every = tuple(index.values())
            return tuple(Place(index.get(each.card or ""), each.milli, every) for each in shares), trouble
    return tuple(_unknown(source, node)), trouble


def _unknown(source: PodSource, node: NodeCards) -> Iterator[Place]:
    """Yield what the pod requests of the node's cards, when nothing tells which it has."""
    for each in wanted_parts(requested(source.pod.spec), node.units):
        among = node.counted.get(each.resource, ())
        # A pod may request any number, and name a node that has less: more than there is need not be listed.
        most = WHOLE_CARD * (len(among) or len(node.cards)) // each.milli
        yield from (Place(None, each.milli, among) for _ in range(min(each.number, most)))


def _counted(own: SchemeCards, first: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each resource with the indices of the cards that it counts. `first`: the index of the first card."""
    index = {name: first + place for place, name in enumerate(own.cards)}
    for resource in own.resources | own.units.keys():
        yield resource, tuple(index[name] for name in own.counted.get(resource, own.cards))
