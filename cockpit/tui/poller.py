"""Keeps what the application shows up to date with the cluster.

Four background tasks and a timer run as long as the application:

1. `_watch_jobs` follows the feed of job changes and opens it again after an error.
2. `_fetch_regularly` fetches the overview every second, and the data of the present view.
3. `_watch_priorities` fetches the priorities while their view is shown.
4. `_watch_clusters` fetches the state of all clusters where they are shown, also while the open one does not answer.
5. `_tick` (a timer) redraws ages and countdowns every second.

When the cluster does not answer, the last data stays and the top bar shows the reason.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cockpit.errors import CockpitError, LoginLost, RequestRefused, Unreachable
from cockpit.model.capabilities import Ability
from cockpit.model.ids import job_words
from cockpit.present.events.alerts import alert_sentence
from cockpit.present.folding import id_text
from cockpit.present.job.list import Changes
from cockpit.present.safe import safe
from cockpit.tui.app_state import PausedView
from cockpit.tui.driver import has_hung_up
from cockpit.tui.forecasts import Forecasts
from cockpit.tui.look_back import LookBack
from cockpit.tui.priority_feed import PriorityFeed
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.node import NodePage
from cockpit.tui.views.accounts import ACCOUNTS
from cockpit.tui.views.all import NODES, QUEUES
from cockpit.tui.views.clusters import CLUSTERS
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.views.priority import PRIORITY
from cockpit.tui.views.view import FetchContext

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from cockpit.backends.base import JobsDelta
    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.view import Overview
    from cockpit.tui.app_state import AppState
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.screens.main import MainScreen

TICK_SECONDS = 1.0
RETRY_SECONDS = 1.0
WAKE_PAUSE_SECONDS = 0.05
"""Pause before a fetch after `wake`: a cursor that moves fast calls it at every row, and one fetch serves several."""
SECONDS_BETWEEN: Final = 0.05
"""Least time between two redraws: drawing after each page of 100 rows would take longer than reading the pages."""
TROUBLE_SECONDS = 15.0
"""Seconds for which a toast about a problem of the engine is shown: it says what to do, and takes longer to read than
others."""


class Arrivals:
    """The changes of several pages, collected until they are drawn together."""

    def __init__(self) -> None:
        self._changed: list[JobId] = []
        self._order_changed = False
        self._next = 0.0

    def worth_showing(self, changes: Changes, now: float, *, loaded: bool) -> Changes | None:
        """Add changes; return all that are to be drawn now, or None to wait for more.

        `now` is in seconds of any monotonic clock. Once the whole list is loaded every change is drawn at once.
        """
        self._changed += changes.changed
        self._order_changed |= changes.order_changed
        # Later changes of an open list are few and urgent; only the pages of a list that is loading come by the
        # hundred.
        if not loaded and now < self._next:
            return None
        self._next = now + SECONDS_BETWEEN
        return self.rest()

    def rest(self) -> Changes:
        """Return the collected changes and forget them."""
        rest = Changes(self._changed, self._order_changed)
        self._changed, self._order_changed = [], False
        return rest


class Poller:
    """The part of the application that fetches from the cluster."""

    def __init__(self, app: Cockpit, state: AppState, main: MainScreen) -> None:
        self._app = app
        self._state = state
        self._main = main
        self._tables = main.tables
        self._priority_feed = PriorityFeed(
            app.backend.priorities, state.priority_rows, lambda: main.redraw_rows(PRIORITY.id)
        )
        self._forecasts = Forecasts(
            state.starts, app.backend, state.now, wake=self.wake, run=self._run_forecasts, changed=self._starts_changed
        )
        self._look_back = LookBack(state, lambda work: app.run_worker(work, name="past load", group="past load"))
        self._arrivals = Arrivals()
        self._columns_for = state.job_rows.folds.used
        self._awaited: JobId | None = None
        """The job to which the cursor moves once the list has it; None: no such job."""
        self._refresh_wanted = asyncio.Event()
        self._clusters_wanted = asyncio.Event()

    def start(self) -> None:
        """Start the background tasks and the timer."""
        # One task each, so that a slow answer to one question does not hold up the others.
        self._app.run_worker(self._watch_jobs(), name="jobs", group="feed")
        self._app.run_worker(self._fetch_regularly(), name="figures", group="feed")
        self._app.run_worker(self._watch_priorities(), name="priorities", group="feed")
        self._app.run_worker(self._watch_clusters(), name="clusters", group="feed")
        self._app.set_interval(TICK_SECONDS, self._tick)

    def wake(self) -> None:
        """Fetch now instead of at the next tick, as another row or view is shown."""
        self._refresh_wanted.set()
        self._clusters_wanted.set()
        # Priorities of a long queue take seconds to compute: only the first opening of their view does not wait for the
        # feed's own pace.
        if self._tables.view is PRIORITY and self._state.priority_rows.priorities is None:
            self._priority_feed.wake()

    @property
    def is_predicting(self) -> bool:
        """Whether the cluster still computes the starts that the list shows."""
        return self._forecasts.is_asking

    def predict_by(self, seconds: Callable[[], float]) -> None:
        """Let the age of predicted starts be that of this clock of seconds, instead of real time."""
        self._forecasts.seconds = seconds

    async def catch_up(self) -> None:
        """Fetch all that the screen shows and draw it, without waiting for the next tick. Raises `CockpitError`."""
        await self._fetch()
        await self._fetch_clusters()
        if self._tables.view is PRIORITY:
            await self._priority_feed.ask()
        self._state.is_fresh()
        self._tick()
        if isinstance(self._app.screen, JobPage | NodePage):
            await self._app.screen.catch_up()

    def _tick(self) -> None:
        """Redraw what changes as time passes; end the application if the terminal is gone."""
        # A script that plays keys has no terminal, and its standard input may well be closed.
        if not self._app.is_headless and has_hung_up(0):
            self._app.exit(0)
            return
        # Draw the rows that the throttle still holds: no later page may come to release them.
        undrawn = self._arrivals.rest()
        if undrawn.changed:
            self._show_jobs(undrawn)
        if self._app.screen_stack and self._app.screen is self._main:  # a tick may come while the application closes
            self._tables.table.tick()
            self._main.draw()

    async def _watch_jobs(self) -> None:
        """Follow the changes of the job list, and begin again after every error."""
        first = True
        while True:
            try:
                async for delta in self._app.backend.watch_jobs():
                    self._take(delta, first=first)
                    first = False
            except CockpitError as error:
                self._is_stale(error)
            # A feed that is opened again begins with the whole list: jobs may have left it meanwhile. The pause keeps a
            # cluster that refuses at once from being asked in a busy loop.
            first = True
            await asyncio.sleep(RETRY_SECONDS)

    def toggle_updates(self) -> None:
        pause = self._state.paused
        self._state.paused = PausedView(self._state.now()) if pause is None else None
        delta = pause.delta() if pause is not None else None
        # Only now that `paused` is None: while it is set, `_take` would store the changes again.
        if pause is not None and delta is not None:
            self._take(delta, first=pause.starts_over)
        self._tick()
        self.wake()

    def _take(self, delta: JobsDelta, *, first: bool) -> None:
        """Apply a delta to the job list; `first`: it begins a new list, which replaces the rows so far.

        1. While updates are paused, store it and show nothing.
        2. Tell the user of new alerts about own jobs.
        3. Apply it, and draw what it changes, now or with the next page.
        4. Once the whole list has come, take its rows out of the garbage collector's work.
        """
        # Step 1
        if self._state.paused is not None:
            self._state.paused.take(delta, first=first)
            self._state.is_fresh()
            return
        # Step 2
        if not first:
            # Before the rows are replaced: it compares them with the new ones.
            self._notify_of_alerts(delta.changed)
        # Step 3
        jobs = self._state.job_rows.folds
        applied = jobs.replace_all(delta.changed) if first else jobs.apply(delta.changed, delta.removed)
        self._state.loaded = True
        self._state.is_fresh()
        changes = self._arrivals.worth_showing(applied, asyncio.get_running_loop().time(), loaded=delta.loaded)
        if changes is not None:
            self._show_jobs(changes)
        # Step 4
        if delta.loaded and not self._state.all_came:
            self._state.all_came = True
            # Most rows live as long as the application: without this each full collection would walk all of them.
            gc.freeze()

    def _notify_of_alerts(self, rows: Sequence[JobRow]) -> None:
        """Show a toast for each of the user's own jobs about which an alert was raised since its last row."""
        context = self._state.context()
        for row in rows:
            if row.alert is not None and row.user == context.user:
                before = self._state.job_rows.row(row.id)
                if before is not None and before.alert != row.alert:
                    sentence = alert_sentence(row.alert, context.now, context.zone)
                    self._app.notify(f"{id_text(row)} {safe(row.name)}: {sentence}", severity="warning")

    def _show_jobs(self, changes: Changes) -> None:
        """Redraw the changed rows, the titles if other columns are needed, and what the screen says about the list."""
        table = self._tables.jobs
        if changes.order_changed:
            table.order_changed()  # first: the rows that are visible follow from the new order
            if not self._state.all_came:
                table.stay_on_top()  # what leads the list may come with a later page
        table.rows_changed(changes.changed)
        if self._columns_for != self._state.job_rows.folds.used:  # the rows now need other columns
            self._columns_for = self._state.job_rows.folds.used
            table.redraw()
            self._tables.titles.refresh()
        self._go_to_awaited()
        self._main.draw()
        self.wake()

    def follow_to(self, job: JobId) -> None:
        """Put the cursor on this job once the list has it."""
        self._awaited = job
        self._go_to_awaited()

    def _go_to_awaited(self) -> None:
        job = self._awaited
        if job is None or self._state.job_rows.row(job) is None:
            return
        self._awaited = None  # found, shown or not: a job that a filter hides is reported once
        shown_as = self._state.job_rows.folds.shown_as(job)
        if self._state.job_rows.place(shown_as) is not None:
            self._tables.jobs.move_to(shown_as)
        else:
            self._app.notify(f"Job {job_words(job)} is filtered out; Esc shows all jobs.")

    async def _fetch_regularly(self) -> None:
        """Fetch the overview and the present view's data every second, or at once after `wake`."""
        while True:
            # Cleared before the fetch: a `wake` during it may concern what was fetched already.
            self._refresh_wanted.clear()
            try:
                await self._fetch()
                self._state.is_fresh()
            except RequestRefused:  # the cluster answers, but the job under the cursor has just been deleted
                self._state.is_fresh()
            except CockpitError as error:
                self._is_stale(error)
            self._main.draw()
            await _next_fetch(self._refresh_wanted)

    async def _watch_priorities(self) -> None:
        while True:
            if self._tables.view is PRIORITY and self._state.paused is None:
                try:
                    await self._priority_feed.ask()
                except CockpitError as error:
                    self._is_stale(error)
            await self._priority_feed.pause()

    def try_weights(self, weights: WeightChanges | None) -> None:
        self._state.priority_rows.tried = weights
        self._priority_feed.wake()

    async def _fetch(self) -> None:
        """Fetch the overview, then only what the present view shows; nothing while updates are paused."""
        if self._state.paused is not None:
            return
        self._take_overview(await self._app.backend.overview())
        # Texts of many views name nodes and count their cards; the Jobs view is content with old ones.
        if self._tables.view is not JOBS or not self._state.node_rows.rows():
            self._tables.take(NODES.id, await self._app.backend.nodes())
        view = self._tables.view
        if view.fetch is not None and view is not CLUSTERS:
            await view.fetch(self._fetch_context())
        # Explanations of a waiting job change with the queue, while its row and version stay the same: they are fetched
        # at each tick, as the steps of a training are. Details of all other jobs change with their version only. Only
        # those of one job are stored.
        row = self._app.selection.job_under_cursor()
        known = self._state.details.get(row.id) if row is not None else None
        changes = known is None or known.explanation is not None or (known.training is not None and not known.job.ended)
        if row is not None and (changes or known is None or known.row.version != row.version):
            self._state.details = {row.id: await self._app.backend.job(row.id)}
        if self._tables.view is JOBS:
            self._forecasts.update(self._visible_queued_jobs(), row)

    async def fetch_names(self) -> bool:
        """Fetch once the queues and accounts, whose names palette and command line offer; return whether any came."""
        came = False
        for view, is_known in (
            (QUEUES, bool(self._state.queue_rows.rows())),
            (ACCOUNTS, self._state.accounts is not None),
        ):
            if not is_known and view.fetch is not None and self._state.paused is None:
                # Some clusters have none, and refuse; then there are no names to offer.
                with suppress(CockpitError):
                    await view.fetch(self._fetch_context())
                    came = True
        return came

    def _fetch_context(self) -> FetchContext:
        tables = self._tables
        return FetchContext(self._app.backend, self._state, tables.take, tables.redraw, tables.redraw_all)

    async def _watch_clusters(self) -> None:
        """Fetch the state of all clusters every second, or at once after `wake`."""
        while True:
            self._clusters_wanted.clear()
            try:
                await self._fetch_clusters()
            except CockpitError as error:
                self._is_stale(error)
            await _next_fetch(self._clusters_wanted)

    async def _fetch_clusters(self) -> None:
        """Fetch the state of all clusters for their view, and for the jobs of all clusters: which do not answer."""
        is_shown = self._tables.view is CLUSTERS or self._app.backend.capabilities.has(Ability.CLUSTERS)
        if is_shown and self._state.paused is None and CLUSTERS.fetch is not None:
            await CLUSTERS.fetch(self._fetch_context())

    def _run_forecasts(self, work: Coroutine[Any, Any, None]) -> None:
        # Exclusive: a new question cancels the one under way, which is about another job under the cursor.
        self._app.run_worker(work, name="forecasts", group="forecasts", exclusive=True)

    def _starts_changed(self, jobs: Iterable[JobId]) -> None:
        """Redraw the list's rows and the panel together, so that both show the same start.

        An array's row shows the start of one of its tasks: it changes with the forecast of that task.
        """
        changed, table, folds = set(jobs), self._tables.jobs, self._state.job_rows.folds
        visible: Sequence[Any] = table.visible_ids()
        speakers = {row_id: folds.speaker(row_id) for row_id in visible}
        table.rows_changed([each for each, row in speakers.items() if row and row.id in changed], news=False)
        self._main.draw_panel()

    def _visible_queued_jobs(self) -> list[JobId]:
        shown: Sequence[Any] = self._tables.jobs.visible_ids()
        speakers = (self._state.job_rows.folds.speaker(each) for each in shown)
        return [row.id for row in speakers if row is not None and row.queued]

    def _take_overview(self, overview: Overview) -> None:
        shown_before = self._state.overview.trouble if self._state.overview is not None else ()
        self._state.overview = overview
        self._state.load.note(overview, self._state.now())
        self._look_back.with_figures(overview)
        # An overview repeats a problem as long as it lasts; a toast shows it when it begins.
        for sentence in set(overview.trouble).difference(shown_before):
            self._app.notify(sentence, severity="warning", timeout=TROUBLE_SECONDS)

    def _is_stale(self, error: CockpitError) -> None:
        if isinstance(error, LoginLost):
            # The error does not know which key the user bound to the action; without a key its command is named.
            key = self._state.keys.get("login")
            instruction = f"Press {key}" if key else "Type :login"
            self._state.is_stale(f"{instruction} to log in to {error.host} again", str(error))
        elif isinstance(error, Unreachable):
            # The top bar has room for the first clause; the whole sentence is shown where there are no rows.
            self._state.is_stale(str(error).split(":")[0].split(";")[0], str(error))


async def _next_fetch(wanted: asyncio.Event) -> None:
    """Wait until the next tick, or until a fetch is wanted at once."""
    try:
        async with asyncio.timeout(TICK_SECONDS):
            await wanted.wait()
        await asyncio.sleep(WAKE_PAUSE_SECONDS)
    except TimeoutError:
        pass
