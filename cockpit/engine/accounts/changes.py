"""Decides changes of accounts, users and QOS: from a request to one event, or to a `Refusal`.

1. The right is checked: an administrator may change everything; a coordinator what is below the account, but neither
   its own limits nor priorities and QOS.
2. The change is made on a copy of the tree (`Draft`).
3. The changed parts of the draft are checked.
4. The difference between the tree and the draft is the event.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.accounts.coordinators import refuse_change
from cockpit.engine.accounts.draft import ChangeRefused, Draft
from cockpit.engine.accounts.limits import (
    association_errors,
    changed_association,
    changed_qos,
    qos_errors,
)
from cockpit.model import accountchange as change
from cockpit.model import events
from cockpit.model.accounts import NORMAL, ROOT, Accounts, Association, Qos, account_troubles, assoc_key
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.rules.text import rule_name_error, user_name_error
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.engine.access import Actor
    from cockpit.engine.decide import Decision
    from cockpit.engine.state import ClusterState

_BUILT_IN = Accounts().associations
"""The associations that every cluster has from its start."""


def change_accounts(state: ClusterState, actor: Actor, wanted: change.AccountChange) -> Decision:
    """Return the event that makes the wanted change; no event if the tree is as wanted already."""
    refused = refuse_change(state.accounts, actor, wanted)
    if refused is not None:
        return refused
    draft = Draft(state)
    try:
        _draft(wanted, draft)
    except ChangeRefused as error:
        return error.refusal
    event = _difference(state.accounts, draft.accounts)
    # Troubles elsewhere in the tree were there before, and must not forbid a change that does not touch them.
    touched = {each.key for each in event.associations} | {each.name for each in event.qos}
    troubles = [each for each in account_troubles(draft.accounts) if each.key in touched]
    if troubles:
        return Refusal(RefusalKind.INVALID, "\n".join(f"{each.field}: {each.sentence}." for each in troubles))
    # No event where nothing changes: the journal keeps changes alone.
    return [event] if event != events.AccountsChanged() else []


@singledispatch
def _draft(wanted: object, _draft: Draft) -> None:
    msg = f"no rule changes accounts by {type(wanted).__name__}"
    raise TypeError(msg)


@_draft.register(change.AddAccount)
def _(wanted: change.AddAccount, draft: Draft) -> None:
    # In lower case, as slurmdbd stores the names of accounts.
    name = wanted.name.lower()
    _check([*_field_error("name", rule_name_error(name)), *association_errors(wanted.change)])
    if assoc_key(name) in draft.associations:
        raise ChangeRefused(
            RefusalKind.CONFLICT, f"There is an account {name} already; `cockpit accounts modify` changes it."
        )
    parent = draft.account(wanted.change.parent or ROOT).account
    draft.put(changed_association(Association(account=name, parent=parent), wanted.change))


@_draft.register(change.ModifyAccount)
def _(wanted: change.ModifyAccount, draft: Draft) -> None:
    _check(association_errors(wanted.change))
    before = draft.account(wanted.name)
    after = changed_association(before, wanted.change)
    if wanted.change.parent is not None:
        after = replace(after, parent=draft.account(wanted.change.parent).account)
    draft.put(after)


@_draft.register(change.RemoveAccount)
def _(wanted: change.RemoveAccount, draft: Draft) -> None:
    account = draft.account(wanted.name)
    if account.account == ROOT:
        raise ChangeRefused(RefusalKind.CONFLICT, "The account root is above all others and stays.")
    # With all accounts and users below it, which cannot be without it.
    draft.remove([account, *draft.below(account.account)])


@_draft.register(change.AddUser)
def _(wanted: change.AddUser, draft: Draft) -> None:
    named = [*_field_error("user", user_name_error(wanted.user))]
    if wanted.partition:
        named += _field_error("partition", _partition_error(draft, wanted.partition))
    _check([*named, *association_errors(wanted.change)])
    account = draft.account(wanted.account).account
    key = assoc_key(account, wanted.user, wanted.partition)
    if key in draft.associations:
        raise ChangeRefused(
            RefusalKind.CONFLICT,
            f"User {visible(wanted.user)} is in account {account} already; `cockpit accounts modify-user` changes it.",
        )
    # The user's first account is the default one, so that jobs need not name it.
    first = not any(each.user == wanted.user for each in draft.associations.values())
    added = Association(account=account, user=wanted.user, partition=wanted.partition, default=first)
    draft.put(changed_association(added, wanted.change))
    if wanted.change.default:
        draft.make_default(wanted.user, account)


@_draft.register(change.ModifyUser)
def _(wanted: change.ModifyUser, draft: Draft) -> None:
    _check(association_errors(wanted.change))
    meant = draft.users(wanted.user, wanted.account, wanted.partition)
    draft.put(*(changed_association(each, wanted.change) for each in meant))
    if wanted.change.default:
        # One account may have several associations, one for each partition, but a user has one default account.
        if len({each.account for each in meant}) > 1:
            raise ChangeRefused(RefusalKind.INVALID, "default: name the account that is to be the user's default.")
        draft.make_default(wanted.user, meant[0].account)


@_draft.register(change.RemoveUser)
def _(wanted: change.RemoveUser, draft: Draft) -> None:
    gone = draft.users(wanted.user, wanted.account, wanted.partition)
    if any(each.key in _BUILT_IN for each in gone):
        raise ChangeRefused(RefusalKind.CONFLICT, "The user root is always in the account root.")
    draft.remove(gone)


@_draft.register(change.AddQos)
def _(wanted: change.AddQos, draft: Draft) -> None:
    name = wanted.name.lower()
    _check([*_field_error("name", rule_name_error(name)), *qos_errors(wanted.change)])
    if name in draft.qos:
        raise ChangeRefused(
            RefusalKind.CONFLICT, f"There is a QOS {name} already; `cockpit accounts modify-qos` changes it."
        )
    draft.qos[name] = changed_qos(Qos(name=name), wanted.change)


@_draft.register(change.ModifyQos)
def _(wanted: change.ModifyQos, draft: Draft) -> None:
    _check(qos_errors(wanted.change))
    draft.qos[wanted.name.lower()] = changed_qos(draft.quality(wanted.name), wanted.change)


@_draft.register(change.RemoveQos)
def _(wanted: change.RemoveQos, draft: Draft) -> None:
    name = draft.quality(wanted.name).name
    if name == NORMAL:
        raise ChangeRefused(RefusalKind.CONFLICT, "The QOS normal always exists.")
    draft.remove_qos(name)


@_draft.register(change.AddCoordinators)
def _(wanted: change.AddCoordinators, draft: Draft) -> None:
    _check(error for user in wanted.users for error in _field_error("user", user_name_error(user)))
    account = draft.account(wanted.account)
    draft.put(replace(account, coordinators=tuple(dict.fromkeys((*account.coordinators, *wanted.users)))))


@_draft.register(change.RemoveCoordinators)
def _(wanted: change.RemoveCoordinators, draft: Draft) -> None:
    account = draft.account(wanted.account)
    unknown = [user for user in wanted.users if user not in account.coordinators]
    if unknown:
        raise ChangeRefused(RefusalKind.NOT_FOUND, f"{visible(unknown[0])} is no coordinator of {account.account}.")
    left = tuple(user for user in account.coordinators if user not in wanted.users)
    draft.put(replace(account, coordinators=left))


def _partition_error(draft: Draft, name: str) -> str | None:
    if draft.state.cluster.partition(name) is not None:
        return None
    known = ", ".join(each.name for each in draft.state.cluster.partitions) or "none"
    return f"there is no partition {visible(name)}; there are {known}"


def _field_error(field: str, error: str | None) -> list[str]:
    return [f"{field}: {error}"] if error else []


def _check(errors: Iterable[str]) -> None:
    """Raise `ChangeRefused` with one line for each error, if there are any."""
    lines = [f"{error}." for error in errors]
    if lines:
        raise ChangeRefused(RefusalKind.INVALID, "\n".join(lines))


def _difference(before: Accounts, after: Accounts) -> events.AccountsChanged:
    return events.AccountsChanged(
        associations=tuple(each for key, each in after.associations.items() if before.associations.get(key) != each),
        qos=tuple(each for name, each in after.qos.items() if before.qos.get(name) != each),
        removed_associations=tuple(key for key in before.associations if key not in after.associations),
        removed_qos=tuple(name for name in before.qos if name not in after.qos),
    )
