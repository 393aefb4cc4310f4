"""A job spec as the script and the options that sbatch takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cockpit.backends.slurm.mapping.body import body
from cockpit.backends.slurm.mapping.containers import Runtime
from cockpit.backends.slurm.mapping.groups import Group, groups
from cockpit.backends.slurm.mapping.ids import slurm_id
from cockpit.backends.slurm.mapping.wrapper import WRAPPED
from cockpit.formats.slurm.spec_fields import slurm_time
from cockpit.launch.sweeps import trial_count
from cockpit.model.batchscript import BatchScript, OpenMode
from cockpit.model.ids import index_ranges
from cockpit.model.spec import Dependency, DependencyKind, HoldAllocation, JobSpec, NodeSpec, PriorityWord

HOLD_SECONDS = 3600
"""How long a failed job keeps its allocation unless its owner sets another time."""


class Submission(NamedTuple):
    """One call of sbatch."""

    argv: tuple[str, ...]
    script: str


def submission(spec: JobSpec, runtime: Runtime | None = None) -> Submission:
    """The command with all that is asked for, and the script that it reads from its standard input."""
    lines = body(spec, asked_seconds(spec), kept_seconds(spec), runtime)
    return Submission(("sbatch", "--parsable", *options(spec)), "\n".join(["#!/bin/sh", *lines, ""]))


def options(spec: JobSpec) -> Iterator[str]:
    """Return the job's options. They are arguments rather than lines of the script, so that no line break in a name can
    end them."""
    (first, *others) = groups(spec)
    yield f"--job-name={spec.name}"
    usual = f"{_pattern(spec.output)}/slurm-{'%A_%a' if array_text(spec) else '%j'}.out"
    yield f"--output={(spec.script.output if spec.script is not None else '') or usual}"
    if spec.script is not None:
        yield from _files(spec.script)
    yield f"--chdir={spec.algorithm.path if spec.algorithm is not None else spec.output}"
    yield from _size(spec, first)
    for name, value in _wishes(spec):
        if value:
            yield f"--{name}={value}"
    for name, wanted in (("hold", spec.hold), ("requeue", True)):
        if wanted:
            yield f"--{name}"
    for each in others:
        yield ":"
        yield from _size(spec, each)


def _files(script: BatchScript) -> Iterator[str]:
    """Return a batch script's options about files other than its output."""
    given = (("error", script.error), ("input", script.input))
    yield from (f"--{name}={path}" for name, path in given if path)
    if script.open_mode is OpenMode.APPEND:
        yield f"--open-mode={script.open_mode}"


def _pattern(folder: str) -> str:
    """A folder in one of sbatch's file patterns."""
    return folder.replace("%", "%%")


def _size(spec: JobSpec, group: Group) -> Iterator[str]:
    """Return the options that each component of a job sets anew."""
    yield f"--nodes={group.nodes}"
    yield "--ntasks-per-node=1"
    yield f"--cpus-per-task={group.each.cpus}"
    yield f"--mem={group.each.memory_mib}M"
    if group.each.card_milli:
        yield f"--gres={gres(group.each)}"
    yield f"--time={slurm_time(asked_seconds(spec))}"
    for name, value in (
        ("partition", ",".join(spec.partitions)),
        ("qos", qos(spec)),
        ("reservation", spec.reservation),
    ):
        if value:
            yield f"--{name}={value}"
    if spec.exclusive:
        yield "--exclusive"


def asked_seconds(spec: JobSpec) -> int:
    """The time limit; with a debug hold its window on top, since the allocation is kept for so long."""
    return spec.time_limit_seconds + kept_seconds(spec)


def kept_seconds(spec: JobSpec) -> int:
    """Return how long a failed job keeps its allocation; 0: not at all."""
    keeps = spec.terminal and spec.debug_hold.allocation is not HoldAllocation.FREE
    window = spec.debug_hold.window_seconds if keeps else 0
    return HOLD_SECONDS if window is None else window


def gres(each: NodeSpec) -> str:
    model = f":{each.card_models[0]}" if each.card_models else ""
    return f"gpu{model}:{each.whole_cards}"


def _wishes(spec: JobSpec) -> Iterator[tuple[str, str]]:
    yield "account", spec.account or ""
    yield "nodelist", ",".join(spec.node_names)
    yield "dependency", dependency_text(spec.dependencies)
    yield "array", array_text(spec)
    yield "nice", str(spec.nice) if spec.nice else ""
    yield "begin", moment_text(spec.begin_at)
    yield "deadline", moment_text(spec.deadline_at)
    labels = ",".join(f"{key}={value}" for key, value in spec.labels.items())
    yield "comment", f"{WRAPPED}terminal" if spec.terminal else labels


def qos(spec: JobSpec) -> str:
    """Return the job's QOS, else the one named like its priority word."""
    return spec.qos or (str(spec.priority) if spec.priority is not PriorityWord.NORMAL else "")


def dependency_text(dependencies: tuple[Dependency, ...]) -> str:
    return ",".join(
        str(each.kind) if each.kind is DependencyKind.SINGLETON else f"{each.kind}:{slurm_id(each.job, each.task)}"
        for each in dependencies
    )


def array_text(spec: JobSpec) -> str:
    """Return the array option, also for a sweep, whose trials are tasks."""
    if spec.array is not None:
        return _tasks(sorted(spec.array.indices), spec.array.at_once)
    return _tasks(range(trial_count(spec.sweep)), spec.sweep.parallel) if spec.sweep is not None else ""


def _tasks(indices: Sequence[int], at_once: int) -> str:
    return f"{index_ranges(indices)}{f'%{at_once}' if at_once else ''}"


def moment_text(at: int | None) -> str:
    """Return the time in seconds since 1970 behind `uts`, which Slurm reads independently of time zones."""
    return "" if at is None else f"uts{at // 1000}"
