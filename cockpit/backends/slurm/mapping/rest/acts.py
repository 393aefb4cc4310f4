"""Translates commands that change something to requests of slurmrestd; what it cannot do is refused, with advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.directives import STDIN
from cockpit.backends.slurm.mapping.rest.questions import SLURM
from cockpit.formats.foreign.sbatch_options import script_options
from cockpit.model.capabilities import Ability
from cockpit.protocol.operations import SHELL

LISTS_SINCE = 39
"""First version (v0.0.39) in which an environment is a list, numbers may be objects, and nodes can be changed."""
IGNORED_BEFORE_LISTS = frozenset({"JobName"})
"""Fields of a waiting job that older versions take without an error and do not change."""
DISABLED_BEFORE_LISTS = frozenset({"nodelist"})
"""Options of sbatch that older versions refuse."""
SIGNAL_FLAGS_SINCE = 40
"""First version (v0.0.40) that can send a signal to the batch script alone."""
Body = Mapping[str, Any]
Reader = Callable[[str], object]
_ON_A_LOGIN_NODE = "do it on a login node, or over ssh://"
NO_SHELL = "slurmrestd opens no terminals: enter the job from a login node, or over ssh://."
NO_FILES = "slurmrestd reads no files over HTTP: read the job's output on a login node, or over ssh://."

NO_WEIGHTS = "slurmrestd does not report the weights of priority factors: ask on a login node, or over ssh://."


def _lacks(command: str) -> str:
    return f"slurmrestd does not support `{command}`: {_ON_A_LOGIN_NODE}."


_LACKING: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name: _lacks(f"scontrol {name}") for name in ("suspend", "resume", "requeue", "top")},
        "make_reservation": _lacks("scontrol create reservation"),
        "end_reservation": _lacks("scontrol delete"),
        "change_accounts": _lacks("sacctmgr"),
        SHELL: NO_SHELL,
        Ability.WEIGHTS: NO_WEIGHTS,
    }
)
"""What slurmrestd of every version lacks."""


@cache
def absent_in(version: int | None) -> Mapping[str, str]:
    """Return what slurmrestd of this version lacks, by operation or ability; None: the version is not known yet."""
    lacking = dict(_LACKING)
    if version is not None and version < LISTS_SINCE:
        lacking |= dict.fromkeys(("drain_node", "resume_node"), _no_nodes(version))
    if version is not None and version < SIGNAL_FLAGS_SINCE:
        lacking |= dict.fromkeys(("end_hold", "extend_hold"), _no_script(version))
    return MappingProxyType(lacking)


def _no_nodes(version: int) -> str:
    return f"slurmrestd v0.0.{version} changes no node: {_ON_A_LOGIN_NODE}."


def _no_script(version: int) -> str:
    return f"slurmrestd v0.0.{version} signals no script by itself: {_ON_A_LOGIN_NODE}."


class RestRequest(NamedTuple):
    """A request that has not been sent yet."""

    method: str
    area: str
    path: str
    body: Body | None = None
    params: Mapping[str, str] = {}


class NoSuchRequest(Exception):
    """slurmrestd of this version cannot do the change; the error text says what to do instead."""


def request(argv: Sequence[str], stdin: str, version: int) -> RestRequest:
    """Return the request that does the same as a command of `mapping.acts`. Raises `NoSuchRequest`."""
    match argv:
        case ("scontrol", "hold" | "release" as verb, job):
            return _of_job(job, {"hold": verb == "hold"})
        case ("scontrol", "update", what, *changes) if what.startswith("JobId="):
            return _of_job(what.partition("=")[2], dict(_changed_field(each, version) for each in changes))
        case ("scontrol", "update", what, *changes) if what.startswith("NodeName="):
            return _of_node(what.partition("=")[2], changes, version)
        case ("scancel", *options, job):
            return _cancel(job, options, version)
        case ("sbatch", "--parsable", *options):
            return _submit(options, stdin, version)
    raise NoSuchRequest(_lacks(" ".join(argv[:2])))


def _of_job(job: str, changes: Body) -> RestRequest:
    return RestRequest("POST", SLURM, f"job/{job}", changes)


def _of_node(node: str, changes: Sequence[str], version: int) -> RestRequest:
    if version < LISTS_SINCE:
        raise NoSuchRequest(_no_nodes(version))
    # `mapping.acts` writes State and Reason alone.
    said = dict(each.partition("=")[::2] for each in changes)
    body = {"state": [said["State"]], **({"reason": said["Reason"]} if "Reason" in said else {})}
    return RestRequest("POST", SLURM, f"node/{node}", body)


def _cancel(job: str, options: Sequence[str], version: int) -> RestRequest:
    """Return the request for an scancel. Raises `NoSuchRequest`."""
    if others := [each for each in options if not each.startswith("-")]:
        raise NoSuchRequest(f"slurmrestd cancels one job at a time, not {' '.join([*others, job])}.")
    signal = next((each.partition("=")[2] for each in options if each.startswith("--signal=")), "")
    target = next((name for name in _SIGNAL_FLAGS if name in options), "")
    params = {"signal": signal} if signal else {}
    # Without flags, scancel's own default: the steps.
    if version >= SIGNAL_FLAGS_SINCE:
        params |= {"flags": _SIGNAL_FLAGS[target]} if target else {}
    elif target == "--batch":
        raise NoSuchRequest(_no_script(version))
    elif signal and not target:  # it would reach the script, too
        raise NoSuchRequest(f"slurmrestd v0.0.{version} signals no steps by themselves: {_ON_A_LOGIN_NODE}.")
    return RestRequest("DELETE", SLURM, f"job/{job}", params=params)


_SIGNAL_FLAGS: Final = {"--batch": "BATCH_JOB", "--full": "FULL_JOB"}
"""slurmrestd's flags for scancel's options; older versions signal the script and the steps."""


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
    "Comment": "comment",
}
"""slurmrestd's names of the fields of `scontrol update JobId=…`."""
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
"""slurmrestd's names of sbatch's options."""
_WITHOUT_VALUE: Final = {"exclusive": "exclusive"}
"""What slurmrestd takes for an option that is given without a value; for all others true."""
WRAPPING: Final = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n"
"""The script that sbatch makes of --wrap."""
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
"""PATH of the job: slurmrestd requires an environment, and a script needs at least this variable."""


