"""The panel about the account, user or QOS under the cursor; and what stands where no account is yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isinf

from cockpit.formats.slurm.sacctmgr import limit_words
from cockpit.model.accounts import Qos
from cockpit.model.view import AccountRow
from cockpit.present.account_tree import AccountTree
from cockpit.present.accounting import card_hours
from cockpit.present.cells.accounts import percent, qos_limits
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.present.units import counted, grouped

INDENT = "  "


def place_answer(
    place: AccountRow | Qos | None, tree: AccountTree, keys: Mapping[str, str], columns: int
) -> Iterator[Line]:
    """Harmless lines about what is under the cursor. `keys`: of actions by id."""
    if isinstance(place, Qos):
        yield from qos_answer(place, tree.rows(), keys, columns)
    elif place is not None:
        above = [row for key in tree.above(place.association.key) if (row := tree.row(key)) is not None]
        yield from account_answer(place, above, keys, columns, _held(place, tree))


def account_answer(
    row: AccountRow, above: Sequence[AccountRow], keys: Mapping[str, str], columns: int, held: str = ""
) -> Iterator[Line]:
    """Harmless lines. `above`: the accounts above it, root first; `keys`: of actions by id; `held`: lately."""
    each = row.association
    left = line(Span(safe(each.user or each.account), ACCENT), Span(f"  {_shares(row, above)}", STRONG))
    does = "its jobs" if each.user else "fold"
    yield spread(left, line(Span(keys.get("unfold", "Enter"), ACCENT), Span(f" {does}", MUTED)), columns)
    yield _labelled("usage", _usage(row, above))
    if held:
        yield _labelled("held", held)
    yield _labelled("limits", " ".join(limit_words(each.limits)) or "none of its own")
    yield _labelled("qos", _qos(row, above))
    yield _labelled("jobs", f"{row.running} running, {row.queued} waiting")
    yield from _more(row)


def _held(row: AccountRow, tree: AccountTree) -> str:
    """In the last days, used or not; empty where nobody has counted."""
    hours = grouped(card_hours(tree.held(row.association.key)))
    return f"{hours} card-hours in the last {counted(tree.days, 'day')}" if tree.days else ""


def _labelled(label: str, words: str) -> Line:
    return line(Span(f"{INDENT}{label:<10}", MUTED), safe(words))


def _shares(row: AccountRow, above: Sequence[AccountRow]) -> str:
    each = row.association
    if not above:
        return "is above all accounts."
    parent = safe(above[-1].association.account)
    if each.shares is None:
        return f"shares as account {parent} itself does."
    return f"has {counted(each.shares, 'share')}, {percent(row.norm_shares)} of those below {parent}."


def _usage(row: AccountRow, above: Sequence[AccountRow]) -> str:
    used = f"{grouped(row.used)} billing-seconds, {percent(row.norm_usage)} of all"
    if not above or row.level_fs is None:
        factor = "" if row.fair_share is None else f"; fair share {row.fair_share:.4f}"
        return f"{used}{factor}"
    if isinf(row.level_fs):
        verdict = "nothing used yet, so it comes first on its level"
    elif row.level_fs < 1:
        verdict = f"LevelFS {row.level_fs:.3g}: more than its share, so its jobs come later"
    else:
        verdict = f"LevelFS {row.level_fs:.3g}: less than its share, so its jobs come earlier"
    return f"{used}; {verdict}"


def _qos(row: AccountRow, above: Sequence[AccountRow]) -> str:
    """Where it has none of its own, those of the nearest account above that has."""
    own = row.association.qos
    giver = next((each.association for each in reversed(above) if each.association.qos), None)
    if own:
        words = ", ".join(own)
    elif giver is not None:
        words = f"{', '.join(giver.qos)} (as {giver.account})"
    else:
        words = "normal"
    default = row.association.default_qos
    return f"{words}; {default} by default" if default else words


def _more(row: AccountRow) -> Iterator[Line]:
    each = row.association
    if each.coordinators:
        yield _labelled("run by", ", ".join(each.coordinators))
    words = [f"priority {each.priority}"] if each.priority is not None else []
    words += ["the user's default account"] if each.default else []
    words += [f"only in partition {each.partition}"] if each.partition else []
    if words:
        yield _labelled("also", ", ".join(words))


def qos_answer(qos: Qos, rows: Sequence[AccountRow], keys: Mapping[str, str], columns: int) -> Iterator[Line]:
    """Harmless lines. `rows`: the accounts, of which some may use it."""
    factor = "" if qos.usage_factor == 1 else f", usage counts {qos.usage_factor:g} times"
    left = line(Span(safe(qos.name), ACCENT), Span(f"  adds priority {qos.priority}{factor}.", STRONG))
    yield spread(left, line(Span(keys.get("next_tab", "]"), ACCENT), Span(" accounts", MUTED)), columns)
    yield _labelled("limits", " ".join(qos_limits(qos)) or "none")
    mode = f" ({qos.preempt_mode.lower()})" if qos.preempt_mode else ""
    yield _labelled("preempts", f"{', '.join(qos.preempt)}{mode}" if qos.preempt else "no jobs")
    users = [each.association.key.removesuffix("/") for each in rows if qos.name in each.association.qos]
    yield _labelled("named by", ", ".join(users) or "no account")


def first_account_lines(keys: Mapping[str, str], *, locked: str) -> Iterator[Line]:
    """Where root is alone. `locked`: why this person may not change that; empty when they may."""
    command = keys.get("command", ":")
    yield line()
    yield line(Span("   There are no accounts yet: use is not counted, and no limits apply.", STRONG))
    yield line()
    if locked:
        yield line(Span(f"   {locked}", MUTED))
        return
    for words, about in (
        ("accounts add vision --shares 60", "an account, with its shares beside others'"),
        ("accounts add-user alice --account vision", "add a user to it"),
        ("accounts modify vision MaxJobs=4 GrpTRES=gres/gpu=16", "and what it may use at once"),
    ):
        yield line(Span(f"   {command}{words:<54}", ACCENT), Span(about, MUTED))
