"""Changes of accounts, users and QOS: from a request to one event, or to a Refusal.

A change is drafted on a copy of the tree, the whole draft is checked, and what became other is the event. Who may:
administrators everything; a coordinator what is below the account, but neither its own limits nor priorities and QOS.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.accountlimits import (
    association_errors,
    changed_association,
    changed_qos,
    qos_errors,
)
from cockpit.engine.coordinators import refuse_change
from cockpit.model import accountchange as change
from cockpit.model import events
from cockpit.model.accounts import NORMAL, ROOT, Accounts, Association, AssocKey, Qos, assoc_key
from cockpit.model.accounttree import account_troubles
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.ruletexts import rule_name_error, user_name_error
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.engine.access import Actor
    from cockpit.engine.decide import Decision
    from cockpit.engine.state import ClusterState
    from cockpit.model.job import Job

NAMED_JOBS = 10
_BEGINNING = Accounts().associations


class No(Exception):
    """The draft cannot be; carries the refusal."""

    def __init__(self, kind: RefusalKind, message: str) -> None:
        self.refusal = Refusal(kind, message)
        super().__init__(message)


class Draft:
    """The tree as it is to become."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.associations = dict(state.accounts.associations)
        self.qos = dict(state.accounts.qos)

    @property
    def accounts(self) -> Accounts:
        return Accounts(associations=self.associations, qos=self.qos)

    def account(self, name: str) -> Association:
        found = self.associations.get(assoc_key(name.lower()))
        if found is None:
            raise No(RefusalKind.NOT_FOUND, f"There is no account {visible(name)}; `cockpit accounts` lists them.")
        return found

    def users(self, user: str, account: str, partition: str) -> list[Association]:
        """The associations that are meant: empty stands for any."""
        found = [
            each
            for each in self.associations.values()
            if each.user == user and account.lower() in {"", each.account} and partition in {"", each.partition}
        ]
        if not found:
            where = f" in account {visible(account)}" if account else ""
            where += f" and partition {visible(partition)}" if partition else ""
            raise No(RefusalKind.NOT_FOUND, f"There is no user {visible(user)}{where}; `cockpit accounts` lists them.")
        return found

    def put(self, *associations: Association) -> None:
        self.associations |= {each.key: each for each in associations}


def change_accounts(state: ClusterState, actor: Actor, wanted: change.AccountChange) -> Decision:
    """What becomes of the tree. Nothing, where all is as it is wanted."""
    refused = refuse_change(state.accounts, actor, wanted)
    if refused is not None:
        return refused
    draft = Draft(state)
    try:
        _draft(wanted, draft)
    except No as no:
        return no.refusal
    event = _difference(state.accounts, draft.accounts)
    touched = {each.key for each in event.associations} | {each.name for each in event.qos}
    troubles = [each for each in account_troubles(draft.accounts) if each.key in touched]
    if troubles:
        return Refusal(RefusalKind.INVALID, "\n".join(f"{each.field}: {each.sentence}." for each in troubles))
    return [event] if event != events.AccountsChanged() else []


@singledispatch
def _draft(wanted: object, _draft: Draft) -> None:
    msg = f"no rule changes accounts by {type(wanted).__name__}"
    raise TypeError(msg)


@_draft.register(change.AddAccount)
def _(wanted: change.AddAccount, draft: Draft) -> None:
    name = wanted.name.lower()
    _check([*_named("name", rule_name_error(name)), *association_errors(wanted.change)])
    if assoc_key(name) in draft.associations:
        raise No(RefusalKind.CONFLICT, f"There is an account {name} already; `cockpit accounts modify` changes it.")
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
        raise No(RefusalKind.CONFLICT, "The account root is above all others and stays.")
    gone = [account, *_below(draft.accounts, account.account)]
    _refuse_jobs(draft, gone)
    for each in gone:
        del draft.associations[each.key]


@_draft.register(change.AddUser)
def _(wanted: change.AddUser, draft: Draft) -> None:
    named = [*_named("user", user_name_error(wanted.user))]
    if wanted.partition:
        named += _named("partition", _partition_error(draft, wanted.partition))
    _check([*named, *association_errors(wanted.change)])
    account = draft.account(wanted.account).account
    key = assoc_key(account, wanted.user, wanted.partition)
    if key in draft.associations:
        raise No(
            RefusalKind.CONFLICT,
            f"User {visible(wanted.user)} is in account {account} already; `cockpit accounts modify-user` changes it.",
        )
    first = not any(each.user == wanted.user for each in draft.associations.values())
    added = Association(account=account, user=wanted.user, partition=wanted.partition, default=first)
    draft.put(changed_association(added, wanted.change))
    if wanted.change.default:
        _make_default(draft, wanted.user, account)


@_draft.register(change.ModifyUser)
def _(wanted: change.ModifyUser, draft: Draft) -> None:
    _check(association_errors(wanted.change))
    meant = draft.users(wanted.user, wanted.account, wanted.partition)
    draft.put(*(changed_association(each, wanted.change) for each in meant))
    if wanted.change.default:
        if len({each.account for each in meant}) > 1:
            raise No(RefusalKind.INVALID, "default: name the account that is to be the user's default.")
        _make_default(draft, wanted.user, meant[0].account)


@_draft.register(change.RemoveUser)
def _(wanted: change.RemoveUser, draft: Draft) -> None:
    gone = draft.users(wanted.user, wanted.account, wanted.partition)
    if any(each.key in _BEGINNING for each in gone):
        raise No(RefusalKind.CONFLICT, "The user root is always in the account root.")
    _refuse_jobs(draft, gone)
    for each in gone:
        del draft.associations[each.key]


