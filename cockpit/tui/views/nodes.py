"""The views of nodes and of their cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.card_map import card_answer, legend, totals
from cockpit.present.first_sight import no_cards_lines
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, Line, Span
from cockpit.present.tables.cards import CARDS as CARD_TABLE
from cockpit.present.tables.nodes import NODES as NODE_TABLE
from cockpit.present.tables.nodes import node_answer
from cockpit.tui.card_map import CardMap
from cockpit.tui.views.view import WIDE, Fetch, View, ViewContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.view import NodeRow


def _demand(context: ViewContext) -> Iterator[Span]:
    """Yield the note about the cards that queued jobs ask for, by model."""
    if demand := context.state.demand:
        yield Span("   queued jobs ask for  ", MUTED)
        yield Span("   ".join(f"{safe(model)} {cards:g}" for model, cards in demand.items()))


async def _take_cards(fetch: Fetch) -> None:
    """Take the cards from the nodes, which the poller has fetched just before."""
    state = fetch.state
    fetch.redraw(CARDS.id, *state.card_rows.take(state.node_rows.rows(), state.job_rows.list.rows()))


def _card_panel(row: NodeRow, context: ViewContext) -> Iterator[Line]:
    state, part = context.state, context.state.card_rows.part
    if part is not None:
        job = state.job_rows.row(part.job) if part.job else None
        yield from card_answer(part, row, job, state.context(), context.columns, brief=context.brief)
        colours = "by user" if state.card_rows.by_user else "by job"
        yield legend(colours, context.keys.get("colours", ":colours"))


def _card_totals(context: ViewContext) -> Iterator[Span]:
    yield Span("   ")
    yield from totals(context.state.card_rows.parts(), words=context.columns >= WIDE)


NODES = View(
    table=NODE_TABLE,
    title="Nodes",
    rows=lambda state: state.node_rows,
    key="2",
    action="nodes",
    help="Show nodes and their use",
    opens="open_node",
    hint="status:up cards>=4 card_model:A100 name~a0",
    help_title="the list of nodes",
    panel=lambda row, context: node_answer(row, context.state.job_rows.row, context.columns),
    note=_demand,
)
CARDS = View(
    table=CARD_TABLE,
    title="Cards",
    rows=lambda state: state.card_rows,
    fetch=_take_cards,
    key="3",
    action="cards",
    help="Show cards and the jobs on them",
    hint="model:A100 state:free,stranded user:me node~a0",
    help_title="the map of the cards",
    panel=_card_panel,
    note=_card_totals,
    advice=lambda context: no_cards_lines(len(list(context.state.card_rows.parts())), context.keys),
    widget=CardMap,
)
