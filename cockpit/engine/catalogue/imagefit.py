"""Whether an image of the catalogue suits a job: what it is meant for, and the cards that it is made for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.catalogue import NO_CARDS, Scope
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from cockpit.model.catalogue import ImageEntry
    from cockpit.model.node import Card, Node
    from cockpit.model.spec import JobSpec, NodeSpec


def image_errors(image: ImageEntry, spec: JobSpec, nodes: Iterable[Node]) -> Iterator[str]:
    """Clauses behind `image`. `spec`: with the node specs that its names mean."""
    if Scope.TRAINING not in image.scopes:
        yield f"{visible(image.name)} is meant for {' and '.join(image.scopes)}, not for training; choose another"
    types = frozenset(each.casefold() for each in image.card_types)
    if not types:
        return
    cards = {card.model.casefold(): card for node in nodes for card in node.cards}
    made_for = f"{visible(image.name)} is made for {' and '.join(map(visible, image.card_types))}"
    for index, each in enumerate(spec.specs):
        if (other := _unsuited(each, types, cards.values())) is not None:
            yield f"{made_for}, and specs[{index}] {other}; choose another image, or other cards"


def _unsuited(spec: NodeSpec, types: frozenset[str], cards: Collection[Card]) -> str | None:
    """What of the spec is none of the types."""
    if not spec.card_milli:
        return None if NO_CARDS in types else f"has no cards ({NO_CARDS})"
    wanted = {each.casefold() for each in spec.card_models}
    known = {each.model.casefold() for each in cards}
    for card in cards:
        if (not wanted or card.model.casefold() in wanted) and types.isdisjoint(_types(card)):
            return f"may be given {visible(card.model)} ({card.vendor})"
    unknown = (each for each in spec.card_models if each.casefold() not in known | types)
    return next((f"asks for {visible(each)}" for each in unknown), None)


def _types(card: Card) -> set[str]:
    return {card.model.casefold(), str(card.vendor).casefold()}
