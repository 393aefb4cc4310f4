"""Texts of the Accounts view: the panel about an account, a user or a QOS, and the question before one is removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isinf

from cockpit.formats.slurm.sacctmgr import limit_words
from cockpit.model import accountchange as change
from cockpit.model.accounts import Qos
from cockpit.model.view import AccountRow
from cockpit.present.accounting import card_hours
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, key_hint, labelled, line, spread
from cockpit.present.tables.accounts import AccountTree, percent
from cockpit.present.tables.qos import qos_answer
from cockpit.present.units import counted, grouped


def place_answer(
    place: AccountRow | Qos | None, tree: AccountTree, keys: Mapping[str, str], columns: int
) -> Iterator[Line]:
    """Yield harmless lines about the row under the cursor. `keys`: the first key of each action by the action's id."""
    if isinstance(place, Qos):
        yield from qos_answer(place, tree.rows(), keys, columns)
    elif place is not None:
        above = [row for key in tree.above(place.association.key) if (row := tree.row(key)) is not None]
        yield from account_answer(place, above, keys, columns, _held_words(place, tree))


def account_answer(
    row: AccountRow, above: Sequence[AccountRow], keys: Mapping[str, str], columns: int, held: str = ""
) -> Iterator[Line]:
    """Yield harmless lines about an association. `above`: the accounts above it, root first; `keys`: the first key of
    each action by the action's id; `held`: the words for what it held in recent days."""
    each = row.association
    left = line(Span(safe(each.user or each.account), ACCENT), Span(f"  {_shares_words(row, above)}", STRONG))
    does = "its jobs" if each.user else "fold"
    yield spread(left, key_hint(keys.get("unfold", "Enter"), does), columns)
    yield labelled("usage", _usage_words(row, above))
    if held:
        yield labelled("held", held)
    yield labelled("limits", " ".join(limit_words(each.limits)) or "none of its own")
    yield labelled("qos", _qos_words(row, above))
    yield labelled("jobs", f"{row.running} running, {row.queued} waiting")
    yield from _more(row)


def _held_words(row: AccountRow, tree: AccountTree) -> str:
    """Return the words for the card-hours held in recent days, busy or not; empty where no usage is known."""
    hours = grouped(card_hours(tree.held(row.association.key)))
    return f"{hours} card-hours in the last {counted(tree.days, 'day')}" if tree.days else ""


def _shares_words(row: AccountRow, above: Sequence[AccountRow]) -> str:
    each = row.association
    if not above:
        return "is above all accounts."
    parent = safe(above[-1].association.account)
    # sacctmgr's `fairshare=parent`.
    if each.shares is None:
        return f"shares as account {parent} itself does."
    return f"has {counted(each.shares, 'share')}, {percent(row.norm_shares)} of those below {parent}."


def _usage_words(row: AccountRow, above: Sequence[AccountRow]) -> str:
    """Return the usage in words, and what it means for the place of the association's jobs."""
    used = f"{grouped(row.used)} billing-seconds, {percent(row.norm_usage)} of all"
    # Root has no level; the classic fair share has no LevelFS.
    if not above or row.level_fs is None:
        factor = "" if row.fair_share is None else f"; fair share {row.fair_share:.4f}"
        return f"{used}{factor}"
    # LevelFS is shares by usage, and infinite without usage; Fair Tree serves larger ones first.
    if isinf(row.level_fs):
        verdict = "nothing used yet, so it comes first on its level"
    elif row.level_fs < 1:
        verdict = f"LevelFS {row.level_fs:.3g}: more than its share, so its jobs come later"
    else:
        verdict = f"LevelFS {row.level_fs:.3g}: less than its share, so its jobs come earlier"
    return f"{used}; {verdict}"


def _qos_words(row: AccountRow, above: Sequence[AccountRow]) -> str:
    """Return the association's QOS and default QOS; without its own, those of the nearest account above that
    has some."""
    own = row.association.qos
    # Slurm hands a list of QOS down to all accounts and users that have none of their own.
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
        yield labelled("run by", ", ".join(each.coordinators))
    words = [f"priority {each.priority}"] if each.priority is not None else []
    words += ["the user's default account"] if each.default else []
    words += [f"only in partition {each.partition}"] if each.partition else []
    if words:
        yield labelled("also", ", ".join(words))


def first_account_lines(keys: Mapping[str, str], *, locked: str) -> Iterator[Line]:
    """Yield the lines for a tree that has only root. `locked`: why the user may not change accounts; empty: the user
    may."""
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


JOBS_PREVENT = "What still has jobs is not removed; usage and accounting stay."


def question(wanted: change.AccountChange) -> tuple[str, str]:
    """Return the question, and the consequences of a yes, both harmless."""
    match wanted:
        case change.RemoveAccount():
            sentence = f"Remove account {safe(wanted.name)}?"
            return sentence, f"With every account and user below it. {JOBS_PREVENT}"
        case change.RemoveUser():
            account = f"account {safe(wanted.account)}" if wanted.account else "every account"
            where = f", partition {safe(wanted.partition)}" if wanted.partition else ""
            return f"Remove user {safe(wanted.user)} from {account}{where}?", JOBS_PREVENT
        case change.RemoveQos():
            return (
                f"Remove QOS {safe(wanted.name)}?",
                "Jobs can no longer request it; a QOS that is in use is not removed.",
            )
        case change.RemoveCoordinators():
            users = ", ".join(map(safe, wanted.users))
            return (
                f"Take account {safe(wanted.account)} away from {users}?",
                "They administer nothing below it any more.",
            )
    return "Change the accounts?", ""
