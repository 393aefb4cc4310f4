"""The Priority view's part of the main screen: its note, legend and panel, and the text shown without rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.priority_panel import legend, nothing_to_rank, priority_answer, trial_words
from cockpit.present.spans import ACCENT, MUTED, Line, Span, line
from cockpit.present.tables.priority import PLACE, PRIORITY, Figures
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.table import MARGIN, Table, TitleLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from textual.geometry import Size

    from cockpit.tui.cockpit import Cockpit

SHOWN = {Figures.CONTRIBUTION: "", Figures.RAW: "   raw factors", Figures.WEIGHT: "   weights"}
PANEL_FROM = 100
"""Width in columns from which the panel also shows keys."""


class PriorityPart:
    """The texts around the table of the Priority view, and its sorting."""

    def __init__(self, app: Cockpit, table: Table) -> None:
        self._app = app
        self._rows = app.state.priority_rows
        self._table = table

    def note(self) -> Iterator[Span]:
        """Yield the note: tried weights, kind of figures, and an order that is not the queue's."""
        rows = self._rows
        if rows.shown_tried:
            yield Span(f"   what if: {trial_words(rows.queue)}", ACCENT)
        yield Span(SHOWN[rows.figures], ACCENT)
        if rows.sort_column != PLACE or rows.descending:
            column = PRIORITY.find(rows.sort_column)
            title = column.title.lower() if column is not None else ""
            yield Span(f"   by {title}{' ▼' if rows.descending else ' ▲'}", ACCENT)

    def legend(self, columns: int) -> Line:
        """Return the factors as they look in the bars, with their weights."""
        rows = self._rows
        if rows.weights is None or not rows.factors:
            return ()
        before = rows.own if rows.shown_tried else None
        return legend(rows.weights, before, rows.factors, rows.chosen, columns, letters=rows.letters())

    def answer(self, size: Size, keys: Mapping[str, str]) -> Iterator[Line]:
        """Yield the panel's lines about the job under the cursor."""
        row = self._rows.row(self._table.cursor_id)
        if row is None:
            return
        offers = self._offers(keys) if size.width >= PANEL_FROM else ()
        tried = self._rows.shown_tried
        yield from priority_answer(row, self._rows.queue, size.width, size.height, tried=tried, offers=offers)

    def _offers(self, keys: Mapping[str, str]) -> Line:
        if not self._rows.shown_tried:
            return line(Span(keys.get("weights", ":weights"), ACCENT), Span(" what if", MUTED))
        shown = (("heavier", "more"), ("lighter", "less"), ("apply_weights", "apply"), ("back", "as it is"))
        spans = [(Span(keys.get(action, f":{action}"), ACCENT), Span(f" {word}  ", MUTED)) for action, word in shown]
        return tuple(span for pair in spans for span in pair)

    def nothing(self, keys: Mapping[str, str]) -> list[Line]:
        """Return the lines in place of the rows; empty where there are rows."""
        rows = self._rows
        return nothing_to_rank(rows.priorities, rows.hidden, keys, tried=rows.shown_tried)

    def sort_by_neighbour(self, step: int) -> None:
        """Sort by the shown column `step` places to the right of the present one."""
        rows, ids = self._rows, self.sortable()
        place = ids.index(rows.sort_column) if rows.sort_column in ids else 0
        rows.sort_by(ids[(place + step) % len(ids)])
        self.reordered()

    def sortable(self) -> Sequence[str]:
        """Return the ids of the shown columns by which the rows can be sorted."""
        return self._rows.sortable(self._table.size.width - MARGIN)

    def sort_by(self, column: str) -> None:
        """Sort by this column; if the rows are sorted by it already, reverse the order."""
        rows = self._rows
        rows.sort_by(column, descending=not rows.descending if column == rows.sort_column else None)
        self.reordered()

    def reverse_sort(self) -> None:
        """Reverse the order."""
        self.sort_by(self._rows.sort_column)

    def reordered(self) -> None:
        """Redraw the table after a change of its rows, columns or order."""
        self._table.order_changed()
        self._table.redraw()
        self._table.refresh()
        self._table.screen.query_one(TitleLine).refresh()

    def draw_legend(self, panel: Lines, columns: int, *, shown: bool) -> None:
        """Draw the legend above the column titles, or hide it where another view is shown."""
        panel.display = shown
        if shown:
            panel.show([self.legend(columns)])
