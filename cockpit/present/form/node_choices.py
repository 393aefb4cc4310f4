"""Card models, pools, drivers and nodes as choices of the form, with what is free of them now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cockpit.model.cardmodels import is_one_of
from cockpit.model.spec import WHOLE_CARD
from cockpit.present.form.choices import FieldChoice
from cockpit.present.tables.nodes import could_hold, fits
from cockpit.present.units import cards, counted

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec, NodeSpec
    from cockpit.model.view import NodeRow


def card_model_choices(
    rows: Sequence[NodeRow], wanted: NodeSpec | None, demand: Mapping[str, float]
) -> Iterator[FieldChoice]:
    """Yield the card models. `wanted`: the node spec that is to have one; `demand`: cards that queued jobs request."""
    for model in sorted({card.model for row in rows for card in row.node.cards} - {""}):
        total, free = card_counts(rows, model)
        parts = [f"{free:g} of {total} free now"]
        if demand.get(model):
            parts.append(f"{demand[model]:g} waited for")
        most = max(sum(card.model == model for card in row.node.cards) for row in rows)
        why_not = ""
        if wanted is not None and wanted.card_milli > most * WHOLE_CARD:
            why_not = f"no node has {cards(wanted.card_milli)} of them"
        yield FieldChoice(model, " · ".join(parts), why_not)


def node_choices(
    rows: Sequence[NodeRow], spec: JobSpec | None, value_of: Callable[[NodeRow], str | None]
) -> Iterator[FieldChoice]:
    """Yield each value that nodes have, such as the name of a pool, with the number of its nodes that have room now."""
    by_value = dict[str, set[str]]()
    for row in rows:
        if value := value_of(row):
            by_value.setdefault(value, set()).add(row.node.name)
    fitting = FittingNodes(rows, spec)
    for value, names in sorted(by_value.items()):
        is_node = names == {value}
        parts = [] if is_node else [counted(len(names), "node")]
        if spec is not None:
            words = "has room now" if names & fitting.now else "no room now"
            parts.append(words if is_node else f"room now on {len(names & fitting.now)}")
        is_big_enough = spec is None or names & fitting.when_empty
        yield FieldChoice(value, " · ".join(parts), "" if is_big_enough else "too small for the job")


class FittingNodes:
    """The names of the nodes that have room for one node's part of a job, now and when they are empty."""

    def __init__(self, rows: Sequence[NodeRow], spec: JobSpec | None) -> None:
        """Look at every node once. `spec`: the job; None: no node is looked at."""
        specs = spec.specs if spec is not None else ()
        self.now = {row.node.name for row in rows if any(fits(row, each) for each in specs)}
        # Only of the others is it to be computed, which costs half a second for some thousand nodes.
        self.when_empty = self.now | {
            row.node.name
            for row in rows
            if row.node.name not in self.now and any(could_hold(row, each) for each in specs)
        }


def card_counts(rows: Iterable[NodeRow], model: str = "") -> tuple[int, float]:
    """Return the number of cards of this model (empty: of any) on these nodes, and of those that are free now."""
    total, free_milli = 0, 0
    for row in rows:
        used = dict[int, int]()
        for use in row.slices:
            used[use.card] = used.get(use.card, 0) + use.milli
        own = [card for card in row.node.cards if not model or is_one_of(card.model, (model,))]
        total += len(own)
        free_milli += sum(max(0, WHOLE_CARD - used.get(card.index, 0)) for card in own)
    return total, free_milli / WHOLE_CARD
