"""The Clusters view's columns as cells with roles: whether each answers, how old that is, and how loaded it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from cockpit.model.job import JobState
from cockpit.model.view import ClusterRow, ClusterState
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.columns import NOTHING, Context
from cockpit.present.layout import fitting
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.present.tables.clusters import WORDS, age_seconds, cards, count, cpus

SHAPES: Final = {
    ClusterState.LIVE: ("●", "running"),
    ClusterState.CONNECTING: ("◌", "queued"),
    ClusterState.STILL: ("■", MUTED),
    ClusterState.SILENT: ("✗", "error"),
}
OLD_SECONDS = 60
"""Data of a live cluster that is older than this stands out."""
LEAST_BAR = 6
GAP = 1


class ClusterColumn(NamedTuple):
    """One column of the view."""

    id: str
    title: str
    width: int
    cell: Callable[[ClusterRow, Context, int], Line]
    """Of so many columns."""
    right: bool = False
    grows: int = 0
    most: int = 0
    need: int = 0


def state_cell(row: ClusterRow) -> Line:
    shape, role = SHAPES[row.state]
    return line(Span(f"{shape} {WORDS[row.state]}", role))


def _state(row: ClusterRow, _: Context, __: int) -> Line:
    return state_cell(row)


def _name(row: ClusterRow, _: Context, __: int) -> Line:
    return line(Span(safe(row.name), STRONG))


def age_words(row: ClusterRow, context: Context) -> str:
    """`2 s`, `17 h`; a dash where nothing is known."""
    seconds = age_seconds(row, context)
    return NOTHING if seconds is None else units.age(seconds)


def _age(row: ClusterRow, context: Context, _: int) -> Line:
    seconds = age_seconds(row, context)
    old = row.state is not ClusterState.STILL and (seconds or 0) >= OLD_SECONDS
    return line(Span(age_words(row, context), "warning" if old else MUTED))


def _jobs(state: JobState, role: str) -> Callable[[ClusterRow, Context, int], Line]:
    def cell(row: ClusterRow, _: Context, __: int) -> Line:
        if row.overview is None:
            return line(Span(NOTHING, MUTED))
        number = count(row, state)
        return line(Span(str(number), role if number else MUTED))

    return cell


def _held(
    digits: int, found: Callable[[ClusterRow], tuple[float, float]]
) -> Callable[[ClusterRow, Context, int], Line]:
    """`115/132` and a bar."""

    def cell(row: ClusterRow, _: Context, columns: int) -> Line:
        used, total = found(row)
        if not total:
            return line(Span(NOTHING.rjust(digits), MUTED))
        text = f"{used:g}/{total:g}".rjust(digits)
        room = columns - len(text) - GAP
        role = "running" if row.state is not ClusterState.SILENT else MUTED
        return (Span(text), Span(" " * GAP), *bar(used / total, room, role)) if room >= LEAST_BAR else line(Span(text))

    return cell


def _nodes(row: ClusterRow, _: Context, __: int) -> Line:
    return line(Span(str(row.overview.nodes) if row.overview is not None else NOTHING, MUTED))


def _way(row: ClusterRow, _: Context, __: int) -> Line:
    """Or why nothing is heard that way."""
    return line(Span(safe(row.reason), "error") if row.reason else Span(safe(row.way), MUTED))


COLUMNS: Final = (
    ClusterColumn("name", "CLUSTER", 12, _name, grows=1, most=24),
    ClusterColumn("state", "STATE", 14, _state),
    ClusterColumn("age", "AGE", 6, _age, right=True),
    ClusterColumn("running", "RUN", 5, _jobs(JobState.RUNNING, "running"), right=True),
    ClusterColumn("queued", "WAIT", 6, _jobs(JobState.QUEUED, "queued"), right=True),
    ClusterColumn("cards", "CARDS", 18, _held(9, cards), grows=1, most=26),
    ClusterColumn("cpus", "CPUS", 18, _held(11, cpus), grows=1, most=28, need=100),
    ClusterColumn("nodes", "NODES", 5, _nodes, right=True, need=110),
    ClusterColumn("way", "WAY", 16, _way, grows=2, need=110),
)


@lru_cache(maxsize=16)
def laid_out(total: int) -> tuple[tuple[ClusterColumn, int], ...]:
    """The columns that fit, with their widths."""
    return tuple(fitting(COLUMNS, total))
