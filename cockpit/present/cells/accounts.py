"""The Accounts view's columns as cells with roles: the tree, and the QOS."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from cockpit.formats.slurm.sacctmgr import limit_words, qos_words, shares_text
from cockpit.model.accounts import Qos
from cockpit.model.view import AccountRow
from cockpit.present.account_tree import AccountTree
from cockpit.present.accounting import card_hours
from cockpit.present.bars import bar
from cockpit.present.columns import NOTHING
from cockpit.present.layout import fitting
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.present.units import grouped

BAR_COLUMNS = 8
INDENT = "  "
OPEN, FOLDED = "▾ ", "▸ "
PREEMPTION = ("Preempt=", "PreemptMode=")


class AccountColumn(NamedTuple):
    """One column of the tree."""

    id: str
    title: str
    width: int
    cell: Callable[[AccountRow, AccountTree], Line]
    right: bool = False
    grows: int = 0
    most: int = 0
    need: int = 0


class QosColumn(NamedTuple):
    """One column of the QOS."""

    id: str
    title: str
    width: int
    cell: Callable[[Qos], Line]
    right: bool = False
    grows: int = 0
    most: int = 0
    need: int = 0


def _name(row: AccountRow, tree: AccountTree) -> Line:
    each = row.association
    blanks = INDENT * row.depth
    if each.user:
        where = (Span(f" in {safe(each.partition)}", MUTED),) if each.partition else ()
        return (Span(f"{blanks}{INDENT}"), Span(safe(each.user)), *where)
    sign = "" if not tree.is_parent(each.key) else FOLDED if tree.is_folded(each.key) else OPEN
    return line(blanks, Span(sign or INDENT, MUTED), Span(safe(each.account), STRONG))


def _shares(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(NOTHING, MUTED) if not row.depth else shares_text(row.association))


def _norm(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(percent(row.norm_shares), MUTED))


def _usage(row: AccountRow, _: AccountTree) -> Line:
    """Of all usage."""
    role = "tight" if is_over(row) else "running"
    return (Span(f"{percent(row.norm_usage):>5} "), *bar(row.norm_usage, BAR_COLUMNS, role))


def percent(part: float) -> str:
    """`41%`; what is little but not nothing: `<1%`."""
    return "<1%" if 0 < part < 0.005 else f"{part:.0%}"


def is_over(row: AccountRow) -> bool:
    """It used more than its share."""
    return row.effective_usage > row.norm_shares and row.depth > 0


def _card_hours(row: AccountRow, tree: AccountTree) -> Line:
    held = tree.held(row.association.key)
    return line(grouped(card_hours(held)) if held else Span(NOTHING, MUTED))


def _level(row: AccountRow, _: AccountTree) -> Line:
    if row.level_fs is None:
        return line(Span(NOTHING, MUTED))
    return line(Span(f"{row.level_fs:.3g}", "tight" if row.level_fs < 1 else "text"))


def _fair_share(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(NOTHING, MUTED) if row.fair_share is None else f"{row.fair_share:.3f}")


def _running(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(str(row.running), "running" if row.running else MUTED))


def _queued(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(str(row.queued), "queued" if row.queued else MUTED))


def _qos(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(safe(", ".join(row.association.qos)) or "as above", MUTED))


def _default_qos(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(safe(row.association.default_qos) or NOTHING, MUTED))


def _limits(row: AccountRow, _: AccountTree) -> Line:
    return line(safe(" ".join(limit_words(row.association.limits))))


COLUMNS = (
    AccountColumn("account", "ACCOUNT · USER", 20, _name, grows=1, most=30),
    AccountColumn("shares", "SHARES", 6, _shares, right=True),
    AccountColumn("norm_shares", "NORM", 5, _norm, right=True, need=100),
    AccountColumn("norm_usage", "USAGE", 6 + BAR_COLUMNS, _usage),
    AccountColumn("card_hours", "CARD-HOURS", 10, _card_hours, right=True, need=130),
    AccountColumn("level_fs", "LEVELFS", 7, _level, right=True),
    AccountColumn("fair_share", "FAIR", 5, _fair_share, right=True),
    AccountColumn("running", "RUN", 4, _running, right=True, need=90),
    AccountColumn("queued", "WAIT", 4, _queued, right=True, need=90),
    AccountColumn("qos", "QOS", 14, _qos, grows=1, most=30, need=120),
    AccountColumn("default_qos", "DEFAULT", 8, _default_qos, need=150),
    AccountColumn("limits", "LIMITS", 12, _limits, grows=5),
)


def _qos_name(qos: Qos) -> Line:
    return line(Span(safe(qos.name), STRONG))


def _preempts(qos: Qos) -> Line:
    names = safe(", ".join(qos.preempt))
    return line(Span(names or NOTHING, "text" if names else MUTED), Span(f" {safe(qos.preempt_mode.lower())}", MUTED))


def qos_limits(qos: Qos) -> tuple[str, ...]:
    """What it says beside its priority and whom it preempts, in sacctmgr's words."""
    return tuple(word for word in qos_words(qos) if not word.startswith(PREEMPTION))


QOS_COLUMNS = (
    QosColumn("name", "QOS", 12, _qos_name, grows=1, most=24),
    QosColumn("priority", "PRIORITY", 8, lambda qos: line(str(qos.priority)), right=True),
    QosColumn("preempt", "PREEMPTS", 16, _preempts, grows=1, most=30),
    QosColumn("settings", "LIMITS", 20, lambda qos: line(safe(" ".join(qos_limits(qos)))), grows=6),
)


@lru_cache(maxsize=16)
def laid_out(total: int) -> tuple[tuple[AccountColumn, int], ...]:
    """The columns of the tree that fit, with their widths."""
    return tuple(fitting(COLUMNS, total))


@lru_cache(maxsize=16)
def qos_laid_out(total: int) -> tuple[tuple[QosColumn, int], ...]:
    """The columns of the QOS that fit, with their widths."""
    return tuple(fitting(QOS_COLUMNS, total))
