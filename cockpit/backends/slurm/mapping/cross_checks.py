"""Checks of one list against others: a list that is cut between two records lacks names that other lists have.

Each check returns the names that a list lacks, and the command that asks for one of these names alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cockpit.backends.slurm.mapping import accounts, licences, placements, priorities, reservations, values
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.records import Record, records_of_key, with_header
from cockpit.model.ids import task_of
from cockpit.model.job import ENDED

_IN_TURN = frozenset({"Priority", "Resources"})
"""Reasons of pending jobs that sprio always lists; it leaves out some jobs with other reasons."""


_JOB = re.compile(r"^JobId=(\d+)", re.MULTILINE)
_SAME_MS = 2000
"""The clocks of the controller and of this machine may differ a little, and SubmitTime is in whole seconds."""


class CrossCheck(NamedTuple):
    """The check of one list."""

    lacks: Callable[[str], set[str]]
    """Returns the names that the printed list should have and does not."""
    alone: Callable[[str], tuple[str, ...]]
    """Returns the command that asks for one name."""


def of_licences(conf: Record) -> CrossCheck:
    """Expect the licences that slurm.conf names."""
    wanted = set(licences.requested({"Licenses": conf.get("Licenses", "")}))
    return CrossCheck(
        lambda printed: wanted - {each.name for each in licences.licences(records_of_key(printed, licences.KEY))},
        lambda name: (*licences.COMMAND, name),
    )


def of_reservations(jobs: Iterable[Listed], names: Iterable[str] = ()) -> CrossCheck:
    """Expect the reservations that jobs name, and those of another command (`names`)."""
    # A reservation may be deleted once its jobs have ended, so ended jobs prove nothing.
    live = [each.fields.get("Reservation", "") for each in jobs if each.kind not in ENDED]
    wanted = {*names, *(name for each in live for name in values.names(each))}
    return CrossCheck(
        lambda printed: wanted - {each[reservations.KEY] for each in records_of_key(printed, reservations.KEY)},
        lambda name: (*reservations.COMMAND, name),
    )


def of_details(jobs: Iterable[Listed], asked_at: int) -> CrossCheck:
    """Expect `scontrol -d show job` to have the live jobs that were submitted before it was asked."""
    wanted = {
        each.fields["JobID"]
        for each in jobs
        if each.kind not in ENDED and (each.at("SubmitTime") or asked_at) < asked_at - _SAME_MS
    }
    return CrossCheck(
        lambda printed: wanted - set(_JOB.findall(printed)),
        lambda name: (*placements.DETAIL, name),
    )


def of_priorities(jobs: Iterable[Listed]) -> CrossCheck:
    """Expect sprio to list the pending jobs that wait for resources or for jobs of higher priority."""
    waiting = [each for each in jobs if each.waits and each.code in _IN_TURN and each.component is None]
    # By the array's number, since sprio has one line for all its pending tasks.
    wanted = {str(task_of(each.id)[0]) for each in waiting}
    return CrossCheck(
        lambda printed: wanted - {line.partition("|")[0].strip() for line in printed.splitlines()},
        lambda name: (*priorities.COMMAND, f"--jobs={name}"),
    )


def of_shares(associations: str, cluster: str) -> CrossCheck:
    """Expect sshare to list the associations that sacctmgr lists."""
    wanted = _associations(associations, cluster)

    def alone(name: str) -> tuple[str, ...]:
        account, user = name.split("/")[:2]
        return (*accounts.SHARES, f"--accounts={account}", *((f"--users={user}",) if user else ()))

    return CrossCheck(lambda printed: wanted - _shares(printed), alone)


def of_associations(shares: str, cluster: str) -> CrossCheck:
    """Expect sacctmgr to list the associations that sshare lists."""
    wanted = _shares(shares)

    def alone(name: str) -> tuple[str, ...]:
        account, user = name.split("/")[:2]
        return (*accounts.ASSOCIATIONS, f"account={account}", *((f"user={user}",) if user else ()))

    return CrossCheck(lambda printed: wanted - _associations(printed, cluster), alone)


def of_qos(associations: str, cluster: str, names: Iterable[str] = ()) -> CrossCheck:
    """Expect sacctmgr to list the QOS that the associations name, and those of another command (`names`)."""
    named = accounts.accounts(with_header(associations), (), (), cluster).associations.values()
    wanted = {name for each in named for name in (*each.qos, each.default_qos) if name} | {*filter(None, names)}
    return CrossCheck(
        lambda printed: wanted - set(accounts.accounts((), with_header(printed), (), cluster).qos),
        lambda name: (*accounts.QOS, f"name={name}"),
    )


def _associations(printed: str, cluster: str) -> set[str]:
    return set(accounts.accounts(with_header(printed), (), (), cluster).associations)


def _shares(printed: str) -> set[str]:
    return {each.key for each in accounts.share_lines(with_header(printed))}
