"""One job's page: why, logs, spec, replicas, events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.screen import Screen

from cockpit.errors import CockpitError
from cockpit.model.asking import LogRequest, LogStream
from cockpit.present.frame import Key, key_at, key_row, view_at, view_row
from cockpit.present.job_tabs import TABS, head_line, tab_lines
from cockpit.present.log_lines import LogLines
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, Line, Span, line
from cockpit.tui.widgets.lines import Lines, LineView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult

    from cockpit.model.ids import JobId
    from cockpit.model.view import JobDetail
    from cockpit.tui.face import Face

TAB_NAMES = tuple(("", name.capitalize()) for name in TABS)
REFRESH_SECONDS = 1.0
LOG_LOOK_SECONDS = 0.02
KEPT_LINES = 20_000
"""Of a log that is followed."""
TAIL_BYTES = -(1 << 20)


class JobPage(Screen[None]):
    """Follows the job while it is open."""

    app: Face
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.press('tab')", show=False),
        Binding("shift+tab", "app.press('shift+tab')", show=False),
    ]

    def __init__(self, job: JobId, tab: str) -> None:
        super().__init__()
        self.job = job
        self.tab = tab
        self._detail: JobDetail | None = None
        self._stream = LogStream.STDOUT
        self._attempt: int | None = None
        """None: the last one."""
        self._log: list[Line] = []
        self._log_end = TAIL_BYTES
        """How far the log has been read."""

    def compose(self) -> ComposeResult:
        theme = self.app.role_theme
        yield Lines(theme, id="head")
        yield Lines(theme, ground="background", id="tabs")
        yield LineView(theme, id="body")
        yield Lines(theme, id="keys")

    def on_mount(self) -> None:
        self.query_one(LineView).focus()
        self.run_worker(self._follow_job(), name="page")
        self.show_tab(self.tab)

    def show_tab(self, tab: str) -> None:
        """Turn to this tab."""
        self.tab = tab
        body = self.query_one(LineView)
        body.follow = tab == "logs"
        body.scroll_to(y=0, animate=False)
        if tab == "logs":
            self.run_worker(self._follow_log(), name="log", group="log", exclusive=True)
        else:
            self.workers.cancel_group(self, "log")
        self.draw()

    def draw(self) -> None:
        """Everything, from what is known."""
        width = self.size.width
        self.query_one("#tabs", Lines).show([view_row(TAB_NAMES, self.tab.capitalize(), self._note(), width)])
        self.query_one("#keys", Lines).show([key_row(self._keys(), width)])
        if self._detail is None:
            return
        self.query_one("#head", Lines).show([head_line(self._detail, self.app.around(width))])
        if self.tab != "logs":
            body = self.query_one(LineView)
            body.show(tab_lines(self.tab, self._detail, self.app.around(body.size.width, body.size.height)))

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    def turn(self, step: int) -> None:
        """The next or previous tab."""
        self.show_tab(TABS[(TABS.index(self.tab) + step) % len(TABS)])

    def other_stream(self) -> None:
        """stdout or stderr."""
        self._stream = LogStream.STDERR if self._stream is LogStream.STDOUT else LogStream.STDOUT
        self.show_tab("logs")

    def earlier_attempt(self) -> None:
        """The log of the attempt before; before the first comes the last."""
        self.run_worker(self._show_earlier_attempt(), name="attempt")

    async def _show_earlier_attempt(self) -> None:
        if self._detail is None:
            await self._ask()
        attempt = self._detail.job.attempt if self._detail is not None else None
        if attempt is None or attempt.number == 1:
            self.app.notify("There is no earlier attempt: it was started once at most.")
            return
        shown = self._attempt or attempt.number
        self._attempt = shown - 1 if shown > 1 else None
        self.show_tab("logs")

    def wrap(self) -> None:
        """Long lines go on below, or are cut at the edge."""
        self.query_one(LineView).toggle_wrapping()

    def _note(self) -> Line:
        keys = self.app.around(self.size.width).keys
        if self.tab == "logs" and "stream" in keys:
            attempt = f"attempt {self._attempt} · " if self._attempt is not None else ""
            other = Span(keys["stream"], ACCENT), Span(" the other", MUTED)
            return line(Span(attempt, "warning"), str(self._stream), Span("   "), *other)
        turns = " ".join(keys[each] for each in ("previous_tab", "next_tab") if each in keys)
        return line(Span(turns, ACCENT), Span(" turn the tabs", MUTED)) if turns else ()

    def _keys(self) -> list[Key]:
        back = self.app.around(self.size.width).keys.get("back")
        return [*([Key(back, "back", action="back")] if back else []), *self.app.keys_of_view()]

    @on(Lines.Clicked, "#tabs")
    def _tab_clicked(self, event: Lines.Clicked) -> None:
        if name := view_at(TAB_NAMES, event.column):
            self.show_tab(name.lower())

    @on(Lines.Clicked, "#keys")
    def _key_clicked(self, event: Lines.Clicked) -> None:
        if action := key_at(self._keys(), event.column):
            self.app.perform(action)

    async def _follow_job(self) -> None:
        while True:
            await self._ask()
            await asyncio.sleep(REFRESH_SECONDS)

    async def _ask(self) -> None:
        try:
            self._detail = await self.app.backend.job(self.job)
        except CockpitError as error:
            self.query_one("#head", Lines).show([line(Span(f" {safe(str(error))}", "warning"))])
        else:
            self.draw()

    async def catch_up(self) -> None:
        """Ask now, and wait until the log shows all that there is."""
        await self._ask()
        while self.tab == "logs" and await self._log_grows():  # noqa: ASYNC110 - the follower reads by itself
            await asyncio.sleep(LOG_LOOK_SECONDS)

    def _log_request(self, *, wait: bool) -> LogRequest:
        return LogRequest(job=self.job, attempt=self._attempt, stream=self._stream, offset=self._log_end, wait=wait)

    async def _log_grows(self) -> bool:
        """There is more than is shown."""
        request = self._log_request(wait=False)
        return bool((await self.app.backend.logs(request)).data)

    async def _follow_log(self) -> None:
        lines, self._log_end = LogLines(), TAIL_BYTES
        self._log = [line("")]
        self._show_log([""])
        while True:
            request = self._log_request(wait=True)
            try:
                chunk = await self.app.backend.logs(request)
            except CockpitError as error:
                self.app.notify(str(error), severity="warning")
                return
            self._show_log(lines.feed(chunk.data))
            self._log_end = chunk.offset + len(chunk.data)
            if chunk.ended:
                return

    def _show_log(self, fresh: Iterable[str]) -> None:
        """The first takes the place of the line that was last."""
        self._log[-1:] = map(line, fresh)
        del self._log[:-KEPT_LINES]
        empty = not any(each[0].text for each in self._log)
        shown = [line(Span(f" nothing on {self._stream} yet", MUTED))] if empty else self._log
        self.query_one(LineView).show(shown)
