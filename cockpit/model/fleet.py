"""A fleet: several clusters under one queue. What each of them can do, and what of a job is bound to it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Placement

OVER_CLUSTERS = "fleet"
"""The partition of all members' nodes, for jobs that may be divided over clusters."""
RESERVING_KUBERNETES = (1, 28)
RESERVING_SCHEDULER = (6, 8, 0)
"""The first versions that can reserve for a fleet."""


class BindingMode(StrEnum):
    """How much a fleet knows of a member's resources when it binds a job to it."""

    TOTALS = "totals"
    """The sums of what is free: compared with the sum of what is asked, which may be wrong."""
    RESERVATION = "reservation"
    """Real nodes, which are reserved: so the member comes to the same result."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster of a fleet."""

    name: str
    kubernetes: str = ""
    """The member's Kubernetes version, such as 1.28 or v1.30.1-aliyun.1."""
    scheduler: str = ""
    """The version of the member's scheduler."""
    enable_reservation: bool = False
    """The scheduler's parameter `enableReservation`."""
    over_link: bool = False
    """Whether it is a cluster of any kind that the fleet reaches over a link. It starts a part as soon as it has placed
    it, so that parts over links are released together, after all others are placed."""

    @property
    def mode(self) -> BindingMode:
        return BindingMode.TOTALS if self.why_totals else BindingMode.RESERVATION

    @property
    def why_totals(self) -> str:
        """Return what is missing for binding with reserved nodes; empty: nothing."""
        # In the order in which an administrator mends them: the parameter is of no use to an old scheduler.
        if self.over_link:
            return "it is reached over a link and chooses nodes by itself"
        if version(self.kubernetes) < RESERVING_KUBERNETES:
            return f"Kubernetes {self.kubernetes} is older than 1.28"
        if version(self.scheduler) < RESERVING_SCHEDULER:
            return f"scheduler {self.scheduler} is older than 6.8.0"
        return "" if self.enable_reservation else "enableReservation is not true"


class FleetPart(msgspec.Struct, frozen=True):
    """The role of a member's job: it runs some replicas of a job of the fleet."""

    job: JobId
    """The fleet's."""
    attempt: int
    ranks: tuple[int, ...]
    """The ranks in the fleet's job: replica r here is the fleet's replica `ranks[r]`."""
    reserved: Placement = ()
    """Exactly this is kept for it; empty: it takes what it finds."""


def version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, with zeros for missing ones: `v1.30.1-aliyun.1` is (1, 30, 1)."""
    numbers: list[int] = []
    for piece in text.removeprefix("v").split("."):
        digits = piece[: next((at for at, char in enumerate(piece) if char not in "0123456789"), len(piece))]
        if digits:
            numbers.append(int(digits))
        # Text such as `-aliyun` ends the numbers; what follows it does not order versions.
        if digits != piece:
            break
    return tuple(numbers)


def node_in(member: str, node: NodeName) -> NodeName:
    """Return the fleet's name of a member's node."""
    return NodeName(f"{member}/{node}")


def member_of(node: NodeName) -> str:
    """Return the member that a node belongs to. Where only totals are known, the name is the member's own."""
    # A node's own name has no slash, so the first one ends the member's name.
    return node.partition("/")[0]


def node_there(node: NodeName) -> NodeName:
    """Return the member's own name of a node of the fleet."""
    return NodeName(node.partition("/")[2])
