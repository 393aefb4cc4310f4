"""Checks every tree of accounts: parents and QOS exist, and no account is above itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cockpit.model.accounts import ROOT, Accounts, Association, AssocKey, assoc_key
from cockpit.model.text import visible


class TreeError(NamedTuple):
    """An error in one association, or in a QOS (then `key` is its name)."""

    key: AssocKey | str
    field: str
    sentence: str


def account_troubles(accounts: Accounts) -> Iterator[TreeError]:
    """Everything that is wrong with the tree."""
    for key, each in accounts.associations.items():
        yield from (TreeError(key, field, sentence) for field, sentence in _place(accounts, each))
        yield from (TreeError(key, field, sentence) for field, sentence in _qos(accounts, each))
    for name, qos in accounts.qos.items():
        for other in qos.preempt:
            if other not in accounts.qos:
                yield TreeError(name, "preempt", unknown_qos(accounts, other))


def unknown_qos(accounts: Accounts, name: str) -> str:
    """Return the error for a name that is no QOS."""
    return f"there is no QOS {visible(name)}; there are {', '.join(list(accounts.qos)[:10])}"


def _place(accounts: Accounts, each: Association) -> Iterator[tuple[str, str]]:
    above = each.account if each.user else each.parent
    if each.account == ROOT and not each.user:
        if each.parent:
            yield "parent", "root is above all accounts; leave it out"
    elif assoc_key(above) not in accounts.associations:
        yield "account" if each.user else "parent", f"there is no account {visible(above)}"
    elif not each.user and not _reaches_root(accounts, each):
        yield "parent", f"{visible(each.account)} would be above itself"
    if each.user and each.coordinators:
        yield "coordinators", "are an account's, not a user's"


def _reaches_root(accounts: Accounts, each: Association) -> bool:
    """Return whether the chain of parents ends at root or at a missing account, which has an error of its own."""
    seen = {each.account}
    while each.parent:
        if each.parent in seen:
            return False
        seen.add(each.parent)
        above = accounts.associations.get(assoc_key(each.parent))
        if above is None:
            return True
        each = above
    return True


def _qos(accounts: Accounts, each: Association) -> Iterator[tuple[str, str]]:
    for name in each.qos:
        if name not in accounts.qos:
            yield "qos", unknown_qos(accounts, name)
    if each.default_qos and each.default_qos not in accounts.qos:
        yield "default_qos", unknown_qos(accounts, each.default_qos)
