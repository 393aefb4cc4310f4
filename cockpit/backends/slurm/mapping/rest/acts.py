"""Acts as requests to slurmrestd. What it has no word for is refused, with the way that has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.rest.questions import SLURM

LISTS_SINCE = 39
"""From v0.0.39 on an environment is a list, numbers may be objects, and nodes can be changed."""
SIGNAL_FLAGS_SINCE = 40
"""From v0.0.40 on one can say whom of a job a signal is for."""
Body = Mapping[str, Any]
_ON_A_LOGIN_NODE = "do it on a login node, or over ssh://"


class Request(NamedTuple):
    """What is to be sent; nothing has happened yet."""

    method: str
    area: str
    path: str
    body: Body | None = None
    params: Mapping[str, str] = {}


class NoSuchRequest(Exception):
    """slurmrestd of this version cannot do that; the text says what to do instead."""


def request(argv: Sequence[str], stdin: str, version: int) -> Request:
    """Of one of the commands that `mapping.acts` makes. Raises `NoSuchRequest`."""
    match argv:
        case ("scontrol", "hold" | "release" as verb, job):
            return _of_job(job, {"hold": verb == "hold"})
        case ("scontrol", "update", what, *changes) if what.startswith("JobId="):
            return _of_job(what.partition("=")[2], dict(_changed(each, version) for each in changes))
        case ("scontrol", "update", what, *changes) if what.startswith("NodeName="):
            return _of_node(what.partition("=")[2], changes, version)
        case ("scancel", *options, job):
            return _cancel(job, options, version)
        case ("sbatch", "--parsable", *options):
            return _submit(options, stdin, version)
    raise NoSuchRequest(f"slurmrestd has no word for `{' '.join(argv[:2])}`: {_ON_A_LOGIN_NODE}.")


def _of_job(job: str, changes: Body) -> Request:
    return Request("POST", SLURM, f"job/{job}", changes)


def _of_node(node: str, changes: Sequence[str], version: int) -> Request:
    if version < LISTS_SINCE:
        raise NoSuchRequest(f"slurmrestd v0.0.{version} changes no node: {_ON_A_LOGIN_NODE}.")
    said = dict(each.partition("=")[::2] for each in changes)
    body = {"state": [said["State"]], **({"reason": said["Reason"]} if "Reason" in said else {})}
    return Request("POST", SLURM, f"node/{node}", body)


def _cancel(job: str, options: Sequence[str], version: int) -> Request:
    signal = next((each.partition("=")[2] for each in options if each.startswith("--signal=")), "")
    whom = next((name for name in ("--batch", "--full") if name in options), "")
    if whom == "--batch" and version < SIGNAL_FLAGS_SINCE:
        raise NoSuchRequest(f"slurmrestd v0.0.{version} signals no script by itself: {_ON_A_LOGIN_NODE}.")
    params = {"signal": signal} if signal else {}
    if whom and version >= SIGNAL_FLAGS_SINCE:
        params["flags"] = {"--batch": "BATCH_JOB", "--full": "FULL_JOB"}[whom]
    return Request("DELETE", SLURM, f"job/{job}", params=params)


_UPDATES: Final = {
    "JobName": "name",
    "Partition": "partition",
    "Account": "account",
    "QOS": "qos",
    "Nice": "nice",
    "Dependency": "dependency",
    "ReservationName": "reservation",
    "TresPerNode": "gres",
    "MinMemoryNode": "memory_per_node",
    "TimeLimit": "time_limit",
    "Priority": "priority",
    "StartTime": "begin_time",
    "NumNodes": "nodes",
}
"""Of `scontrol update JobId=…`, by scontrol's words."""
_SUBMITTED: Final = {
    "job-name": "name",
    "output": "standard_output",
    "error": "standard_error",
    "input": "standard_input",
    "chdir": "current_working_directory",
    "nodes": "nodes",
    "ntasks": "tasks",
    "ntasks-per-node": "tasks_per_node",
    "cpus-per-task": "cpus_per_task",
    "mem": "memory_per_node",
    "gres": "gres",
    "time": "time_limit",
    "partition": "partition",
    "account": "account",
    "qos": "qos",
    "reservation": "reservation",
    "dependency": "dependency",
    "array": "array",
    "nice": "nice",
    "begin": "begin_time",
    "deadline": "deadline",
    "comment": "comment",
    "constraint": "constraints",
    "licenses": "licenses",
    "hold": "hold",
    "requeue": "requeue",
    "nodelist": "required_nodes",
    "exclusive": "exclusive",
}
"""Of sbatch, by its options."""
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
"""slurmrestd wants an environment, and a script wants at least this."""


def _changed(change: str, version: int) -> tuple[str, object]:
    name, _, value = change.partition("=")
    if name not in _UPDATES:
        raise NoSuchRequest(f"slurmrestd has no word for {name} of a job that waits: {_ON_A_LOGIN_NODE}.")
    if name == "TimeLimit" and value[:1] in {"+", "-"}:
        raise NoSuchRequest("slurmrestd takes a whole time limit, none that is added or taken: give the new limit.")
    return _named(_UPDATES[name], value, version)


def _submit(options: Sequence[str], script: str, version: int) -> Request:
    job: dict[str, object] = {}
    for each in options:
        name, given, value = each.removeprefix("--").partition("=")
        if name not in _SUBMITTED:
            raise NoSuchRequest(f"slurmrestd has no word for sbatch's --{name}: {_ON_A_LOGIN_NODE}.")
        key, taken = _named(_SUBMITTED[name], value if given else True, version)
        job[key] = taken
    env = {"PATH": _PATH}
    job["environment"] = env if version < LISTS_SINCE else [f"{name}={value}" for name, value in env.items()]
    body: dict[str, object] = {"script": script, "job": job}
    return Request("POST", SLURM, "job/submit", body)


def _named(key: str, value: str | bool, version: int) -> tuple[str, object]:  # noqa: FBT001 - an option's value, or that it is there
    """The field of this version, and its value as it takes it."""
    new = version >= LISTS_SINCE
    if isinstance(value, bool):
        return ("shared", ["none"]) if new and key == "exclusive" else (key, "true" if key == "exclusive" else value)
    if key == "memory_per_node":
        return key, _numeric(values.memory_mib(value) or 0, new=new)
    if key == "time_limit":
        return key, _numeric(-(-(values.seconds(value) or 0) // 60), new=new)
    if key == "nodes":
        return key, value if new else [int(value), int(value)]
    if key == "required_nodes":
        return key, value.split(",") if new else value
    if key in {"begin_time", "deadline"}:
        return key, _moment(value, new=new)
    if key in {"nice", "tasks", "tasks_per_node", "cpus_per_task"}:
        return key, int(value)
    if key == "priority":
        return key, _numeric(int(value), new=True) if new else value
    return ("tres_per_node", _as_tres(value)) if key == "gres" and new else (key, value)


def _as_tres(gres: str) -> str:
    return gres if gres.startswith("gres/") else f"gres/{gres}"


def _numeric(value: int, *, new: bool) -> object:
    return {"set": True, "infinite": False, "number": value} if new else value


def _moment(value: str, *, new: bool) -> object:
    """`uts1795308056` of `mapping.script`, or `now`."""
    if not new or not value.startswith("uts"):
        return _numeric(0, new=True) if new else value
    return _numeric(int(value.removeprefix("uts")), new=True)


