"""The Nodes view. The poller fetches its rows for all views, as their texts name nodes and count cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, Span
from cockpit.present.tables.nodes import NODES as NODE_TABLE
from cockpit.present.tables.nodes import node_answer
from cockpit.tui.views.view import View, ViewContext

if TYPE_CHECKING:
    from collections.abc import Iterator


def _demand(context: ViewContext) -> Iterator[Span]:
    """Yield the note about the cards that queued jobs ask for, by model."""
    if demand := context.state.demand:
        yield Span("   queued jobs ask for  ", MUTED)
        yield Span("   ".join(f"{safe(model)} {cards:g}" for model, cards in demand.items()))


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
