"""Keeps the application's state up to date with the cluster.

Three background tasks and a timer run as long as the application:

1. `_watch_jobs` follows the feed of job changes and opens it again after an error.
2. `_fetch_regularly` fetches the overview every second, and the data of the present view.
3. `_watch_priorities` fetches the priorities while their view is shown.
4. `_tick` (a timer) redraws ages and countdowns every second.

When the cluster does not answer, the last data stays and the top bar shows the reason.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

from cockpit.config.clusternames import EVERY_CLUSTER
from cockpit.errors import CockpitError, LoginLost, RequestRefused, Unreachable
from cockpit.model.ids import job_words
from cockpit.present.command_text import shell_text
from cockpit.present.events.patrol import slow_sentence
from cockpit.present.safe import safe
from cockpit.present.tables.qos import by_priority
from cockpit.tui import offers
from cockpit.tui.action import CARDS, CATALOGUE, CLUSTERS, JOBS, ON_ACCOUNTS, PRIORITY, QUEUES
from cockpit.tui.app_state import AppState
from cockpit.tui.arrivals import Arrivals
from cockpit.tui.hangup import has_hung_up
from cockpit.tui.paused_view import PausedView
from cockpit.tui.priority_feed import PriorityFeed
from cockpit.tui.screens.confirm import Confirm
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.node import NodePage
from cockpit.tui.widgets.table import Table
from cockpit.tui.widgets.titles import Titles

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from cockpit.backends.base import Backend, JobsDelta, Shown
    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.view import AccountsShown, NodeRow, Overview
    from cockpit.present.job.list import Changes
    from cockpit.tui.app_options import AppOptions

TICK_SECONDS = 1.0
RETRY_SECONDS = 1.0
SPENDING_SECONDS = 5.0
TROUBLE_SECONDS = 15.0
"""How long a toast about a problem of the engine is shown: it says what to do, and takes longer to read than others."""


class Poller(AppState):
    """The layer of the application that fetches from the cluster."""

    def __init__(self, backend: Backend, outside: AppOptions) -> None:
        super().__init__(backend, outside)
        self._priority_feed = PriorityFeed(backend.priorities, self.priority_rows, self._priorities_taken)
        self._arrivals = Arrivals()
        self._columns_for = self.job_rows.folds.used
        self._awaited: JobId | None = None
        """The job to which the cursor moves once the list has it; None: no such job."""
        self.announces = backend.announce(self._may_run)
        self.all_came = False
        self._began = self.now()
        self._wanted = asyncio.Event()
        self._spending_at = 0.0
        """When the card-hours are to be fetched again, by the event loop's clock."""

    def start_polling(self) -> None:
        """Start the background tasks and the timer."""
        self.run_worker(self._watch_jobs(), name="jobs", group="feed")
        self.run_worker(self._fetch_regularly(), name="figures", group="feed")
        self.run_worker(self._watch_priorities(), name="priorities", group="feed")
        self.set_interval(TICK_SECONDS, self._tick)

    def waiting_seconds(self) -> int:
        return max(0, self.now() - self._began) // 1000

    async def _may_run(self, commands: Sequence[Shown]) -> bool:
        """Ask the user whether these commands may run on the cluster."""
        line = "; ".join(shell_text(command.argv) for command in commands)
        scripts = [command.stdin for command in commands if command.stdin]
        return await self.push_screen_wait(Confirm("Run this on the cluster?", line, "\n".join(scripts)))

    def wake(self) -> None:
        """Fetch now instead of at the next tick, as another row or view is shown."""
        self._wanted.set()
        if self.main_screen.view == PRIORITY and self.priority_rows.priorities is None:
            self._priority_feed.wake()

    async def catch_up(self) -> None:
        """Fetch all that the screen shows and draw it, without waiting for the next tick. Raises `CockpitError`."""
        await self._fetch()
        if self.main_screen.view == PRIORITY:
            await self._priority_feed.ask()
        self._is_fresh()
        self._tick()
        if isinstance(self.screen, JobPage | NodePage):
            await self.screen.catch_up()

    def _tick(self) -> None:
        if not self.is_headless and has_hung_up(0):
            self.exit(0)
            return
        # Draw the rows that the throttle still holds: no later page may come to release them.
        undrawn = self._arrivals.rest()
        if undrawn.changed:
            self._show_jobs(undrawn)
        if self.screen is self.main_screen:
            self.main_screen.table.tick()
            self.main_screen.draw()

    async def _watch_jobs(self) -> None:
        first = True
        while True:
            try:
                async for delta in self.backend.watch_jobs():
                    self._take(delta, first=first)
                    first = False
            except CockpitError as error:
                self._is_stale(error)
            first = True
            await asyncio.sleep(RETRY_SECONDS)

    def toggle_updates(self) -> None:
        pause = self._paused
        self._paused = PausedView(self.now()) if pause is None else None
        delta = pause.delta() if pause is not None else None
        if pause is not None and delta is not None:
            self._take(delta, first=pause.starts_over)
        self._tick()
        self.wake()

    def _take(self, delta: JobsDelta, *, first: bool) -> None:
        if self._paused is not None:
            self._paused.take(delta, first=first)
            self._is_fresh()
            return
        if not first:
            self._notify_of_slow(delta.changed)
        jobs = self.job_rows.folds
        applied = jobs.replace_all(delta.changed) if first else jobs.apply(delta.changed, delta.removed)
        self.loaded = True
        self._is_fresh()
        changes = self._arrivals.worth_showing(applied, asyncio.get_running_loop().time(), loaded=delta.loaded)
        if changes is not None:
            self._show_jobs(changes)
        if delta.loaded and not self.all_came:
            self.all_came = True
            # Most rows live as long as the application: without this each full collection would walk all of them.
            gc.freeze()

    def _notify_of_slow(self, rows: Sequence[JobRow]) -> None:
        """Show a toast for each of the user's own jobs whose iterations have become slow since its last row."""
        me = self.context().user
        for row in rows:
            if row.slow is not None and row.user == me:
                before = self.job_rows.row(row.id)
                if before is not None and before.slow is None:
                    self.notify(f"{job_words(row.id)} {safe(row.name)}: {slow_sentence(*row.slow)}", severity="warning")

    def _show_jobs(self, changes: Changes) -> None:
        table = self.main_screen.jobs
        if changes.order_changed:
            table.order_changed()
        table.rows_changed(changes.changed)
        if self._columns_for != self.job_rows.folds.used:  # the rows now need other columns
            self._columns_for = self.job_rows.folds.used
            table.redraw()
            self.main_screen.query_one(Titles).refresh()
        self._go_to_awaited()
        self.main_screen.draw()
        self.wake()

    def follow_to(self, job: JobId) -> None:
        """Put the cursor on this job once the list has it."""
        self._awaited = job
        self._go_to_awaited()

    def _go_to_awaited(self) -> None:
        job = self._awaited
        if job is None or self.job_rows.row(job) is None:
            return
        self._awaited = None
        shown_as = self.job_rows.folds.shown_as(job)
        if self.job_rows.place(shown_as) is not None:
            self.main_screen.jobs.move_to(shown_as)
        else:
            self.notify(f"Job {job_words(job)} is filtered out; Esc shows all jobs.")

    async def _fetch_regularly(self) -> None:
        """Fetch the overview and the present view's data every second, or at once after `wake`."""
        while True:
            self._wanted.clear()
            try:
                await self._fetch()
                self._is_fresh()
            except RequestRefused:  # the cluster answers, but the job under the cursor has just been deleted
                self._is_fresh()
            except CockpitError as error:
                self._is_stale(error)
            self.main_screen.draw()
            try:
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wanted.wait()
                # A cursor that moves fast wakes this at every row: fetch once for several of them.
                await asyncio.sleep(0.05)
            except TimeoutError:
                pass

    async def _watch_priorities(self) -> None:
        while True:
            if self.main_screen.view == PRIORITY and self._paused is None:
                try:
                    await self._priority_feed.ask()
                except CockpitError as error:
                    self._is_stale(error)
            await self._priority_feed.pause()

    def _priorities_taken(self) -> None:
        self.main_screen.redraw_priorities()

    def try_weights(self, weights: WeightChanges | None) -> None:
        self.priority_rows.tried = weights
        self._priority_feed.wake()

    async def _fetch(self) -> None:
        """Fetch the overview, then only what the present view shows; nothing while updates are paused."""
        if self._paused is not None:
            return
        self._take_overview(await self.backend.overview())
        if self.main_screen.view != JOBS or not self.node_rows.rows():
            self._take_nodes(await self.backend.nodes())
        if self.main_screen.view == QUEUES:
            _show_changes(self.main_screen.queues, *self.queue_rows.take((await self.backend.queues()).rows))
        if self.main_screen.view == CATALOGUE:
            self.catalogue = await self.backend.catalogue()
            _show_changes(self.main_screen.catalogue, *self.catalogue_rows.take(self.catalogue.rows))
        if self.main_screen.view == CLUSTERS or self.cluster == EVERY_CLUSTER:
            _show_changes(self.main_screen.clusters, *self.cluster_rows.take(await self.outside.every.clusters()))
        if self.main_screen.view in ON_ACCOUNTS:
            self._take_accounts(await self.backend.accounts())
            await self._fetch_spending()
        row = self.job_under_cursor()
        known = self._details.get(row.id) if row is not None else None
        if row is not None and (known is None or known.row.version != row.version or known.explanation is not None):
            self._details = {row.id: await self.backend.job(row.id)}
        if self.main_screen.view == JOBS:
            self._forecasts.look(self._visible_queued_jobs(), row)

    def _visible_queued_jobs(self) -> list[JobId]:
        shown: Sequence[Any] = self.main_screen.jobs.visible_ids()
        speakers = (self.job_rows.folds.speaker(each) for each in shown)
        return [row.id for row in speakers if row is not None and row.queued]

    async def _fetch_spending(self) -> None:
        """Fetch the card-hours of the chosen days, only every few seconds as they change slowly."""
        rows, now = self.spending_rows, asyncio.get_running_loop().time()
        if rows.spending is None or now >= self._spending_at:
            edges = rows.edges()
            spending = await self.backend.spending(edges)
            self._spending_at = now + SPENDING_SECONDS
            if len(edges) == rows.days + 1:  # else the user chose another number of days meanwhile: drop this answer
                table, is_first = self.main_screen.spending, rows.spending is None
                changed, moved = rows.count(spending)
                if is_first:  # the first answer for these days: no row of it counts as changed
                    table.order_changed()
                    table.redraw()
                else:
                    _show_changes(table, changed, moved)
                self.account_rows.tree.spend(spending)

    def _take_overview(self, overview: Overview) -> None:
        shown_before = self.overview.trouble if self.overview is not None else ()
        self.overview = overview
        for sentence in set(overview.trouble).difference(shown_before):
            self.notify(sentence, severity="warning", timeout=TROUBLE_SECONDS)

    def _take_accounts(self, shown: AccountsShown) -> None:
        self.accounts = shown
        screen = self.main_screen
        _show_changes(screen.accounts, *self.account_rows.tree.take(shown.rows))
        _show_changes(screen.qos, *self.qos_rows.take(by_priority(shown.qos)))

    def _take_nodes(self, nodes: Sequence[NodeRow]) -> None:
        screen = self.main_screen
        _show_changes(screen.nodes, *self.node_rows.take(nodes))
        if screen.view == CARDS:
            _show_changes(screen.cards, *self.card_rows.take(nodes, self.job_rows.list.rows()))

    def _is_fresh(self) -> None:
        self._heard, self._heard_at, self._trouble = asyncio.get_running_loop().time(), self.outside.now(), ""

    def _is_stale(self, error: CockpitError) -> None:
        if isinstance(error, LoginLost):
            # The error does not know which key the user bound to the action; without a key its command is named.
            key = offers.names_of_keys(self.actions).get("login")
            instruction = f"Press {key}" if key else "Type :login"
            self._trouble = f"{instruction} to log in to {error.host} again"
        elif isinstance(error, Unreachable):
            self._trouble = str(error).split(":")[0].split(";")[0]


def _show_changes(table: Table, changed: Iterable[Hashable], moved: bool) -> None:
    if moved:
        table.order_changed()
    table.rows_changed(changed)
