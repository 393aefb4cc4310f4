"""The data that the application shows: the rows of every list, the cluster's figures, and how fresh they are.

The poller fetches from the cluster and updates this state; screens draw it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import CockpitError
from cockpit.present.columns import Context
from cockpit.present.frame import TopBar
from cockpit.present.job.answer import PanelContext
from cockpit.present.load_history import LoadHistory
from cockpit.present.moments import clock_of_second
from cockpit.present.tables.clusters import CLUSTERS
from cockpit.present.tables.nodes import NODES, card_demand
from cockpit.tui.palette import fitted
from cockpit.tui.rows.cards import CardRows
from cockpit.tui.rows.fleet import FleetRows
from cockpit.tui.rows.lists import AccountRows, ClusterRows, JobRows, ListRows, QueueRows
from cockpit.tui.rows.priority import PriorityRows
from cockpit.tui.rows.spending import SpendingRows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cockpit.backends.base import JobsDelta
    from cockpit.model.catalogue import CatalogueShown
    from cockpit.model.forecast import Forecast, Outlook
    from cockpit.model.ids import JobId, Millis, NodeName
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.node import Node
    from cockpit.model.spec import NodeSpec
    from cockpit.model.view import AccountsShown, NodeRow, Overview
    from cockpit.tui.app_options import AppOptions
    from cockpit.tui.theme import RoleTheme

STALE_SECONDS = 3.0
"""Age in seconds from which on the top bar shows how old the data is."""
PAUSED = "paused"
"""Badge of the top bar while updates are paused."""


class PredictedStarts:
    """The predicted starts of queued jobs, as last fetched. The list and the panel below it read the same ones."""

    def __init__(self) -> None:
        self.known: Mapping[JobId, Forecast] = {}
        self.outlook: Outlook | None = None
        """All that is known of the queued job under the cursor; None: no queued job is, or there is no answer yet."""


class PausedView:
    """The changes since the pause began.

    It stores only the newest row of each job, so a pause may last for hours without growing beyond the job list.
    """

    def __init__(self, since: Millis) -> None:
        self.since = since
        self.starts_over = False
        """Whether the stored rows are the whole list, as the feed has started over since."""
        self._changed: dict[JobId, JobRow] = {}
        self._removed: set[JobId] = set()
        self._last: JobsDelta | None = None

    def take(self, delta: JobsDelta, *, first: bool) -> None:
        """Store the changes; `first`: they begin a new list, which replaces all before."""
        if first:
            self._changed.clear()
            self._removed.clear()
            self.starts_over = True
        # The last word about a job counts: each is in one of both collections.
        for job in delta.removed:
            self._changed.pop(job, None)
            self._removed.add(job)
        for row in delta.changed:
            self._removed.discard(row.id)
            self._changed[row.id] = row
        self._last = delta

    def delta(self) -> JobsDelta | None:
        """Return all stored changes as one; None: nothing has changed."""
        if self._last is None:
            return None
        return replace(self._last, changed=tuple(self._changed.values()), removed=tuple(self._removed))


class AppState:
    """The rows of every list, the cluster's figures, the details of the job under the cursor."""

    def __init__(
        self,
        options: AppOptions,
        keys: Mapping[str, str],
        has_colours: Callable[[], bool],
        chosen: Callable[[], JobRow | None],
    ) -> None:
        """Make an empty state.

        `keys` has the name of the first key of each action, by action id. `has_colours` returns whether the terminal
        shows colours, `chosen` the job under the cursor of the list of jobs.
        """
        self.options = options
        self.keys = keys
        self.theme = fitted(options.themes[options.theme], options.colours)
        self._has_colours = has_colours
        self._chosen = chosen
        saved = options.filters.of
        self.job_rows = JobRows(self.context, saved)
        self.node_rows: ListRows[NodeName, NodeRow] = ListRows(NODES, self.node_context, saved)
        self.account_rows = AccountRows(self.context, saved)
        self.queue_rows = QueueRows(self.context, saved)
        self.cluster_rows = ClusterRows(CLUSTERS, self.context, saved)
        self.fleet_rows = FleetRows(self.context, saved)
        self.catalogue: CatalogueShown | None = None
        """The catalogue as last fetched; None: not fetched yet."""
        self.spending_rows = SpendingRows(self.context, self.letters, saved)
        self.card_rows = CardRows(self.context, saved)
        self.priority_rows = PriorityRows(self.context, self.letters, saved)
        self.accounts: AccountsShown | None = None
        """The accounts as last fetched; None: not fetched yet."""
        self.overview: Overview | None = None
        self.load = LoadHistory()
        self.starts = PredictedStarts()
        self.details: dict[JobId, JobDetail] = {}
        """The detail that was fetched last, by the id of its job."""
        self.loaded = False
        """Whether a first page of the job list has arrived."""
        self.all_came = False
        """Whether the whole job list has arrived."""
        self.paused: PausedView | None = None
        """The changes that wait while updates are paused; None while they are not."""
        # Two clocks, as a demo runs many times faster than the screen: the age of the data is a matter of real seconds,
        # the moment that the top bar names one of the cluster.
        self._answered_at: float | None = None
        """When the cluster last answered, by the event loop's clock (a demo's own may run faster); None: never."""
        self._heard_at = options.now()
        """When the cluster last answered, by the cluster's clock."""
        self._trouble = ""
        """The reason why the cluster cannot be reached, in few words; empty while it answers."""
        self.unreachable = ""
        """The whole sentence about it."""
        self.began_at = self.now()

    def now(self) -> Millis:
        """Return the cluster's present moment, or that of the pause while updates are paused."""
        return self.options.now() if self.paused is None else self.paused.since

    def context(self) -> Context:
        """Return the moment, time zone and user that texts depend on."""
        return Context(now=self.now(), user=self.options.user, forecasts=self.starts.known)

    def use_theme(self, name: str) -> None:
        """Switch to the theme of this name, in colours that the terminal shows."""
        self.theme = fitted(self.options.themes[name], self.options.colours)

    def role_theme(self) -> RoleTheme:
        """Return the present colour theme."""
        return self.theme

    def is_fresh(self) -> None:
        """Note that the cluster has just answered."""
        self._answered_at, self._heard_at = asyncio.get_running_loop().time(), self.options.now()
        self._trouble = self.unreachable = ""

    def is_stale(self, reason: str, sentence: str) -> None:
        """Note why the cluster cannot be reached, in few words and as a sentence; the last data stays."""
        self._trouble, self.unreachable = reason, sentence

    def top_bar(self) -> TopBar:
        """Return the contents of the top bar: cluster, user, access, and how fresh the data is."""
        # Before the first answer nothing is stale: the list says that it connects.
        age = 0 if self._answered_at is None else int(asyncio.get_running_loop().time() - self._answered_at)
        stale = self._answered_at is not None and (self._trouble or age > STALE_SECONDS)
        badge = self.options.badge() or (PAUSED if self.paused is not None else "")
        cluster = self.overview.cluster if self.overview is not None else "…"
        return TopBar(
            # The badge says already that it is a demo.
            cluster=cluster.removesuffix(" · DEMO") if self.options.pace is not None else cluster,
            access="ro" if self.options.read_only else "rw",
            user=self.options.user,
            age=f"{age} s old" if stale else "",
            heard=clock_of_second(self._heard_at, None) if stale else "",
            fresh=self._answered_at is not None and not stale and self.paused is None,
            trouble=self._trouble,
            badge=badge,
            history=self.load.charts(self.now()),
        )

    def saved_filters(self, view: str) -> Mapping[str, str]:
        """Return the saved filters of this view by name.

        A file that cannot be read gives none here; using a saved filter then reports the error.
        """
        try:
            return self.options.filters.of(view)
        except CockpitError:
            return {}

    def panel_context(self, columns: int, lines: int = 0) -> PanelContext:
        """Return what the answer panel's text depends on, for a panel of this width and height in characters."""
        return PanelContext(
            self.context(),
            columns,
            lines,
            keys=self.keys,
            others=self.job_rows.row,
            outlook=self.starts.outlook,
            node=self._node,
            letters=self.letters(),
        )

    def _node(self, name: NodeName) -> Node | None:
        row = self.node_rows.row(name)
        return None if row is None else row.node

    def letters(self) -> bool:
        """Return whether letters stand for colours, as the terminal shows none."""
        return self.options.ascii_only or not self._has_colours()

    @property
    def demand(self) -> Mapping[str, float]:
        """The number of cards that queued jobs request, by model."""
        return card_demand(self.overview)

    def node_context(self) -> Context:
        """Return the context of the Nodes view, which also depends on the chosen node spec."""
        return replace(self.context(), chosen=self.chosen_spec())

    def chosen_spec(self) -> NodeSpec | None:
        """Return the node spec of the queued job under the cursor, against which the Nodes view shows idle or tight."""
        # A running job has its place: for it, nodes are shown by their own state.
        row = self._chosen()
        detail = self.details.get(row.id) if row is not None and row.queued else None
        return detail.job.spec.specs[0] if detail is not None else None
