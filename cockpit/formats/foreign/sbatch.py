"""A Slurm batch script: its `#SBATCH` lines, and what it runs. Source: sbatch(1)."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, Final

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.draft import Draft, runnable, upwards
from cockpit.formats.foreign.sbatch_options import DIRECTIVE, as_directive, directives, script_lines
from cockpit.model.numerals import is_whole

_SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
_SRUN: Final = re.compile(r"^\s*(?:exec\s+|time\s+)?srun\b", re.MULTILINE)
_MEMORY: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>[KMGTkmgt]?)[Bb]?")
_MIB_OF: Final = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}
_RANGES: Final = re.compile(r"\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*", re.ASCII)
_LIST: Final = re.compile(r"(?P<head>[^\[,]*)\[(?P<ranges>[^\]]*)\](?P<tail>[^,]*)")


def is_sbatch(text: str) -> bool:
    return text.startswith("#!") and any(line.startswith(DIRECTIVE) for line in script_lines(text))


def read_sbatch(text: str) -> Draft:
    draft = Draft()
    lines = script_lines(text)
    _take(directives(lines, draft), draft)
    _script(lines, draft)
    return draft


def _take(options: Mapping[str, str], draft: Draft) -> None:
    _size(options, draft)
    for each in filter(None, options.get("gres", "").split(",")):
        if each.partition(":")[0] != "gpu":
            draft.lacks(f"--gres={each}", "cards alone are asked for here, whole or in parts; left out")
    for name, value in options.items():
        if name in _SIZES:
            continue
        if take := _TAKERS.get(name):
            take(value, draft)
        else:
            draft.lacks(f"--{name}")


def _named(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        draft.values[field] = value

    return take


def _listed(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        draft.values[field] = value.split(",")

    return take


def _flag(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        if value:
            draft.lacks(f"--{field}={value}", "is taken for the plain flag")
        draft.values[field] = True

    return take


def _dependencies(value: str, draft: Draft) -> None:
    if "?" in value:
        draft.lacks("--dependency", "any of several conditions has no counterpart here; left out")
        return
    found: list[str] = []
    for condition in value.split(","):
        kind, *jobs = condition.split(":")
        found += [f"{kind}:{job.partition('+')[0]}" for job in jobs] or [kind]
        if any("+" in job for job in jobs):
            draft.lacks("--dependency", "a delay behind another job has no counterpart here; taken without it")
    draft.values["dependencies"] = found


def _time(value: str, draft: Draft) -> None:
    seconds = _seconds(value)
    if seconds:
        draft.values["time_limit"] = seconds
    else:
        draft.lacks(f"--time={value}", "is no bound here; the default time limit stands")


def _seconds(value: str) -> int | None:
    days, dash, clock = value.rpartition("-")
    parts = clock.split(":")
    if not all(is_whole(part) for part in (*parts, *([days] if dash else []))) or len(parts) > 3:
        return None
    figures = [int(part) for part in parts]
    if dash:
        figures += [0] * (3 - len(figures))
        return int(days) * 86_400 + figures[0] * 3600 + figures[1] * 60 + figures[2]
    minutes_first = [0, *figures, 0][:3] if len(figures) == 1 else [0, *figures][-3:]
    hours, minutes, seconds = figures if len(figures) == 3 else minutes_first
    return hours * 3600 + minutes * 60 + seconds


def _nice(value: str, draft: Draft) -> None:
    draft.values["nice"] = int(value) if is_whole(value.lstrip("-")) else 100


def _output(value: str, draft: Draft) -> None:
    folder = str(PurePosixPath(value).parent)
    draft.values["output"] = "." if "%" in folder else folder
    draft.lacks("--output", "logs are kept by cockpit (`cockpit logs ID`); its folder is the job's output")


def _export(value: str, draft: Draft) -> None:
    for each in value.split(","):
        name, equals, given = each.partition("=")
        if equals:
            draft.env(name, given)
        elif name not in {"ALL", "NONE", "NIL"}:
            draft.lacks(f"--export={name}", "no variable of the submitting shell is taken over; left out")


def _begin(value: str, draft: Draft) -> None:
    draft.values["begin_at"] = value


def _nodelist(value: str, draft: Draft) -> None:
    draft.values["node_names"] = [name for part in _split_list(value) for name in part]


def _split_list(value: str) -> list[list[str]]:
    """`n[1-3,7],m2`."""
    parts = re.findall(r"[^,\[]+(?:\[[^\]]*\][^,]*)?", value)
    return [_expanded(part) for part in parts]


def _expanded(part: str) -> list[str]:
    found = _LIST.fullmatch(part)
    if found is None or _RANGES.fullmatch(found["ranges"]) is None:
        return [part]
    names: list[str] = []
    for each in found["ranges"].split(","):
        low, _, high = each.partition("-")
        numbers = range(int(low), int(high or low) + 1)
        names += [f"{found['head']}{number:0{len(low)}d}{found['tail']}" for number in numbers]
    return names


_TAKERS: Final[Mapping[str, Callable[[str, Draft], None]]] = {
    "job-name": _named("name"),
    "account": _named("account"),
    "array": _named("array"),
    "qos": _named("qos"),
    "reservation": _named("reservation"),
    "partition": _listed("partitions"),
    "begin": _begin,
    "deadline": _named("deadline"),
    "dependency": _dependencies,
    "time": _time,
    "hold": _flag("hold"),
    "exclusive": _flag("exclusive"),
    "nice": _nice,
    "output": _output,
    "export": _export,
    "nodelist": _nodelist,
    "chdir": _named("output"),
}
_SIZES: Final = frozenset(
    {"nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"}
    | {"mincpus", "gpus", "gpus-per-node", "gpus-per-task", "gres", "cpus-per-gpu"}
)


_ENV_HEAD: Final = "# Variables of the job\n"
_EXPORT: Final = re.compile(
    r"""export (?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>(?:[\w@%+=:,./-]|'[^']*'|"'")*)\n""", re.ASCII
)
"""A line as `shlex.quote` leaves it, where nothing is expanded."""
_OPTION_VALUE: Final = re.compile(r"[\w@%+=:./-]*", re.ASCII)
"""What `--export` carries: it splits at commas and takes quotes away."""
_NO_OPTIONS: Final = "true # no options of sbatch follow"
"""Slurm stops looking for options at the first command."""
_TASKS: Final = {
    "cpus-per-task": "SLURM_CPUS_PER_TASK",
    "ntasks": "SLURM_NTASKS",
    "ntasks-per-node": "SLURM_NTASKS_PER_NODE",
}
"""What Slurm counts, and what a script is told of it."""


