"""The draft of a changed tree of accounts, and the checks that forbid to remove what is still used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.model.accounts import Accounts, Association, AssocKey, Qos, assoc_key
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.engine.state import ClusterState
    from cockpit.model.job import Job

NAMED_JOBS = 10
"""The most jobs or uses that a refusal names."""


class ChangeRefused(Exception):
    """The change cannot be made; `refusal` says why.

    An exception and no result, so that a rule that changes a draft in several steps stays a list of these steps.
    """

    def __init__(self, kind: RefusalKind, message: str) -> None:
        self.refusal = Refusal(kind, message)
        super().__init__(message)


class Draft:
    """A copy of the accounts and QOS on which a change is tried; the state stays as it is."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.associations = dict(state.accounts.associations)
        self.qos = dict(state.accounts.qos)

    @property
    def accounts(self) -> Accounts:
        """The accounts and QOS that the change would lead to."""
        return Accounts(associations=self.associations, qos=self.qos)

    def account(self, name: str) -> Association:
        """Return the account of this name. Raises `ChangeRefused`."""
        association = self.associations.get(assoc_key(name.lower()))
        if association is None:
            raise ChangeRefused(
                RefusalKind.NOT_FOUND, f"There is no account {visible(name)}; `cockpit accounts` lists them."
            )
        return association

    def users(self, user: str, account: str, partition: str) -> list[Association]:
        """Return the user's associations; an empty account or partition matches all. Raises `ChangeRefused` if none."""
        matches = [
            each
            for each in self.associations.values()
            if each.user == user and account.lower() in {"", each.account} and partition in {"", each.partition}
        ]
        if not matches:
            where = f" in account {visible(account)}" if account else ""
            where += f" and partition {visible(partition)}" if partition else ""
            raise ChangeRefused(
                RefusalKind.NOT_FOUND, f"There is no user {visible(user)}{where}; `cockpit accounts` lists them."
            )
        return matches

    def quality(self, name: str) -> Qos:
        """Return the QOS of this name. Raises `ChangeRefused`."""
        qos = self.qos.get(name.lower())
        if qos is None:
            raise ChangeRefused(
                RefusalKind.NOT_FOUND, f"There is no QOS {visible(name)}; `cockpit accounts qos` lists them."
            )
        return qos

    def put(self, *associations: Association) -> None:
        """Add associations, or replace those with the same keys."""
        self.associations |= {each.key: each for each in associations}

    def make_default(self, user: str, account: str) -> None:
        """Make an account the user's only default account."""
        # A list, since `put` changes the dictionary.
        for each in list(self.associations.values()):
            if each.user == user:
                self.put(replace(each, default=each.account == account))

    def remove(self, gone: Iterable[Association]) -> None:
        """Remove associations. Raises `ChangeRefused` if one has live jobs, since their usage is charged to it."""
        keys = {each.key for each in gone}
        # Looked up in the draft, which still has all associations that are to go.
        live = [job for job in self.state.jobs.values() if not job.ended and _keys_of(self.accounts, job) & keys]
        if live:
            raise ChangeRefused(
                RefusalKind.CONFLICT, f"It has jobs: {_jobs(live)}. End them, or wait for them, and try again."
            )
        for key in keys:
            del self.associations[key]

    def remove_qos(self, name: str) -> None:
        """Remove a QOS. Raises `ChangeRefused` if it has live jobs, or an account, QOS or partition names it."""
        live = [job for job in self.state.jobs.values() if not job.ended and job.qos == name]
        if live:
            raise ChangeRefused(
                RefusalKind.CONFLICT, f"QOS {name} has jobs: {_jobs(live)}. End them, or wait for them."
            )
        users = list(self._uses_of(name))
        if users:
            raise ChangeRefused(RefusalKind.CONFLICT, f"QOS {name} is used by {_some(users)}; remove it there first.")
        del self.qos[name]

    def below(self, account: str) -> Iterator[Association]:
        """Yield all users and accounts under the account, at any depth."""
        yield from _below(self.accounts, account)

    def _uses_of(self, qos: str) -> Iterator[str]:
        """Yield the name of each association, QOS and partition that names the QOS."""
        for each in self.associations.values():
            if qos in each.qos or qos == each.default_qos:
                yield each.key
        for other in self.qos.values():
            if qos in other.preempt:
                yield f"QOS {other.name}"
        for partition in self.state.cluster.partitions:
            if qos in {partition.qos, *partition.allow_qos, *partition.deny_qos}:
                yield f"partition {partition.name}"


def _below(accounts: Accounts, account: str) -> Iterator[Association]:
    for each in accounts.children.get(account, ()):
        yield each
        if not each.user:
            yield from _below(accounts, each.account)


def _keys_of(accounts: Accounts, job: Job) -> set[AssocKey]:
    """Return the keys of the associations that the job is charged to: one per partition, and its account."""
    user = job.submitter.name
    associations = (accounts.of(job.account, user, partition) for partition in job.partitions or ("",))
    return {each.key for each in associations if each is not None} | {assoc_key(job.account)}


def _jobs(jobs: list[Job]) -> str:
    return _some([f"{job.id} ({job.submitter.name}, {job.state})" for job in jobs])


def _some(words: list[str]) -> str:
    more = len(words) - NAMED_JOBS
    return ", ".join(words[:NAMED_JOBS]) + (f" and {more} more" if more > 0 else "")
