"""The application: holds what is known of the cluster, keeps it fresh, and performs actions."""

from __future__ import annotations

import asyncio
import gc
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import SystemCommand
from textual.binding import BindingType

from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.present.answer import Around
from cockpit.present.columns import Context
from cockpit.present.frame import Key, Standing
from cockpit.present.job_cells import Laid
from cockpit.present.node_cells import card_demand
from cockpit.present.overview import capacity
from cockpit.present.refusals import refusal_text
from cockpit.present.tables.accounts import ACCOUNTS as account_table  # noqa: N811 - ACCOUNTS is the view's name here
from cockpit.present.tables.accounts import QOS as qos_table  # noqa: N811 - likewise
from cockpit.present.tables.cards import CARDS as card_table  # noqa: N811 - likewise
from cockpit.present.tables.jobs import JOBS as job_table  # noqa: N811 - JOBS is the view's name here
from cockpit.present.tables.nodes import NODES as node_table  # noqa: N811 - likewise
from cockpit.present.tables.priority import PRIORITY as priority_table  # noqa: N811 - likewise
from cockpit.present.tables.queues import QUEUES as queue_table  # noqa: N811 - likewise
from cockpit.tui import commands, offers
from cockpit.tui.account_rows import AccountRows, QosRows
from cockpit.tui.action import ACCOUNTS, ON_ACCOUNTS, QOS, QUEUES
from cockpit.tui.actions import CARDS, JOB, JOBS, NODES, PRIORITY, Situation
from cockpit.tui.ascii import AsciiFilter
from cockpit.tui.card_rows import CardRows
from cockpit.tui.face import Face, HelpEntry
from cockpit.tui.foretelling import Foretelling
from cockpit.tui.hangup import has_hung_up
from cockpit.tui.job_rows import JobRows
from cockpit.tui.keymap import with_keys
from cockpit.tui.node_rows import NodeRows
from cockpit.tui.outside import Outside
from cockpit.tui.priority_feed import PriorityFeed
from cockpit.tui.priority_rows import PriorityRows
from cockpit.tui.queue_rows import QueueRows
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.main import MainScreen
from cockpit.tui.standstill import Standstill
from cockpit.tui.widgets.table import MARGIN, Table
from cockpit.tui.widgets.titles import Titles

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence

    from textual.screen import Screen

    from cockpit.backends.base import Backend, JobsDelta
    from cockpit.model.accounts import Qos
    from cockpit.model.ids import Millis, NodeName
    from cockpit.model.node import Node
    from cockpit.model.priority import WeightChanges
    from cockpit.model.spec import JobSpec, NodeSpec
    from cockpit.model.view import AccountRow, AccountsShown, JobDetail, JobRow, NodeRow, Overview
    from cockpit.tui.face import MainView, Pace
    from cockpit.tui.theme import RoleTheme

TICK_SECONDS = 1.0
STALE_SECONDS = 3.0
"""Data older than this shows its age."""
RETRY_SECONDS = 1.0
TROUBLE_SECONDS = 15.0
"""A sentence about the engine, with what to do, takes longer to read than what a key has done."""
_TABLES = {
    JOBS: job_table,
    NODES: node_table,
    CARDS: card_table,
    PRIORITY: priority_table,
    ACCOUNTS: account_table,
    QOS: qos_table,
    QUEUES: queue_table,
}
STILL = "paused"
"""Says that the screen stands still."""


