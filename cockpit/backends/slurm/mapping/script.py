"""A job spec as the script and the options that sbatch takes.

The body of the script sets variables, starts the command on the job's nodes, and ends with its exit code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cockpit.backends.slurm.mapping.containers import Runtime, leave_container, step_in_container
from cockpit.backends.slurm.mapping.groups import Group, groups
from cockpit.backends.slurm.mapping.memory import asks_for_all_memory, names_memory
from cockpit.backends.slurm.mapping.modelines import NODE, launched_command, of_replica, prelude, under_mpi
from cockpit.backends.slurm.mapping.shelltext import Variable, quoted, word
from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.backends.slurm.mapping.wrapper import WRAPPED, copy_after_failure, hold_after_failure, script_head
from cockpit.formats.slurm.spec_fields import slurm_time
from cockpit.launch.modes import LAUNCHED_BY_FIRST
from cockpit.launch.sweeps import trial_count, trial_number, trial_spec
from cockpit.model.batchscript import BatchScript, OpenMode
from cockpit.model.ids import index_ranges
from cockpit.model.image import HOST
from cockpit.model.spec import Dependency, DependencyKind, HoldAllocation, JobSpec, NodeSpec, PriorityWord

HOSTS = """\
cockpit_hosts() {
    for each in $(scontrol show hostnames "$1"); do
        if getent hosts "$each" >/dev/null; then
            echo "$each"
        else # its name is Slurm's alone
            scontrol show node "$each" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p'
        fi
    done
}"""
_TRIAL = "COCKPIT_TRIAL_OPTIONS"


def body(spec: JobSpec, asked_seconds: int, kept_seconds: int, runtime: Runtime | None) -> Iterator[str]:
    """Return the body's lines, for sh. `kept_seconds`: how long a failed job holds its nodes; 0: not at all. `runtime`:
    that of containers."""
    # At the top, where the time limit starts to count.
    if kept_seconds:
        yield script_head(asked_seconds)
    for name, value in spec.env.items():
        yield f"export {name}={quoted(value)}"
    yield from _place(spec)
    yield from _trials(spec)
    # After the place: it uses COCKPIT_MASTER and `cockpit_hosts`.
    yield from prelude(spec)
    yield ""
    boxed = runtime if spec.image != HOST else None
    if not spec.terminal:
        yield from _run(spec, boxed)
        return
    # A function, so that the wrapper gets the exit code and goes on after a failure.
    yield "cockpit_run() {"
    yield from (f"    {each}" for each in _run(spec, boxed))
    yield "}"
    if spec.debug_hold.allocation is not HoldAllocation.FREE:
        yield from hold_after_failure(kept_seconds)
    else:
        yield from leave_container(spec, boxed) if boxed is not None else copy_after_failure()


def _place(spec: JobSpec) -> Iterator[str]:
    """Yield the lines that set the job's id, hosts and sizes."""
    # The first group runs the script: its first node is the master.
    (first, *_) = all_groups = groups(spec)
    replicas = " + ".join(each.of_slurm("SLURM_JOB_NUM_NODES") for each in all_groups)
    cpus, nodes = first.of_slurm("SLURM_CPUS_PER_TASK"), first.of_slurm("SLURM_JOB_NODELIST")
    yield f"export COCKPIT_JOB_NAME={quoted(spec.name)} COCKPIT_OUTPUTS={quoted(spec.output)}"
    yield f'export COCKPIT_JOB_ID="$SLURM_JOB_ID" COCKPIT_REPLICAS=$(({replicas}))'
    yield f'export COCKPIT_CPUS="${cpus}" COCKPIT_SLOTS={first.slots}'
    yield HOSTS
    yield f'COCKPIT_MASTER=$(cockpit_hosts "${nodes}" | head -n 1)'
    yield "export COCKPIT_MASTER"


def _trials(spec: JobSpec) -> Iterator[str]:
    """Return the arguments that each trial of a sweep adds to the command."""
    if spec.sweep is None:
        return
    # Trials count from 1, tasks of an array from 0.
    yield 'export COCKPIT_TRIAL="$((SLURM_ARRAY_TASK_ID + 1))"'
    yield "case $COCKPIT_TRIAL in"
    for index in range(trial_count(spec.sweep)):
        options = trial_spec(spec, index).command.removeprefix(spec.command.strip(" \t\n"))
        yield f"{trial_number(index)}) {_TRIAL}={quoted(options)} ;;"
    yield "esac"


