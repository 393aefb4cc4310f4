"""The Nodes view's columns as cells with roles: fractions with bars, and who holds which card."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from cockpit.model.node import NodeState
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.model.view import NodeRow, Overview, SliceUse
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.columns import NOTHING
from cockpit.present.layout import fitting
from cockpit.present.room import fits
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.present.tables.nodes import usage_entry

BAR_COLUMNS = 6
GIB = 1024
FULL = 1.0
ANY = "any model"

Chosen = NodeSpec | None
"""What nodes are judged against."""


class NodeColumn(NamedTuple):
    """One column of the view."""

    id: str
    title: str
    width: int
    cell: Callable[[NodeRow, Chosen], Line]
    grows: int = 0
    most: int = 0
    need: int = 0


def _name(row: NodeRow, _: Chosen) -> Line:
    return line(Span(safe(row.node.name), STRONG))


def _status(row: NodeRow, chosen: Chosen) -> Line:
    """Against the chosen spec `idle` or `tight`; without one how much of it is in use."""
    if row.node.state is not NodeState.UP:
        return line(Span(f"{'■' if row.node.state is NodeState.DRAINED else '✗'} {row.node.state}", "drained"))
    if row.login:
        return line(Span("– logins", MUTED))
    if row.reserved:
        return line(Span("◆ resv", "held"))
    if chosen is not None:
        return line(Span("○ idle", "idle") if fits(row, chosen) else Span("◉ tight", "tight"))
    if not row.jobs and not row.slices and not row.used_cpus:
        return line(Span("○ free", "idle"))
    return line(Span("◉ full", MUTED) if _full(row) else Span("◐ in use", "running"))


def _full(row: NodeRow) -> bool:
    """Nothing more can start there."""
    used_cards = row.used_card_milli / (len(row.node.cards) * 1000) if row.node.cards else 0.0
    return max(used_cards, row.used_cpus / max(row.node.cpus, 1)) >= FULL


def _fraction(used: float, total: float, text: str, digits: int) -> Line:
    if not total:
        return line(Span(NOTHING.rjust(digits), MUTED))
    part = used / total
    return (Span(f"{text:>{digits}} "), *bar(part, BAR_COLUMNS, "running"))


def _cpus(row: NodeRow, _: Chosen) -> Line:
    return _fraction(row.used_cpus, row.node.cpus, f"{row.used_cpus}/{row.node.cpus}", 7)


def _memory(row: NodeRow, _: Chosen) -> Line:
    used, total = (units.decimal(mib, GIB, digits=1) for mib in (row.used_memory_mib, row.node.memory_mib))
    return _fraction(row.used_memory_mib, row.node.memory_mib, f"{used}/{total}", 10)


def _cards(row: NodeRow, _: Chosen) -> Line:
    total = len(row.node.cards)
    return _fraction(row.used_card_milli, total * 1000, f"{units.cards(row.used_card_milli)}/{total}", 6)


def _model(row: NodeRow, _: Chosen) -> Line:
    models = dict.fromkeys(card.model for card in row.node.cards)
    return line(Span(safe(", ".join(models)) or NOTHING, MUTED))


def _usage(row: NodeRow, _: Chosen) -> Line:
    if row.node.state is not NodeState.UP and not row.slices:
        return line(Span(safe(row.node.state_reason), "drained"))
    return line(safe("  ".join(_entries(row))))


def _entries(row: NodeRow) -> Iterator[str]:
    """`1(1):app` for a slice, `2:app` for a whole card, `3–6:app` for whole cards of one job side by side."""
    for _, group in groupby(enumerate(row.slices), key=_run):
        uses = [use for _, use in group]
        first, last = uses[0], uses[-1]
        yield f"{first.card + 1}–{last.card + 1}:{first.name}" if len(uses) > 1 else usage_entry(first)


def _run(numbered: tuple[int, SliceUse]) -> tuple[object, ...]:
    """Equal for whole cards of one job whose numbers follow each other."""
    number, use = numbered
    return (use.job, use.name, use.card - number) if use.slot is None and use.milli == WHOLE_CARD else (number,)


def _system(row: NodeRow, _: Chosen) -> Line:
    return line(Span(safe(f"{row.node.os} {row.node.kernel}".strip()) or NOTHING, MUTED))


COLUMNS = (
    NodeColumn("name", "NODE", 8, _name, grows=1, most=20),
    NodeColumn("status", "STATUS", 9, _status),
    NodeColumn("cpus", "   CPUS", 7 + 1 + BAR_COLUMNS, _cpus),
    NodeColumn("memory", "MEMORY GiB", 10 + 1 + BAR_COLUMNS, _memory, need=100),
    NodeColumn("cards", " CARDS", 6 + 1 + BAR_COLUMNS, _cards),
    NodeColumn("model", "MODEL", 8, _model, grows=1, most=20, need=90),
    NodeColumn("usage", "USAGE", 18, _usage, grows=6),
    NodeColumn("system", "SYSTEM", 30, _system, grows=1, most=50, need=170),
)


@lru_cache(maxsize=16)
def laid_out(total: int) -> tuple[tuple[NodeColumn, int], ...]:
    """The columns that fit, with their widths."""
    return tuple(fitting(COLUMNS, total))


def card_demand(overview: Overview | None) -> dict[str, float]:
    """How many cards of each model the queued jobs ask for, and last of any model."""
    wanted = overview.demand if overview is not None else {}
    in_order = sorted(wanted.items(), key=lambda each: (not each[0], each[0]))
    return {model or ANY: milli / WHOLE_CARD for model, milli in in_order}
