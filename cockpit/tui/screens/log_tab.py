"""The tab of a job's page that shows its logs: which one, from where on, what is searched in it, and $PAGER over it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from cockpit.errors import CockpitError
from cockpit.model.asking import LogStream
from cockpit.model.masked_logs import known_secrets
from cockpit.present.log_pages import LogPages
from cockpit.present.spans import Span, key_hint
from cockpit.present.units import grouped
from cockpit.tui.job_log import JobLog, error_offset
from cockpit.tui.log_finder import LogFinder
from cockpit.tui.log_pager import open_in_pager
from cockpit.tui.log_source import Query
from cockpit.tui.screens.dialog import Closable, is_open
from cockpit.tui.widgets.log_view import COUNTED_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.log_source import LogSource
    from cockpit.tui.widgets.log_view import LogView


class PageWithLog(Closable[None]):
    """The page of a job as this tab of it sees it."""

    app: Cockpit

    @abstractmethod
    def draw(self) -> None:
        """Draw the whole page from the present state."""

    @abstractmethod
    async def detail(self) -> JobDetail:
        """Return the job, which is fetched if that has not happened yet."""


class LogTab:
    """The logs of one job on its page."""

    def __init__(self, page: PageWithLog, job: JobId, view: Callable[[], LogView]) -> None:
        self._page = page
        self._view_of_page = view
        self.log = JobLog(job)
        self._finder: LogFinder | None = None
        self._copied: int | None = None
        """Percentage of the log that was copied for the pager; None: none is being copied."""

    @property
    def view(self) -> LogView:
        return self._view_of_page()

    @property
    def finder(self) -> LogFinder:
        """The search, which exists once the page has its widgets."""
        if self._finder is None:
            self._finder = LogFinder(self.view, self._page.draw)
        return self._finder

    def show(self) -> None:
        """Show the chosen log from its end on; that of a failed job at its error."""
        # Exclusive: the follower of another replica, stream or attempt ends with this.
        self._page.run_worker(self._follow(), name="log", group="log", exclusive=True)

    def hide(self) -> None:
        """Read nothing from the cluster while another tab is shown."""
        self._page.workers.cancel_group(self._page, "log")
        self.finder.stop()
        self.view.open(None)

    def other_stream(self) -> None:
        """Switch between stdout and stderr."""
        self.log.chosen_by_user()
        self.log.stream = LogStream.STDERR if self.log.stream is LogStream.STDOUT else LogStream.STDOUT

    def toggle_merged(self) -> None:
        """Show stdout and stderr merged by time, or stdout alone."""
        self.log.chosen_by_user()
        self.log.stream = LogStream.STDOUT if self.log.stream is LogStream.MERGED else LogStream.MERGED

    def other_replica(self, ranks: list[int]) -> None:
        """Show the log of the next replica; after the last one, of the first."""
        self.log.chosen_by_user()
        self.log.rank = next((rank for rank in ranks if rank > self.log.rank), ranks[0])

    def earlier_attempt(self, last: int) -> None:
        """Show the log of the previous attempt; before the first one, of the last."""
        self.log.chosen_by_user()
        shown = self.log.attempt or last
        self.log.attempt = shown - 1 if shown > 1 else None

    async def _follow(self) -> None:
        """Show the log until it ends."""
        app, view = self._page.app, self.view
        try:
            detail = await self._page.detail()
            if not self.log.is_chosen:
                await self.log.choose(detail.row, app.backend)
                self._page.draw()
            source = self.log.source(app.backend, known_secrets(detail.job.spec.env))
            self.finder.stop()
            view.open(source)
            await source.open()
            place = await self._error_place(source) if self.log.at_error else None
            view.follow = True
            if place is not None:
                view.go_to(place, at_end_too=True)
            else:
                view.move(LogPages.last_page)
            self._page.run_worker(self._count_lines(source), name="log lines", group="log lines", exclusive=True)
            # Long polling: the answer comes once there is more, so that nothing is asked while the job prints nothing.
            while not source.ended:
                blocks = source.blocks
                await source.read_more(app.state.now)
                if source.blocks is not blocks:
                    app.notify("The log was emptied or replaced; this is the new one.")
                if is_open(self._page):
                    view.grown()
        except CockpitError as error:
            app.notify(str(error), severity="warning")

    async def _error_place(self, source: LogSource) -> int | None:
        try:
            return await error_offset(source)
        except CockpitError:  # an older engine searches nothing: the end is shown
            return None

    async def _count_lines(self, source: LogSource) -> None:
        """Count the lines of a log that is not too large, so that their numbers are exact."""
        size = source.blocks.size
        if size > COUNTED_BYTES or source.numbers.before(size) is not None:
            return
        try:
            source.numbers.add(size, await source.count(Query(""), 0, size, lambda _: None))
        except CockpitError:
            return  # then they are estimated
        self._page.draw()

    def open_pager(self) -> None:
        """Show the whole log in $PAGER; while it is being copied for it, cancel that."""
        if self._copied is not None:
            self._page.workers.cancel_group(self._page, "pager")
        elif (source := self.view.source) is not None:
            self._copied = 0
            self._page.run_worker(self._open_pager(source), name="pager", group="pager", exclusive=True)

    async def _open_pager(self, source: LogSource) -> None:
        try:
            await open_in_pager(self._page.app, source, self._note_copied)
        except CockpitError as error:
            self._page.app.notify(str(error), severity="warning")
        finally:
            self._copied = None
            if is_open(self._page):
                self._page.draw()

    def _note_copied(self, percent: int) -> None:
        if percent != self._copied or not percent:
            self._copied = percent
            self._page.draw()

    def go_to(self, text: str) -> None:
        """Go to the line of this number, or to this percentage of the log."""
        source, digits = self.view.source, text.strip().removesuffix("%").strip()
        if source is None or not digits.isdecimal():
            self._page.app.notify(f"“{text}” is neither a line's number nor a percentage such as 40%.")
        elif text.strip().endswith("%"):
            self.view.go_to(min(100, int(digits)) * max(0, source.blocks.size - 1) // 100)
        else:
            self._page.run_worker(self._go_to_line(source, int(digits)), name="line", group="line", exclusive=True)

    async def _go_to_line(self, source: LogSource, number: int) -> None:
        app = self._page.app
        if source.blocks.size > COUNTED_BYTES:
            app.notify(f"Counting the lines up to line {grouped(number)}.")
        try:
            offset = await source.offset_of_line(max(1, number), lambda _: None)
        except CockpitError as error:
            app.notify(str(error), severity="warning")
        else:
            if source is self.view.source:
                self.view.follow = False
                self.view.move(lambda pages: min(pages.place_of(offset), pages.last_page()))

    async def is_settled(self) -> bool:
        """Return whether all of the log that there is now is shown."""
        source = self.view.source
        if source is None:  # the log is being chosen, perhaps by a cluster that answers slowly
            return not await self.log.source(self._page.app.backend).has_more()
        if not source.opened.is_set() or not self.view.is_settled or self.finder.is_busy:
            return False
        return source.ended or not await source.has_more()

    def note(self, detail: JobDetail | None, key: str | None) -> Iterator[Span]:
        """Yield which log is shown and where; `key` is that for the other stream."""
        if self._copied is not None:
            cancel = self._page.app.state.keys.get("pager", "")
            yield Span(f"copying for the pager: {self._copied} %", "accent")
            yield from key_hint(cancel, "cancel", "   ") if cancel else ()
            yield Span(" · ", "muted")
        if position := self.view.position():
            yield Span(f"{position} · ", "muted")
        if self.log.attempt is not None:
            yield Span(f"attempt {self.log.attempt} · ", "warning")
        attempt = detail.job.attempt if detail is not None else None
        if attempt is not None and len(attempt.replicas) > 1:
            yield Span(f"replica {self.log.rank} · ")
        yield Span(str(self.log.stream))
        if self.log.at_error:
            yield Span(" at its error", "error")
        if key:
            yield from key_hint(key, "apart" if self.log.stream is LogStream.MERGED else "the other", "   ")
