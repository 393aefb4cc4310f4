"""What of a node spec finds room on a node right now."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.cardmodels import is_one_of
from cockpit.model.node import Card
from cockpit.model.spec import NodeSpec
from cockpit.model.view import NodeRow
from cockpit.sched.nodes.cards import can_be_whole, share_taken, shareable


def fits(row: NodeRow, spec: NodeSpec) -> bool:
    """The spec asks for no more of any resource than the node has free."""
    return copies_that_fit(row, spec) >= 1


def could_hold(row: NodeRow, spec: NodeSpec) -> bool:
    """If nobody were there."""
    return fits(replace(row, used_cpus=0, used_memory_mib=0, slices=()), spec)


def copies_that_fit(row: NodeRow, spec: NodeSpec) -> int:
    """How many of the spec find room at once; CPUs, memory and cards that are free together."""
    bounds = [_bound(row.node.cpus - row.used_cpus, spec.cpus)]
    bounds.append(_bound(row.node.memory_mib - row.used_memory_mib, spec.memory_mib))
    cards = [(card, _used_milli(row, card)) for card in row.node.cards if is_one_of(card.model, spec.card_models)]
    if spec.shares_a_card:
        shares = [max(0, shareable(card) - used) // share_taken(card, spec.card_milli) for card, used in cards]
        bounds.append(sum(shares))
    else:
        idle = sum(not used and can_be_whole(card) for card, used in cards)
        bounds.append(_bound(idle, spec.whole_cards))
    return min(bound for bound in bounds if bound is not None)


def _bound(free: int, wanted: int) -> int | None:
    return None if wanted <= 0 else max(free, 0) // wanted


def _used_milli(row: NodeRow, card: Card) -> int:
    return sum(use.milli for use in row.slices if use.card == card.index)