class CockpitApp(Face, inherit_bindings=False):
    """One cockpit over one backend."""

    CSS_PATH: ClassVar[list[str | PurePath]] = [
        "app.tcss",
        *(f"screens/{screen}.tcss" for screen in ("main", "job", "confirm", "help", "pick")),
    ]
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, backend: Backend, outside: Outside) -> None:
        self.themes = outside.themes
        self._role_theme = self.themes[outside.theme]
        super().__init__(ansi_color=self._role_theme.ansi)
        if outside.ascii_only:
            self._filters.append(AsciiFilter())
        self.backend = backend
        self.outside = outside
        self.filters, self.clusters, self.cluster = outside.filters, outside.clusters, outside.cluster
        self.next_cluster = ""
        """What is to be opened when this cockpit has closed."""
        self.actions = with_keys(outside.keys)
        self.job_rows = JobRows(self.context, outside.filters.of)
        self.node_rows = NodeRows(self.context, self.chosen_spec, outside.filters.of)
        self.account_rows = AccountRows(self.context, outside.filters.of)
        self.qos_rows = QosRows(self.context, outside.filters.of)
        self.queue_rows = QueueRows(self.context, outside.filters.of)
        self.accounts: AccountsShown | None = None
        self.card_rows = CardRows(self.context, outside.filters.of)
        self.priority_rows = PriorityRows(self.context, self._letters, outside.filters.of)
        self._priority_feed = PriorityFeed(backend.priorities, self.priority_rows, self._priorities_taken)
        self.overview: Overview | None = None
        self.loaded = False
        self._all_came = False
        self._details: dict[JobId, JobDetail] = {}
        self._demand: Mapping[str, float] = {}
        self._heard: float | None = None
        """When the cluster last answered, in the event loop's time: a demo's own may run faster."""
        self._trouble = ""
        self._wanted = asyncio.Event()
        self._still: Standstill | None = None
        self.main_screen = MainScreen()
        self._foretelling = Foretelling(self, self.main_screen.draw_answer)
        for key in {key for action in self.actions for key in action.keys}:
            self.bind(key, f"press('{key}')", show=False)

    # What is known

    def now(self) -> Millis:
        return self.outside.now() if self._still is None else self._still.since

    def context(self) -> Context:
        """The moment, the zone and the person that words depend on."""
        return Context(now=self.now(), user=self.outside.user)

    def role_theme(self) -> RoleTheme:
        """The colours of now."""
        return self._role_theme

    def standing(self) -> Standing:
        """How this cockpit stands to its cluster."""
        age = 0 if self._heard is None else int(asyncio.get_running_loop().time() - self._heard)
        stale = self._heard is not None and (self._trouble or age > STALE_SECONDS)
        badge = self.outside.badge() or (STILL if self._still is not None else "")
        cluster = self.overview.cluster if self.overview is not None else "…"
        return Standing(
            cluster=cluster.removesuffix(" · DEMO") if self.pace is not None else cluster,
            access="ro" if self.outside.read_only else "rw",
            user=self.outside.user,
            age=f"{age} s old" if stale else "",
            trouble=self._trouble,
            badge=badge,
        )

    def situation(self) -> Situation:
        """What actions are judged by."""
        return Situation(
            self.view_name,
            self.chosen_rows(),
            self.outside.read_only,
            demo=self.pace is not None,
            filter=self.main_screen.filter_text,
            place=self.place_under_cursor(),
            accounts=self.accounts,
            trying=self.priority_rows.tried is not None,
        )

    @property
    def view_name(self) -> str:
        """Of the list that is shown, or `job` for a job's page."""
        page = isinstance(self.screen, JobPage) if self.screen_stack else False
        return JOB if page else self.main_screen.view

    def chosen_rows(self) -> list[JobRow]:
        """The jobs that an action is about."""
        if isinstance(self.screen, JobPage):
            row = self.job_rows.row(self.screen.job)
            return [row] if row is not None else []
        if self.main_screen.view == CARDS:
            row = self.job_rows.row(JobId(self.main_screen.job_of_card()))
            return [row] if row is not None else []
        if self.main_screen.view == PRIORITY:
            chosen = dict.fromkeys(self.main_screen.ranked_jobs())
            return [row for job in chosen if (row := self.job_rows.row(JobId(job))) is not None]
        ids: Iterable[Any] = self.main_screen.jobs.chosen() if self.main_screen.view == JOBS else []
        return [row for row_id in ids for row in self.job_rows.folds.acted_on(row_id)]

    @property
    def read_only(self) -> str:
        return self.outside.read_only

    def place_under_cursor(self) -> AccountRow | Qos | None:
        here: Any = self.main_screen.table.cursor_id if self.view_name in ON_ACCOUNTS else None
        if here is None:
            return None
        return (self.qos_rows if self.view_name == QOS else self.account_rows).row(here)

    def job_under_cursor(self) -> JobRow | None:
        row_id: Any = self.main_screen.jobs.cursor_id
        return None if row_id is None else self.job_rows.folds.speaker(row_id)

    def detail_of(self, job: JobId) -> JobDetail | None:
        """The last detail that was asked for, if it is this job's."""
        return self._details.get(job)

    def capacity_words(self) -> str:
        """`This machine: 16 CPUs, 128G, 2 × RTX 4090.`"""
        if self.overview is None:
            return ""
        return f"This machine: {capacity([row.node for row in self.node_rows.rows()], self.overview)}."

    def shown_columns(self, width: int) -> Sequence[Laid]:
        """The columns of the Jobs view at this width of the screen."""
        return self.job_rows.laid(width - MARGIN)

    def around(self, columns: int, lines: int = 0) -> Around:
        """What the answer panel's words depend on, so many columns and lines large."""
        return Around(
            self.context(),
            columns,
            lines,
            keys=offers.names_of_keys(self.actions),
            others=self.job_rows.row,
            outlook=self._foretelling.outlook,
            node=self._node,
            letters=self._letters(),
        )

    def _node(self, name: NodeName) -> Node | None:
        row = self.node_rows.row(name)
        return None if row is None else row.node

    def _letters(self) -> bool:
        """Colours are not seen."""
        return self.outside.ascii_only or self.no_color

    @property
    def job_page(self) -> JobPage | None:
        """The page of a job, if that is what is shown."""
        return self.screen if isinstance(self.screen, JobPage) else None

    @property
    def demand(self) -> Mapping[str, float]:
        """Cards of each model that queued jobs ask for."""
        return self._demand

    def chosen_spec(self) -> NodeSpec | None:
        """What nodes are judged against: the spec of the queued job under the cursor."""
        row = self.job_under_cursor()
        detail = self._details.get(row.id) if row is not None and row.state is JobState.QUEUED else None
        return detail.job.spec.specs[0] if detail is not None else None

    @property
    def read_jobs(self) -> Callable[[str, str, str], list[JobSpec]]:
        return self.outside.read_jobs

    @property
    def pace(self) -> Pace | None:
        return self.outside.pace

    @property
    def main_view(self) -> MainView:
        return self.main_screen

    def keys_of_view(self) -> Iterable[Key]:
        return offers.bottom_row(self.actions, self.situation())

    def help_entries(self) -> Sequence[HelpEntry]:
        return offers.help_entries(self.actions, self.situation())

    def action_names(self) -> Sequence[str]:
        return commands.completions(self)

    def complete(self, text: str) -> Sequence[str]:
        return commands.continuations(self, text)

    def filter_names(self, view: str) -> Sequence[str]:
        return [f"{name}:" for name in _TABLES[view].names()]

    # Keeping it fresh

    def get_default_screen(self) -> Screen[Any]:
        return self.main_screen

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self._role_theme.variables()

    def on_mount(self) -> None:
        for role_theme in self.themes.values():
            self.register_theme(role_theme.for_textual())
        self.theme = self._role_theme.name
        self.run_worker(self._watch_jobs(), name="jobs", group="feed")
        self.run_worker(self._ask_regularly(), name="figures", group="feed")
        self.run_worker(self._watch_priorities(), name="priorities", group="feed")
        self.set_interval(TICK_SECONDS, self._tick)

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
        if isinstance(self.screen, JobPage):
            await self.screen.catch_up()

    def _tick(self) -> None:
        if not self.is_headless and has_hung_up(0):
            self.exit(0)
            return
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
        self._still = Standstill(self.now()) if still is None else None
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
        jobs = self.job_rows.folds
        used = jobs.used
        changes = jobs.replace_all(delta.changed) if first else jobs.apply(delta.changed, delta.removed)
        self.loaded = True
        self._is_fresh()
        table = self.main_screen.jobs
        if changes.order_changed:
            table.order_changed()
        table.rows_changed(changes.changed)
        if jobs.used != used:  # other columns
            table.redraw()
            self.main_screen.query_one(Titles).refresh()
        self.main_screen.draw()
        self.wake()
        if delta.loaded and not self._all_came:
            self._all_came = True
            gc.freeze()  # what is there now mostly stays

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
        if self.main_screen.view == NODES:
            self._demand = card_demand(self.job_rows.list.rows())
        if self.main_screen.view != JOBS or not self.node_rows.rows():
            self._take_nodes(await self.backend.nodes())
        if self.main_screen.view == QUEUES:
            _show_changes(self.main_screen.queues, *self.queue_rows.take((await self.backend.queues()).rows))
        if self.main_screen.view in ON_ACCOUNTS:
            self._take_accounts(await self.backend.accounts())
        row = self.job_under_cursor()
        known = self._details.get(row.id) if row is not None else None
        if row is not None and (known is None or known.row.version != row.version or known.explanation is not None):
            self._details = {row.id: await self.backend.job(row.id)}
        if self.main_screen.view == JOBS:
            self._foretelling.look_at(row)

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
        self._heard, self._trouble = asyncio.get_running_loop().time(), ""

    def _is_stale(self, error: CockpitError) -> None:
        if isinstance(error, Unreachable):
            self._trouble = str(error).split(":")[0].split(";")[0]

    # Acting

    def action_press(self, key: str) -> None:
        """A key may do one thing in this view and another in that."""
        meant = [action for action in self.actions if key in action.keys]
        here = [action for action in meant if self.view_name in action.views]
        self.perform((here or meant)[0].id)

    def perform(self, action_id: str, run: Callable[[Face], Awaitable[None] | None] | None = None) -> None:
        """Do it, or say why not. `run`: what to do instead of asking, where the command line has said it all."""
        action = next(each for each in self.actions if each.id == action_id)
        refusal = action.refusal(self.situation())
        if refusal:
            self.clear_notifications()
            self.notify(refusal, severity="warning")
            return
        try:
            done = (run or action.run)(self)
        except CockpitError as error:
            self._tell(error)
        else:
            if done is not None:
                self.undertake(done)

    def undertake(self, doing: Awaitable[None]) -> None:
        self.run_worker(self._finish(doing), group="deeds")

    async def _finish(self, done: Awaitable[None]) -> None:
        try:
            await done
        except CockpitError as error:
            self._tell(error)
        self.wake()

    def _tell(self, error: CockpitError) -> None:
        if isinstance(error, RequestRefused):
            self.notify(refusal_text(error.refusal, self.now()), severity="warning")
        else:
            self.notify(str(error), severity="error")

    def run_command(self, text: str) -> None:
        """What was typed on the command line."""
        try:
            commands.run_command(self, text)
        except CockpitError as error:
            self._tell(error)

    def go_to(self, number: int) -> None:
        """Put the cursor on the job of this number."""
        job = JobId(number)
        row_id = self.job_rows.folds.shown_as(job)
        if self.job_rows.place(row_id) is None:
            hidden = "is filtered out; Esc shows them all" if self.job_rows.row(job) else "is not on the list"
            self.notify(f"Job {number} {hidden}.", severity="warning")
            return
        self.perform("jobs")
        self.main_screen.jobs.move_to(row_id)

    def turn_tab(self, step: int) -> None:
        if isinstance(self.screen, JobPage):
            self.screen.turn(step)
        elif self.view_name in ON_ACCOUNTS:
            self.main_screen.show_view(QOS if self.view_name == ACCOUNTS else ACCOUNTS)

    def go_to_cluster(self, name: str) -> None:
        self.next_cluster = name
        self.exit(0)

    def earlier_attempt(self) -> None:
        self.open_page("logs")
        self.call_after_refresh(self._earlier_attempt)

    def _earlier_attempt(self) -> None:
        if isinstance(self.screen, JobPage):
            self.screen.earlier_attempt()

    def open_page(self, tab: str) -> None:
        if isinstance(self.screen, JobPage):
            self.screen.show_tab(tab)
        else:
            (row, *_) = self.chosen_rows()
            self.push_screen(JobPage(row.id, tab))

    def use_theme(self, name: str) -> None:
        """Draw everything anew in this theme's colours."""
        self._role_theme = self.themes[name]
        self.ansi_color = self._role_theme.ansi
        self.theme = name
        self.refresh_css()
        for screen in self.screen_stack:
            screen.refresh(recompose=False, layout=True)
        self.main_screen.table.redraw()
        self.main_screen.table.refresh()
        self.main_screen.draw()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:  # noqa: ARG002 - Textual's signature
        """The palette lists the same actions, and the themes."""
        situation = self.situation()
        saved, use_filter = self.saved_filters(), self.main_screen.filter
        return offers.palette(self.actions, situation, self.themes, saved, self.perform, self.use_theme, use_filter)


def _show_changes(table: Table, changed: Iterable[Hashable], moved: bool) -> None:
    if moved:
        table.order_changed()
    table.rows_changed(changed)
