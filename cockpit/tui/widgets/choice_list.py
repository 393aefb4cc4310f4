"""The list of a field's choices, which lies over the form while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message
from textual.widget import Widget

from cockpit.present.form.choices import ChoiceColumns, FieldChoice, choice_line
from cockpit.present.spans import MUTED, Span, line
from cockpit.tui.widgets.lines import strip_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from textual import events
    from textual.geometry import Region, Size
    from textual.strip import Strip

    from cockpit.tui.theme import RoleTheme

MOST_LINES = 8


class ChoiceList(Widget):
    """Choices with a cursor on one of them, or on none; closed until `open` is called."""

    class Clicked(Message):
        """The message that the user clicked a choice."""

        def __init__(self, choice: FieldChoice) -> None:
            super().__init__()
            self.choice = choice

    def __init__(self, theme: Callable[[], RoleTheme]) -> None:
        super().__init__()
        self._theme = theme
        self._choices: Sequence[FieldChoice] = ()
        self._chosen: Collection[str] = ()
        self._columns = ChoiceColumns(0, 0)
        self._cursor: int | None = None
        self._top = self._lines = 0
        self.display = False

    @property
    def is_open(self) -> bool:
        return self.display

    @property
    def current(self) -> FieldChoice | None:
        """The choice under the cursor; None: the cursor is on none."""
        return self._choices[self._cursor] if self.is_open and self._cursor is not None else None

    def open(self, choices: Sequence[FieldChoice], chosen: Collection[str], cursor: int | None) -> None:
        """Show these choices; `chosen` are the field's values. `place` says where."""
        self._choices, self._chosen, self._columns = choices, chosen, ChoiceColumns.of(choices)
        self.display = True
        self._move_to(cursor)

    def place(self, field: Region, screen: Size) -> None:
        """Lie below the field, or above it where there is more room."""
        below, above = screen.height - field.bottom, field.y
        is_cut = len(self._choices) > MOST_LINES
        height = min(MOST_LINES + 1 if is_cut else len(self._choices), max(below, above))
        self._lines = height - (height < len(self._choices))
        # At least as wide as the field, whose error it covers.
        self.styles.width = min(max(self._columns.wanted, field.width), screen.width - field.x)
        self.styles.height = height
        self.styles.offset = (field.x, field.bottom if height <= below else field.y - height)
        self._move_to(self._cursor)

    def close(self) -> None:
        self.display = False

    def move(self, step: int) -> None:
        """Move the cursor, around the end; from no choice to the first or the last one."""
        if self._cursor is None:
            self._move_to(0 if step > 0 else len(self._choices) - 1)
        else:
            self._move_to((self._cursor + step) % len(self._choices))

    def _move_to(self, cursor: int | None) -> None:
        self._cursor = cursor
        shown = cursor or 0
        self._top = min(max(self._top, shown - self._lines + 1), shown)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        theme, width = self._theme(), self.size.width
        number = self._top + y
        if y >= self._lines:
            words = f"   {counted_words(len(self._choices), self._cursor)}"
            return strip_of(line(Span(words, MUTED)), width, theme, theme.background("panel"))
        if number >= len(self._choices):
            return strip_of((), width, theme, theme.background("panel"))
        choice = self._choices[number]
        shown = choice_line(choice, is_chosen=choice.value in self._chosen, value_columns=self._columns.value)
        return strip_of(shown, width, theme, theme.background("cursor" if number == self._cursor else "panel"))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        number = self._top + event.y
        if event.y < self._lines and number < len(self._choices):
            self.post_message(self.Clicked(self._choices[number]))


def counted_words(count: int, cursor: int | None) -> str:
    """Return the last line of a list that does not show all of its choices."""
    place = f"{cursor + 1} of {count}" if cursor is not None else f"{count} choices"
    return f"{place} · type to filter"
