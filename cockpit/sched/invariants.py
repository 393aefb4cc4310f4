"""Checks what must hold for all allocated resources at every moment, whatever allocated them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Allocation, Card, CardSlice, Node, Placement
from cockpit.model.spec import WHOLE_CARD
from cockpit.sched.nodes.cards import can_be_whole, slot_milli


def resource_violations(nodes: Mapping[NodeName, Node], occupied: Mapping[JobId, Placement]) -> list[str]:
    """Return one sentence per broken rule; empty if no CPU, MiB, card or slot is allocated twice and every gang is
    whole."""
    by_node: dict[NodeName, list[Allocation]] = {}
    violations: list[str] = []
    for job, placement in occupied.items():
        violations += _gang_violations(job, placement)
        for part in placement:
            by_node.setdefault(part.node, []).append(part)
    for name, parts in by_node.items():
        node = nodes.get(name)
        violations += [f"node {name}: occupied but unknown"] if node is None else _node_violations(node, parts)
    return violations


def _gang_violations(job: JobId, placement: Placement) -> Iterator[str]:
    ranks = [part.rank for part in placement]
    if not ranks or ranks != sorted(set(ranks)):  # ranks need not start at 0: the first worker may have left
        yield f"job {job}: ranks {ranks} do not go up"
    if len({part.node for part in placement}) < len(placement):
        yield f"job {job}: two replicas on one node"


def _node_violations(node: Node, parts: list[Allocation]) -> Iterator[str]:
    """Return a sentence for each rule that the allocations on one node break."""
    cpus, memory_mib = sum(part.cpus for part in parts), sum(part.memory_mib for part in parts)
    if any(part.cpus < 0 or part.memory_mib < 0 for part in parts):
        yield f"node {node.name}: a negative amount is occupied"
    if cpus > node.cpus:
        yield f"node {node.name}: {cpus} of {node.cpus} CPUs occupied"
    if memory_mib > node.memory_mib:
        yield f"node {node.name}: {memory_mib} of {node.memory_mib} MiB occupied"
    cards = {card.index: card for card in node.cards}
    by_card: dict[int, list[CardSlice]] = {}
    for slice_ in (slice_ for part in parts for slice_ in part.slices):
        by_card.setdefault(slice_.card, []).append(slice_)
    for index, slices in by_card.items():
        where = f"node {node.name} card {index}"
        problems = _card_violations(cards[index], slices) if index in cards else ["occupied but unknown"]
        yield from (f"{where}: {problem}" for problem in problems)


def _card_violations(card: Card, slices: list[CardSlice]) -> Iterator[str]:
    """Yield what is wrong with the slices that are allocated of one card."""
    milli = sum(part.milli for part in slices)
    if milli > WHOLE_CARD:
        yield f"{milli} of {WHOLE_CARD} thousandths occupied"
    if any(part.milli <= 0 for part in slices):
        yield "a slice of nothing"
    whole = [part for part in slices if part.slot is None]
    if whole and len(slices) > 1:
        yield "whole and shared at once"
    if any(part.milli != WHOLE_CARD or not can_be_whole(card) for part in whole):
        yield "given whole in part, or though the hardware slices it"
    yield from _slot_violations(card, [part for part in slices if part.slot is not None])


def _slot_violations(card: Card, shares: Iterable[CardSlice]) -> Iterator[str]:
    shares = list(shares)
    twice = [slot for slot, times in Counter(part.slot for part in shares).items() if times > 1]
    if twice:
        yield f"slots {twice} given twice"
    if card.slices and any(part.milli != slot_milli(card) or part.slot not in range(card.slices) for part in shares):
        yield f"a slot that its profile of {card.slices} does not have"
