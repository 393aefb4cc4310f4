"""What is asked of Slurm's commands as questions to slurmrestd, and its answers as those commands print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cockpit.backends.slurm.mapping.rest import accounts, cluster, ended, jobs

SLURM, DATABASE = "slurm", "slurmdb"
OLDEST_SHARES = 40
"""slurmrestd tells shares from v0.0.40 on."""

Printer = Callable[[Mapping[str, Any]], str]


class Question(NamedTuple):
    """A GET."""

    area: str
    """`slurm` or `slurmdb`."""
    path: str
    printed: Printer
    """The body of the answer as the command prints it."""
    params: Mapping[str, str] = {}


def question(argv: Sequence[str], version: int, cluster_name: str = "") -> Question | None:
    """None: slurmrestd of this version (the last part of v0.0.38) has no answer to it."""
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


def _all(answer: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    """The records of an answer, whichever of these names they go by. Raises `NoAnswer` where none of them has a
    list: that is no empty one."""
    found = next((answer[name] for name in names if name in answer), None)
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise NoAnswer(f"it has no list of {names[0]}")
    return found


class NoAnswer(Exception):
    """JSON that does not answer the question; its text says what is missing."""


def _of_squeue(argv: Sequence[str]) -> Question | None:
    wanted = option(argv, "--jobs")
    fields = [each.partition(":")[::2] for each in option(argv, "--Format").split(",")]
    if "--steps" in argv or "--start" in argv or not option(argv, "--Format"):
        return None
    path = f"job/{wanted.partition('_')[0]}" if wanted else "jobs"
    return Question(SLURM, path, lambda answer: jobs.listed(_all(answer, "jobs"), fields, wanted))


def _of_sacct(argv: Sequence[str]) -> Question:
    fields, separator = option(argv, "--format").split(","), option(argv, "--delimiter")
    user, wanted = option(argv, "--user"), option(argv, "--jobs")

    def printed(answer: Mapping[str, Any]) -> str:
        return ended.ended(_all(answer, "jobs"), fields, separator, user)

    if wanted:
        return Question(DATABASE, f"job/{wanted}", printed)
    times = {"start_time": option(argv, "--starttime"), "end_time": option(argv, "--endtime")}
    return Question(DATABASE, "jobs", printed, {name: value for name, value in times.items() if value})


def _of_sshare(version: int) -> Question:
    if version < OLDEST_SHARES:
        return Question(DATABASE, "associations", lambda answer: accounts.tree_of(_all(answer, "associations")))

    def printed(answer: Mapping[str, Any]) -> str:
        told = answer.get("shares")
        return accounts.shares(_all(told if isinstance(told, Mapping) else {}, "shares"))

    return Question(SLURM, "shares", printed)


def _of_scontrol(what: str, cluster_name: str) -> Question | None:
    def config(answer: Mapping[str, Any]) -> str:
        return cluster.config(answer.get("meta"), cluster_name)

    readers: dict[str, tuple[str, Printer]] = {
        "config": ("ping", config),
        "node": ("nodes", lambda answer: cluster.nodes(_all(answer, "nodes"))),
        "partition": ("partitions", lambda answer: cluster.partitions(_all(answer, "partitions"))),
        "reservation": ("reservations", lambda answer: cluster.reservations(_all(answer, "reservations"))),
        "licenses": ("licenses", lambda answer: cluster.licences(_all(answer, "licenses"))),
        "job": ("jobs", lambda answer: jobs.placed(_all(answer, "jobs"))),
    }
    found = readers.get(what)
    return Question(SLURM, *found) if found is not None else None


_TABLES: Final[dict[str, tuple[str, Printer]]] = {
    "qos": ("qos", lambda answer: accounts.qos(_all(answer, "qos", "QOS"))),
    "assoc": ("associations", lambda answer: accounts.associations(_all(answer, "associations"))),
}


def _of_sacctmgr(words: Sequence[str]) -> Question | None:
    if words[2] == "user":
        name = next((word.partition("=")[2] for word in words if word.startswith("name=")), "")
        return Question(DATABASE, f"user/{name}", lambda answer: accounts.admin_level(_all(answer, "users")))
    found = _TABLES.get(words[2])
    return Question(DATABASE, *found) if found is not None else None


def option(argv: Sequence[str], name: str) -> str:
    """`--name=value` or `--name value`; empty where it is not given."""
    for place, word in enumerate(argv):
        if word == name and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""
