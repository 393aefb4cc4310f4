"""The Jobs view's columns as cells with roles: which ones fit a width, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from cockpit.model.job import ENDED
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.columns import NOTHING, Context
from cockpit.present.copying import percent
from cockpit.present.folding import FoldedRow, id_text, progress, speaker_of, task_count
from cockpit.present.job_values import amount, cards, elapsed_seconds, why
from cockpit.present.layout import GAP, fitting
from cockpit.present.moments import brief_clock
from cockpit.present.reasons import reason_clauses
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.present.states import GLYPHS, retry_words, seconds_left

TIME_COLUMNS = 5
BAR_COLUMNS = 8
LEAST_ID_COLUMNS = 4
ARRAY_COLUMNS = 9
"""Behind the number: `_[0-99%4]`."""


class CellColumn(NamedTuple):
    """One column of the view. `id` is the one of the headless table, so that sorting and filtering mean the same."""

    id: str
    title: str
    width: int
    cell: Callable[[JobRow, Context], Line]
    right: bool = False
    grows: int = 0
    most: int = 0
    need: int = 0
    ticks: bool = False
    """Tells the time: that it differs is no news."""


def _id(row: JobRow, _: Context) -> Line:
    return line(Span(id_text(row), MUTED))


def _name(row: JobRow, _: Context) -> Line:
    name = Span(safe(row.name), MUTED if row.state in ENDED and row.held_until is None else STRONG)
    if isinstance(row, FoldedRow):
        return line(name, Span(f" [{task_count(row)}]", ACCENT))
    return line(name)


def _user(row: JobRow, _: Context) -> Line:
    return line(safe(row.user))


def state_cell(row: JobRow, _: Context) -> Line:
    """Shape and word, in the state's colour; of a folded array how many are in which."""
    if isinstance(row, FoldedRow):
        states = (Span(f"{GLYPHS[state]} {count} ", str(state)) for state, count in row.states)
        return (*states, *((Span(f"{row.gone} ended", MUTED),) if row.gone else ()))
    word = "ending" if row.ending is not None and row.ended_at is None else str(row.state)
    part = f" {percent(row.staged)}" if row.staged is not None and row.ending is None else ""
    shown = Span(f"{GLYPHS[row.state]} {word}{part}", str(row.state))
    return line(shown, Span("·held", "held")) if row.held_until is not None else line(shown)


def _queue(row: JobRow, _: Context) -> Line:
    return line(safe(",".join(row.partitions))) if row.partitions else line(Span(NOTHING, MUTED))


def _priority(row: JobRow, _: Context) -> Line:
    return line(Span(NOTHING if row.priority is None else units.grouped(row.priority), MUTED))


_NODES_OF: Final = amount("nodes")


def _nodes(row: JobRow, context: Context) -> Line:
    """`3/8`: an elastic job has 3 and may have 8."""
    most = f"/{row.workers[2]}" if row.workers is not None else ""
    return line(Span(f"{_NODES_OF(row, context)}{most}", MUTED))


def _cards(row: JobRow, context: Context) -> Line:
    held = cards(row, context)
    return line(str(held)) if held else line(Span(NOTHING, MUTED))


def _time(row: JobRow, context: Context) -> Line:
    """Elapsed, its part of the limit as a bar, the limit; of several tasks how many have ended, in place of elapsed."""
    limit = Span(f" / {coarse(row.time_limit_seconds):>5}", MUTED)
    if (tasks := progress(row)) is not None:
        ended, count = tasks
        said = f"{ended}/{count}"
        room = TIME_COLUMNS + 1 + BAR_COLUMNS - max(TIME_COLUMNS, len(said)) - 1
        return (Span(f"{said:>{TIME_COLUMNS}} "), *bar(ended / count, room, str(row.state)), limit)
    elapsed = elapsed_seconds(row, context)
    if elapsed is None:
        return line(Span(" " * (TIME_COLUMNS + 1 + BAR_COLUMNS)), limit)
    if row.ended_at is not None:
        return line(Span(f"{coarse(elapsed):>{TIME_COLUMNS}} {'':{BAR_COLUMNS}}", MUTED), limit)
    return (
        Span(f"{coarse(elapsed):>{TIME_COLUMNS}} "),
        *bar(elapsed / row.time_limit_seconds, BAR_COLUMNS, str(row.state)),
        limit,
    )


