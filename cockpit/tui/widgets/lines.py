"""Widgets for lines of spans: `Lines` shows a fixed number of them, `LineView` scrolls through any number."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from cockpit.present.spans import Line, fitted, hung, marked, plain, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.style import Style
    from textual import events

    from cockpit.tui.theme import RoleTheme


RIGHT = 3
"""Number of the mouse's right button."""
FOUND, MATCH = "accent", "link"
"""Roles of the present match of a search, and of the other matches."""


def strip_of(line: Line, width: int, theme: RoleTheme, ground: Style) -> Strip:
    """Return the line cut or padded to exactly `width` columns."""
    segments = [Segment(text, theme.style(role) + ground) for text, role in fitted(line, width)]
    return Strip(segments, width)


class Lines(Widget):
    """A widget with a fixed number of lines, of which it repaints only those that differ."""

    class Clicked(Message):
        """The message that the user clicked into the lines."""

        def __init__(self, lines: Lines, column: int) -> None:
            super().__init__()
            self.lines = lines
            self.column = column

        @property
        def control(self) -> Lines:
            return self.lines

    def __init__(self, theme: Callable[[], RoleTheme], *, ground: str = "panel", id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._theme = theme
        self.ground = ground
        """The role of the background."""
        self._lines: list[Line] = []

    def show(self, lines: Iterable[Line]) -> None:
        """Show these instead."""
        before, self._lines = self._lines, list(lines)
        # Only lines that differ: these widgets are shown anew at every tick, mostly with the same text.
        for number in range(self.size.height):
            if _line_at(before, number) != _line_at(self._lines, number):
                self.refresh(Region(0, number, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        theme = self._theme()
        return strip_of(_line_at(self._lines, y), self.size.width, theme, theme.background(self.ground))

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Clicked(self, event.x))


class LineView(ScrollView, can_focus=True):
    """A scrolling widget for any number of lines. With `follow` the end stays visible while lines are added."""

    class Resized(Message):
        """The message that the widget has another size: lines that were made for its width are to be made again."""

        def __init__(self, view: LineView) -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> LineView:
            return self.view

    DEFAULT_CSS = """
    LineView { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    BINDINGS = [  # noqa: RUF012 - Textual reads it from the class
        ("j,down", "by(1)", ""),
        ("k,up", "by(-1)", ""),
        ("ctrl+d,pagedown", "pages(1)", ""),
        ("ctrl+u,pageup", "pages(-1)", ""),
        ("g,home", "top", ""),
        ("G,end", "bottom", ""),
    ]

    def __init__(self, theme: Callable[[], RoleTheme], *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._theme = theme
        self._unwrapped: Sequence[Line] = ()
        self._lines: list[Line] = []
        """The drawn lines: the given ones, wrapped where the user wants that."""
        self._starts: list[int] = []
        """The index of the first drawn line of each given line; empty: nothing is wrapped."""
        self._wraps = False
        self._fold = wrapped
        self.follow = False
        self.searched = ""
        """The searched text; empty: none."""
        self._match: int | None = None
        """The index of the given line with the present match."""

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines, at the same place or (with `follow`) at the end."""
        self._unwrapped = list(lines)
        self._lay_out()

    def hang(self) -> None:
        """Wrap long lines at words, indented to where their last cell begins."""
        self._fold = hung
        self._wraps = True

    def toggle_wrapping(self) -> None:
        """Switch between wrapping long lines and cutting them at the edge."""
        self._wraps = not self._wraps
        self._lay_out()

    def search(self, text: str) -> None:
        """Highlight the text everywhere, ignoring case, and go to the first line with it from the present one on."""
        self.searched, self._match = text, None
        self.refresh()
        if text:
            self.find(0)

    def find(self, step: int) -> None:
        """Go to the next (1) or previous (-1) line with the searched text, around the end; 0: this line counts, too."""
        matches = self.matches()
        if not matches:
            self._match = None
            return
        here = self._match if self._match is not None else self._given_at(round(self.scroll_offset.y))
        if step < 0:
            self._match = next((each for each in reversed(matches) if each < here), matches[-1])
        else:
            # With step 0 the present line counts as well: while the user types on, the match stays where it is.
            self._match = next((each for each in matches if each >= here + step), matches[0])
        # A log that follows its end would scroll the match out of sight with its next line.
        self.follow = False
        top = self._starts[self._match] if self._starts else self._match
        self.scroll_to(y=max(0, top - self.size.height // 3), animate=False, force=True)
        self.refresh()

    def go_to(self, number: int) -> None:
        """Scroll so that this given line is a third below the top, unless it is visible at the end already."""
        top = self._starts[number] if self._starts else number
        # Then the log may go on following its end.
        if top >= len(self._lines) - self.size.height:
            return
        self.follow = False
        self.scroll_to(y=max(0, top - self.size.height // 3), animate=False, force=True)

    def matches(self) -> list[int]:
        """Return the indexes of the given lines with the searched text."""
        wanted = self.searched.casefold()
        return [n for n, each in enumerate(self._unwrapped) if wanted in plain(each).casefold()] if wanted else []

    def place_of_match(self) -> tuple[int, int]:
        """Return the number of the present match from 1 (0: none), and the number of matches."""
        matches = self.matches()
        return (matches.index(self._match) + 1 if self._match in matches else 0), len(matches)

    def _given_at(self, place: int) -> int:
        return bisect_right(self._starts, place) - 1 if self._starts else place

    def _lay_out(self) -> None:
        """Make the drawn lines for the present width, and scroll to the end where that is followed."""
        width = self.scrollable_content_region.width
        # `_starts` translates between given lines, by which matches and jumps are counted, and drawn ones.
        self._starts = []
        if self._wraps:
            self._lines = []
            for each in self._unwrapped:
                self._starts.append(len(self._lines))
                self._lines += self._fold(each, width)
        else:
            self._lines = [*self._unwrapped]
        self.virtual_size = Size(self.size.width, len(self._lines))
        if self.follow:
            self.action_bottom()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        theme = self._theme()
        ground = theme.background("background")
        width = self.scrollable_content_region.width
        place = round(y + self.scroll_offset.y)
        shown = _line_at(self._lines, place)
        if self.searched:
            shown = marked(shown, self.searched, FOUND if self._given_at(place) == self._match else MATCH)
        return strip_of(shown, width, theme, ground)

    def on_click(self, event: events.Click) -> None:
        """Copy the whole line under the right button, however much of it is visible."""
        number = self._given_at(round(event.y + self.scroll_offset.y))
        if event.button == RIGHT and 0 <= number < len(self._unwrapped):
            self.app.copy_to_clipboard(plain(self._unwrapped[number]).strip())
            self.app.notify("copied the line")

    def action_by(self, lines: int) -> None:
        self.follow = False
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False)

    def action_pages(self, pages: int) -> None:
        self.action_by(pages * max(1, self.size.height - 1))

    def action_top(self) -> None:
        self.follow = False
        self.scroll_to(y=0, animate=False)

    def action_bottom(self) -> None:
        self.follow = True
        self.scroll_to(y=max(0, len(self._lines) - self.size.height), animate=False, force=True)

    def on_resize(self) -> None:
        self._lay_out()
        self.post_message(self.Resized(self))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Set the scrollbar's position, which Textual does not while it is hidden: it would appear at the top."""
        self.vertical_scrollbar.position = new_value
        super().watch_scroll_y(old_value, new_value)


def _line_at(lines: Sequence[Line], number: int) -> Line:
    return lines[number] if 0 <= number < len(lines) else ()
