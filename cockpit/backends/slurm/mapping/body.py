"""Writes the body of a job's script: it sets variables, starts the command on the job's nodes, and ends with its exit
code."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.backends.slurm.mapping.containers import Runtime, contained, leaving
from cockpit.backends.slurm.mapping.groups import Group, groups
from cockpit.backends.slurm.mapping.modelines import NODE, of_replica, prelude, started, under_mpi
from cockpit.backends.slurm.mapping.shelltext import Variable, quoted, word
from cockpit.backends.slurm.mapping.wrapper import beginning, copying, keeping
from cockpit.launch.modes import LAUNCHED_BY_FIRST
from cockpit.launch.sweeps import swept, trial_count, trial_number
from cockpit.model.image import HOST
from cockpit.model.spec import HoldAllocation, JobSpec

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
    if kept_seconds:
        yield beginning(asked_seconds)
    for name, value in spec.env.items():
        yield f"export {name}={quoted(value)}"
    yield from _place(spec)
    yield from _trials(spec)
    yield from prelude(spec)
    yield ""
    boxed = runtime if spec.image != HOST else None
    if not spec.terminal:
        yield from _run(spec, boxed)
        return
    yield "cockpit_run() {"
    yield from (f"    {each}" for each in _run(spec, boxed))
    yield "}"
    if spec.debug_hold.allocation is not HoldAllocation.FREE:
        yield from keeping(kept_seconds)
    else:
        yield from leaving(spec, boxed) if boxed is not None else copying()


def _place(spec: JobSpec) -> Iterator[str]:
    (first, *_) = everybody = groups(spec)
    replicas = " + ".join(each.of_slurm("SLURM_JOB_NUM_NODES") for each in everybody)
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
    yield 'export COCKPIT_TRIAL="$((SLURM_ARRAY_TASK_ID + 1))"'
    yield "case $COCKPIT_TRIAL in"
    for index in range(trial_count(spec.sweep)):
        options = swept(spec, index).command.removeprefix(spec.command.strip(" \t\n"))
        yield f"{trial_number(index)}) {_TRIAL}={quoted(options)} ;;"
    yield "esac"


def _run(spec: JobSpec, runtime: Runtime | None) -> Iterator[str]:
    """Return the lines that start the groups: helpers first, which end with the groups that decide the job's end."""
    (first, *others) = groups(spec)
    for each in others:
        yield f"{_step(spec, each, started(spec, each), runtime)} &"
        yield 'cockpit_others="$cockpit_others $!"'
    yield from _decisive(spec, first, runtime)
    if others:
        yield "rc=$?"
        yield "kill $cockpit_others 2>/dev/null"
        yield '(exit "$rc")'


def _decisive(spec: JobSpec, group: Group, runtime: Runtime | None) -> Iterator[str]:
    plain, launched = _step(spec, group, started(spec, group), runtime), under_mpi(spec, group)
    if launched is None or launched == group.command:
        yield plain
        return
    yield "if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then"
    yield f"    {_step(spec, group, launched, runtime)}"
    yield "else"
    yield f"    {plain}"
    yield "fi"


def _step(spec: JobSpec, group: Group, command: str, runtime: Runtime | None) -> str:
    """Return the command of one step: on one node alone, if the command starts the others itself; else once on each
    node."""
    rank = f"$((SLURM_NODEID + {group.first}))" if group.first else NODE
    assigned = [f'COCKPIT_REPLICA="{rank}"', 'COCKPIT_NODE="$SLURMD_NODENAME"']
    assigned += of_replica(spec, group)
    text = "\n".join([*(f"export {each}" for each in assigned), command])
    behind = (Variable(_TRIAL),) if spec.sweep is not None else ()
    script = f"bash -c {word(text, *behind)}"
    srun = _srun(spec, group)
    return contained(spec, runtime, srun, script) if runtime is not None else f"{srun} {script}".lstrip()


def _srun(spec: JobSpec, group: Group) -> str:
    """Return the srun of a group; empty if the group is only the node that runs the script."""
    if group.alone and (group.nodes == 1 or spec.mode in LAUNCHED_BY_FIRST):
        return ""
    own = f" --nodes={group.nodes} --ntasks={group.nodes}"  # since 23.11 srun would take the first component's
    which = "" if group.alone else f" --het-group={group.position}{own}"
    cpus = group.of_slurm("SLURM_CPUS_PER_TASK")
    return f'srun{which} --kill-on-bad-exit=1 --cpus-per-task="${cpus}"'
