"""An `arena submit …` command line. Source: arena's own help of etjob, pytorchjob, mpijob and tfjob."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from cockpit.formats.foreign.draft import Draft, command_line, memory_mib, runnable
from cockpit.formats.foreign.options import read_line
from cockpit.formats.foreign.pytorchjob import BEST_EFFORT
from cockpit.launch.checks import COMPUTE_QOS, SUPERVISED
from cockpit.model.numerals import is_whole

_MODES: Final = {
    "etjob": "horovod",
    "et": "horovod",
    "mpijob": "horovod",
    "mpi": "horovod",
    "horovodjob": "horovod",
    "pytorchjob": "pytorch",
    "pytorch": "pytorch",
    "tfjob": "tensorflow",
    "tf": "tensorflow",
}
_KINDS: Final = {"horovod": "mpijob", "pytorch": "pytorchjob", "tensorflow": "tfjob"}
"""Of modes, where a job is not elastic."""
_FLAGS: Final = frozenset(
    {"spot-instance", "tensorboard", "chief", "evaluator", "gang", "rdma", "pprof", "trace", "clean-task-policy"}
    | {"hostNetwork", "hostIPC", "hostPID", "debug"}
)
_ELASTIC: Final = {
    "min-workers": "min_workers",
    "max-workers": "max_workers",
    "max-wait-time": "max_wait_time",
    "job-restart-policy": "job_restart_policy",
    "job-backoff-limit": "backoff_limit",
    "worker-restart-policy": "worker_restart_policy",
    "spot-instance": "spot",
    "launcher-selector": "launcher_selector",
}
_COUNTS: Final = frozenset({"min_workers", "max_workers", "max_wait_time", "backoff_limit"})
_VARIABLES: Final = ("workers", "gpus", "minWorkers", "maxWorkers")
"""What arena fills into the command; here they are variables of the job."""


def is_arena(text: str) -> bool:
    try:
        words, _ = command_line(text)
    except ValueError:
        return False
    return words[1:2] == ["submit"] and PurePosixPath(words[0]).name == "arena"


def read_arena(text: str, elastic_fields: frozenset[str]) -> Draft:
    """`elastic_fields`: what a job file knows under `elastic`."""
    (_, _, *words), rest = command_line(text)
    line = read_line(words, _FLAGS)
    kind, *command = line.rest or [""]
    draft = Draft()
    draft.lacks_behind(rest)
    if kind not in _MODES:
        draft.lacks(f"arena submit {kind}", "is a kind of job that is not known here; taken for one without a mode")
    else:
        draft.values["mode"] = _MODES[kind]
    options: dict[str, str] = {}
    for name, value in line.options:
        if name in {"data", "env", "toleration", "selector", "annotation", "label"}:
            _repeated(name, value, draft)
        else:
            options[name] = value
    _take(kind, options, draft, elastic_fields)
    text_of = command[0] if len(command) == 1 else shlex.join(command)
    draft.values["command"] = runnable(text_of) if text_of else "entrypoint"
    _variables(text_of, options, draft)
    return draft


def _repeated(name: str, value: str, draft: Draft) -> None:
    if name == "env" and "=" in value:
        draft.env(*value.split("=", 1))
    elif name == "toleration":
        draft.values.setdefault("tolerations", []).append("*" if value == "all" else value.partition(":")[0])
    elif name == "selector" and "=" in value:
        key, _, wanted = value.partition("=")
        draft.values.setdefault("node_selector", {})[key] = wanted
    elif value == f"{COMPUTE_QOS}={BEST_EFFORT}":
        draft.values["best_effort"] = True
    elif value == f"{SUPERVISED}=true":
        draft.values["supervised"] = True
    else:
        draft.lacks(f"--{name}={value}")


def _take(kind: str, options: Mapping[str, str], draft: Draft, elastic_fields: frozenset[str]) -> None:
    elastic: dict[str, Any] = {
        name: draft.values.pop(name) for name in ("best_effort", "supervised") if name in draft.values
    }
    for name, value in options.items():
        if name in {"name", "image"}:
            draft.values[name] = value
        elif name in {"gpus", "cpu", "memory", "workers"}:
            _size(name, value, draft)
        elif name in {"ps", "ps-count"} and is_whole(value):
            draft.values["parameter_servers"] = int(value)
        elif name == "running-timeout":
            draft.values["time_limit"] = value
        elif name in _ELASTIC and _ELASTIC[name] in elastic_fields:
            elastic[_ELASTIC[name]] = _elastic_value(_ELASTIC[name], value)
        elif name != "loglevel":
            draft.lacks(f"--{name}" + (f"={value}" if value else ""))
        else:
            draft.lacks(f"--loglevel={value}", "is about arena's own output; left out")
    if elastic or kind in {"etjob", "et"}:
        draft.values["elastic"] = {"workers": draft.values.pop("nodes", 1), **elastic}


def _elastic_value(field: str, value: str) -> object:
    if field in _COUNTS and is_whole(value):
        return int(value)
    if field == "launcher_selector":
        return dict([value.split("=", 1)]) if "=" in value else value
    return True if value in {"", "true"} else value


def _size(name: str, value: str, draft: Draft) -> None:
    if name == "workers":
        draft.values["nodes"] = int(value) if is_whole(value) else 1
    elif name == "memory":
        mib = memory_mib(value)
        draft.spec(memory=f"{mib}M" if mib else value)
    else:
        field = "cards" if name == "gpus" else "cpus"
        draft.spec(**{field: int(value) if is_whole(value) else value})


def _variables(command: str, options: Mapping[str, str], draft: Draft) -> None:
    """The launcher of an elastic job has them by itself."""
    if "elastic" in draft.values:
        return
    given = {
        "workers": options.get("workers", "1"),
        "gpus": options.get("gpus", "0"),
        "minWorkers": options.get("min-workers", "1"),
        "maxWorkers": options.get("max-workers", options.get("workers", "1")),
    }
    for name in _VARIABLES:
        if f"${{{name}}}" in command or f"${name}" in command:
            draft.env(name, given[name])


def write_arena(values: Mapping[str, Any]) -> str:
    spec = (values.get("specs") or [{}])[0]
    elastic = dict(values.get("elastic") or {})
    kind = "etjob" if elastic else _KINDS.get(str(values.get("mode", "")), "pytorchjob")
    env = {name: value for name, value in values.get("env", {}).items() if name not in _VARIABLES}
    options: list[tuple[str, object]] = [
        ("name", values["name"]),
        ("image", values.get("image")),
        ("workers", elastic.pop("workers", None) or values.get("nodes", 1)),
        ("gpus", spec.get("cards")),
        ("cpu", spec.get("cpus")),
        ("memory", spec.get("memory") and f"{spec['memory']}i"),
        ("ps", values.get("parameter_servers")),
        *((option, _flag_text(elastic[field])) for option, field in _ELASTIC.items() if field in elastic),
        *((("label", f"{COMPUTE_QOS}={BEST_EFFORT}"),) if "best_effort" in elastic else ()),
        *((("annotation", f"{SUPERVISED}=true"),) if "supervised" in elastic else ()),
        *(("env", f"{name}={value}") for name, value in env.items()),
        *(("selector", f"{name}={value}") for name, value in values.get("node_selector", {}).items()),
        *(("toleration", "all" if each == "*" else each) for each in values.get("tolerations", [])),
    ]
    lines = [f"--{name}={shlex.quote(str(value))}" for name, value in options if value is not None]
    command = str(values["command"])
    options_end = ["--"] if command.startswith("-") else []
    return " \\\n  ".join([f"arena submit {kind}", *lines, *options_end, shlex.quote(command)]) + "\n"


def _flag_text(value: object) -> object:
    if isinstance(value, dict):
        return ",".join(f"{name}={item}" for name, item in value.items())
    return "true" if value is True else value
