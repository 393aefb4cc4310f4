"""Free cards, and parts of cards, that no known request can use now.

The free part of a card is stranded when no known request could use it: the part is too small for all requests, the
card's node lacks the CPUs or the memory, too few whole cards are free on the node, or no job requests its model. Known
requests are those of queued and running jobs; where none of them requests cards, nothing counts as stranded.
"""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.model.jobrow import JobRow
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import NodeRow
from cockpit.sched.nodes.cards import accepts, can_be_whole, share_taken, shareable

Requests = tuple[NodeSpec, ...]


def known_requests(jobs: Iterable[JobRow]) -> Requests:
    """Return the smallest requests per node of live jobs with cards. A request that asks for at least as much as
    another is left out: whatever cards it could use, the other could too."""
    requests = {_request(job) for job in jobs if job.card_milli and job.ended_at is None}
    least: list[NodeSpec] = []
    # Small requests first: most of the larger ones are then left out. A hundred thousand jobs have few different
    # requests.
    for spec in sorted(requests, key=lambda spec: (spec.card_milli, spec.cpus, spec.memory_mib, len(spec.card_models))):
        if not any(_asks_less(other, spec) for other in least):
            # Of requests with equal sizes the one that accepts more models comes later, and replaces the others.
            least = [other for other in least if not _asks_less(spec, other)]
            least.append(spec)
    return tuple(least)


def free_milli(row: NodeRow, card: Card) -> int:
    """Return the thousandths of the card that are not allocated."""
    # A use without a slot takes the card as a whole.
    uses = [use for use in row.slices if use.card == card.index]
    return 0 if any(use.slot is None for use in uses) else shareable(card) - sum(use.milli for use in uses)


def usable_cards(row: NodeRow, requests: Requests) -> set[int]:
    """Return the indices of the cards whose free part at least one of the requests could use."""
    node = row.node
    if node.state is not NodeState.UP:
        return set()
    free = {card.index: free_milli(row, card) for card in node.cards}
    used_indices = {use.card for use in row.slices}
    usable: set[int] = set()
    for spec in requests:
        # A free card is of no use to a job for which its node has too few CPUs or too little memory free.
        if node.cpus - row.used_cpus >= spec.cpus and node.memory_mib - row.used_memory_mib >= spec.memory_mib:
            usable |= _cards_for(spec, node.cards, free, used_indices)
    return usable


def _cards_for(spec: NodeSpec, cards: Iterable[Card], free: dict[int, int], used_indices: set[int]) -> set[int]:
    accepted = [card for card in cards if accepts(spec, card)]
    if spec.shares_a_card:
        return {card.index for card in accepted if share_taken(card, spec.card_milli) <= free[card.index]}
    # Whole cards have to be free together: two free ones are of no use to a job that asks for four on a node.
    whole = {card.index for card in accepted if can_be_whole(card) and card.index not in used_indices}
    return whole if len(whole) >= spec.whole_cards else set()


def _request(job: JobRow) -> NodeSpec:
    return NodeSpec(
        cpus=job.cpus // job.nodes,
        memory_mib=job.memory_mib // job.nodes,
        card_milli=job.card_milli // job.nodes,
        card_models=job.card_models,
    )


def _asks_less(one: NodeSpec, other: NodeSpec) -> bool:
    """Return whether one request asks for at most as much of everything as the other."""
    models = not one.card_models or (bool(other.card_models) and set(other.card_models) <= set(one.card_models))
    return (
        one.cpus <= other.cpus and one.memory_mib <= other.memory_mib and one.card_milli <= other.card_milli and models
    )