def coarse(seconds: int) -> str:
    """`42s`, `12m`, `3:12`, `5d 3h`: nothing that changes every second for longer than a minute."""
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}:{minutes:02}" if hours < 48 else f"{hours // 24}d{hours % 24:>2}h"


def _start(row: JobRow, context: Context) -> Line:
    """When it did; of a queued job when it likely will, marked so."""
    if row.started_at is not None:
        return line(Span(brief_clock(row.started_at, context.now, context.zone), MUTED))
    forecast = context.forecasts.get(speaker_of(row)) if row.queued else None
    if forecast is not None and forecast.likely_at is not None:
        return line(Span(f"~{brief_clock(forecast.likely_at, context.now, context.zone)}"))
    return line(Span(NOTHING, MUTED))


def _clusters(row: JobRow, _: Context) -> Line:
    return line(Span(", ".join(map(safe, dict.fromkeys(row.clusters))) or NOTHING, MUTED))


def _placed_on(row: JobRow, _: Context) -> Line:
    return line(Span(", ".join(map(safe, dict.fromkeys(row.placed_on))) or NOTHING, MUTED))


def _why(row: JobRow, context: Context) -> Line:
    """What stands in the way first; what else is to know of it is quieter, and is cut first."""
    if row.reason is not None:
        first, *more = reason_clauses(row.reason, context.now, context.zone)
        more += [] if row.retries is None else [retry_words(row.retries)]
        shown = Span(first, "held" if isinstance(row.reason, Held) else "text")
        return line(shown, Span(f"; {'; '.join(more)}", MUTED)) if more else line(shown)
    sentence = Span(why(row, context) or "", MUTED if row.ended_at is not None and row.held_until is None else "text")
    if row.held_until is None:
        return line(sentence)
    left = units.countdown(seconds_left(row.held_until, context.now))
    return line(sentence, Span(f" · held {left} more", "held"))


COLUMNS = (
    CellColumn("id", "ID", LEAST_ID_COLUMNS, _id, right=True, need=84),
    CellColumn("name", "NAME", 16, _name, grows=2, most=30),
    CellColumn("clusters", "CLUSTER", 7, _clusters, grows=1, most=14),
    CellColumn("user", "USER", 8, _user, grows=1, most=12, need=94),
    CellColumn("state", "STATE", 14, state_cell),
    CellColumn("partitions", "QUEUE", 6, _queue, grows=1, most=12, need=108),
    CellColumn("priority", "PRIO", 6, _priority, right=True, need=126),
    CellColumn("nodes", "NODES", 5, _nodes, right=True, need=126),
    CellColumn("cards", "CARDS", 5, _cards, right=True),
    CellColumn("elapsed_seconds", " TIME          / LIMIT", 22, _time, need=116, ticks=True),
    CellColumn("started_at", "START", 6, _start, right=True),
    CellColumn("placed_on", "ON", 12, _placed_on, grows=1, most=20, need=160),
    CellColumn("why", "WHY", 28, _why, grows=6),
)

SOMETIMES = frozenset({"partitions", "priority"})
"""What some clusters have."""
LESSER = frozenset({"nodes", "placed_on"})
"""Give way to those."""


class Laid(NamedTuple):
    """A column with the width that it was given."""

    column: CellColumn
    width: int


@lru_cache(maxsize=64)
def laid_out(total: int, id_columns: int = LEAST_ID_COLUMNS, without: frozenset[str] = frozenset()) -> tuple[Laid, ...]:
    """The columns that fit but those `without`, the left-over space shared among those that grow."""
    wanted = [each for each in COLUMNS if each.id not in without]
    always = sum(each.width + GAP for each in wanted if each.id == "clusters")
    added = always + sum(each.width + GAP for each in wanted if each.id in SOMETIMES)
    columns = [
        each._replace(
            width=id_columns if each.id == "id" else each.width,
            need=each.need and each.need + (added if each.id in LESSER else always),
        )
        for each in wanted
    ]
    return tuple(Laid(column, width) for column, width in fitting(columns, total))
