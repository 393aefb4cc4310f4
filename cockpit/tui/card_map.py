"""The table of the Cards view, in whose rows the user also moves sideways, from card slice to card slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from cockpit.present.card_map import part_at
from cockpit.tui.widgets.table import GAP, MARGIN, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events

    from cockpit.present.tables.cards import CardRow
    from cockpit.tui.rows.cards import CardRows
    from cockpit.tui.theme import RoleTheme


class CardMap(Table):
    """The table of nodes with their cards; its row model holds which card or slice is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "pick(1)", show=False),
        Binding("left", "pick(-1)", show=False),
    ]

    def __init__(self, rows: CardRows, theme: Callable[[], RoleTheme], *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(rows, theme, id=id)
        self._cards = rows

    def action_pick(self, step: int) -> None:
        """Select the card or slice `step` places to the right."""
        self._pick(self._cards.neighbour(step))

    def on_click(self, event: events.Click) -> None:
        place = event.y + self.scroll_offset.y
        if place < len(self._cards.order):
            layout = self._cards.layout(self._row_width)
            before = sum(width + GAP for width in (layout.node, layout.model) if width)
            parts = self._cards.of_node(self._cards.order[place])
            self._pick(part_at(parts, layout, event.x - MARGIN - before))
        super().on_click(event)

    def _pick(self, part: CardRow | None) -> None:
        if part is not None:
            self._cards.pick(part)
            self._repick()
            self.post_message(self.CursorMoved(self, self.cursor_id))

    def _put_cursor(self, place: int) -> None:
        before = self.cursor_id
        super()._put_cursor(place)
        self._cards.cursor = self.cursor_id  # type: ignore[assignment]  # ids of nodes
        self._repick(before)

    def _repick(self, *others: object) -> None:
        rows = [row_id for row_id in (*others, self.cursor_id) if row_id is not None]
        self.rows_changed([row_id for row_id in rows if self._rows.place(row_id) is not None], news=False)
