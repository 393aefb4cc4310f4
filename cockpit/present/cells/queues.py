"""The Queues view's columns as cells with roles: what each queue holds of what is kept for it, and of what it may hold.

A bar has three signs, which are told apart without colours too: `━` held within what is kept for it, `═` borrowed, `╌`
kept for it and not in use. It is full at its max, or where it has none at that of the nearest node above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from cockpit.model.view import QueueKind, QueueRow
from cockpit.present.bars import TRACK, TRACK_ROLE
from cockpit.present.columns import NOTHING
from cockpit.present.layout import fitting
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.present.tables.queues import CARDS, CPUS, MEMORY, amount_text, borrowed_words, queue_title, share
from cockpit.sched.rules.tres import LICENCES

INDENT = "  "
OWN, BORROWED, KEPT = "━", "═", "╌"
OWN_ROLE, BORROWED_ROLE, KEPT_ROLE, FULL_ROLE = "running", "tight", "idle", "error"
LEAST_BAR, MOST_BAR = 6, 40
GAP = 1

Bounds = Mapping[str, int]
"""By resource: where a queue's bar is full, in thousandths."""


class QueueColumn(NamedTuple):
    """One column of the view."""

    id: str
    title: str
    width: int
    cell: Callable[[QueueRow, Bounds, int], Line]
    """Of so many columns."""
    right: bool = False
    grows: int = 0
    most: int = 0
    need: int = 0


def bounds_of(rows: list[QueueRow]) -> dict[str, Bounds]:
    """By path and kind: each queue's max, else that of the nearest above; rows are parents first."""
    found: dict[str, Bounds] = {}
    for row in rows:
        above = found.get(row_id(row, row.path.rpartition("/")[0]), {})
        found[row_id(row)] = {**above, **row.max}
    return found


def row_id(row: QueueRow, path: str | None = None) -> str:
    """Distinct, also where a partition is called as a node of the tree is."""
    return f"{row.kind}:{row.path if path is None else path}"


def bar(row: QueueRow, resource: str, full: int, columns: int) -> Line:
    """Every part that is more than nothing takes a column at least, as long as there are enough."""
    used, kept = row.used.get(resource, 0), row.min.get(resource, 0)
    borrows = resource in row.bounded and row.level > 0
    own = min(used, kept) if borrows else used
    parts = (
        (OWN, OWN_ROLE, own),
        (BORROWED, BORROWED_ROLE, used - own),
        (KEPT, KEPT_ROLE, kept - own if borrows else 0),
    )
    top, amount, drawn, spans = max(full, used, kept, 1), 0, 0, list[Span]()
    for sign, role, part in parts:
        amount += part
        end = min(columns, max(drawn + (part > 0), round(columns * amount / top)))
        spans.append(Span(sign * (end - drawn), role))
        drawn = end
    return (*spans, Span(TRACK * (columns - drawn), TRACK_ROLE))


def _resource(resource: str, digits: int) -> Callable[[QueueRow, Bounds, int], Line]:
    def cell(row: QueueRow, bounds: Bounds, columns: int) -> Line:
        full = bounds.get(resource)
        if not full and not row.used.get(resource):
            return line(Span(NOTHING.rjust(digits), MUTED))
        held = share(row, resource)
        used, rest = amount_text(resource, held.used), (amount_text(resource, each) for each in (held.min, held.max))
        tail = "".join(f"/{each}" for each in rest)
        taken = max(digits, len(used) + len(tail))
        wide = max(0, min(MOST_BAR, columns - taken - GAP))
        text = (Span(used.rjust(max(0, digits - len(tail)))), Span(tail, MUTED))
        if not full and not held.min:
            return text  # nothing bounds it: there is no whole to take a part of
        return (*text, Span(" " * GAP), *bar(row, resource, full or 0, wide))

    return cell


def _name(row: QueueRow, _: Bounds, __: int) -> Line:
    name = Span(f"{INDENT * row.level}{queue_title(row)}", STRONG)
    if row.kind is QueueKind.LICENCE:
        held = share(row, LICENCES)
        return name, Span(f" {held.used}/{held.max}  licence", MUTED)
    return (name,) if row.kind is QueueKind.QUOTA else (name, Span("  partition", MUTED))


def _waiting(row: QueueRow, _: Bounds, __: int) -> Line:
    return line(Span(str(row.waiting), "queued" if row.waiting else MUTED))


def _running(row: QueueRow, _: Bounds, __: int) -> Line:
    """Beside the bound on jobs, where there is one worth telling."""
    if row.max_jobs is None or row.max_jobs >= 10**6:
        return line(Span(str(row.running), "running" if row.running else MUTED))
    role = FULL_ROLE if row.running >= row.max_jobs else "running" if row.running else MUTED
    return line(Span(str(row.running), role), Span(f"/{row.max_jobs}", MUTED))


def _borrowed(row: QueueRow, _: Bounds, __: int) -> Line:
    words = ", ".join(borrowed_words(row, None))  # type: ignore[arg-type]  # of no moment
    return line(Span(words, BORROWED_ROLE) if words else Span(NOTHING, MUTED))


def _projects(row: QueueRow, _: Bounds, __: int) -> Line:
    return line(Span(safe(", ".join(row.projects)), MUTED))


def _column(name: str, resource: str, digits: int, need: int = 0) -> QueueColumn:
    least = digits + GAP
    title = f"{name.upper()} used/min/max"
    cell = _resource(resource, digits)
    return QueueColumn(name, title, least + LEAST_BAR, cell, grows=2, most=least + MOST_BAR, need=need)


COLUMNS = (
    QueueColumn("queue", "QUEUE", 16, _name, grows=1, most=36),
    QueueColumn("waiting", "WAIT", 5, _waiting, right=True),
    QueueColumn("running", "RUN", 6, _running, right=True),
    _column("cards", CARDS, 13),
    _column("cpus", CPUS, 14),
    _column("memory", MEMORY, 14, need=110),
    QueueColumn("borrowed", "BORROWED", 22, _borrowed, grows=1, most=34, need=150),
    QueueColumn("projects", "PROJECTS", 12, _projects, grows=1, need=170),
)


@lru_cache(maxsize=16)
def laid_out(total: int) -> tuple[tuple[QueueColumn, int], ...]:
    """The columns that fit, with their widths."""
    return tuple(fitting(COLUMNS, total))
