"""The tables of the main screen, one for each view, and the row under the cursor of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.widgets import ContentSwitcher

from cockpit.tui.action import ACCOUNTS, CARDS, CATALOGUE, CLUSTERS, JOBS, NODES, PRIORITY, QOS, QUEUES, SPENDING
from cockpit.tui.card_map import CardMap
from cockpit.tui.screens.dialog import is_open
from cockpit.tui.screens.priority import PriorityPart
from cockpit.tui.widgets.table import Table, TitleLine

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from cockpit.model.ids import JobId
    from cockpit.model.view import ClusterRow, NodeRow, QueueRow
    from cockpit.present.accounting import Held
    from cockpit.tui.cockpit import Cockpit


class Lists(Screen[None]):
    """The part of the main screen that holds its tables, of which it shows one."""

    app: Cockpit
    view = JOBS
    """The name of the present view."""

    def compose_lists(self) -> ComposeResult:
        """Yield the row of column titles and the tables."""
        theme = self.app.state.role_theme
        self.jobs = Table(self.app.state.job_rows, theme, id=JOBS)
        self.nodes = Table(self.app.state.node_rows, theme, id=NODES)
        self.cards = CardMap(self.app.state.card_rows, theme, id=CARDS)
        self.accounts = Table(self.app.state.account_rows, theme, id=ACCOUNTS)
        self.qos = Table(self.app.state.qos_rows, theme, id=QOS)
        self.spending = Table(self.app.state.spending_rows, theme, id=SPENDING)
        self.priority = Table(self.app.state.priority_rows, theme, id=PRIORITY)
        self.queues = Table(self.app.state.queue_rows, theme, id=QUEUES)
        self.catalogue = Table(self.app.state.catalogue_rows, theme, id=CATALOGUE)
        self.clusters = Table(self.app.state.cluster_rows, theme, id=CLUSTERS)
        self._ranks = PriorityPart(self.app, self.priority)
        yield TitleLine(self.jobs, id="titles")
        with ContentSwitcher(initial=JOBS, id="rows"):
            yield from self.tables.values()

    @property
    def tables(self) -> dict[str, Table]:
        """All tables, by the name of their view."""
        return {
            JOBS: self.jobs,
            NODES: self.nodes,
            CARDS: self.cards,
            ACCOUNTS: self.accounts,
            QOS: self.qos,
            SPENDING: self.spending,
            PRIORITY: self.priority,
            QUEUES: self.queues,
            CATALOGUE: self.catalogue,
            CLUSTERS: self.clusters,
        }

    @property
    def table(self) -> Table:
        """The table of the present view."""
        return self.tables[self.view]

    def job_of_card(self) -> int:
        """Return the id of the job on the card or slice under the cursor; 0: it is free, or the job is not visible."""
        part = self.cards.part
        return (part.job or 0) if part is not None else 0

    def ranked_jobs(self) -> list[int]:
        """Return the ids of the marked rows of the Priority view in their order, else of the one under the cursor."""
        rows = (self.app.state.priority_rows.row(row_id) for row_id in self.priority.chosen())
        return [row.job for row in rows if row is not None]

    def move_to_job(self, row_id: JobId) -> None:
        """Move the cursor of the list of jobs to this row."""
        self.jobs.move_to(row_id)

    def node_under_cursor(self) -> NodeRow | None:
        """Return the node under the cursor of the Nodes view; None in an empty list."""
        name = self.nodes.cursor_id
        return None if name is None else self.app.state.node_rows.row(name)  # type: ignore[arg-type]  # ids of nodes

    def queue_under_cursor(self) -> QueueRow | None:
        """Return the queue under the cursor of the Queues view; None in an empty list."""
        row_id = self.queues.cursor_id
        return None if row_id is None else self.app.state.queue_rows.row(row_id)  # type: ignore[arg-type]  # ids of queues

    def cluster_under_cursor(self) -> ClusterRow | None:
        """Return the cluster under the cursor of the Clusters view; None in an empty list."""
        row_id = self.clusters.cursor_id
        return None if row_id is None else self.app.state.cluster_rows.row(row_id)  # type: ignore[arg-type]  # names of clusters

    def show_view(self, view: str) -> None:
        """Show the table of this view in place of the present one."""
        self.query_one(ContentSwitcher).current = self.view = view
        titles = self.query_one(TitleLine)
        titles.table = self.table
        titles.refresh()
        self.call_after_refresh(titles.refresh)  # a table that was never shown has its size only then
        self.table.focus()
        self.app.poller.wake()
        self.draw()

    def redraw_priorities(self) -> None:
        """Redraw the Priority view after a new answer or a change of its columns.

        An answer may arrive while the application closes: then there is no table to draw.
        """
        if is_open(self) and self.tables[PRIORITY].is_attached:
            self._ranks.reordered()
            self.draw()

    def name_under_cursor(self) -> Held | None:
        """Return the row of card-hours under the cursor; None in an empty list."""
        row_id = self.spending.cursor_id
        return None if row_id is None else self.app.state.spending_rows.row(row_id)  # type: ignore[arg-type]  # names

    def redraw_spending(self) -> None:
        """Redraw the card-hours after a change of their grouping or of the days."""
        self.spending.order_changed()
        self.spending.redraw()
        self.app.poller.wake()
        self.draw()

    def draw(self) -> None:
        """Draw everything but the tables, which repaint themselves."""
        raise NotImplementedError
