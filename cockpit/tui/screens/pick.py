"""A list to choose one thing from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, key_hint, line, line_width
from cockpit.present.width import widest
from cockpit.tui.screens.dialog import Dialog
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.table import GAP, MARGIN, Table, TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.theme import RoleTheme

LEAST_NAME_COLUMNS = 32
FRAME = 6
"""Columns and lines of the border, its padding and the title."""
SCROLLBAR = 1
"""Width of the scrollbar of a list that is longer than the screen."""


class Choice(NamedTuple):
    id: str
    name: str
    about: str = ""


class Picked(NamedTuple):
    id: str
    delete: bool = False
    """Whether the user wants to delete it rather than use it."""


class Pick(Dialog[Picked | None]):
    """A dialog with a list from which the user chooses one entry; its result is None where nothing was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", show=False),
        Binding("enter", "choose", show=False),
        Binding("X", "delete", show=False),
    ]

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        theme: Callable[[], RoleTheme],
        *,
        verb: str,
        current: str = "",
        deletion: str = "",
    ) -> None:
        """Make the dialog; `verb` says what Enter does with an entry, `deletion` what X does; empty: X does nothing."""
        super().__init__()
        self._title = _title(title, verb, deletion)
        self._choices = _Choices(choices)
        self._theme = theme
        self._current = current
        self._deletion = deletion

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines(self._theme, ground="background", id="title")
            yield Table(self._choices, self._theme)

    def on_mount(self) -> None:
        box, table = self.query_one(Vertical), self.query_one(Table)
        # As large as its list, within the limits of the stylesheet.
        box.styles.height = len(self._choices.order) + FRAME
        box.styles.width = max(line_width(self._title), self._choices.columns_wanted) + FRAME + SCROLLBAR
        self.query_one("#title", Lines).show([self._title])
        table.order_changed()
        table.move_to(self._current)
        table.focus()

    def action_choose(self) -> None:
        chosen = self.query_one(Table).cursor_id
        self.dismiss(Picked(str(chosen)) if chosen is not None else None)

    def action_delete(self) -> None:
        chosen = self.query_one(Table).cursor_id
        if self._deletion and chosen is not None:
            self.dismiss(Picked(str(chosen), delete=True))

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        event.stop()
        self.action_choose()


async def pick(
    app: Cockpit, title: str, choices: Sequence[Choice], *, verb: str, current: str = "", deletion: str = ""
) -> Picked | None:
    """Let the user choose one of these; return None where nothing was chosen. The arguments are those of `Pick`."""
    dialog = Pick(title, choices, app.state.role_theme, verb=verb, current=current, deletion=deletion)
    return await app.push_screen_wait(dialog)


def _title(title: str, verb: str, deletion: str) -> Line:
    delete = key_hint("X", deletion, "   ") if deletion else ()
    return (Span(safe(title), STRONG), *key_hint("Enter", verb, "   "), *delete)


class _Choices:
    """The choices as `TableRows` of the dialog's table."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._choices = {choice.id: choice for choice in choices}
        self.order: Sequence[str] = list(self._choices)
        self._names = widest([safe(choice.name) for choice in choices])
        self._abouts = widest([safe(choice.about) for choice in choices])
        self.columns_wanted = MARGIN + self._names + GAP + self._abouts

    def place(self, row_id: str) -> int | None:
        return self.order.index(row_id) if row_id in self._choices else None

    def columns(self, width: int) -> Sequence[TableColumn]:
        """Return the columns of names and descriptions; where both do not fit, names shrink first, down to
        `LEAST_NAME_COLUMNS`."""
        room = max(0, width - GAP)
        names = min(self._names, max(room - self._abouts, LEAST_NAME_COLUMNS), room)
        return [TableColumn("", names), TableColumn("", room - names)]

    def cells(self, row_id: str, width: int) -> Sequence[Line]:  # noqa: ARG002 - the table's
        choice = self._choices[row_id]
        return [line(safe(choice.name)), line(Span(safe(choice.about), MUTED))]
