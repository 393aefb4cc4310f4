"""Node specs to choose from, filtered by card model: the catalogue's, and even parts of the existing nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from cockpit.formats.job.fields import NODE_SPEC
from cockpit.model.catalogue import AnyEntry, SpecEntry
from cockpit.model.node import Node, NodeState
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.model.view import NodeRow
from cockpit.present import units
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.present.tables.nodes import could_hold, fits

GIB: Final = 1024
PARTS_OF_CPUS: Final = (8, 4, 2, 1)
"""Divisors of the CPUs of a node without cards: offers are an eighth, a quarter, a half and all of them."""


class SpecChoice(NamedTuple):
    """A node spec that the user can choose, with the number of nodes that have room for it."""

    id: str
    spec: NodeSpec
    """The node spec of the choice."""
    idle: int
    """Number of nodes that have room for one now."""
    tight: int
    """Number of nodes that would have room for one if they were empty, but have none now."""

    @property
    def values(self) -> Mapping[str, object]:
        """The spec with the names of a job file; for a spec of the catalogue only its name."""
        return {"name": self.spec.name} if self.spec.name else NODE_SPEC.write(self.spec)


class Model(NamedTuple):
    """A card model, with the number of its cards and of those that queued jobs request."""

    name: str
    cards: int
    """Number of the model's cards in service."""
    waited_milli: int
    """Cards that queued jobs request, in thousandths."""


def offers(nodes: Sequence[NodeRow], entries: Iterable[AnyEntry]) -> list[SpecChoice]:
    """Return the choices: first the catalogue's specs, then parts of nodes, those with the most cards first."""
    up = _in_service(nodes)
    named = [replace(each.spec, name=each.name) for each in entries if isinstance(each, SpecEntry)]
    parts = dict.fromkeys(spec for row in up for spec in _parts(row.node))
    # Those without cards last: who opens this list mostly looks for cards.
    by_size = sorted(parts, key=lambda spec: (not spec.card_milli, spec.card_models, -spec.card_milli, -spec.cpus))
    return [_offer(spec, up) for spec in (*named, *by_size)]


def models(nodes: Sequence[NodeRow], demand: Mapping[str, int]) -> list[Model]:
    """Return the card models in order of their names."""
    names = [card.model for row in _in_service(nodes) for card in row.node.cards]
    return [Model(name, names.count(name), demand.get(name, 0)) for name in sorted({*names, *demand} - {""})]


def with_models(every: Iterable[SpecChoice], chosen: Collection[str]) -> list[SpecChoice]:
    """Return the choices that may use cards of one of the chosen models; all choices where no model is chosen."""
    return [each for each in every if not chosen or any(model in chosen for model in each.spec.card_models)]


def models_line(choices: Sequence[Model], chosen: Collection[str]) -> Line:
    """Return the line of card models, each with its key: `1 ■ A100  24 · 4 queued for`."""
    spans: list[Span] = []
    for key, model in enumerate(choices, 1):
        mark = "■" if model.name in chosen else "□"
        spans += [Span(f" {key} ", "accent"), Span(f"{mark} {safe(model.name)} ", STRONG if mark == "■" else "")]
        spans.append(Span(f"{model.cards} · {model.waited_milli / WHOLE_CARD:g} queued for   ", MUTED))
    return line(*spans)


def offer_cells(offer: SpecChoice) -> list[Line]:
    """Return the cells of a choice: cards, CPUs, memory, the nodes with room for it, and its name in the catalogue."""
    spec = offer.spec
    cards = f"{units.cards(spec.card_milli)} × {' or '.join(spec.card_models) or 'card'}" if spec.card_milli else "–"
    where = Span(f"○ {offer.idle} idle", "idle") if offer.idle else Span(f"◉ {offer.tight} tight", "tight")
    return [
        line(Span(safe(cards), STRONG)),
        line(str(spec.cpus)),
        line(units.memory(spec.memory_mib)),
        line(where, Span(f"  {offer.tight} tight" if offer.idle and offer.tight else "", MUTED)),
        line(Span(safe(spec.name), MUTED)),
    ]


def _in_service(nodes: Sequence[NodeRow]) -> list[NodeRow]:
    return [row for row in nodes if row.node.state is NodeState.UP and not row.login]


def _offer(spec: NodeSpec, up: Sequence[NodeRow]) -> SpecChoice:
    big = [row for row in up if could_hold(row, spec)]
    idle = sum(fits(row, spec) for row in big)
    # The spec's text as id: equal offers are one, and the cursor stays on it when nodes change.
    return SpecChoice(repr(spec), spec, idle, len(big) - idle)


def _parts(node: Node) -> Iterator[NodeSpec]:
    """Yield parts of a node: with 1, 2, 4 and so on up to all cards of each model, and the same share of the CPUs and
    memory; without cards, fractions of the node."""
    if not node.cards:
        yield from (_part(node, 1, of) for of in PARTS_OF_CPUS)
        return
    for model in dict.fromkeys(card.model for card in node.cards):
        count = sum(card.model == model for card in node.cards)
        # Powers of two, and all cards of a node, also where these are six.
        numbers = {1 << power for power in range(count.bit_length())} | {count}
        yield from (_part(node, number, len(node.cards), model) for number in numbers)


def _part(node: Node, number: int, of: int, model: str = "") -> NodeSpec:
    # Rounded down to whole GiB, so that so many parts still fit on the node.
    memory = node.memory_mib * number // of
    return NodeSpec(
        cpus=max(1, node.cpus * number // of),
        memory_mib=max(1, memory // GIB * GIB if memory >= GIB else memory),
        card_milli=number * WHOLE_CARD if model else 0,
        card_models=(model,) if model else (),
    )
