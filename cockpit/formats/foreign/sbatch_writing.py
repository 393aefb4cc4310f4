"""Writes a job as a Slurm batch script, so that `sbatch.read_sbatch` makes the same job of it. Source: sbatch(1).

Fields without an option of sbatch are left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from itertools import takewhile
from typing import Any, Final

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.draft import runnable
from cockpit.formats.foreign.sbatch import ENV_HEAD, NO_OPTIONS, without_directives
from cockpit.formats.foreign.sbatch_options import DIRECTIVE, as_directive, is_command, script_lines
from cockpit.formats.foreign.sbatch_sizes import MEMORY_SHARES, TASKS
from cockpit.launch.shellform import without_patterns
from cockpit.model.quantity import parse_duration
from cockpit.model.text import is_whole

_OPTION_VALUE: Final = re.compile(r"[\w@%+=:./-]*", re.ASCII)
"""Characters that a value in `--export` may have: it splits at commas and removes quotes."""
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
    """Return the script for the values of a job file. Fields without a counterpart are left out.

    Variables that `--export` cannot carry are set by the script. Raises `SpecErrors`, with the field, for a value that
    no option can have.
    """
    env = dict(values.get("env", {}))
    # Before `env` is written: some variables of Slurm in it are options of the size.
    sizes = _size_options(values, env)
    # A batch script gets its shell's variables, as under sbatch; a job of a file has its own variables alone.
    shell = "ALL" if values.get("script") else "NONE"
    # `--export` splits at commas and removes quotes, so that other values become `export` lines of the script.
    exported = {name: value for name, value in env.items() if _OPTION_VALUE.fullmatch(str(value))}
    options: dict[str, object] = {
        "job-name": values["name"],
        "chdir": values["output"],
        **sizes,
        "time": values.get("time_limit") and _clock(values["time_limit"]),
        "partition": ",".join(values.get("partitions", [])) or None,
        "nodelist": ",".join(values.get("node_names", [])) or None,
        "dependency": ",".join(values.get("dependencies", [])) or None,
        "export": ",".join([shell, *(f"{name}={value}" for name, value in exported.items())]) if env else None,
        **{name: values.get(name) for name in ("account", "array", "qos", "reservation", "deadline", "nice")},
        "begin": values.get("begin_at"),
        **_script_options(values.get("script") or {}),
    }
    lines = [_directive(name, str(value)) for name, value in options.items() if value is not None]
    lines += [f"{DIRECTIVE} --{name}" for name in ("hold", "exclusive") if values.get(name)]
    if (values.get("restart") or {}).get("lost_only"):
        lines.append(f"{DIRECTIVE} --requeue")
    if script := values.get("script"):
        # The script's own options are replaced by the job's, which may have been edited.
        first, *rest = script_lines(script["text"])
        return "\n".join([first, *lines, *without_directives(rest), ""])
    exports = [f"export {name}={shlex.quote(str(value))}\n" for name, value in env.items() if name not in exported]
    body = _body(without_patterns(str(values["command"])))
    if exports:
        body = f"{ENV_HEAD}{''.join(exports)}\n{body}"
    # A command that starts with `#SBATCH` lines of its own: they are text of the job, not options of this file.
    elif _starts_with_options(body):
        body = f"{NO_OPTIONS}\n{body}"
    return "\n".join(["#!/bin/bash", *lines, "", body, ""])


def _size_options(values: Mapping[str, Any], env: dict[str, Any]) -> dict[str, object]:
    """Return the options for nodes, tasks, CPUs, memory and cards. Their variables are removed from `env`."""
    spec = (values.get("specs") or [{}])[0]
    each, tasks, per_node = (env.pop(variable, None) for variable in TASKS.values())
    # Reading has multiplied the tasks into the CPUs of a node; dividing again gives the options as they were.
    per_node = per_node or (_tasks_per_node(spec.get("cpus", 1), each) if tasks is None else None)
    models, cards = spec.get("card_models", []), spec.get("cards")
    return {
        "nodes": values.get("nodes"),
        "ntasks": tasks,
        "ntasks-per-node": per_node,
        "cpus-per-task": each,
        # Where no number of tasks is known, --mincpus requests a node's CPUs and says nothing about tasks.
        "mincpus": None if each or tasks or per_node else spec.get("cpus"),
        **_memory_options(spec, env),
        "gres": f"gpu:{models[0]}:{spec['cards']}" if models else f"gpu:{cards}" if cards else None,
    }


def _memory_options(spec: Mapping[str, Any], env: dict[str, Any]) -> dict[str, object]:
    """Return the memory options as the script requested them. `env`: their variable is removed from it, since Slurm's
    srun refuses it beside --mem."""
    shares = {name: env.pop(variable) for name, variable in MEMORY_SHARES.items() if variable in env}
    return {name: f"{mib}M" for name, mib in shares.items()} or {"mem": spec.get("memory")}


def _directive(name: str, value: str) -> str:
    try:
        return as_directive(name, value)
    except ValueError as error:
        raise SpecErrors([f"{_FIELDS.get(name, name)}: {error}; change it, or take another form"]) from None


def _starts_with_options(body: str) -> bool:
    """Return whether Slurm would take the first lines of the command for options of the job."""
    lines = body.split("\n")
    return any(line.startswith(DIRECTIVE) for line in takewhile(lambda line: not is_command(line), lines))


def _script_options(script: Mapping[str, Any]) -> dict[str, object]:
    given = {"chdir": script.get("work_dir"), "open-mode": script.get("open_mode")}
    given |= {name: script.get(name) for name in ("output", "error", "input")}
    if early := script.get("early_signal"):
        given["signal"] = f"{'B:' if early.get('shell') else ''}{early['name']}@{early.get('seconds', 60)}"
    return {name: value for name, value in given.items() if value is not None}


def _tasks_per_node(cpus: int, each: str | None) -> int | None:
    """Return the tasks per node where a node has the CPUs of several tasks."""
    share = int(each) if each is not None and is_whole(each) else 0
    return cpus // share if share and cpus > share and cpus % share == 0 else None


def _clock(duration: object) -> str:
    """Return a duration of a job file in Slurm's form `days-hours:minutes:seconds`."""
    seconds = parse_duration(duration) if isinstance(duration, str | int | float) else 0
    seconds = seconds if isinstance(seconds, int) else 0
    # With days always, since without them a form of two numbers would be minutes and seconds.
    return f"{seconds // 86_400}-{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _body(command: str) -> str:
    """Return the script of `bash -c SCRIPT`; any other command as it is."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    # Unwrapped only if reading the script would wrap it again in the same words: so both directions agree.
    whole = len(words) == 3 and words[:2] == ["bash", "-c"]
    return words[2].strip("\n") if whole and runnable(words[2].strip("\n")) == command else command