def _whole(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name, "")
    return int(value) if is_whole(value) and int(value) else None


def _size(options: Mapping[str, str], draft: Draft) -> None:
    """How many nodes, and what each of them must offer: Slurm counts tasks, cockpit nodes."""
    wanted = options.get("nodes", "")
    least, dash, _ = wanted.partition("-")
    if dash:
        draft.lacks(f"--nodes={wanted}", "the smaller number is taken")
    nodes = int(least) if is_whole(least) and int(least) else 1
    if "nodes" in options:
        draft.values["nodes"] = nodes
    per_node = _whole(options, "ntasks-per-node") or math.ceil((_whole(options, "ntasks") or nodes) / nodes)
    each = _whole(options, "cpus-per-task")
    cards, model = _cards(options, nodes, per_node)
    cpus = per_node * (each or 1) if {"ntasks", "ntasks-per-node", "cpus-per-task"} & options.keys() else None
    cpus = max(cpus or 0, _whole(options, "mincpus") or 0) or None
    if cpus is None and (per_card := _whole(options, "cpus-per-gpu")):
        cpus = per_card * cards
    draft.spec(cpus=cpus, memory=_memory(options, cpus or 1, cards, draft), cards=cards or None)
    draft.spec(card_models=[model] if model else None)
    for name, variable in _TASKS.items():
        if number := _whole(options, name):
            draft.env(variable, str(number))


def _cards(options: Mapping[str, str], nodes: int, tasks: int) -> tuple[int, str]:
    """Per node, and of which model."""
    for name, share in (("gpus-per-node", 1.0), ("gpus-per-task", float(tasks)), ("gpus", 1 / nodes)):
        if value := options.get(name):
            model, _, count = value.rpartition(":")
            return math.ceil((int(count) if is_whole(count) else 1) * share), model
    for kind, *rest in (each.split(":") for each in options.get("gres", "").split(",")):
        if kind == "gpu":
            count = rest[-1] if rest and is_whole(rest[-1]) else "1"
            model = rest[0] if rest and not is_whole(rest[0]) else ""
            return int(count), model
    return 0, ""


def _memory(options: Mapping[str, str], cpus: int, cards: int, draft: Draft) -> str | None:
    for name, times in (("mem", 1), ("mem-per-cpu", cpus), ("mem-per-gpu", max(1, cards))):
        found = _MEMORY.fullmatch(options.get(name, ""))
        if found is None:
            continue
        mib = upwards(float(found["number"]) * _MIB_OF[found["unit"].upper()]) * times
        if mib:
            return f"{mib}M"
        draft.lacks("--mem=0", "all memory of a node has no counterpart here; write --exclusive")
    return None


def _script(lines: list[str], draft: Draft) -> None:
    interpreter = PurePosixPath(lines[0].removeprefix("#!").split()[-1]).name if lines[0][2:].split() else "sh"
    body = _taken_env("\n".join(_without_directives(lines[1:])).strip("\n"), draft)
    if interpreter not in _SHELLS:
        draft.values["command"] = f"{interpreter} -c {shlex.quote(body)}"
    else:
        draft.values["command"] = runnable(_without_comments(body)) if body.strip() else "true"
    if draft.values.get("nodes", 1) > 1:
        draft.values["mode"] = "slurm"
    elif _SRUN.search(body):
        draft.lacks("srun", "is there in jobs of several nodes alone; write the command without it")


