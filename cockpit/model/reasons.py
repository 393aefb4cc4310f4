"""Why a queued job does not start: typed, with data. `present.reasons` alone turns them into sentences."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId, Millis, NodeName


class Resource(StrEnum):
    """What can be short on a node."""

    CPUS = "cpus"
    MEMORY = "memory"
    CARDS = "cards"
    """Whole cards, counted in cards."""
    CARD_SHARE = "card_share"
    """A share of one card, counted in thousandths."""
    NODE = "node"
    """A node for itself (exclusive), counted in nodes."""


class NodeShortfall(msgspec.Struct, frozen=True):
    """What one node lacks for one replica: the first resource it is short of."""

    node: NodeName
    resource: Resource
    free: int
    """Free and of an acceptable model, in the resource's unit (CPUs, MiB, cards, thousandths of a card)."""


class Held(msgspec.Struct, frozen=True, cache_hash=True, tag="held"):
    """A person holds the job back."""

    by: str
    since: Millis


class NotEvaluated(msgspec.Struct, frozen=True, cache_hash=True, tag="not_evaluated"):
    """No scheduling cycle has looked at it yet."""


class NotEnoughFree(msgspec.Struct, frozen=True, cache_hash=True, tag="not_enough_free"):
    """Too few eligible nodes have room right now."""

    resource: Resource
    """The resource that the nearest node lacks."""
    wanted: int
    """Per node, in the resource's unit."""
    card_models: tuple[str, ...]
    """Acceptable models; empty: any."""
    nodes_wanted: int
    nodes_with_room: int
    nearest: tuple[NodeShortfall, ...]
    """Eligible nodes that come nearest, best first, at most three."""
    other_models_free: int = 0
    """Free whole cards on models that the job does not accept."""


class NeverFits(msgspec.Struct, frozen=True, cache_hash=True, tag="never_fits"):
    """No eligible node could hold it even when empty, or there are too few such nodes."""

    resource: Resource | None
    """None: every node is big enough, there are just too few."""
    wanted: int
    most: int
    """The most that any eligible node has in all (or the number of nodes that are big enough)."""
    card_models: tuple[str, ...] = ()


class NoEligibleNode(msgspec.Struct, frozen=True, cache_hash=True, tag="no_eligible_node"):
    """Nothing matches the pins, pool, driver version or state asked for."""

    pins: tuple[NodeName, ...] = ()
    pool: str = ""
    driver_version: str = ""
    out_of_service: tuple[NodeName, ...] = ()
    """Nodes that match but are drained or down."""


class WouldDelay(msgspec.Struct, frozen=True, cache_hash=True, tag="would_delay"):
    """It fits now, but would delay a job ahead of it that has a reservation."""

    ahead: JobId
    reserved_at: Millis


Reason = Held | NotEvaluated | NotEnoughFree | NeverFits | NoEligibleNode | WouldDelay


class Explanation(msgspec.Struct, frozen=True):
    """The answer to "why does my job not start?", derived for the cycle just ended."""

    job: JobId
    reason: Reason
    position: int
    """Place in the queue, from 1."""
    ahead: tuple[JobId, ...]
    """Queued jobs before it, nearest to the head first, at most ten."""
    reserved_at: Millis | None = None
    """When the plan starts it at the latest, if it has a reservation."""
