"""The Jobs view's columns as cells with roles: which ones fit a width, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cockpit.model.job import ENDED, JobState
from cockpit.model.view import JobRow
from cockpit.present import units
from cockpit.present.columns import NOTHING, Context
from cockpit.present.moments import clock
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.present.states import GLYPHS, state_words
from cockpit.present.tables.jobs import elapsed_seconds, why

BAR_COLUMNS = 8
GAP = 2
"""Blank columns between two cells."""

ASCII_SHAPES = {
    JobState.QUEUED: "Q",
    JobState.PRECHECKING: "c",
    JobState.STAGING: "d",
    JobState.STARTING: "r",
    JobState.RUNNING: "R",
    JobState.RESUMING: "r",
    JobState.SUSPENDED: "=",
    JobState.SUCCEEDED: "+",
    JobState.ERROR: "x",
    JobState.EXPIRED: "!",
    JobState.STOPPED: "#",
}


class CellContext(NamedTuple):
    """What cells depend on besides the row."""

    context: Context
    ascii_only: bool = False


class CellColumn(NamedTuple):
    """One column of the view. `id` is the one of the headless table, so that sorting and filtering mean the same."""

    id: str
    title: str
    width: int
    cell: Callable[[JobRow, CellContext], Line]
    right: bool = False
    grows: int = 0
    """Its share of the columns that are left over."""
    need: int = 0
    """Shown from this total width on."""


def _id(row: JobRow, _: CellContext) -> Line:
    return line(Span(str(row.id), MUTED))


def _name(row: JobRow, _: CellContext) -> Line:
    return line(Span(safe(row.name), MUTED if row.state in ENDED and row.held_until is None else STRONG))


def _user(row: JobRow, _: CellContext) -> Line:
    return line(safe(row.user))


def state_cell(row: JobRow, cells: CellContext) -> Line:
    """Shape and word; what is kept says how long."""
    shape = ASCII_SHAPES[row.state] if cells.ascii_only else GLYPHS[row.state]
    words = state_words(row.state, row.held_until, cells.context.now, ending=row.ending is not None)
    state, _, beside = words.partition(" · ")
    shown = line(Span(f"{shape} {state}", str(row.state)))
    return (*shown, Span(f" · {beside}", "held")) if beside else shown


def _nodes(row: JobRow, _: CellContext) -> Line:
    return line(Span(str(row.nodes), MUTED))


def _cards(row: JobRow, _: CellContext) -> Line:
    return line(str(units.cards(row.card_milli))) if row.card_milli else line(Span(NOTHING, MUTED))


def _time(row: JobRow, cells: CellContext) -> Line:
    """Elapsed, its part of the limit as a bar, the limit."""
    limit = coarse(row.time_limit_seconds)
    elapsed = elapsed_seconds(row, cells.context)
    if elapsed is None:
        return line(Span(f"{'':{5 + BAR_COLUMNS}} / {limit:>5}", MUTED))
    part = elapsed / row.time_limit_seconds
    filled = "#" * round(min(part, 1.0) * BAR_COLUMNS) if cells.ascii_only else units.bar(part, BAR_COLUMNS)
    running = row.ended_at is None
    return line(
        f"{coarse(elapsed):>5} " if running else Span(f"{coarse(elapsed):>5} ", MUTED),
        Span(f"{filled.strip():<{BAR_COLUMNS}}" if running else " " * BAR_COLUMNS, str(row.state)),
        Span(f"/ {limit:>5}", MUTED),
    )


def coarse(seconds: int) -> str:
    """`42s`, `12m`, `3:12`, `5d 3h`: nothing that changes every second for longer than a minute."""
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}:{minutes:02}" if hours < 48 else f"{hours // 24}d{hours % 24:>2}h"


def _start(row: JobRow, cells: CellContext) -> Line:
    if row.started_at is None:
        return line(Span(NOTHING, MUTED))
    return line(Span(clock(row.started_at, cells.context.now, cells.context.zone), MUTED))


def _why(row: JobRow, cells: CellContext) -> Line:
    return line(Span(why(row, cells.context) or "", "text" if row.reason is not None else MUTED))


COLUMNS = (
    CellColumn("id", "ID", 7, _id, right=True),
    CellColumn("name", "NAME", 16, _name, grows=1),
    CellColumn("user", "USER", 8, _user, need=100),
    CellColumn("state", "STATE", 19, state_cell),
    CellColumn("nodes", "NODES", 5, _nodes, right=True, need=120),
    CellColumn("cards", "CARDS", 5, _cards, right=True),
    CellColumn("elapsed_seconds", "TIME / LIMIT", 21, _time, need=110),
    CellColumn("started_at", "START", 11, _start, need=130),
    CellColumn("why", "WHY", 18, _why, grows=3),
)


class Laid(NamedTuple):
    """A column with the width that it was given."""

    column: CellColumn
    width: int


def laid_out(total: int) -> tuple[Laid, ...]:
    """The columns that fit, the left-over space shared among those that grow."""
    chosen = [column for column in COLUMNS if total >= column.need]
    left = max(0, total - sum(column.width for column in chosen) - GAP * (len(chosen) - 1))
    shares = sum(column.grows for column in chosen)
    widths = [column.width + left * column.grows // shares for column in chosen]
    widths[-1] += total - sum(widths) - GAP * (len(chosen) - 1) if total > sum(widths) else 0
    return tuple(map(Laid, chosen, widths))