def _changed_field(change: str, version: int) -> tuple[str, object]:
    name, _, value = change.partition("=")
    if name not in _UPDATES or (version < LISTS_SINCE and name in IGNORED_BEFORE_LISTS):
        raise NoSuchRequest(f"slurmrestd does not support {name} of a job that waits: {_ON_A_LOGIN_NODE}.")
    if name == "TimeLimit" and value[:1] in {"+", "-"}:
        raise NoSuchRequest("slurmrestd takes a whole time limit, none that is added or taken: give the new limit.")
    return _json_field(_UPDATES[name], value, version)


def _submit(options: Sequence[str], script: str, version: int) -> RestRequest:
    """Return the request for an sbatch. Raises `NoSuchRequest` for options that slurmrestd does not support."""
    # `mapping.directives` names standard input only where arguments follow.
    if STDIN in options:
        raise NoSuchRequest(f"slurmrestd gives a script no arguments: {_ON_A_LOGIN_NODE}.")
    if options and options[-1].startswith("--wrap="):
        *options, wrapped = options
        return _submit(["--job-name=wrap", *options], WRAPPING.format(wrapped.removeprefix("--wrap=")), version)
    # slurmrestd takes a script as it is: only sbatch looks into it for options, and without them the job would be
    # another.
    if script_options(script):
        raise NoSuchRequest(f"slurmrestd reads no #SBATCH lines: {_ON_A_LOGIN_NODE}.")
    job: dict[str, object] = {}
    for each in options:
        name, given, value = each.removeprefix("--").partition("=")
        if name not in _SUBMITTED or (version < LISTS_SINCE and name in DISABLED_BEFORE_LISTS):
            raise NoSuchRequest(f"slurmrestd does not support sbatch's --{name}: {_ON_A_LOGIN_NODE}.")
        key, taken = _json_field(_SUBMITTED[name], value if given else _WITHOUT_VALUE.get(name, True), version)
        job[key] = taken
    if "tasks" not in job and (nodes := values.number(str(job.get("nodes", "")))):
        # sbatch counts one task on each node by default. slurmrestd counts one in all, and so too few CPUs.
        job["tasks"] = nodes * int(str(job.get("tasks_per_node", 1)))
    # slurmrestd runs no login and has no environment of the user to pass on.
    env = {"PATH": _PATH}
    job["environment"] = env if version < LISTS_SINCE else [f"{name}={value}" for name, value in env.items()]
    body: dict[str, object] = {"script": script, "job": job}
    return RestRequest("POST", SLURM, "job/submit", body)


def _json_field(key: str, value: str | bool, version: int) -> tuple[str, object]:
    """Return the field's name in this version of the API, and the value in the form that it requires."""
    is_later = version >= LISTS_SINCE
    name = _CALLED_LATER.get(key, key) if is_later else key
    # A flag: the field's value says it all.
    if value is True:
        return name, value
    try:
        return name, (_LATER if is_later else _FIRST).get(key, _same)(str(value))
    except ValueError:
        raise NoSuchRequest(f"slurmrestd takes no {key} of {value!r}: {_ON_A_LOGIN_NODE}.") from None


def _same(value: str) -> object:
    return value


def _mebibytes(value: str) -> int:
    memory = values.memory_mib(value)
    if memory is None:
        raise ValueError(value)
    return memory


def _minutes(value: str) -> int:
    """Convert a time limit; Slurm takes a plain number for minutes."""
    if value.isdigit():
        return int(value)
    seconds = values.seconds(value)
    if seconds is None:
        raise ValueError(value)
    # Up, as sbatch(1) rounds seconds.
    return -(-seconds // 60)


def _set(value: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


def _epoch(value: str) -> dict[str, object]:
    """Convert `uts1795308056` (seconds since 1970, of `mapping.script`) or `now`, which becomes 0."""
    return _set(0 if value == "now" else int(value.removeprefix("uts")))


_NUMBERS: Final[dict[str, Reader]] = dict.fromkeys(("nice", "tasks", "tasks_per_node", "cpus_per_task"), int)
_FIRST: Final[dict[str, Reader]] = {
    **_NUMBERS,
    "memory_per_node": _mebibytes,
    "time_limit": _minutes,
    "gres": lambda value: value.removeprefix("gres/"),
}
"""Converters of values for v0.0.38 and older; other values stay texts."""
_LATER: Final[dict[str, Reader]] = {
    **_NUMBERS,
    "memory_per_node": lambda value: _set(_mebibytes(value)),
    "time_limit": lambda value: _set(_minutes(value)),
    "priority": lambda value: _set(int(value)),
    "begin_time": _epoch,
    "deadline": lambda value: _epoch(value)["number"],
    "required_nodes": lambda value: value.split(","),
    # `shared: none`: it shares its nodes with no job.
    "exclusive": lambda value: ["none" if value == "exclusive" else value],
    # Its later name is tres_per_node, in which the kind of resource stands before.
    "gres": lambda value: value if value.startswith("gres/") else f"gres/{value}",
}
"""Converters of values since v0.0.39; other values stay texts."""
_CALLED_LATER: Final = {"gres": "tres_per_node", "exclusive": "shared"}
