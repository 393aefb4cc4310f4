"""Card slices out of what pods hold of the cards of nodes.

1. Parts of cards that are told get the next slice of their card.
2. Then parts of unknown cards are put on cards that have as much free, so that free cards can be counted. They are
   marked as assumed, unless a pod has all cards of which it may have one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from cockpit.backends.kubernetes.mapping.cards.all import NodeCards, Place
from cockpit.model.node import CardSlice
from cockpit.model.spec import WHOLE_CARD
from cockpit.sched.nodes.cards import shareable, slot_milli


def slices_on(node: NodeCards, held: Sequence[tuple[Place, ...]]) -> list[tuple[CardSlice, ...]]:
    """Return the slices of one node's cards for each of the pods there. `held`: what each pod holds."""
    ledger = _Ledger(node)
    known = [tuple(_told(ledger, places)) for places in held]  # step 1
    return [(*slices, *_assumed(ledger, places)) for slices, places in zip(known, held, strict=True)]  # step 2


class _Ledger:
    """What is taken of each card of a node."""

    def __init__(self, node: NodeCards) -> None:
        self.cards = node.cards
        self.used = [0] * len(node.cards)
        self._slots: defaultdict[int, int] = defaultdict(int)

    def take(self, card: int, milli: int, *, assumed: bool = False) -> CardSlice:
        """Take a part of a card; of a card with fixed slices one slice."""
        own = self.cards[card]
        size = slot_milli(own) if own.slices else milli
        slot = None if size == WHOLE_CARD else self._slots[card]
        self._slots[card] += 1
        self.used[card] += size
        return CardSlice(card, slot, size, assumed)

    def choose(self, milli: int, among: Iterable[int]) -> int | None:
        """Return a card with as much free, cards that are shared already first; None: none has any."""
        free = {card: shareable(self.cards[card]) - self.used[card] for card in among}
        fitting = [card for card, left in free.items() if left >= min(milli, shareable(self.cards[card]))]
        # The fullest that fits; a whole card is never a shared one.
        best = min(fitting, key=lambda card: (free[card], card), default=None)
        if best is not None or milli == WHOLE_CARD:
            return best
        left = [card for card in free if free[card] > 0]
        return max(left, key=lambda card: (free[card], -card), default=None)


def _told(ledger: _Ledger, places: tuple[Place, ...]) -> Iterable[CardSlice]:
    return [ledger.take(each.card, each.milli) for each in places if each.card is not None]


def _assumed(ledger: _Ledger, places: tuple[Place, ...]) -> Iterable[CardSlice]:
    for each in places:
        if each.card is None:
            among = each.among or range(len(ledger.cards))
            # The pod that has all cards of a node has no other one.
            has_all = each.milli == WHOLE_CARD and sum(other == each for other in places) == len(among)
            if (card := ledger.choose(each.milli, among)) is not None:
                yield ledger.take(card, each.milli, assumed=not has_all)