def _run(spec: JobSpec, runtime: Runtime | None) -> Iterator[str]:
    """Return the lines that start the groups: helpers first, which end with the groups that decide the job's end."""
    (first, *others) = groups(spec)
    # in the background, so that the deciding group's exit code is the one that is kept
    for each in others:
        yield f"{_step(spec, each, launched_command(spec, each), runtime)} &"
        yield 'cockpit_others="$cockpit_others $!"'
    yield from _decisive(spec, first, runtime)
    if others:
        yield "rc=$?"
        yield "kill $cockpit_others 2>/dev/null"
        # The exit code of the deciding group, which `kill` has replaced in `$?`.
        yield '(exit "$rc")'


def _decisive(spec: JobSpec, group: Group, runtime: Runtime | None) -> Iterator[str]:
    """Yield the step whose exit code is the job's; under Open MPI, mpirun starts its processes."""
    plain, launched = _step(spec, group, launched_command(spec, group), runtime), under_mpi(spec, group)
    if launched is None or launched == group.command:
        yield plain
        return
    # Decided on the node: what is installed there is not known here.
    yield "if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then"
    yield f"    {_step(spec, group, launched, runtime)}"
    yield "else"
    yield f"    {plain}"
    yield "fi"


def _step(spec: JobSpec, group: Group, command: str, runtime: Runtime | None) -> str:
    """Return the command of one step: on one node alone, if the command starts the others itself; else once on each
    node."""
    # SLURM_NODEID counts from 0 in each component.
    rank = f"$((SLURM_NODEID + {group.first}))" if group.first else NODE
    assigned = [f'COCKPIT_REPLICA="{rank}"', 'COCKPIT_NODE="$SLURMD_NODENAME"']
    assigned += of_replica(spec, group)
    # Quoted as a whole, and its variables are expanded by the bash on the node, where their values differ.
    text = "\n".join([*(f"export {each}" for each in assigned), command])
    behind = (Variable(_TRIAL),) if spec.sweep is not None else ()
    script = f"bash -c {word(text, *behind)}"
    srun = _srun(spec, group)
    return step_in_container(spec, runtime, srun, script) if runtime is not None else f"{srun} {script}".lstrip()


def _srun(spec: JobSpec, group: Group) -> str:
    """Return the srun of a group; empty if the group is only the node that runs the script."""
    # The batch script runs on the first node of the job, in all of its allocation.
    if group.alone and (group.nodes == 1 or spec.mode in LAUNCHED_BY_FIRST):
        return ""
    own = f" --nodes={group.nodes} --ntasks={group.nodes}"  # since 23.11 srun would take the first component's
    which = "" if group.alone else f" --het-group={group.position}{own}"
    cpus = group.of_slurm("SLURM_CPUS_PER_TASK")
    return f'srun{which} --kill-on-bad-exit=1 --cpus-per-task="${cpus}"'


HOLD_SECONDS = 3600
"""How long a failed job keeps its allocation unless its owner sets another time."""


class Submission(NamedTuple):
    """One call of sbatch."""

    argv: tuple[str, ...]
    script: str


def submission(spec: JobSpec, runtime: Runtime | None = None) -> Submission:
    """Return the command with all that is asked for, and the script that it reads from its standard input."""
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
    # sbatch would start the script in the folder where cockpit happened to run.
    yield f"--chdir={spec.algorithm.path if spec.algorithm is not None else spec.output}"
    yield from _size(spec, first)
    for name, value in _wishes(spec):
        if value:
            yield f"--{name}={value}"
    # requeue always: with JobRequeue=0 Slurm requeues only jobs that were submitted with it (slurm.conf(5))
    for name, wanted in (("hold", spec.hold), ("requeue", True)):
        if wanted:
            yield f"--{name}"
    # a colon separates the components of a heterogeneous job (sbatch(1), heterogeneous_jobs.html)
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
    """Return the folder escaped for one of sbatch's file patterns."""
    return folder.replace("%", "%%")


def _size(spec: JobSpec, group: Group) -> Iterator[str]:
    """Return the options that each component of a job sets for itself."""
    yield f"--nodes={group.nodes}"
    # One task for each node, since a replica is one process that starts its own.
    yield "--ntasks-per-node=1"
    yield f"--cpus-per-task={group.each.cpus}"
    if names_memory(spec):
        yield f"--mem={group.each.memory_mib}M"
    elif asks_for_all_memory(spec):
        yield "--mem=0"
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
    """Return the time limit; with a debug hold its window on top, since the allocation is kept for so long."""
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
    """Yield options of sbatch that the user may leave out, empty where that is so."""
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
