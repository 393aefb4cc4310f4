"""A tree of accounts as a change would have it, and what keeps parts of it where they are."""

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

    def quality(self, name: str) -> Qos:
        found = self.qos.get(name.lower())
        if found is None:
            raise No(RefusalKind.NOT_FOUND, f"There is no QOS {visible(name)}; `cockpit accounts qos` lists them.")
        return found

    def put(self, *associations: Association) -> None:
        self.associations |= {each.key: each for each in associations}

    def make_default(self, user: str, account: str) -> None:
        """One default for each user."""
        for each in list(self.associations.values()):
            if each.user == user:
                self.put(replace(each, default=each.account == account))

    def remove(self, gone: Iterable[Association]) -> None:
        """What has jobs stays: they are accounted to it."""
        keys = {each.key for each in gone}
        live = [job for job in self.state.jobs.values() if not job.ended and _keys_of(self.accounts, job) & keys]
        if live:
            raise No(RefusalKind.CONFLICT, f"It has jobs: {_jobs(live)}. End them, or wait for them, and try again.")
        for key in keys:
            del self.associations[key]

    def remove_qos(self, name: str) -> None:
        """What has jobs, or is allowed somewhere, stays."""
        live = [job for job in self.state.jobs.values() if not job.ended and job.qos == name]
        if live:
            raise No(RefusalKind.CONFLICT, f"QOS {name} has jobs: {_jobs(live)}. End them, or wait for them.")
        users = list(self._uses_of(name))
        if users:
            raise No(RefusalKind.CONFLICT, f"QOS {name} is used by {_some(users)}; take it away there first.")
        del self.qos[name]

    def below(self, account: str) -> Iterator[Association]:
        """All users and accounts under the account, however deep."""
        yield from _below(self.accounts, account)

    def _uses_of(self, qos: str) -> Iterator[str]:
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
    """Whose the job is: the user's association in each of its partitions."""
    user = job.submitter.name
    found = (accounts.of(job.account, user, partition) for partition in job.partitions or ("",))
    return {each.key for each in found if each is not None} | {assoc_key(job.account)}


def _jobs(jobs: list[Job]) -> str:
    return _some([f"{job.id} ({job.submitter.name}, {job.state})" for job in jobs])


def _some(words: list[str]) -> str:
    more = len(words) - NAMED_JOBS
    return ", ".join(words[:NAMED_JOBS]) + (f" and {more} more" if more > 0 else "")
