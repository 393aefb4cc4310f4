"""The page of a job: why it waits, its priority, spec, replicas, logs, events, usage and terminal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on
from textual.binding import Binding, BindingType

from cockpit.errors import CockpitError
from cockpit.present.frame import Key, key_at, key_row, view_at, view_row
from cockpit.present.job.tabs import TABS, head_line, tab_lines
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, STRONG, Span, key_hint, line, line_width, spread
from cockpit.tui.screens.dialog import is_open
from cockpit.tui.screens.log_tab import LogTab, PageWithLog
from cockpit.tui.screens.member_events import MemberEvents
from cockpit.tui.widgets.entry import PLACE, SEARCH, Entry
from cockpit.tui.widgets.lines import Lines, LineView
from cockpit.tui.widgets.log_view import LogView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult

    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail

TAB_NAMES = tuple(("", name.capitalize()) for name in TABS)
LOGS, EVENTS = "logs", "events"
REFRESH_SECONDS = 1.0
LOG_LOOK_SECONDS = 0.02
"""Seconds between two looks whether the whole log is shown, when a script waits for that."""
HINT = "text to look for; Enter stays there, Esc returns"
LOG_HINT = "text to look for in the whole log, or ~ and a regular expression; Enter stays there, Esc returns"
PLACE_HINT = "the number of a line, or a percentage such as 40%"


class JobPage(PageWithLog):
    """The page of one job, which follows the job while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.press('tab')", show=False),
        Binding("shift+tab", "app.press('shift+tab')", show=False),
    ]

    def __init__(self, job: JobId, tab: str) -> None:
        super().__init__()
        self.job = job
        self.tab = tab
        self._detail: JobDetail | None = None
        self._events = MemberEvents(job)
        self._log = LogTab(self, job, lambda: self.query_one(LogView))

    def compose(self) -> ComposeResult:
        theme = self.app.state.role_theme
        yield Lines(theme, id="head")
        yield Lines(theme, ground="background", id="tabs")
        yield LineView(theme, id="body")
        yield LogView(theme, self.app.state.context)
        yield Entry(id="entry")
        yield Lines(theme, id="keys")

    @property
    def _body(self) -> LineView:
        return self.query_one(LineView)

    def on_mount(self) -> None:
        self.run_worker(self._follow_job(), name="page")
        self.show_tab(self.tab)

    def show_tab(self, tab: str) -> None:
        """Switch to this tab."""
        if not is_open(self):
            return
        self.tab = tab
        self._body.search("")
        self._body.scroll_to(y=0, animate=False)
        self._body.display, self._log.view.display = tab != LOGS, tab == LOGS
        if tab == LOGS:
            self._log.show()
        else:
            self._log.hide()
        if not self.query_one(Entry).display:
            self.set_focus(self._shown_part, scroll_visible=False)
        self.draw()

    @property
    def _shown_part(self) -> LineView | LogView:
        return self._log.view if self.tab == LOGS else self._body

    def draw(self) -> None:
        if not is_open(self):
            return
        width = self.size.width
        notes = {LOGS: self._log_note, EVENTS: self._events_note}
        note = tuple(notes.get(self.tab, self._tabs_note)())
        tabs = view_row(TAB_NAMES, self.tab.capitalize(), (), width)
        fits = line_width(tabs) + line_width(note) + 2 < width
        self.query_one("#tabs", Lines).show([spread(tabs, (*note, Span(" ")), width) if fits else tabs])
        self.query_one("#keys", Lines).show([tuple(self._search_row()) or key_row(self._keys(), width)])
        if self._detail is None:
            return  # head and body are about the job, which has not been fetched yet
        crowded = self.tab == LOGS and not fits  # then the note takes the place of the place in the queue
        detail = replace(self._detail, explanation=None) if crowded else self._detail
        head = head_line(detail, self.app.state.panel_context(width))
        self.query_one("#head", Lines).show([spread(head, (*note, Span(" ")), width) if crowded else head])
        if self.tab != LOGS:
            size = self._body.scrollable_content_region
            self._body.show(tab_lines(self.tab, self._detail, self.app.state.panel_context(size.width, size.height)))

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    def switch_tab(self, step: int) -> None:
        """Switch to the tab `step` places to the right."""
        self.show_tab(TABS[(TABS.index(self.tab) + step) % len(TABS)])

    # Logs

    def other_stream(self) -> None:
        """Switch the log between stdout and stderr."""
        self._log.other_stream()
        self.show_tab(LOGS)

    def toggle_merged(self) -> None:
        """Show stdout and stderr merged by time, or stdout alone."""
        self._log.toggle_merged()
        self.show_tab(LOGS)

    def other_replica(self) -> None:
        """Show the log of the next replica; after the last one, of the first. On the events of a fleet's job: those of
        the next member cluster."""
        if self.tab == EVENTS and self._detail is not None and self._events.turn(self._detail):
            self.run_worker(self._ask(), name="events")
            return
        attempt = self._detail.job.attempt if self._detail is not None else None
        ranks = [each.rank for each in attempt.replicas] if attempt is not None else []
        if not ranks and self._detail is not None:
            # The host of a Kubernetes fleet sees no replicas, but which member has each.
            ranks = list(range(len(self._detail.row.clusters)))
        if len(ranks) < 2:
            self.app.notify("The job has only one replica.")
            return
        self._log.other_replica(ranks)
        self.show_tab(LOGS)

    def earlier_attempt(self) -> None:
        """Show the log of the previous attempt; before the first one, of the last."""
        self.run_worker(self._show_earlier_attempt(), name="attempt")

    async def _show_earlier_attempt(self) -> None:
        """Show the log of the attempt before the shown one, after the first one of the last."""
        if self._detail is None:
            await self._ask()
        attempt = self._detail.job.attempt if self._detail is not None else None
        if attempt is None or attempt.number == 1:
            self.app.notify("There is no earlier attempt: it was started once at most.")
            return
        self._log.earlier_attempt(attempt.number)
        self.show_tab(LOGS)

    def wrap(self) -> None:
        """Wrap long lines, or cut them at the edge."""
        if self.tab == LOGS:
            self._log.view.wrap()
        else:
            self._body.toggle_wrapping()

    def toggle_times(self) -> None:
        """Show or hide the time at which each line arrived."""
        self._log.view.toggle_times()
        if self.tab != LOGS:
            self.show_tab(LOGS)

    def ask_place(self) -> None:
        """Open the line for the number of a line of the log, or a percentage."""
        if self.tab != LOGS:
            self.show_tab(LOGS)
        self.query_one(Entry).ask(PLACE, "", PLACE_HINT)

    def open_pager(self) -> None:
        """Show the whole log in $PAGER."""
        if self.tab == LOGS:
            self._log.open_pager()
        else:
            self.app.notify("Open the logs first: $PAGER shows the log of this tab.")

    async def detail(self) -> JobDetail:
        if self._detail is None:
            self._detail = await self.app.backend.job(self.job)
        return self._detail

    @on(LogView.Moved)
    def _log_moved(self) -> None:
        self.draw()

    # Searching

    @property
    def _searched(self) -> str:
        return self._log.finder.searched if self.tab == LOGS else self._body.searched

    def _search(self, text: str) -> None:
        (self._log.finder if self.tab == LOGS else self._body).search(text)

    def ask_search(self) -> None:
        """Open the search line, which selects the first match while the user types."""
        self.query_one(Entry).ask(SEARCH, self._searched, LOG_HINT if self.tab == LOGS else HINT)

    def find(self, step: int) -> None:
        """Go to the next match (`step` 1) or the previous one (-1)."""
        if not self._searched:
            self.ask_search()
            return
        (self._log.finder if self.tab == LOGS else self._body).find(step)
        self.draw()

    def stop_searching(self) -> bool:
        """End the search; return whether there was one."""
        searched = bool(self._searched)
        self._search("")
        self.draw()
        return searched

    @on(Entry.Changed)
    def _typed(self, event: Entry.Changed) -> None:
        # A change of the text may arrive after Escape has closed the line and ended the search.
        entry = self.query_one(Entry)
        if entry.display and entry.kind == SEARCH:
            self._search(event.value)
            self.draw()

    @on(Entry.Escaped)
    def _leave_entry(self, event: Entry.Escaped) -> None:
        if event.kind == SEARCH:
            self._search("")
        self._close_entry()

    @on(Entry.Submitted)
    def _entered(self, event: Entry.Submitted) -> None:
        if self.query_one(Entry).kind == PLACE:
            self._log.go_to(event.value)
        self._close_entry()

    def _close_entry(self) -> None:
        self.query_one(Entry).display = False
        self.set_focus(self._shown_part, scroll_visible=False)
        self.draw()

    # The frame

    def _search_row(self) -> Iterator[Span]:
        """Yield the bottom row of a search: the number of matches, and the keys for the next and the previous one."""
        if not self._searched:
            return
        if self.tab == LOGS:
            words, is_found = self._log.finder.words()
        else:
            place, matches = self._body.place_of_match()
            words, is_found = (f"{place} of {matches}" if matches else "nowhere here"), bool(matches)
        yield Span(f" {words}", STRONG if is_found else "warning")
        yield Span(f"  {safe(self._searched)}", ACCENT)
        keys = self.app.state.panel_context(self.size.width).keys
        for action, words in (("next_match", "next"), ("previous_match", "before"), ("back", "ends")):
            if action in keys:
                yield from key_hint(keys[action], words, "   ")

    def _log_note(self) -> Iterator[Span]:
        return self._log.note(self._detail, self.app.state.panel_context(self.size.width).keys.get("stream"))

    def _events_note(self) -> Iterator[Span]:
        """Yield whose events a fleet's job shows, and the key that shows those of the next member."""
        clusters = dict.fromkeys(self._detail.row.clusters) if self._detail is not None else ()
        key = self.app.state.panel_context(self.size.width).keys.get("replica")
        if clusters and key:
            whose = f"events of {safe(self._events.cluster)}" if self._events.cluster else "the fleet's events"
            yield from key_hint(key, whose)
            yield Span("  ")
        yield from self._tabs_note()

    def _tabs_note(self) -> Iterator[Span]:
        keys = self.app.state.panel_context(self.size.width).keys
        turns = " ".join(keys[each] for each in ("previous_tab", "next_tab") if each in keys)
        if turns:
            yield from key_hint(turns, "switch tabs")

    def _keys(self) -> list[Key]:
        back = self.app.state.panel_context(self.size.width).keys.get("back")
        return [*([Key(back, "back", action="back")] if back else []), *self.app.dispatcher.keys_of_view()]

    @on(Lines.Clicked, "#tabs")
    def _tab_clicked(self, event: Lines.Clicked) -> None:
        if name := view_at(TAB_NAMES, event.column, self.size.width):
            self.show_tab(name.lower())

    @on(Lines.Clicked, "#keys")
    def _key_clicked(self, event: Lines.Clicked) -> None:
        if action := key_at(self._keys(), event.column):
            self.app.dispatcher.perform(action)

    # Keeping it fresh

    async def _follow_job(self) -> None:
        while True:
            await self._ask()
            await asyncio.sleep(REFRESH_SECONDS)

    async def _ask(self) -> None:
        try:
            detail = await self.app.backend.job(self.job)
            self._detail = await self._events.added(detail, self.app.backend) if self.tab == EVENTS else detail
        except CockpitError as error:
            # The page keeps what it shows: the job may have been deleted, or the cluster be away for a moment.
            if is_open(self):
                self.query_one("#head", Lines).show([line(Span(f" {safe(str(error))}", "warning"))])
        else:
            self.draw()

    async def catch_up(self) -> None:
        """Fetch the job now, and wait until the whole log is shown."""
        await self._ask()
        while self.tab == LOGS and not await self._log.is_settled():  # noqa: ASYNC110 - the follower reads by itself
            await asyncio.sleep(LOG_LOOK_SECONDS)
