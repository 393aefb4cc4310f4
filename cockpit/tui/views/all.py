"""All views of the main screen in their order, and those that are too small for a module of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.model.capabilities import Ability
from cockpit.present.node_page import node_answer
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, Span
from cockpit.present.tables.catalogue import CATALOGUE as CATALOGUE_TABLE
from cockpit.present.tables.catalogue import entry_answer, no_entries_lines
from cockpit.present.tables.nodes import NODES as NODE_TABLE
from cockpit.present.tables.queues import QUEUES as QUEUE_TABLE
from cockpit.present.tables.queues import legend_line, queue_answer
from cockpit.tui.views.accounts import ACCOUNTS, QOS, SPENDING
from cockpit.tui.views.cards import CARDS
from cockpit.tui.views.clusters import CLUSTERS, FLEET
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.views.priority import PRIORITY
from cockpit.tui.views.view import ROOMY, FetchContext, View, ViewContext, plain_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cockpit.model.view import QueueRow
    from cockpit.present.spans import Line


def _demand(context: ViewContext) -> Iterator[Span]:
    """Yield the note about the cards that queued jobs ask for, by model."""
    if demand := context.state.demand:
        yield Span("   queued jobs ask for  ", MUTED)
        yield Span("   ".join(f"{safe(model)} {cards:g}" for model, cards in demand.items()))


async def _fetch_queues(context: FetchContext) -> None:
    context.take(QUEUES.id, (await context.backend.queues()).rows)


def _queue_panel(row: QueueRow, context: ViewContext) -> Iterator[Line]:
    every, takes_tree = context.state.queue_rows.rows(), context.capabilities.has(Ability.QUOTA_TREE)
    now, keys, brief = context.state.context(), context.keys, context.brief
    return queue_answer(row, every, now, keys, context.columns, brief=brief, takes_tree=takes_tree)


async def _fetch_catalogue(context: FetchContext) -> None:
    # The whole answer stays: the command line completes the names in it.
    shown = context.state.catalogue = await context.backend.catalogue()
    context.take(CATALOGUE.id, shown.rows)


NODES: Final = View(
    table=NODE_TABLE,
    title="Nodes",
    rows=lambda state: state.node_rows,  # the poller fetches them for all views: many texts name nodes
    key="2",
    action="nodes",
    help="Show nodes and their use",
    opens="open_node",
    hint="status:up cards>=4 card_model:A100 name~a0",
    help_title="the list of nodes",
    panel=lambda row, context: node_answer(row, context.state.job_rows.row, context.columns),
    note=_demand,
)
QUEUES: Final = View(
    table=QUEUE_TABLE,
    title="Queues",
    rows=lambda state: state.queue_rows,
    fetch=_fetch_queues,
    key="6",
    action="queues",
    help="Show quotas and partitions",
    opens="queue_jobs",
    hint="depth>0 cards_borrowed>0 kind:quota name~nlp",
    panel=_queue_panel,
    note=lambda context: legend_line() if context.columns >= ROOMY else (),
)
CATALOGUE: Final = View(
    table=CATALOGUE_TABLE,
    title="Catalogue",
    rows=plain_rows(CATALOGUE_TABLE),
    fetch=_fetch_catalogue,
    key="7",
    action="catalogue",
    help="Show datasets, models, images …",
    of_one_cluster=True,
    opens="set_entry",
    hint="kind:dataset owner:me project:nlp access:ro name~corpus",
    panel=lambda row, context: entry_answer(row, context.keys, context.columns),
    advice=lambda context: no_entries_lines(context.keys, filtered=bool(context.filter)),
)

VIEWS: Final[Mapping[str, View]] = {
    view.id: view
    for view in (JOBS, NODES, CARDS, ACCOUNTS, QOS, SPENDING, PRIORITY, QUEUES, CATALOGUE, CLUSTERS, FLEET)
}
"""The views by id, in the order of the row of views."""
