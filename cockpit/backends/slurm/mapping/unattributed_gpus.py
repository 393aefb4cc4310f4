"""Cards that nodes say are in use before it is told which job has them: whose they are likely to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.nodes import Seen
from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Allocation, Card, CardSlice, Node, Placement
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.nodes.cards import slot_milli

Known = Mapping[JobId, Mapping[NodeName, Allocation]]
"""What is told of jobs, by node."""
NOTHING_KNOWN: Known = {}
OTHERS = ""
"""Whose cards they are that nobody is told of."""


class UnattributedGpus:
    """Jobs of which nothing is told take their cards here, one after the other; what they leave is others'."""

    def __init__(self, nodes: Iterable[Seen] = (), known: Known = NOTHING_KNOWN) -> None:
        told = [(part.node, each) for parts in known.values() for part in parts.values() for each in part.slices]
        pieces = {(name, each.card, each.slot) for name, each in told}
        cards = {(name, each.card) for name, each in told}
        self._left: dict[NodeName, list[CardSlice]] = {}
        self._taken: dict[tuple[NodeName, int], int] = {}
        """Thousandths in use by node and card."""
        for seen in nodes:
            name, shards = seen.node.name, seen.gres.shards_per_card
            self._left[name] = [
                each
                for each in seen.in_use
                if (name, each.card, each.slot) not in pieces and not (shards and (name, each.card) in cards)
            ]
            self.hold(name, self._left[name])

    def hold(self, node: NodeName, pieces: Iterable[CardSlice]) -> None:
        """These are in use there."""
        for each in pieces:
            self._taken[node, each.card] = self._taken.get((node, each.card), 0) + each.milli

    def take(self, name: NodeName, node: Node | None, wanted: NodeSpec) -> tuple[CardSlice, ...]:
        """Of what is in use there and nobody has, as much as a job holds by its spec; where that is not enough, the
        first free cards of the right model."""
        cards = [
            card
            for card in (node.cards if node is not None else ())
            if not wanted.card_models or card.model in wanted.card_models
        ]
        claimed = list(self._claimed(name, cards, wanted))
        guessed = list(self._guessed(name, cards, wanted.card_milli - sum(each.milli for each in claimed)))
        self.hold(name, guessed)
        return (*claimed, *guessed)

    def others(self) -> dict[str, tuple[Placement, ...]]:
        """What nobody took: whose it is is not for the asker to know."""
        found = [(Allocation(0, name, 0, 0, tuple(rest)),) for name, rest in self._left.items() if rest]
        return {OTHERS: tuple(found)} if found else {}

    def _claimed(self, name: NodeName, cards: Iterable[Card], wanted: NodeSpec) -> Iterator[CardSlice]:
        """Of shards a node says only on which card they are: Slurm miscounts them there."""
        cut, missing = {card.index: bool(card.slices) for card in cards}, wanted.card_milli
        left = self._left.get(name, [])
        for piece in [*left]:
            is_share = piece.slot is not None
            if missing <= 0 or piece.card not in cut or not (cut[piece.card] or is_share == wanted.shares_a_card):
                continue
            left.remove(piece)
            claimed = piece if cut[piece.card] else replace(piece, milli=min(missing, WHOLE_CARD))
            self.hold(name, [replace(piece, milli=claimed.milli - piece.milli)])
            missing -= claimed.milli
            yield claimed

    def _guessed(self, name: NodeName, cards: Iterable[Card], missing: int) -> Iterator[CardSlice]:
        for card in cards:
            before = self._taken.get((name, card.index), 0)
            milli = min(missing, WHOLE_CARD)
            if missing > 0 and before + milli <= WHOLE_CARD:
                missing -= milli
                yield from _pieces(card, before, milli)


def _pieces(card: Card, before: int, milli: int) -> Iterator[CardSlice]:
    """So much of a card behind what is taken before: in instances where it is cut into them."""
    if milli == WHOLE_CARD:
        yield CardSlice(card.index, None)
    elif card.slices:
        size = slot_milli(card)
        yield from (CardSlice(card.index, before // size + slot, size) for slot in range(milli // size))
    else:
        yield CardSlice(card.index, 0, milli)
