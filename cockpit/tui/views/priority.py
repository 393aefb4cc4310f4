"""The Priority view. The poller fetches its rows in a task of their own, as their answer may take seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.priority_columns import Figures
from cockpit.present.priority_panel import legend, nothing_to_rank, priority_answer, trial_words
from cockpit.present.spans import ACCENT, Line, Span, key_hint
from cockpit.present.tables.priority import PLACE
from cockpit.present.tables.priority import PRIORITY as PRIORITY_TABLE
from cockpit.tui.views.view import View, ViewContext

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cockpit.model.view import PriorityRow
    from cockpit.tui.rows.priority import PriorityRows

FIGURE_NOTES = {Figures.CONTRIBUTION: "", Figures.RAW: "   raw factors", Figures.WEIGHT: "   weights"}
"""What the note says about the figures in the columns."""
PANEL_FROM = 100
"""Width in columns from which the panel also shows keys."""


def _note(context: ViewContext) -> Iterator[Span]:
    """Yield the note: tried weights, kind of figures, and an order that is not the queue's."""
    rows = context.state.priority_rows
    if rows.shown_tried:
        yield Span(f"   what if: {trial_words(rows.queue)}", ACCENT)
    yield Span(FIGURE_NOTES[rows.figures], ACCENT)
    if rows.sort_column != PLACE or rows.descending:
        # The column may not be among those that are shown.
        column = PRIORITY_TABLE.find(rows.sort_column)
        title = column.title.lower() if column is not None else ""
        yield Span(f"   by {title}{' ▼' if rows.descending else ' ▲'}", ACCENT)


def _legend(context: ViewContext) -> Line:
    """Return the factors as they look in the bars, with their weights."""
    rows = context.state.priority_rows
    if rows.weights is None or not rows.factors:
        return ()
    # Beside tried weights the legend shows those in force.
    before = rows.own if rows.shown_tried else None
    return legend(rows.weights, before, rows.factors, rows.chosen, context.columns, letters=rows.letters())


def _panel(row: PriorityRow, context: ViewContext) -> Iterator[Line]:
    rows, columns = context.state.priority_rows, context.columns
    offers = _offers(rows, context.keys) if columns >= PANEL_FROM else ()
    return priority_answer(row, rows.queue, columns, context.lines, tried=rows.shown_tried, offers=offers)


def _offers(rows: PriorityRows, keys: Mapping[str, str]) -> Line:
    if not rows.shown_tried:
        return key_hint(keys.get("weights", ":weights"), "what if")
    shown = (("heavier", "more"), ("lighter", "less"), ("apply_weights", "apply"), ("back", "as it is"))
    hints = (key_hint(keys.get(action, f":{action}"), f"{word}  ") for action, word in shown)
    return tuple(span for hint in hints for span in hint)


def _nothing(rows: PriorityRows, keys: Mapping[str, str]) -> list[Line]:
    """Return the lines in place of the rows; empty where there are rows."""
    return nothing_to_rank(rows.priorities, rows.hidden, keys, tried=rows.shown_tried)


PRIORITY = View(
    table=PRIORITY_TABLE,
    title="Priority",
    rows=lambda state: state.priority_rows,
    key="5",
    action="priorities",
    help="Show the queue in order of priority",
    of_one_cluster=True,
    hint="user:me partition:gpu fairshare<1000 position<=20 note:held",
    help_title="the order of the queue",
    is_sorted=True,
    panel=_panel,
    note=_note,
    legend=_legend,
    advice=lambda context: _nothing(context.state.priority_rows, context.keys),
    is_empty=lambda rows: bool(_nothing(rows, {})),
)
