"""The cards of a node by all ways in which clusters manage them, and what pods hold of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.cards.claims import Claims
from cockpit.backends.kubernetes.mapping.cards.device_plugins import DevicePlugins
from cockpit.backends.kubernetes.mapping.cards.gpu_share import GpuShare
from cockpit.backends.kubernetes.mapping.cards.hami import Hami
from cockpit.backends.kubernetes.mapping.cards.koordinator import Koordinator
from cockpit.backends.kubernetes.mapping.cards.requests import joined, requested_shares
from cockpit.backends.kubernetes.mapping.cards.scheme import (
    CardScheme,
    NodeSource,
    PodSource,
    SchemeCards,
    Unreadable,
)
from cockpit.backends.kubernetes.mapping.cards.volcano import VolcanoVgpu
from cockpit.backends.kubernetes.mapping.quantities import PodAmounts, requested
from cockpit.model.node import Card

SCHEMES: tuple[CardScheme, ...] = (Hami(), VolcanoVgpu(), Koordinator(), GpuShare(), Claims(), DevicePlugins())
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

    @property
    def units(self) -> Mapping[str, int]:
        """For resources that count parts of cards: the amount that makes one card of this node."""
        return {name: size for _, own, _ in self.managed for name, size in own.units.items()}


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
    return NodeCards(tuple(cards), tuple(managed), tuple(trouble))


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
    return tuple(_unknown(requested(source.pod.spec), node)), trouble


def _unknown(wanted: PodAmounts, node: NodeCards) -> Iterator[Place]:
    """Yield what the pod requests of the node's cards, when nothing tells which it has."""
    units = joined((node.units,))
    for each in requested_shares(wanted, units):
        yield Place(None, each.milli, tuple(_counted_by(each.resource, node)))


def _counted_by(resource: str, node: NodeCards) -> Iterator[int]:
    """Yield the indices of the cards that the resource counts."""
    for _, own, first in node.managed:
        if resource in own.resources or resource in own.units:
            names = own.counted.get(resource, own.cards)
            yield from (first + place for place, name in enumerate(own.cards) if name in names)
