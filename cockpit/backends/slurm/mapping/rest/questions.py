"""Translates Slurm's read commands to requests of slurmrestd, and its JSON answers to records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.rest import accounts, cluster, ended, jobs
from cockpit.backends.slurm.mapping.rest.figures import Json

SLURM, DATABASE = "slurm", "slurmdb"
OLDEST_SHARES = 40
"""First version (v0.0.40) of slurmrestd's API that has shares."""

Reader = Callable[[Json], tuple[Record, ...]]


class Question(NamedTuple):
    """A GET request that answers a command."""

    area: str
    """`slurm` or `slurmdb`."""
    path: str
    read: Reader
    """Converts the decoded answer to the records that the command would print."""
    params: Mapping[str, str] = {}


def question(argv: Sequence[str], version: int, cluster_name: str = "") -> Question | None:
    """Return the request that answers a command; None if slurmrestd of this version cannot.

    `version`: last part of the API's version, such as 38 for v0.0.38.
    """
    words = tuple(word for word in argv if not word.startswith("-"))
    if argv[0] == "squeue":
        return _of_squeue(argv)
    if argv[0] == "sacct":
        return _of_sacct(argv)
    if argv[0] == "sshare":
        return _of_sshare(version)
    if words[:2] == ("scontrol", "show") and len(words) == 3:
        return _of_scontrol(words[2], cluster_name)
    return _of_sacctmgr(words) if words[:2] == ("sacctmgr", "list") else None


def _all(answer: Json, *names: str) -> list[Json]:
    """Return the list of records of an answer, under the first of these names that it has.

    Raises `NoAnswer` when there is no such list, which is not the same as an empty list.
    """
    # Names differ between versions of the API: `QOS`, later `qos`.
    records = next((answer[name] for name in names if name in answer), None)
    if not isinstance(records, list) or not all(isinstance(each, Mapping) for each in records):
        raise NoAnswer(f"it has no list of {names[0]}")
    return records


class NoAnswer(Exception):
    """The JSON does not answer the request; the error text says what is missing."""


def _of_squeue(argv: Sequence[str]) -> Question | None:
    wanted = option(argv, "--jobs")
    fields = [each.partition(":")[0] for each in option(argv, "--Format").split(",")]
    if "--steps" in argv or "--start" in argv or not option(argv, "--Format"):
        return None
    # A task is picked out of its array's records here (`jobs.records_of_listed`).
    path = f"job/{wanted.partition('_')[0]}" if wanted else "jobs"
    return Question(SLURM, path, lambda answer: jobs.records_of_listed(_all(answer, "jobs"), fields, wanted))


_LIMITS_OF_ENDED: Final = {"start_time": "--starttime", "end_time": "--endtime", "state": "--state"}
"""Parameters of the list of ended jobs, and the options of sacct."""


def _of_sacct(argv: Sequence[str]) -> Question | None:
    """Return the question for an sacct; None for a script, which slurmrestd does not report."""
    if "--batch-script" in argv:
        return None
    fields = option(argv, "--format").split(",")
    user, wanted = option(argv, "--user"), option(argv, "--jobs")

    def records(answer: Json) -> tuple[Record, ...]:
        return ended.records_of_ended(_all(answer, "jobs"), fields, user)

    if wanted:
        return Question(DATABASE, f"job/{wanted}", records)
    # Jobs that never were eligible are listed only if their states are named, as with sacct.
    limits = {name: option(argv, given) for name, given in _LIMITS_OF_ENDED.items()}
    return Question(DATABASE, "jobs", records, {name: value for name, value in limits.items() if value})


def _of_sshare(version: int) -> Question:
    """Return the question for sshare."""
    # The tree and the shares at least; usage and fair share are left out.
    if version < OLDEST_SHARES:
        return Question(DATABASE, "associations", lambda answer: accounts.tree_of(_all(answer, "associations")))

    def rows(answer: Json) -> tuple[Record, ...]:
        shares = answer.get("shares")
        return accounts.shares(_all(shares if isinstance(shares, Mapping) else {}, "shares"))

    return Question(SLURM, "shares", rows)


_SHOWN: Final[Mapping[str, tuple[str, Callable[[Json], Record]]]] = {
    "node": ("nodes", cluster.node),
    "partition": ("partitions", cluster.partition),
    "reservation": ("reservations", cluster.reservation),
    "licenses": ("licenses", cluster.licence),
}
"""The path and the list in the answer, which have one name, and the converter, for each `scontrol show`."""


def _of_scontrol(what: str, cluster_name: str) -> Question | None:
    """Return the question for a `scontrol show`; None if slurmrestd does not report it."""
    if what == "config":
        return Question(SLURM, "ping", lambda answer: (cluster.config(answer.get("meta"), cluster_name),))
    if what == "job":
        return Question(SLURM, "jobs", lambda answer: jobs.allocations(_all(answer, "jobs")))
    if what not in _SHOWN:
        return None
    path, convert = _SHOWN[what]
    return Question(SLURM, path, lambda answer: tuple(map(convert, _all(answer, path))))


_TABLES: Final[dict[str, tuple[str, Reader]]] = {
    "qos": ("qos", lambda answer: accounts.qos(_all(answer, "qos", "QOS"))),
    "cluster": (
        "clusters",
        lambda answer: tuple({"cluster": each.get("name", "")} for each in _all(answer, "clusters")),
    ),
    "assoc": ("associations", lambda answer: accounts.associations(_all(answer, "associations"))),
}


def _of_sacctmgr(words: Sequence[str]) -> Question | None:
    if words[2] == "user":
        name = next((word.partition("=")[2] for word in words if word.startswith("name=")), "")
        return Question(DATABASE, f"user/{name}", lambda answer: accounts.admin_level(_all(answer, "users")))
    table = _TABLES.get(words[2])
    return Question(DATABASE, *table) if table is not None else None


def option(argv: Sequence[str], name: str) -> str:
    """Return the value of `--name=value` or `--name value`; empty if the option is not given."""
    for place, word in enumerate(argv):
        if word == name and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""
