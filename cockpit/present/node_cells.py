"""The Nodes view's columns as cells with roles: fractions with bars, and who holds which card."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cockpit.model.node import NodeState
from cockpit.model.view import NodeRow
from cockpit.present import units
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.present.tables.nodes import usage_entry

BAR_COLUMNS = 6
GAP = 2


class NodeColumn(NamedTuple):
    """One column. `need`: shown from this total width on."""

    id: str
    title: str
    width: int
    cell: Callable[[NodeRow], Line]
    grows: int = 0
    need: int = 0


def _name(row: NodeRow) -> Line:
    return line(Span(safe(row.node.name), STRONG))


def _status(row: NodeRow) -> Line:
    if row.node.state is not NodeState.UP:
        return line(Span(f"■ {row.node.state}", "drained"))
    busy = bool(row.jobs)
    return line(Span("● in use" if busy else "○ free", "running" if busy else "idle"))


def _fraction(used: int, total: int, text: str, digits: int) -> Line:
    if not total:
        return line(Span("–".rjust(digits), MUTED))
    part = used / total
    role = "tight" if part >= 1 else "running"
    return line(f"{text:>{digits}} ", Span(units.bar(part, BAR_COLUMNS), role), Span(_rest(part), "free"))


def _rest(part: float) -> str:
    return "·" * (BAR_COLUMNS - len(units.bar(part, BAR_COLUMNS).rstrip()))


def _cpus(row: NodeRow) -> Line:
    return _fraction(row.used_cpus, row.node.cpus, f"{row.used_cpus}/{row.node.cpus}", 7)


def _memory(row: NodeRow) -> Line:
    text = f"{units.memory(row.used_memory_mib)}/{units.memory(row.node.memory_mib)}"
    return _fraction(row.used_memory_mib, row.node.memory_mib, text, 13)


def _cards(row: NodeRow) -> Line:
    total = len(row.node.cards) * 1000
    return _fraction(row.used_card_milli, total, f"{units.cards(row.used_card_milli)}/{len(row.node.cards)}", 7)


def _model(row: NodeRow) -> Line:
    models = dict.fromkeys(card.model for card in row.node.cards)
    return line(Span(safe(", ".join(models)) or "–", MUTED))


def _usage(row: NodeRow) -> Line:
    return line(safe(", ".join(map(usage_entry, row.slices))))


def _system(row: NodeRow) -> Line:
    return line(Span(safe(f"{row.node.os} {row.node.kernel}".strip()) or "–", MUTED))


COLUMNS = (
    NodeColumn("name", "NODE", 12, _name, grows=1),
    NodeColumn("status", "STATUS", 9, _status),
    NodeColumn("cpus", "CPUS", 7 + 1 + BAR_COLUMNS, _cpus),
    NodeColumn("memory", "MEMORY", 13 + 1 + BAR_COLUMNS, _memory, need=100),
    NodeColumn("cards", "CARDS", 7 + 1 + BAR_COLUMNS, _cards),
    NodeColumn("model", "MODEL", 10, _model, need=90),
    NodeColumn("usage", "USAGE", 18, _usage, grows=3),
    NodeColumn("system", "SYSTEM", 30, _system, need=160),
)


def laid_out(total: int) -> list[tuple[NodeColumn, int]]:
    """The columns that fit, with their widths."""
    chosen = [column for column in COLUMNS if total >= column.need]
    left = max(0, total - sum(column.width for column in chosen) - GAP * (len(chosen) - 1))
    shares = sum(column.grows for column in chosen)
    return [(column, column.width + left * column.grows // shares) for column in chosen]
