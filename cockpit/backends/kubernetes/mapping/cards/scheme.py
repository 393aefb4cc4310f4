"""What each way to manage cards tells: the cards of a node, and the parts of them that a pod holds."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple, Protocol

from cockpit.backends.kubernetes.mapping.quantities import PodAmounts
from cockpit.backends.kubernetes.objects.koordinator import Device
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.resource_claims import ResourceClaim, ResourceSlice
from cockpit.model.node import Card
from cockpit.model.spec import WHOLE_CARD


class Unreadable(Exception):
    """An annotation or object about cards that cannot be understood; the text says which and why."""

    def __init__(self, text: str, resources: frozenset[str] = frozenset()) -> None:
        """`resources`: what counts the cards of which it tells."""
        super().__init__(text)
        self.resources = resources


class NodeSource(NamedTuple):
    """Everything that may tell of a node's cards."""

    meta: ObjectMeta
    offered: PodAmounts
    """The node's allocatable amounts."""
    device: Device | None = None
    """Koordinator's inventory of the node."""
    slices: tuple[ResourceSlice, ...] = ()
    """The devices for resource claims that the node alone has."""


class PodSource(NamedTuple):
    """Everything that may tell which cards a pod has."""

    pod: Pod
    claims: tuple[ResourceClaim, ...] = ()
    """The resource claims of the pod."""


class Part(NamedTuple):
    """What a device is of a card."""

    card: str
    """The card's name."""
    milli: int = WHOLE_CARD
    capacity: Mapping[str, Fraction] = {}
    """What the device has, by name, such as memory."""


class SchemeCards(NamedTuple):
    """The cards of a node that one scheme manages."""

    cards: Mapping[str, Card]
    """The cards by the names by which pods refer to them; their indices count from 0 in this order."""
    resources: frozenset[str] = frozenset()
    """The resources that count these cards or parts of them."""
    units: Mapping[str, int] = {}
    """For resources that count parts of cards: the amount that makes one whole card."""
    counted: Mapping[str, tuple[str, ...]] = {}
    """The cards that each resource counts, where it does not count all."""
    parts: Mapping[str, tuple[Part, ...]] = {}
    """For schemes in which pods get devices that are parts of cards: the parts by the device's name."""


class Share(NamedTuple):
    """A card, or a part of one, that a pod holds."""

    card: str | None
    """The card's name; None: it is not told which."""
    milli: int = WHOLE_CARD
    resource: str = ""
    """The resource by which it was requested; empty: unknown, or none."""


class CardScheme(Protocol):
    """One way to manage cards."""

    def cards(self, source: NodeSource) -> SchemeCards | None:
        """Return the cards that the scheme manages on the node; None: it manages none there. Raises `Unreadable`."""

    def shares(self, source: PodSource, node: SchemeCards) -> tuple[Share, ...] | None:
        """Return what the pod holds of the node's cards; None: the scheme does not tell. Raises `Unreadable`."""


MOST_CARDS = 4096
"""No node has more cards; larger numbers are mistakes."""


def check_number(cards: int, resource: str) -> int:
    """Return the number of a node's cards. Raises `Unreadable` where no node can have so many."""
    if cards > MOST_CARDS:
        raise Unreadable(f"{resource}: a node cannot have {cards} cards", frozenset({resource}))
    return cards


def whole_number(text: str) -> int | None:
    """Return the number that a label or annotation writes in digits; None: it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


_MOST_DIGITS = 12


def share_milli(amount: Fraction | float, whole: Fraction | float) -> int:
    """Return a part in thousandths of a card: at least one, at most the whole card."""
    # Rounded down, so that shares which together fill a card are not more than the card.
    return max(1, min(WHOLE_CARD, int(WHOLE_CARD * amount // whole))) if whole > 0 else WHOLE_CARD
