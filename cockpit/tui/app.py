"""The application: holds what is known of the cluster, keeps it fresh, and performs actions."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import SystemCommand
from textual.binding import BindingType

from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.present.columns import Context
from cockpit.present.frame import Key, Standing
from cockpit.present.job_cells import CellContext, Laid, laid_out
from cockpit.present.overview import capacity
from cockpit.present.refusals import refusal_text
from cockpit.tui import theme as themes
from cockpit.tui.actions import BY_ID, JOB, JOBS, Situation, with_keys
from cockpit.tui.face import Face
from cockpit.tui.job_rows import JobRows
from cockpit.tui.keys import key_name
from cockpit.tui.node_rows import NodeRows
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.main import MainScreen
from cockpit.tui.widgets.table import MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from textual.screen import Screen

    from cockpit.backends.base import Backend, JobsDelta
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import JobDetail, JobRow, NodeRow, Overview
    from cockpit.present.spans import Line
    from cockpit.tui.actions import Action
    from cockpit.tui.face import MainView, Pace
    from cockpit.tui.theme import RoleTheme

TICK_SECONDS = 1.0
STALE_SECONDS = 3.0
"""Data older than this shows its age."""
RETRY_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Outside:
    """What the composition root gives the app besides the backend."""

    now: Callable[[], Millis]
    user: str
    read_jobs: Callable[[str, str, str], list[JobSpec]]
    theme: str = themes.DEFAULT
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Keys that a person chose, by action."""
    read_only: str = ""
    """Why nothing may be changed; empty when it may."""
    badge: Callable[[], str] = lambda: ""
    pace: Pace | None = None
    """Of a demo."""
    ascii_only: bool = False


