"""The lists of the main screen: a table for each view, one of which is shown, and what stands under its cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.widgets import ContentSwitcher

from cockpit.tui.action import ACCOUNTS, CARDS, CATALOGUE, CLUSTERS, JOBS, NODES, PRIORITY, QOS, QUEUES, SPENDING
from cockpit.tui.card_map import CardMap
from cockpit.tui.screens.dialog import is_open
from cockpit.tui.screens.priority import PriorityPart
from cockpit.tui.widgets.table import Table
from cockpit.tui.widgets.titles import Titles

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from cockpit.model.view import ClusterRow, NodeRow, QueueRow
    from cockpit.present.accounting import Held
    from cockpit.tui.cockpit_base import CockpitBase


class Lists(Screen[None]):
    """The screen as far as it is tables."""

    app: CockpitBase
    view = JOBS
    """The list that is shown."""

    def compose_lists(self) -> ComposeResult:
        """The titles, and the tables below them."""
        theme = self.app.role_theme
        self.jobs = Table(self.app.job_rows, theme, id=JOBS)
        self.nodes = Table(self.app.node_rows, theme, id=NODES)
        self.cards = CardMap(self.app.card_rows, theme, id=CARDS)
        self.accounts = Table(self.app.account_rows, theme, id=ACCOUNTS)
        self.qos = Table(self.app.qos_rows, theme, id=QOS)
        self.spending = Table(self.app.spending_rows, theme, id=SPENDING)
        self.priority = Table(self.app.priority_rows, theme, id=PRIORITY)
        self.queues = Table(self.app.queue_rows, theme, id=QUEUES)
        self.catalogue = Table(self.app.catalogue_rows, theme, id=CATALOGUE)
        self.clusters = Table(self.app.cluster_rows, theme, id=CLUSTERS)
        self._ranks = PriorityPart(self.app, self.priority)
        yield Titles(self.jobs, id="titles")
        with ContentSwitcher(initial=JOBS, id="rows"):
            yield from self.tables.values()

    @property
    def tables(self) -> dict[str, Table]:
        """By the name of the view."""
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
        """The one that is shown."""
        return self.tables[self.view]

    def job_of_card(self) -> int:
        """The id of the job that holds the part of a card under the cursor; 0 where nobody does, or nobody one may
        see."""
        part = self.cards.part
        return (part.job or 0) if part is not None else 0

    def ranked_jobs(self) -> list[int]:
        """Ids of the queued jobs that are marked in their order, else of the one under the cursor."""
        rows = (self.app.priority_rows.row(row_id) for row_id in self.priority.chosen())
        return [row.job for row in rows if row is not None]

    def node_under_cursor(self) -> NodeRow | None:
        """None in an empty list."""
        name = self.nodes.cursor_id
        return None if name is None else self.app.node_rows.row(name)  # type: ignore[arg-type]  # ids of nodes

    def queue_under_cursor(self) -> QueueRow | None:
        """None in an empty list."""
        here = self.queues.cursor_id
        return None if here is None else self.app.queue_rows.row(here)  # type: ignore[arg-type]  # ids of queues

    def cluster_under_cursor(self) -> ClusterRow | None:
        """None in an empty list."""
        here = self.clusters.cursor_id
        return None if here is None else self.app.cluster_rows.row(here)  # type: ignore[arg-type]  # names of clusters

    def show_view(self, view: str) -> None:
        """Another table in the same frame."""
        self.query_one(ContentSwitcher).current = self.view = view
        titles = self.query_one(Titles)
        titles.table = self.table
        titles.refresh()
        self.call_after_refresh(titles.refresh)  # a table that was never shown has its size only then
        self.table.focus()
        self.app.wake()
        self.draw()

    def redraw_priorities(self) -> None:
        """Another answer, or other columns of it; one that comes behind the last frame is drawn nowhere."""
        if is_open(self) and self.tables[PRIORITY].is_attached:
            self._ranks.reordered()
            self.draw()

    def name_under_cursor(self) -> Held | None:
        """Whose card-hours; None in an empty list."""
        here = self.spending.cursor_id
        return None if here is None else self.app.spending_rows.row(here)  # type: ignore[arg-type]  # names

    def redraw_spending(self) -> None:
        """Sums by something else, or of other days."""
        self.spending.order_changed()
        self.spending.redraw()
        self.app.wake()
        self.draw()

    def draw(self) -> None:
        """Everything but the rows: they repaint themselves."""
        raise NotImplementedError
