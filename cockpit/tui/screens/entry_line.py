"""The entry line of the main screen, into which the user types filters, their names, weights and commands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import on

from cockpit.errors import CockpitError
from cockpit.formats.typed_values import read_weights, weights_text
from cockpit.present.filters import quoted
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED
from cockpit.present.tables.queues import jobs_filter
from cockpit.tui.action import ACCOUNTS, CARDS, CATALOGUE, CLUSTERS, JOBS, NODES, PRIORITY, QOS, QUEUES, SPENDING
from cockpit.tui.screens.arranging import Arranging
from cockpit.tui.view_tables import VIEW_TABLES
from cockpit.tui.widgets.entry import COMMAND, FILTER, NAME, WEIGHTS, Entry

if TYPE_CHECKING:
    from collections.abc import Hashable

    from cockpit.model.priority import WeightChanges

HINTS = {
    JOBS: "state:queued user:me cards>=4 wait>2h name~bert !spot",
    NODES: "status:up cards>=4 card_model:A100 name~a0",
    CARDS: "model:A100 state:free,stranded user:me node~a0",
    ACCOUNTS: "user:me account:vision fair_share<0.5 running>0 limits~grptres",
    QUEUES: "depth>0 cards_borrowed>0 kind:quota name~nlp",
    CATALOGUE: "kind:dataset owner:me project:nlp access:ro name~corpus",
    CLUSTERS: "state:live queued<10 cards>8 name~lab",
    QOS: "name~high priority>=100 settings~maxwall",
    SPENDING: "name~ai card_hours>100 share>=10 !name:others",
    PRIORITY: "user:me partition:gpu fairshare<1000 position<=20 note:held",
    WEIGHTS: "age=1000,fairshare=5000,tres/gres/gpu=200",
    COMMAND: "an action, a job's number, theme NAME, filter …; Tab completes",
    NAME: "a name for this filter",
}


class EntryLine(Arranging):
    """The part of the main screen that opens the entry line and acts on what is typed."""

    def __init__(self) -> None:
        super().__init__()
        self._filters = dict.fromkeys(HINTS, "")
        self._wrong = ""
        """The error in the text that is being typed; empty: none."""
        self._came_from: Hashable | None = None
        """The id of the row under the cursor before the filter was opened."""
        self._weights_before: WeightChanges | None = None
        """The weights that were tried before the entry for weights was opened."""

    @property
    def filter_text(self) -> str:
        """The filter of the present view; empty: none."""
        return self._filters[self.view]

    def ask_filter(self) -> None:
        """Open the filter line, which filters while the user types."""
        self._came_from = self.table.cursor_id
        names = (
            []
            if self.filter_text
            else [
                *(f"{name}:" for name in VIEW_TABLES[self.view].names()),
                *(f"{SAVED}{each}" for each in self.app.state.saved_filters(self.view)),
            ]
        )
        self._entry.ask(FILTER, self.filter_text, HINTS[self.view], names)
        self.run_worker(self._prepare_search(), name="search", group="search", exclusive=True)

    async def _prepare_search(self) -> None:
        """Index the rows' texts in small steps while the user thinks, so that the first letter does not wait for it."""
        for _ in self.app.state.job_rows.list.prepare_search():
            await asyncio.sleep(0)

    def ask_filter_name(self) -> None:
        """Ask for the name under which the present filter is saved."""
        self._entry.ask(
            NAME, "", f"{HINTS[NAME]}: {safe(self.filter_text)}", list(self.app.state.saved_filters(self.view))
        )

    def ask_command(self, text: str = "") -> None:
        """Open the command line with `text` in it."""
        self._entry.ask(
            COMMAND, text, HINTS[COMMAND], self.app.dispatcher.completions(), self.app.dispatcher.continuations
        )

    def ask_weights(self) -> None:
        """Open the entry line with the present weights; the view shows the order under the typed ones."""
        rows = self.app.state.priority_rows
        self._weights_before = rows.tried
        if rows.weights is not None:
            self._entry.ask(WEIGHTS, weights_text(rows.weights), HINTS[WEIGHTS])

    @property
    def _entry(self) -> Entry:
        return self.query_one(Entry)

    @on(Entry.Changed)
    def _typed(self, event: Entry.Changed) -> None:
        if self._entry.kind == FILTER and self._entry.display:
            self.filter(event.value)
        elif self._entry.kind == WEIGHTS and self._entry.display:
            self._try(event.value)

    def _try(self, text: str) -> None:
        try:
            self.app.poller.try_weights(read_weights(text))
        except CockpitError as error:
            self._wrong = str(error).splitlines()[0]
        else:
            self._wrong = ""
        self.draw()

    @on(Entry.Submitted)
    def _entered(self, event: Entry.Submitted) -> None:
        if self._entry.kind == WEIGHTS:
            self._try(event.value)
        if self._entry.kind in {FILTER, WEIGHTS} and self._wrong:
            return
        self._close_entry()
        if self._entry.kind == COMMAND:
            self.app.dispatcher.run_command(event.value)
        elif self._entry.kind == NAME and event.value.strip():
            self.app.dispatcher.run_command(f"save-filter {event.value.strip()}")

    @on(Entry.Left)
    def _entry_left(self, event: Entry.Left) -> None:
        if event.kind == FILTER:
            self._unfilter()
        elif event.kind == WEIGHTS:
            self._wrong = ""
            self.app.poller.try_weights(self._weights_before)
        self._close_entry()

    def _close_entry(self) -> None:
        self._entry.put_away()
        self.set_focus(self.table, scroll_visible=False)
        self.draw()

    def filter(self, text: str) -> None:
        """Filter the present view; a text with an error shows the error and leaves the last filter in force."""
        try:
            self._filter_rows(text)
        except CockpitError as error:
            self._wrong = str(error).removeprefix("filter: ")
        else:
            self._wrong = ""
            self._filters[self.view] = text
            self.table.order_changed()
        self.draw()

    def _filter_rows(self, text: str) -> None:
        app = self.app
        by = {
            JOBS: app.state.job_rows.list.filter_by,
            NODES: app.state.node_rows.filter_by,
            CARDS: app.state.card_rows.filter_by,
            PRIORITY: app.state.priority_rows.filter_by,
            ACCOUNTS: app.state.account_rows.tree.filter_by,
            QOS: app.state.qos_rows.filter_by,
            SPENDING: app.state.spending_rows.filter_by,
            QUEUES: app.state.queue_rows.filter_by,
            CATALOGUE: app.state.catalogue_rows.filter_by,
            CLUSTERS: app.state.cluster_rows.filter_by,
        }
        by[self.view](text)

    def _unfilter(self) -> None:
        """Remove the filter and put the cursor back on the row where it was before."""
        self.filter("")
        if self._came_from is not None:
            self.table.move_to(self._came_from)
            self._came_from = None

    def show_jobs_of_node(self) -> None:
        """List the jobs on the node under the cursor."""
        node = self.node_under_cursor()
        if node is not None:
            self.show_view(JOBS)
            self._came_from = self.jobs.cursor_id
            self.filter(f"node:{quoted(node.node.name)}")

    def show_jobs_of_queue(self) -> None:
        """List the jobs of the partition, or of all projects of the queue, under the cursor."""
        row = self.queue_under_cursor()
        text = None if row is None else jobs_filter(row, self.app.state.queue_rows.below(row))
        if text is None:
            self.app.notify("No project belongs to this queue, so it has no jobs.")
            return
        self.show_view(JOBS)
        self._came_from = self.jobs.cursor_id
        self.filter(text)

    def show_jobs_of_member(self, name: str) -> None:
        """List the jobs that a fleet has placed on this member cluster."""
        self.show_view(JOBS)
        self._came_from = self.jobs.cursor_id
        self.filter(f"cluster:{quoted(name)}")

    def show_jobs_of_user(self, user: str) -> None:
        """List the user's jobs of all accounts."""
        self.show_view(JOBS)
        self._came_from = self.jobs.cursor_id
        self.filter(f"user:{quoted(user)}")

    def show_jobs_of_name(self) -> None:
        """List the jobs of the account, user, project or QOS in the row of card-hours under the cursor."""
        row, by = self.name_under_cursor(), self.app.state.spending_rows.by
        if row is not None:
            self.show_view(JOBS)
            self._came_from = self.jobs.cursor_id
            self.filter(f"{by}:{quoted(row.name)}")

    def step_back(self) -> None:
        """Undo the first of these that is set: marks; filter; own jobs only, or tried weights."""
        if self.table.clear_marks():
            return
        if self.filter_text or self._wrong:
            self._unfilter()
        elif self.view == JOBS and self.app.state.job_rows.list.mine:
            self.toggle_mine()
        elif self.view == PRIORITY:
            self.app.poller.try_weights(None)
