"""The search in a log that is shown: from match to match, and how many there are, wherever they are in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.errors import CockpitError
from cockpit.present.safe import safe
from cockpit.present.units import grouped
from cockpit.tui.log_source import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from cockpit.tui.log_source import LogSource
    from cockpit.tui.widgets.log_view import LogView

PATTERN_SIGN = "~"
"""The sign before a regular expression, as in filters."""


class LogFinder:
    """Searches the log of a view. `changed` is called whenever `words` has something new."""

    def __init__(self, view: LogView, changed: Callable[[], None]) -> None:
        self._view, self._changed = view, changed
        self.searched = ""
        """The searched text as the user typed it; empty: none."""
        self._query = Query("")
        self._place: int | None = None
        """The number of the present match, from 1; None: not counted yet."""
        self._total: int | None = None
        self._error = ""
        self._doing = ""
        """What is under way, with its progress; empty: nothing."""
        self._is_first_sought = False
        self._steps_ahead: list[int] = []
        """Steps that the user took before the first match was found."""

    def search(self, text: str) -> None:
        """Highlight the text everywhere, and go to the first match from the first visible line on."""
        self.stop()
        self.searched = text
        is_pattern = text.startswith(PATTERN_SIGN)
        self._query = Query(text.removeprefix(PATTERN_SIGN) if is_pattern else text, is_pattern)
        if self._query.text:
            self._view.query_text = self._query
            self._is_first_sought = True
            self._start(self._first)
        self._changed()

    def find(self, step: int) -> None:
        """Go to the next (1) or previous (-1) match, around the end; once there is a first one."""
        if self._is_first_sought:
            self._steps_ahead.append(step)
        elif self._query.text:
            self._start(lambda source: self._step(source, step))

    def stop(self) -> None:
        """End the search, also one that is under way."""
        self._view.workers.cancel_group(self._view, "find")
        self.searched, self._query = "", Query("")
        self._view.query_text = self._view.match = None
        self._place = self._total = None
        self._error = self._doing = ""
        self._is_first_sought = False
        self._steps_ahead.clear()
        self._view.refresh()

    @property
    def is_busy(self) -> bool:
        """Whether a match is being looked for."""
        return bool(self._doing)

    def words(self) -> tuple[str, bool]:
        """Return what was found so far, in words, and whether there is anything."""
        if self._error:
            return safe(self._error), False
        if self._doing:
            return self._doing, True
        if self._view.match is None:
            return "nowhere here", False
        return f"{grouped(self._place or 0)} of {grouped(self._total or 0)}", True

    def _start(self, what: Callable[[LogSource], Coroutine[None, None, None]]) -> None:
        if (source := self._view.source) is None:
            self._is_first_sought = False
            return

        async def run() -> None:
            self._error = ""
            try:
                await source.opened.wait()
                await what(source)
                await self._count(source)
            except CockpitError as error:
                self._error = str(error)
                self._is_first_sought = False
            finally:
                self._doing = ""
            self._changed()

        # Exclusive: a search under way, or the count of its matches, ends when another one begins.
        self._view.run_worker(run(), name="find in log", group="find", exclusive=True)

    async def _first(self, source: LogSource) -> None:
        """Go to the first match from the first visible line on, then as many steps as the user took meanwhile."""
        await self._go(source, self._view.top, 1)
        while self._steps_ahead and self._view.match is not None:
            await self._step(source, self._steps_ahead.pop(0))
        self._is_first_sought = False

    async def _step(self, source: LogSource, step: int) -> None:
        here = self._view.match[0] if self._view.match is not None else self._view.top
        await self._go(source, here + 1 if step > 0 else here, step)

    async def _go(self, source: LogSource, here: int, step: int) -> None:
        """Go to the first match from `here` on, or to the last one before it."""
        size, before = source.blocks.size, self._view.match
        tell = self._teller("searching", size)
        tell(0)
        parts = [(here, size), (0, here)] if step > 0 else [(0, here), (here, size)]
        found = None
        for begin, end in parts:
            found = found or await source.find(self._query, begin, end, tell, backward=step < 0)
        self._view.match = found
        if found is None:
            return
        self._view.go_to(found[0])
        self._view.show_column(found[0])
        if before is not None and self._place is not None and self._total:
            is_around = (found[0] > before[0]) != (step > 0) or self._total == 1
            edge = 1 if step > 0 else self._total
            self._place = edge if is_around else self._place + step

    async def _count(self, source: LogSource) -> None:
        """Count the matches, and those before the present one, unless they are known."""
        found, size = self._view.match, source.blocks.size
        if found is None or self._place is not None:
            return
        tell = self._teller("found; counting", size)
        place = await source.count(self._query, 0, found[0], tell) + 1
        rest = await source.count(self._query, found[0], size, lambda done: tell(found[0] + done))
        self._place, self._total = place, place - 1 + rest

    def _teller(self, what: str, size: int) -> Callable[[int], None]:
        def tell(done: int) -> None:
            self._doing = f"{what} {100 * done // max(1, size)} %"
            self._changed()

        return tell