def _without_directives(lines: list[str]) -> list[str]:
    """Behind the first command Slurm takes them for comments, and so does the shell."""
    first = next((number for number, line in enumerate(lines) if line.strip() and line[0] != "#"), len(lines))
    head = [line for line in lines[:first] if not line.startswith(DIRECTIVE)]
    behind = lines[first + 1 :] if lines[first : first + 1] == [_NO_OPTIONS] else lines[first:]
    return [*head, *behind]


def _taken_env(body: str, draft: Draft) -> str:
    """What is left of a body once the variables that `write_sbatch` sets in it are taken from it."""
    if not body.startswith(_ENV_HEAD):
        return body
    rest = body.removeprefix(_ENV_HEAD)
    while found := _EXPORT.match(rest):
        draft.env(found["name"], "".join(shlex.split(found["value"])))
        rest = rest[found.end() :]
    return rest.strip("\n")


def _without_comments(body: str) -> str:
    """A script of one command, whatever is said above it; any other as it is."""
    lines = body.splitlines()
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("#")):
        lines.pop(0)
    return lines[0] if len(lines) == 1 else body


_FIELDS: Final = {
    "job-name": "name",
    "chdir": "output",
    "partition": "partitions",
    "nodelist": "node_names",
    "dependency": "dependencies",
    "gres": "specs",
    "begin": "begin_at",
}
"""Options that are called otherwise in a job file."""


def write_sbatch(values: Mapping[str, Any]) -> str:
    """`values`: of a job file. What has no counterpart is not there; who reads it again misses it. Variables that
    `--export` cannot carry are set by the script. Raises SpecErrors, with the field, for a value that no option can be
    given."""
    spec = (values.get("specs") or [{}])[0]
    env = dict(values.get("env", {}))
    each, tasks, per_node = (env.pop(variable, None) for variable in _TASKS.values())
    per_node = per_node or (_tasks_per_node(spec.get("cpus", 1), each) if tasks is None else None)
    models = spec.get("card_models", [])
    gres = f"gpu:{models[0]}:{spec['cards']}" if models else f"gpu:{spec['cards']}" if spec.get("cards") else None
    told = {name: value for name, value in env.items() if _OPTION_VALUE.fullmatch(str(value))}
    options: dict[str, object] = {
        "job-name": values["name"],
        "chdir": values["output"],
        "nodes": values.get("nodes"),
        "ntasks": tasks,
        "ntasks-per-node": per_node,
        "cpus-per-task": each,
        "mincpus": None if each or tasks or per_node else spec.get("cpus"),
        "mem": spec.get("memory"),
        "gres": gres,
        "time": values.get("time_limit") and _clock(values["time_limit"]),
        "partition": ",".join(values.get("partitions", [])) or None,
        "nodelist": ",".join(values.get("node_names", [])) or None,
        "dependency": ",".join(values.get("dependencies", [])) or None,
        "export": ",".join(["NONE", *(f"{name}={value}" for name, value in told.items())]) if env else None,
        **{name: values.get(name) for name in ("account", "array", "qos", "reservation", "deadline", "nice")},
        "begin": values.get("begin_at"),
    }
    lines = [_directive(name, str(value)) for name, value in options.items() if value is not None]
    lines += [f"{DIRECTIVE} --{name}" for name in ("hold", "exclusive") if values.get(name)]
    exports = [f"export {name}={shlex.quote(str(value))}\n" for name, value in env.items() if name not in told]
    body = _body(str(values["command"]))
    if exports:
        body = f"{_ENV_HEAD}{''.join(exports)}\n{body}"
    elif _begins_with_options(body):
        body = f"{_NO_OPTIONS}\n{body}"
    return "\n".join(["#!/bin/bash", *lines, "", body, ""])


def _directive(name: str, value: str) -> str:
    try:
        return as_directive(name, value)
    except ValueError as error:
        raise SpecErrors([f"{_FIELDS.get(name, name)}: {error}; change it, or take another form"]) from None


def _begins_with_options(body: str) -> bool:
    """Whether Slurm would take lines of the command for options of the job."""
    lines = body.split("\n")
    head = takewhile(lambda line: not line.strip() or line.startswith("#"), lines)
    return any(line.startswith(DIRECTIVE) for line in head)


def _tasks_per_node(cpus: int, each: str | None) -> int | None:
    """Where a node has the CPUs of several tasks."""
    share = int(each) if each is not None and is_whole(each) else 0
    return cpus // share if share and cpus > share and cpus % share == 0 else None


def _clock(duration: object) -> str:
    """Slurm's days-hours:minutes:seconds of a duration as a job file writes it."""
    from cockpit.model.quantity import parse_duration

    seconds = parse_duration(duration) if isinstance(duration, str | int | float) else 0
    seconds = seconds if isinstance(seconds, int) else 0
    return f"{seconds // 86_400}-{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _body(command: str) -> str:
    """The script that bash was handed, else the command itself."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    whole = len(words) == 3 and words[:2] == ["bash", "-c"]
    return words[2].strip("\n") if whole and runnable(words[2].strip("\n")) == command else command