class CockpitApp(Face):
    """One cockpit over one backend."""

    CSS_PATH: ClassVar[list[str | PurePath]] = [
        "app.tcss",
        *(f"screens/{screen}.tcss" for screen in ("main", "job", "confirm", "help")),
    ]
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, backend: Backend, outside: Outside) -> None:
        self.themes = themes.load_themes()
        self._role_theme = self.themes[outside.theme]
        super().__init__(ansi_color=self._role_theme.ansi)
        self.backend = backend
        self.outside = outside
        self.actions = with_keys(outside.keys)
        self.job_rows = JobRows(self.cell_context)
        self.node_rows = NodeRows()
        self.overview: Overview | None = None
        self.loaded = False
        self._all_came = False
        self._details: dict[JobId, JobDetail] = {}
        self._fresh_at: Millis | None = None
        self._trouble = ""
        self._wanted = asyncio.Event()
        self.main_screen = MainScreen()
        for action in self.actions:
            for key in action.keys:
                self.bind(key, f"act('{action.id}')", description=action.label, show=False)

    # What is known

    def now(self) -> Millis:
        return self.outside.now()

    def context(self) -> Context:
        """The moment, the zone and the person that words depend on."""
        return Context(now=self.now(), user=self.outside.user)

    def cell_context(self) -> CellContext:
        return CellContext(self.context(), self.outside.ascii_only)

    def role_theme(self) -> RoleTheme:
        """The colours of now."""
        return self._role_theme

    def standing(self) -> Standing:
        """How this cockpit stands to its cluster."""
        age = 0 if self._fresh_at is None else max(0, self.now() - self._fresh_at) // 1000
        stale = self._trouble or age > STALE_SECONDS
        return Standing(
            cluster=self.overview.cluster if self.overview is not None else "…",
            access="ro" if self.outside.read_only else "rw",
            user=self.outside.user,
            age=f"{age} s old" if stale and self._fresh_at is not None else "",
            trouble=self._trouble,
            badge=self.outside.badge(),
        )

    def situation(self) -> Situation:
        """What actions are judged by."""
        return Situation(self.view_name, self.chosen_rows(), self.outside.read_only, demo=self.pace is not None)

    @property
    def view_name(self) -> str:
        """`jobs`, `nodes`, or `job` for a job's page."""
        page = isinstance(self.screen, JobPage) if self.screen_stack else False
        return JOB if page else self.main_screen.view

    def chosen_rows(self) -> list[JobRow]:
        """The jobs that an action is about."""
        if isinstance(self.screen, JobPage):
            ids: Iterable[Any] = [self.screen.job]
        else:
            ids = self.main_screen.jobs.chosen() if self.main_screen.view == JOBS else []
        return [row for job in ids if (row := self.job_rows.row(job)) is not None]

    def job_under_cursor(self) -> JobRow | None:
        job: Any = self.main_screen.jobs.cursor_id
        return None if job is None else self.job_rows.row(job)

    def detail_of(self, job: JobId) -> JobDetail | None:
        """The last detail that was asked for, if it is this job's."""
        return self._details.get(job)

    def capacity_words(self) -> str:
        """`This machine: 16 CPUs, 128G, 2 × RTX 4090.`"""
        if self.overview is None:
            return ""
        rows = [row for name in self.node_rows.order if (row := self.node_rows.row(name)) is not None]
        return f"This machine: {capacity([row.node for row in rows], self.overview)}."

    def shown_columns(self, width: int) -> Sequence[Laid]:
        """The columns of the Jobs view at this width of the screen."""
        return laid_out(width - MARGIN)

    def node_lines(self, row: NodeRow) -> Iterable[Line]:
        """The panel about a node."""
        from cockpit.present.node_answer import node_answer

        names = {each.id: each.name for job in row.jobs if (each := self.job_rows.row(job)) is not None}
        return node_answer(row, names)

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
        situation = self.situation()
        for action in self.actions:
            if action.in_row and action.keys and situation.view in action.views:
                yield Key(key_name(action.keys[0]), action.label, not action.refusal(situation))

    def help_entries(self) -> Sequence[Action]:
        return self.actions

    def action_names(self) -> Sequence[str]:
        return [*BY_ID, *self.themes]

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
        self.set_interval(TICK_SECONDS, self._tick)

    def wake(self) -> None:
        """Ask again now: another row or view is looked at."""
        self._wanted.set()

    def _tick(self) -> None:
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

    def _take(self, delta: JobsDelta, *, first: bool) -> None:
        jobs = self.job_rows.list
        changes = jobs.replace_all(delta.changed) if first else jobs.apply(delta.changed, delta.removed)
        self.loaded = True
        self._is_fresh()
        table = self.main_screen.jobs
        if changes.order_changed:
            table.order_changed()
        table.rows_changed(changes.changed)
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
            except CockpitError as error:
                self._is_stale(error)
            self.main_screen.draw()
            try:
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wanted.wait()
                await asyncio.sleep(0.05)
            except TimeoutError:
                pass

    async def _ask(self) -> None:
        self.overview = await self.backend.overview()
        if self.main_screen.view != JOBS or not self.node_rows.order:
            changed, moved = self.node_rows.take(await self.backend.nodes())
            if moved:
                self.main_screen.nodes.order_changed()
            self.main_screen.nodes.rows_changed(changed)
        row = self.job_under_cursor()
        known = self._details.get(row.id) if row is not None else None
        if row is not None and (known is None or known.row.version != row.version or known.explanation is not None):
            self._details = {row.id: await self.backend.job(row.id)}

    def _is_fresh(self) -> None:
        self._fresh_at, self._trouble = self.now(), ""

    def _is_stale(self, error: CockpitError) -> None:
        if isinstance(error, Unreachable):
            self._trouble = str(error).split(":")[0].split(";")[0]

    # Acting

    def action_act(self, action_id: str) -> None:
        """What a key is bound to."""
        self.perform(action_id)

    def perform(self, action_id: str) -> None:
        """Do it, or say why not."""
        action = next(each for each in self.actions if each.id == action_id)
        refusal = action.refusal(self.situation())
        if refusal:
            self.notify(refusal, severity="warning", markup=False)
            return
        self.run_worker(self._perform(action.run), name=action_id, group="deeds")

    async def _perform(self, run: Callable[[CockpitApp], Any]) -> None:
        try:
            done = run(self)
            if done is not None:
                await done
        except RequestRefused as no:
            self.notify(refusal_text(no.refusal, self.now()), severity="warning", markup=False)
        except CockpitError as error:
            self.notify(str(error), severity="error", markup=False)
        self.wake()

    def run_command(self, text: str) -> None:
        """`:name`; the short words people know from vi are understood."""
        name = {"q": "quit", "q!": "quit", "wq": "quit", "h": "help"}.get(text.strip(), text.strip())
        if name in BY_ID:
            self.perform(name)
        elif name in self.themes:
            self.use_theme(name)
        elif name:
            self.notify(f"There is no action {name!r}; Tab completes, ? lists them.", severity="warning", markup=False)

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
        for action in self.actions:
            yield SystemCommand(action.label, action.help, lambda action=action: self.perform(action.id))
        for name, role_theme in sorted(self.themes.items()):
            yield SystemCommand(f"theme {name}", role_theme.title, lambda name=name: self.use_theme(name))
