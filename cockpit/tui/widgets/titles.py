"""The column titles above a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual import events

    from cockpit.tui.widgets.table import Table


class Titles(Widget):
    """The line of column titles of the present table."""

    class Clicked(Message):
        """The message that the user clicked the title of this column."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(self, table: Table, *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.table = table

    def render_line(self, y: int) -> Strip:
        return self.table.header() if y == 0 else Strip.blank(self.size.width)

    def on_click(self, event: events.Click) -> None:
        if (column := self.table.column_at(event.x)) is not None:
            self.post_message(self.Clicked(column.id))
