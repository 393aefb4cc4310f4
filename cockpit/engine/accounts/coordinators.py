"""Checks who may change which accounts. Coordinators administer everything below their account, as in Slurm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.accounts.limits import changed_names
from cockpit.model import accountchange as change
from cockpit.model.accounts import NORMAL, ROOT, Accounts, Association, assoc_key
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.engine.access import Actor


def coordinates(accounts: Accounts, user: str, account: str) -> bool:
    """Return whether the user coordinates this account, or one above it."""
    association = accounts.associations.get(assoc_key(account.lower()))
    return association is not None and any(
        user in each.coordinators for each in (association, *accounts.above(association))
    )


def refuse_change(accounts: Accounts, actor: Actor, wanted: change.AccountChange) -> Refusal | None:
    """Return why the actor may not make this change; None: they may."""
    if actor.admin:
        return None
    places = _places(accounts, wanted)
    if not places or not all(coordinates(accounts, actor.name, each) for each in places):
        return _denied("Only an administrator may change this, or a coordinator of the account above it.")
    # Requests that remove something have no settings.
    settings = getattr(wanted, "change", None)
    if isinstance(settings, change.AssociationChange):
        return _refuse_favours(accounts, places[0], settings)
    return None


def _places(accounts: Accounts, wanted: change.AccountChange) -> list[str]:
    """Return the accounts that the requester must coordinate; empty: only administrators may do it."""
    match wanted:
        case change.AddAccount():
            return [wanted.change.parent or ROOT]
        case change.ModifyAccount() | change.RemoveAccount():
            # The account above, since coordinators may not raise their own account's limits; and where it moves to.
            return [*_above(accounts, wanted.name), *filter(None, [getattr(wanted, "change", _NONE).parent])]
        case change.AddCoordinators() | change.RemoveCoordinators():
            return _above(accounts, wanted.account)
        case change.AddUser():
            return [wanted.account]
        case change.ModifyUser() | change.RemoveUser():
            # Without an account the change is one of all the user's accounts.
            return [wanted.account] if wanted.account else _accounts_of(accounts, wanted.user)
        case _:
            return []


_NONE = change.AssociationChange()


def _above(accounts: Accounts, account: str) -> list[str]:
    association = accounts.associations.get(assoc_key(account.lower()))
    return [association.parent] if association is not None and association.parent else []


def _accounts_of(accounts: Accounts, user: str) -> list[str]:
    return [each.account for each in accounts.associations.values() if each.user == user]


def _refuse_favours(accounts: Accounts, account: str, settings: change.AssociationChange) -> Refusal | None:
    """Refuse settings by which a coordinator would give users more than the account itself has."""
    if settings.priority is not None:
        return _denied("priority: only an administrator sets it, since it counts against other accounts.")
    allowed = _allowed_qos(accounts, accounts.associations.get(assoc_key(account.lower())))
    # Names with `-` take something away, and so are not among these.
    wanted = {*changed_names((), settings.qos), *filter(None, [(settings.default_qos or "").lower()])}
    beyond = sorted(wanted - allowed)
    if beyond:
        return _denied(f"qos: account {visible(account)} itself may not use {visible(beyond[0])}.")
    return None


def _allowed_qos(accounts: Accounts, account: Association | None) -> set[str]:
    if account is None:
        return set()
    # As in Slurm, the nearest account that names QOS decides; without any, `normal` alone is allowed.
    chain = (account, *accounts.above(account))
    return set(next((each.qos for each in chain if each.qos), (NORMAL,)))


def _denied(message: str) -> Refusal:
    return Refusal(RefusalKind.DENIED, message)
