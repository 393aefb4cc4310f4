"""Orders of a fleet to members that it reaches over a link, and what such a member says of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import JobId, NodeName

_MARK: Final = re.compile(r"-(?P<fleet>f[0-9a-f]{6})-(?P<job>[0-9]+)-(?P<attempt>[0-9]+)$")
_MOST_NAME: Final = 30
"""Characters of the job's own name in the name of a part: Kubernetes allows 63 in all."""


class Order(msgspec.Struct, frozen=True, order=True):
    """The id of an order: an attempt of a job of one fleet. A member has one part for it."""

    fleet: str
    """The fleet's own id: the letter f and six hexadecimal digits."""
    job: JobId
    attempt: int

    def __str__(self) -> str:
        return f"{self.fleet}-{self.job}-{self.attempt}"

    def named(self, name: str) -> str:
        """Return the name of the part at the member, which carries the order: a name that every kind of cluster takes.

        It follows from the order and the job's name alone, so that a repeated order has the same name.
        """
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_MOST_NAME].strip("-")
        return f"{plain or 'job'}-{self}"


def order_of(name: str) -> Order | None:
    """Return the order that the name of a member's job carries; None: it is no part of a fleet's job."""
    match = _MARK.search(name)
    return None if match is None else Order(match["fleet"], JobId(int(match["job"])), int(match["attempt"]))


class PartState(StrEnum):
    """What a member does with a part."""

    HELD = "held"
    """It does not start before it is released."""
    WAITING = "waiting"
    """It was released, and its cluster has not started it yet."""
    RUNNING = "running"
    ENDED = "ended"


class PartSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a member that carries an order."""

    order: Order
    own: str
    """The member's own id of it."""
    state: PartState
    nodes: tuple[NodeName, ...] = ()
    """The member's names of the nodes, one for each replica; empty: none, or unknown."""
    exit: ExitStatus | None = None
    """How it ended; None: it has not."""
    word: str = ""
    """The member's own word for its state."""
    reason: str = ""
    """Why it does not run yet, as a sentence; empty: it does, or the reason is not known."""


def by_order(seen: Sequence[PartSeen]) -> dict[Order, list[PartSeen]]:
    """Return the parts of each order. There are several where an order was carried out twice: all but one are held."""
    parts: dict[Order, list[PartSeen]] = {}
    for each in seen:
        parts.setdefault(each.order, []).append(each)
    return parts
