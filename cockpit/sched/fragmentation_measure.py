"""Measures what a target workload could use of a node, for fragmentation gradient descent.

Each request of the workload counts as often as it comes. It can use all that is free on the cards that it accepts and
that have enough for it; nothing where the node's CPUs, memory or cards do not suffice for one replica.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from operator import mul

from cockpit.model.node import Card
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.nodes.cards import accepts, share_taken
from cockpit.sched.policy import Target

Usable = tuple[int, ...]
"""Thousandths of cards that each kind of request can use, by the cards alone."""


class WorkloadMeasure:
    """A target workload, prepared so that a node is measured in a few steps: requests that want the same of the cards
    share one figure per state of the cards; their CPUs and memory only decide how much that figure weighs."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self.weight = sum(weight for _, weight in targets)
        self._targets = targets
        self._wants = list(dict.fromkeys((spec.card_milli, spec.card_models) for spec, _ in targets))
        self._cpus = sorted({spec.cpus for spec, _ in targets})
        self._memory = sorted({spec.memory_mib for spec, _ in targets})
        self._weights: dict[tuple[int, int], tuple[int, ...]] = {}

    def of(self, cpus: int, memory_mib: int, usable: Usable) -> int:
        """Return what the whole workload can use with these free CPUs and this free memory."""
        steps = (bisect_right(self._cpus, cpus), bisect_right(self._memory, memory_mib))
        weights = self._weights.get(steps) or self._weigh(steps)
        return sum(map(mul, weights, usable))

    def usable(self, cards: Sequence[Card], idle: Collection[int], holes: Sequence[int]) -> Usable:
        """Return what each kind of request can use of the cards; `idle` and `holes` as in `NodeFree`."""
        return tuple(_usable(milli, models, cards, idle, holes) for milli, models in self._wants)

    def _weigh(self, steps: tuple[int, int]) -> tuple[int, ...]:
        most_cpus, most_memory = self._cpus[: steps[0]][-1:], self._memory[: steps[1]][-1:]
        weights = dict.fromkeys(self._wants, 0)
        for spec, weight in self._targets:
            if most_cpus and most_memory and spec.cpus <= most_cpus[0] and spec.memory_mib <= most_memory[0]:
                weights[spec.card_milli, spec.card_models] += weight
        self._weights[steps] = tuple(weights.values())
        return self._weights[steps]


def _usable(
    milli: int, models: tuple[str, ...], cards: Sequence[Card], idle: Collection[int], holes: Sequence[int]
) -> int:
    spec = NodeSpec(card_milli=milli, card_models=models)
    accepted = [card for card in cards if accepts(spec, card)]
    if not spec.shares_a_card:
        count = sum(card.index in idle for card in accepted)
        return WHOLE_CARD * count if count >= spec.whole_cards else 0
    enough = (card.index for card in accepted if share_taken(card, milli) <= holes[card.index])
    return sum(WHOLE_CARD if index in idle else holes[index] for index in enough)
