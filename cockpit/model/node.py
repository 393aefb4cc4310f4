"""Nodes, their cards, and what a running job occupies of them. Resources are integers."""

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
    """Decides the names of the variables that show a container its cards."""

    NVIDIA = "nvidia"
    MLU = "mlu"
    ASCEND = "ascend"
    ROCM = "rocm"
    OTHER = "other"


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One physical card of a node."""

    index: int
    """Position in the node, from 0; faces count from 1."""
    model: str
    vendor: CardVendor = CardVendor.OTHER
    memory_mib: int = 0
    uuid: str = ""
    devices: tuple[str, ...] = ()
    """Device nodes that a container with this card must see."""
    slices: int = 0
    """0: free fractions in thousandths. n: a fixed profile of n equal slices."""
    slice_uuids: tuple[str, ...] = ()
    """UUIDs of hardware slices (MIG), in slot order; empty where the hardware does not slice."""
    declared: bool = False
    """Written in cluster.toml rather than found in the machine."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a cluster. On the embedded engine every node is (a part of) this machine."""

    name: NodeName
    cpus: int
    memory_mib: int
    cards: tuple[Card, ...] = ()
    pool: str = ""
    dedicated: bool = False
    """Its pool is set apart: only jobs that name it run there."""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    os: str = ""
    kernel: str = ""
    driver_version: str = ""
    mpi: Mpi | None = None
    """Whose `mpirun` its own root has; None: none, or nobody looked."""
    state: NodeState = NodeState.UP
    state_reason: str = ""
    drained_by: str = ""
    """Who took it out of service until somebody gives it back, whatever the configuration says; else empty."""
    virtual: bool = False
    """Declared in cluster.toml as a part of this machine."""
    overcommitted: bool = False
    """The virtual nodes' sums exceed the machine."""

    @property
    def why_out(self) -> str:
        """Its state with the reason: `drained: fan broken`; `down` where none is known."""
        return f"{self.state}: {self.state_reason}" if self.state_reason else str(self.state)


class CardSlice(msgspec.Struct, frozen=True, order=True, gc=False):
    """A part of a card that one replica holds."""

    card: int
    """Index of the card in its node, from 0."""
    slot: int | None
    """Virtual card number on that card, from 0; None: the whole card."""
    milli: int = WHOLE_CARD


class Allocation(msgspec.Struct, frozen=True, gc=False):
    """What one replica of a job occupies."""

    rank: int
    node: NodeName
    cpus: int
    memory_mib: int
    slices: tuple[CardSlice, ...] = ()

    @property
    def card_milli(self) -> int:
        return sum(part.milli for part in self.slices)


Placement = tuple[Allocation, ...]
"""One allocation per replica, by rank."""