@_draft.register(change.AddQos)
def _(wanted: change.AddQos, draft: Draft) -> None:
    name = wanted.name.lower()
    _check([*_named("name", rule_name_error(name)), *qos_errors(wanted.change)])
    if name in draft.qos:
        raise No(RefusalKind.CONFLICT, f"There is a QOS {name} already; `cockpit accounts modify-qos` changes it.")
    draft.qos[name] = changed_qos(Qos(name=name), wanted.change)


@_draft.register(change.ModifyQos)
def _(wanted: change.ModifyQos, draft: Draft) -> None:
    _check(qos_errors(wanted.change))
    draft.qos[wanted.name.lower()] = changed_qos(_qos(draft, wanted.name), wanted.change)


@_draft.register(change.RemoveQos)
def _(wanted: change.RemoveQos, draft: Draft) -> None:
    name = _qos(draft, wanted.name).name
    if name == NORMAL:
        raise No(RefusalKind.CONFLICT, "The QOS normal always exists.")
    live = [job for job in draft.state.jobs.values() if not job.ended and job.qos == name]
    if live:
        raise No(RefusalKind.CONFLICT, f"QOS {name} has jobs: {_jobs(live)}. End them, or wait for them.")
    users = list(_uses_of(draft, name))
    if users:
        raise No(RefusalKind.CONFLICT, f"QOS {name} is used by {_some(users)}; take it away there first.")
    del draft.qos[name]


@_draft.register(change.AddCoordinators)
def _(wanted: change.AddCoordinators, draft: Draft) -> None:
    _check(error for user in wanted.users for error in _named("user", user_name_error(user)))
    account = draft.account(wanted.account)
    draft.put(replace(account, coordinators=tuple(dict.fromkeys((*account.coordinators, *wanted.users)))))


@_draft.register(change.RemoveCoordinators)
def _(wanted: change.RemoveCoordinators, draft: Draft) -> None:
    account = draft.account(wanted.account)
    unknown = [user for user in wanted.users if user not in account.coordinators]
    if unknown:
        raise No(RefusalKind.NOT_FOUND, f"{visible(unknown[0])} is no coordinator of {account.account}.")
    left = tuple(user for user in account.coordinators if user not in wanted.users)
    draft.put(replace(account, coordinators=left))


def _make_default(draft: Draft, user: str, account: str) -> None:
    """One default for each user."""
    for each in list(draft.associations.values()):
        if each.user == user:
            draft.put(replace(each, default=each.account == account))


def _below(accounts: Accounts, account: str) -> Iterator[Association]:
    for each in accounts.children.get(account, ()):
        yield each
        if not each.user:
            yield from _below(accounts, each.account)


def _refuse_jobs(draft: Draft, gone: Iterable[Association]) -> None:
    """What has jobs stays: they are accounted to it."""
    keys = {each.key for each in gone}
    live = [job for job in draft.state.jobs.values() if not job.ended and _keys_of(draft.accounts, job) & keys]
    if live:
        raise No(RefusalKind.CONFLICT, f"It has jobs: {_jobs(live)}. End them, or wait for them, and try again.")


def _keys_of(accounts: Accounts, job: Job) -> set[AssocKey]:
    """Whose the job is: the user's association in each of its partitions."""
    user = job.submitter.name
    found = (accounts.of(job.account, user, partition) for partition in job.partitions or ("",))
    return {each.key for each in found if each is not None} | {assoc_key(job.account)}


def _jobs(jobs: list[Job]) -> str:
    return _some([f"{job.id} ({job.submitter.name}, {job.state})" for job in jobs])


def _some(words: list[str]) -> str:
    more = len(words) - NAMED_JOBS
    return ", ".join(words[:NAMED_JOBS]) + (f" and {more} more" if more > 0 else "")


def _uses_of(draft: Draft, qos: str) -> Iterator[str]:
    for each in draft.associations.values():
        if qos in each.qos or qos == each.default_qos:
            yield each.key
    for other in draft.qos.values():
        if qos in other.preempt:
            yield f"QOS {other.name}"
    for partition in draft.state.cluster.partitions:
        if qos in {partition.qos, *partition.allow_qos, *partition.deny_qos}:
            yield f"partition {partition.name}"


def _qos(draft: Draft, name: str) -> Qos:
    found = draft.qos.get(name.lower())
    if found is None:
        raise No(RefusalKind.NOT_FOUND, f"There is no QOS {visible(name)}; `cockpit accounts qos` lists them.")
    return found


def _partition_error(draft: Draft, name: str) -> str | None:
    if draft.state.cluster.partition(name) is not None:
        return None
    known = ", ".join(each.name for each in draft.state.cluster.partitions) or "none"
    return f"there is no partition {visible(name)}; there are {known}"


def _named(field: str, error: str | None) -> list[str]:
    return [f"{field}: {error}"] if error else []


def _check(errors: Iterable[str]) -> None:
    found = [f"{error}." for error in errors]
    if found:
        raise No(RefusalKind.INVALID, "\n".join(found))


def _difference(before: Accounts, after: Accounts) -> events.AccountsChanged:
    return events.AccountsChanged(
        associations=tuple(each for key, each in after.associations.items() if before.associations.get(key) != each),
        qos=tuple(each for name, each in after.qos.items() if before.qos.get(name) != each),
        removed_associations=tuple(key for key in before.associations if key not in after.associations),
        removed_qos=tuple(name for name in before.qos if name not in after.qos),
    )
