"""The list above the entry line: what completes the typed text, each with what it is or why it is refused now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from cockpit.present.spans import ACCENT, MUTED, TEXT, Line, Span, line
from cockpit.present.width import cut, pad, widest
from cockpit.tui.widgets.entry import Candidate, Suggestions
from cockpit.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual import events

    from cockpit.tui.theme import RoleTheme

MOST_LINES, SMALL_LINES = 8, 5
"""Height of the list, on large and on small screens."""
SMALL_HEIGHT = 30
MOST_WORD_COLUMNS = 30
CHOSEN = "▸ "
"""The sign before the completion that Tab has put into the line."""


class CandidateList(Lines):
    """The list, hidden while there is nothing to offer. It shows a part of a long one, with the chosen line in it."""

    class Chosen(Message):
        """The message that the user clicked the completion at this place."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, theme: Callable[[], RoleTheme]) -> None:
        super().__init__(theme, ground="panel")
        self._first = 0
        """The place of the completion in the first line."""
        self._shown = 0

    def show_offer(self, offer: Suggestions, place: int | None) -> None:
        """Show what is offered; `place` is the completion that is in the line already."""
        self.display = bool(offer.candidates or offer.wrong)
        if not self.display:
            self._shown = 0
            return
        lines = list(self._drawn(offer, place))
        self.styles.height = len(lines)
        self.show(lines)

    def _drawn(self, offer: Suggestions, place: int | None) -> Iterator[Line]:
        candidates = offer.candidates
        if not candidates:
            self._shown = 0
            yield line(Span(f"  {offer.wrong}", "warning"))
            return
        most = SMALL_LINES if self.screen.size.height < SMALL_HEIGHT else MOST_LINES
        # The chosen one stays where it is seen, and the list moves no more than it must.
        if place is None:
            self._first = 0
        elif not self._first <= place < self._first + most:
            self._first = place if place < self._first else place - most + 1
        shown = candidates[self._first : self._first + most]
        self._shown = len(shown)
        columns = min(MOST_WORD_COLUMNS, widest([each.word for each in shown]))
        for number, each in enumerate(shown, start=self._first):
            yield _drawn(each, columns, is_chosen=number == place)
        if (left := len(candidates) - self._first - len(shown)) > 0:
            yield line(Span(f"  … {left} more; Tab goes through them", MUTED))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if event.y < self._shown:
            self.post_message(self.Chosen(self._first + event.y))


def _drawn(candidate: Candidate, columns: int, *, is_chosen: bool) -> Line:
    role = ACCENT if is_chosen else "unknown" if candidate.refusal else TEXT
    sign = CHOSEN if is_chosen else "  "
    about = candidate.refusal or candidate.about
    return line(Span(f"{sign}{pad(cut(candidate.word, columns), columns)}  ", role), Span(about, MUTED))
