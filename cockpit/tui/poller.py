"""Keeps what the application knows as true as the cluster allows: watches the jobs, asks for the rest while somebody
looks, and says so when nothing answers.
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
"""A sentence about the engine, with what to do, takes longer to read than what a key has done."""


class Poller(AppState):
    """Three tasks that never end, and a tick."""

    def __init__(self, backend: Backend, outside: AppOptions) -> None:
        super().__init__(backend, outside)
        self._priority_feed = PriorityFeed(backend.priorities, self.priority_rows, self._priorities_taken)
        self._arrivals = Arrivals()
        self._columns_for = self.job_rows.folds.used
        self._awaited: JobId | None = None
        """The cursor goes to this job once it is on the list."""
        self.announces = backend.announce(self._may_run)
        self.all_came = False
        self._began = self.now()
        self._wanted = asyncio.Event()
        self._spending_at = 0.0
        """When what was held is to be asked for again, in the event loop's time."""

    def keep_up(self) -> None:
        """From now on."""
        self.run_worker(self._watch_jobs(), name="jobs", group="feed")
        self.run_worker(self._ask_regularly(), name="figures", group="feed")
        self.run_worker(self._watch_priorities(), name="priorities", group="feed")
        self.set_interval(TICK_SECONDS, self._tick)

    def waiting_seconds(self) -> int:
        return max(0, self.now() - self._began) // 1000

    async def _may_run(self, commands: Sequence[Shown]) -> bool:
        """Whether the person wants these run on the cluster."""
        line = "; ".join(shell_text(each.argv) for each in commands)
        scripts = [each.stdin for each in commands if each.stdin]
        return await self.push_screen_wait(Confirm("Run this on the cluster?", line, "\n".join(scripts)))

    def wake(self) -> None:
        """Ask again now: another row or view is looked at."""
        self._wanted.set()
        if self.main_screen.view == PRIORITY and self.priority_rows.priorities is None:
            self._priority_feed.wake()

    async def catch_up(self) -> None:
        """Ask for all that is looked at, and show it: for who does not wait for the next tick."""
        await self._ask()
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
        waiting = self._arrivals.rest()  # of a list whose pages have stopped coming
        if waiting.changed:
            self._show_jobs(waiting)
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

    def stand_still_or_go_on(self) -> None:
        still = self._still
        self._still = PausedView(self.now()) if still is None else None
        waiting = still.delta() if still is not None else None
        if still is not None and waiting is not None:
            self._take(waiting, first=still.starts_over)
        self._tick()
        self.wake()

    def _take(self, delta: JobsDelta, *, first: bool) -> None:
        if self._still is not None:
            self._still.take(delta, first=first)
            self._is_fresh()
            return
        if not first:
            self._notify_of_slow(delta.changed)
        jobs = self.job_rows.folds
        done = jobs.replace_all(delta.changed) if first else jobs.apply(delta.changed, delta.removed)
        self.loaded = True
        self._is_fresh()
        changes = self._arrivals.worth_showing(done, asyncio.get_running_loop().time(), loaded=delta.loaded)
        if changes is not None:
            self._show_jobs(changes)
        if delta.loaded and not self.all_came:
            self.all_came = True
            gc.freeze()  # what is there now mostly stays

    def _notify_of_slow(self, rows: Sequence[JobRow]) -> None:
        """Of the person's own jobs that have become so since."""
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
        if self._columns_for != self.job_rows.folds.used:  # other columns
            self._columns_for = self.job_rows.folds.used
            table.redraw()
            self.main_screen.query_one(Titles).refresh()
        self._go_to_awaited()
        self.main_screen.draw()
        self.wake()

    def follow_to(self, job: JobId) -> None:
        """Put the cursor on this job, as soon as the list has it."""
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

    async def _ask_regularly(self) -> None:
        """The header's figures every second; nodes and the job under the cursor when they are looked at."""
        while True:
            self._wanted.clear()
            try:
                await self._ask()
                self._is_fresh()
            except RequestRefused:  # an answer all the same: the job under the cursor has just gone
                self._is_fresh()
            except CockpitError as error:
                self._is_stale(error)
            self.main_screen.draw()
            try:
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wanted.wait()
                await asyncio.sleep(0.05)
            except TimeoutError:
                pass

    async def _watch_priorities(self) -> None:
        while True:
            if self.main_screen.view == PRIORITY and self._still is None:
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

    async def _ask(self) -> None:
        if self._still is not None:
            return
        self._take_overview(await self.backend.overview())
        if self.main_screen.view != JOBS or not self.node_rows.rows():
            self._take_nodes(await self.backend.nodes())
        if self.main_screen.view == QUEUES:
            _show_changes(self.main_screen.queues, *self.queue_rows.take((await self.backend.queues()).rows))
        if self.main_screen.view == CATALOGUE:
            _show_changes(self.main_screen.catalogue, *self.catalogue_rows.take(await self.backend.catalogue()))
        if self.main_screen.view == CLUSTERS or self.cluster == EVERY_CLUSTER:
            _show_changes(self.main_screen.clusters, *self.cluster_rows.take(await self.outside.every.clusters()))
        if self.main_screen.view in ON_ACCOUNTS:
            self._take_accounts(await self.backend.accounts())
            await self._ask_spending()
        row = self.job_under_cursor()
        known = self._details.get(row.id) if row is not None else None
        if row is not None and (known is None or known.row.version != row.version or known.explanation is not None):
            self._details = {row.id: await self.backend.job(row.id)}
        if self.main_screen.view == JOBS:
            self._forecasts.look(self._queued_in_sight(), row)

    def _queued_in_sight(self) -> list[JobId]:
        shown: Sequence[Any] = self.main_screen.jobs.visible_ids()
        speakers = (self.job_rows.folds.speaker(each) for each in shown)
        return [row.id for row in speakers if row is not None and row.queued]

    async def _ask_spending(self) -> None:
        """Weeks change slowly: not with every look."""
        rows, now = self.spending_rows, asyncio.get_running_loop().time()
        if rows.spending is None or now >= self._spending_at:
            edges = rows.edges()
            spending = await self.backend.spending(edges)
            self._spending_at = now + SPENDING_SECONDS
            if len(edges) == rows.days + 1:  # else somebody turned to other days meanwhile
                table, others = self.main_screen.spending, rows.spending is None
                changed, moved = rows.take(spending)
                if others:  # of other days: nothing of it is news
                    table.order_changed()
                    table.redraw()
                else:
                    _show_changes(table, changed, moved)
                self.account_rows.tree.spend(spending)

    def _take_overview(self, overview: Overview) -> None:
        told = self.overview.trouble if self.overview is not None else ()
        self.overview = overview
        for sentence in set(overview.trouble).difference(told):
            self.notify(sentence, severity="warning", timeout=TROUBLE_SECONDS)

    def _take_accounts(self, shown: AccountsShown) -> None:
        self.accounts = shown
        screen = self.main_screen
        _show_changes(screen.accounts, *self.account_rows.tree.take(shown.rows))
        _show_changes(screen.qos, *self.qos_rows.take(shown.qos))

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
