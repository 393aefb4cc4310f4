"""The state of the application: the rows of every list, the cluster's figures, and how fresh they are.

`poller` fetches from the cluster and updates this state.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.present.columns import Context
from cockpit.present.frame import TopBar
from cockpit.present.job.answer import Around
from cockpit.present.moments import clock_of_second
from cockpit.present.tables.catalogue import CATALOGUE
from cockpit.present.tables.clusters import CLUSTERS
from cockpit.present.tables.nodes import NODES, card_demand
from cockpit.present.tables.overview import capacity
from cockpit.present.tables.qos import QOS
from cockpit.tui import offers
from cockpit.tui.app_options import AppOptions
from cockpit.tui.ascii import AsciiFilter
from cockpit.tui.cockpit_base import CockpitBase
from cockpit.tui.forecasts import Forecasts
from cockpit.tui.keymap import with_keys
from cockpit.tui.paused_view import PausedView
from cockpit.tui.rows.cards import CardRows
from cockpit.tui.rows.lists import AccountRows, ClusterRows, JobRows, ListRows, QueueRows
from cockpit.tui.rows.priority import PriorityRows
from cockpit.tui.rows.spending import SpendingRows
from cockpit.tui.screens.main import MainScreen
from cockpit.tui.widgets.table import MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cockpit.backends.base import Backend, TypedLogin
    from cockpit.model.catalogue import CatalogueShown
    from cockpit.model.ids import JobId, Millis, NodeName
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec, NodeSpec
    from cockpit.model.view import AccountsShown, Overview
    from cockpit.present.columns import Column
    from cockpit.tui.cockpit_base import MainView, Pace
    from cockpit.tui.theme import RoleTheme

STALE_SECONDS = 3.0
"""Age in seconds from which on the top bar shows how old the data is."""
PAUSED = "paused"
"""Badge of the top bar while updates are paused."""


class AppState(CockpitBase):
    """The layer of the application that holds the rows of every list, the cluster's figures and the job's details."""

    def __init__(self, backend: Backend, outside: AppOptions) -> None:
        self.themes = outside.themes
        self._role_theme = self.themes[outside.theme]
        super().__init__(ansi_color=self._role_theme.ansi)
        if outside.ascii_only:
            self._filters.append(AsciiFilter())
        self.backend = backend
        self.outside = outside
        self.filters, self.clusters, self.cluster = outside.filters, outside.clusters, outside.cluster
        self.boards = []
        self.next_cluster = ""
        """The name of the cluster to open after this application has closed; empty: none."""
        self.actions = with_keys(outside.keys)
        self._forecasts = Forecasts(self, self._forecasts_changed)
        self.job_rows = JobRows(self.context, outside.filters.of)
        self.node_rows = ListRows(NODES, self.node_context, outside.filters.of)
        self.account_rows = AccountRows(self.context, outside.filters.of)
        self.qos_rows = ListRows(QOS, self.context, outside.filters.of)
        self.queue_rows = QueueRows(self.context, outside.filters.of)
        self.cluster_rows = ClusterRows(CLUSTERS, self.context, outside.filters.of)
        self.catalogue_rows = ListRows(CATALOGUE, self.context, outside.filters.of)
        self.spending_rows = SpendingRows(self.context, self._letters, outside.filters.of)
        self.accounts: AccountsShown | None = None
        self.catalogue: CatalogueShown | None = None
        self.card_rows = CardRows(self.context, outside.filters.of)
        self.priority_rows = PriorityRows(self.context, self._letters, outside.filters.of)
        self.overview: Overview | None = None
        self.loaded = False
        self._details: dict[JobId, JobDetail] = {}
        self._heard: float | None = None
        """When the cluster last answered, by the event loop's clock (a demo's own may run faster); None: never."""
        self._heard_at = outside.now()
        """When the cluster last answered, by the cluster's clock."""
        self._trouble = ""
        """The reason why the cluster cannot be reached; empty while it answers."""
        self._paused: PausedView | None = None
        """The changes that wait while updates are paused; None while they are not."""
        self.main_screen = MainScreen()

    def now(self) -> Millis:
        return self.outside.now() if self._paused is None else self._paused.since

    def context(self) -> Context:
        """Return the moment, time zone and user that texts depend on."""
        return Context(now=self.now(), user=self.outside.user, forecasts=self._forecasts.known)

    def _forecasts_changed(self, jobs: Iterable[JobId]) -> None:
        """Redraw the list's rows and the panel together, so that both show the same start.

        An array's row shows the start of one of its tasks: it changes with the forecast of that task.
        """
        changed, table = set(jobs), self.main_screen.jobs
        table.rows_changed([each for each in table.visible_ids() if self._speaker(each) in changed], news=False)
        self.main_screen.draw_answer()

    def _speaker(self, row_id: Any) -> JobId | None:  # noqa: ANN401 - an id of the table
        row = self.job_rows.folds.speaker(row_id)
        return None if row is None else row.id

    def role_theme(self) -> RoleTheme:
        """Return the present colour theme."""
        return self._role_theme

    def standing(self) -> TopBar:
        """Return the contents of the top bar: cluster, user, access, and how fresh the data is."""
        age = 0 if self._heard is None else int(asyncio.get_running_loop().time() - self._heard)
        stale = self._heard is not None and (self._trouble or age > STALE_SECONDS)
        badge = self.outside.badge() or (PAUSED if self._paused is not None else "")
        cluster = self.overview.cluster if self.overview is not None else "…"
        return TopBar(
            cluster=cluster.removesuffix(" · DEMO") if self.pace is not None else cluster,
            access="ro" if self.outside.read_only else "rw",
            user=self.outside.user,
            age=f"{age} s old" if stale else "",
            heard=clock_of_second(self._heard_at, None) if stale else "",
            fresh=self._heard is not None and not stale and self._paused is None,
            trouble=self._trouble,
            badge=badge,
        )

    def detail_of(self, job: JobId) -> JobDetail | None:
        """Return the detail that was fetched last, if it is this job's; else None."""
        return self._details.get(job)

    def capacity_words(self) -> str:
        """Return the cluster's capacity: `This machine: 16 CPUs, 128G, 2 × RTX 4090.`"""
        if self.overview is None:
            return ""
        return f"This machine: {capacity([row.node for row in self.node_rows.rows()], self.overview)}."

    def shown_columns(self, width: int) -> Sequence[tuple[Column, int]]:
        """Return the columns of the Jobs view for a screen of this width."""
        return self.job_rows.layout(width - MARGIN)

    def around(self, columns: int, lines: int = 0) -> Around:
        """Return what the answer panel's text depends on, for a panel of this width and height in characters."""
        return Around(
            self.context(),
            columns,
            lines,
            keys=offers.names_of_keys(self.actions),
            others=self.job_rows.row,
            outlook=self._forecasts.outlook,
            node=self._node,
            letters=self._letters(),
        )

    def _node(self, name: NodeName) -> Node | None:
        row = self.node_rows.row(name)
        return None if row is None else row.node

    def _letters(self) -> bool:
        """Return whether letters stand for colours, as the terminal shows none."""
        return self.outside.ascii_only or self.no_color

    @property
    def demand(self) -> Mapping[str, float]:
        """The number of cards that queued jobs request, by model."""
        return card_demand(self.overview)

    def node_context(self) -> Context:
        """Return the context of the Nodes view, which also depends on the chosen node spec."""
        return replace(self.context(), chosen=self.chosen_spec())

    def chosen_spec(self) -> NodeSpec | None:
        """Return the node spec of the queued job under the cursor, against which the Nodes view shows idle or tight."""
        row = self.job_under_cursor()
        detail = self._details.get(row.id) if row is not None and row.queued else None
        return detail.job.spec.specs[0] if detail is not None else None

    @property
    def read_jobs(self) -> Callable[[str, str, str], list[JobSpec]]:
        return self.outside.read_jobs

    @property
    def pace(self) -> Pace | None:
        return self.outside.pace

    @property
    def login(self) -> TypedLogin | None:
        return self.outside.login

    @property
    def main_view(self) -> MainView:
        return self.main_screen

    @property
    def read_only(self) -> str:
        return self.outside.read_only

    def job_under_cursor(self) -> JobRow | None:
        row_id: Any = self.main_screen.jobs.cursor_id
        return None if row_id is None else self.job_rows.folds.speaker(row_id)
