"""Nodes, their cards, and the resources that a job occupies on them. All amounts are integers."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import NodeName
from cockpit.model.image import Mpi
from cockpit.model.labels import Taint
from cockpit.model.spec import WHOLE_CARD


class NodeState(StrEnum):
    UP = "up"
    DRAINED = "drained"
    DOWN = "down"


class CardVendor(StrEnum):
    """The vendor of a card, which decides the environment variables that make cards visible in a container."""

    NVIDIA = "nvidia"
    MLU = "mlu"
    ASCEND = "ascend"
    ROCM = "rocm"
    OTHER = "other"


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One physical card of a node."""

    index: int
    """The position in the node, from 0. Screens count from 1."""
    model: str
    vendor: CardVendor = CardVendor.OTHER
    memory_mib: int = 0
    uuid: str = ""
    devices: tuple[str, ...] = ()
    """The device files in /dev that a container with this card needs."""
    slices: int = 0
    """The number of equal slices of its profile; 0: jobs may ask for any share, in thousandths."""
    slice_uuids: tuple[str, ...] = ()
    """The UUIDs of its hardware slices (MIG), in slot order; empty: the hardware does not slice."""
    declared: bool = False
    """Whether it is declared in cluster.toml rather than detected in the machine."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a cluster. On the embedded engine every node is (a part of) this machine."""

    name: NodeName
    cpus: int
    memory_mib: int
    cards: tuple[Card, ...] = ()
    pool: str = ""
    dedicated: bool = False
    """Whether only jobs that name its pool run there."""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    os: str = ""
    kernel: str = ""
    driver_version: str = ""
    mpi: Mpi | None = None
    """The implementation of MPI in its own file system; None: none, or it was not detected."""
    state: NodeState = NodeState.UP
    state_reason: str = ""
    drained_by: str = ""
    """The user, or the engine, that drained it until it is resumed, whatever the configuration says; empty: none."""
    instance: str = ""
    """The id or name of its machine at its provider, by which notices name it; empty: its own name."""
    notice_address: str = ""
    """The base address of its machine's spot notices; empty: the engine's own."""
    virtual: bool = False
    """Whether it is declared in cluster.toml as a part of this machine."""
    price_milli: int | None = None
    """Its present price in thousandths, by the engine's price source; None: its label `price` counts."""
    # Allowed, since declared nodes are for trying things out, but shown at each of them.
    overcommitted: bool = False
    """Whether the virtual nodes together have more than the machine."""

    @property
    def why_out(self) -> str:
        """The state with its reason, such as `drained: fan broken`; `down` where no reason is known."""
        return f"{self.state}: {self.state_reason}" if self.state_reason else str(self.state)


# order=True: slices are sorted by card, then by slot.
class CardSlice(msgspec.Struct, frozen=True, order=True, gc=False):
    """A card, or a part of one, that a replica occupies."""

    card: int
    """The index of the card in its node, from 0."""
    slot: int | None
    """The number of the slice on that card, from 0; None: the whole card."""
    milli: int = WHOLE_CARD
    """The share of the card, in thousandths."""
    assumed: bool = False
    """Whether the card and the slot are only assumed, so that free cards can be counted: the cluster does not tell
    which card it is."""


def first_cards(milli: int) -> tuple[CardSlice, ...]:
    """Return so many thousandths of a card, for records that have amounts without places: the first cards of a node."""
    whole, part = divmod(milli, WHOLE_CARD)
    cards = tuple(CardSlice(card, None) for card in range(whole))
    return (*cards, CardSlice(whole, 0, part)) if part else cards


class Allocation(msgspec.Struct, frozen=True, gc=False):
    """The resources that one replica of a job occupies on its node."""

    rank: int
    node: NodeName
    cpus: int
    memory_mib: int
    slices: tuple[CardSlice, ...] = ()

    @property
    def card_milli(self) -> int:
        """The sum of its shares of cards, in thousandths of a card."""
        return sum(part.milli for part in self.slices)


Placement = tuple[Allocation, ...]
"""The allocation of each replica, by rank."""
