"""What a person asks for: the job spec, after reading and with every default filled in."""

from __future__ import annotations

from enum import StrEnum

import msgspec

WHOLE_CARD = 1000
"""Thousandths of a card: `card_milli` of one whole card."""

DAY_SECONDS = 86_400
DEFAULT_GRACE_SECONDS = 30


class HomeAccess(StrEnum):
    """How the submitter's home folder appears in the container."""

    NONE = "none"
    RO = "ro"
    RW = "rw"


class HoldCards(StrEnum):
    """What happens to a failed job's cards while its container is kept."""

    FREE = "free"
    KEEP = "keep"


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What one node of the job must offer. Several in a job are equal alternatives."""

    cpus: int = 1
    memory_mib: int = 1024
    card_milli: int = 0
    """Thousandths of a card per node: below 1000 a share of one card, else whole cards (a multiple of 1000)."""
    card_models: tuple[str, ...] = ()
    """Any of these; empty means any model."""

    @property
    def whole_cards(self) -> int:
        return self.card_milli // WHOLE_CARD

    @property
    def shares_a_card(self) -> bool:
        return 0 < self.card_milli < WHOLE_CARD


class Algorithm(msgspec.Struct, frozen=True, kw_only=True):
    """The folder mounted at /workspace/algorithm."""

    path: str
    read_only: bool = False


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """A writable folder mounted at /workspace/volume/<name>."""

    name: str
    path: str


class DebugHold(msgspec.Struct, frozen=True, kw_only=True):
    """How a failed container is kept."""

    cards: HoldCards = HoldCards.FREE
    window_seconds: int | None = None
    """None: the administrator's default."""


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One job. Paths are absolute; sizes are MiB, times are seconds."""

    name: str
    command: str
    output: str
    algorithm: Algorithm | None = None
    volumes: tuple[Volume, ...] = ()
    nodes: int = 1
    specs: tuple[NodeSpec, ...] = (NodeSpec(),)
    node_names: tuple[str, ...] = ()
    """Empty: any. Excludes `pool` and `driver_version`."""
    pool: str | None = None
    driver_version: str | None = None
    exclusive: bool = False
    terminal: bool = False
    debug_hold: DebugHold = DebugHold()
    time_limit_seconds: int = DAY_SECONDS
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    """Between the request to end and the kill."""
    hold: bool = False
    """Submit held: queued, with the reason Held, until released."""
    home: HomeAccess = HomeAccess.RO
    env: dict[str, str] = {}
    project: str | None = None
    """None: the submitter's own project, named like the user."""
