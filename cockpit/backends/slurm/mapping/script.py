"""A job spec as the script and the options that sbatch takes. What Slurm has no word for is refused, field by field."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from cockpit.backends.slurm.mapping.hostlist import shortened
from cockpit.backends.slurm.mapping.ids import slurm_id
from cockpit.formats.slurmfields import slurm_time
from cockpit.model.image import HOST
from cockpit.model.spec import Dependency, DependencyKind, JobKind, JobSpec, Mode, NodeSpec, PriorityWord

HOLD_SECONDS = 3600
"""How long a failed job keeps its allocation where its owner says nothing."""


class Submission(NamedTuple):
    """One sbatch."""

    argv: tuple[str, ...]
    script: str


def refusals(spec: JobSpec) -> Iterator[str]:
    """One line for each field that cannot be had on a Slurm cluster."""
    if spec.elastic is not None:
        yield "elastic: a Slurm job keeps the nodes that it started with; say how many `nodes`"
    if spec.volumes:
        yield "volumes: Slurm mounts nothing; use the cluster's own file systems"
    if len(spec.specs) > 1:
        yield "specs: Slurm takes one size of node; keep one of them"
    if spec.specs[0].shares_a_card:
        yield "specs[0].cards: ask for whole cards; shares are this cluster's gres/shard, in a script of your own"
    if len(spec.specs[0].card_models) > 1:
        yield "specs[0].card_models: Slurm takes one model; keep one of them"
    if spec.pool is not None or spec.driver_version is not None:
        yield "pool: choose a partition instead"
    yield from _life_refusals(spec)
    yield from _container_refusals(spec)
    if spec.node_selector or spec.tolerations:
        yield "node_selector: Slurm's nodes have no labels and taints; choose a partition, or name nodes"
    if spec.divide_over_clusters:
        yield "divide_over_clusters: this is one cluster"
    if spec.suspension.scheduling:
        yield "suspension: Slurm has no queues of a quota tree"


def _life_refusals(spec: JobSpec) -> Iterator[str]:
    """What cockpit's own engine does around a command and after it."""
    if spec.restart is not None:
        yield "restart: Slurm begins a failed job again only by `scontrol requeue`, which its script may call"
    if spec.resume is not None:
        yield "resume: Slurm requeues jobs that it preempts; let the script look for its checkpoint"
    if spec.hooks.before_start or spec.hooks.after_end:
        yield "hooks: a Slurm job has none; write them into its script"


def _container_refusals(spec: JobSpec) -> Iterator[str]:
    """What cockpit's own containers, launchers and catalogue do."""
    if spec.kind is JobKind.BATCH:
        yield "kind: Slurm has no batches; submit each task as a job, or an array"
    if spec.kind is JobKind.INTERACTIVE:
        yield "kind: Slurm has no sessions; run `salloc` there, or enter a job that runs"
    if spec.mode not in {None, Mode.STANDALONE, Mode.SLURM}:
        yield f"mode: Slurm starts the script once; call `srun` in it for what {spec.mode} needs"
    for field, given in (("datasets", spec.datasets), ("models", spec.models)):
        if given:
            yield f"{field}: Slurm mounts nothing; use the cluster's own file systems"
    if spec.image != HOST:
        yield "image: Slurm runs on its nodes' own root; let the script start a container"
    if spec.algorithm is not None and not spec.algorithm.path:
        yield "algorithm.name: nothing has a name on a Slurm cluster; write its path"


def submission(spec: JobSpec) -> Submission:
    """The command with all that is asked for, and the script that it reads from its standard input."""
    return Submission(("sbatch", "--parsable", *options(spec)), "\n".join(["#!/bin/bash", *_body(spec), ""]))


def options(spec: JobSpec) -> Iterator[str]:
    """What a job asks for. Not in the script: no line break of a name can end a line of it there."""
    each = spec.specs[0]
    yield f"--job-name={spec.name}"
    yield f"--output={spec.output}/slurm-{'%A_%a' if spec.array is not None else '%j'}.out"
    yield f"--chdir={spec.algorithm.path if spec.algorithm is not None else spec.output}"
    yield f"--nodes={spec.nodes}"
    yield "--ntasks-per-node=1"
    yield f"--cpus-per-task={each.cpus}"
    yield f"--mem={each.memory_mib}M"
    if each.card_milli:
        yield f"--gres={gres(each)}"
    yield f"--time={slurm_time(asked_seconds(spec))}"
    for name, value in _wishes(spec):
        if value:
            yield f"--{name}={value}"
    for name, wanted in (("exclusive", spec.exclusive), ("hold", spec.hold), ("requeue", True)):
        if wanted:
            yield f"--{name}"


def asked_seconds(spec: JobSpec) -> int:
    """The time limit; with a debug hold its window on top, since the allocation is kept for so long."""
    return spec.time_limit_seconds + (hold_seconds(spec) if spec.terminal else 0)


def hold_seconds(spec: JobSpec) -> int:
    window = spec.debug_hold.window_seconds
    return HOLD_SECONDS if window is None else window


def gres(each: NodeSpec) -> str:
    model = f":{each.card_models[0]}" if each.card_models else ""
    return f"gpu{model}:{each.whole_cards}"


def _wishes(spec: JobSpec) -> Iterator[tuple[str, str]]:
    yield "partition", ",".join(spec.partitions)
    yield "account", spec.account or ""
    yield "qos", qos(spec)
    yield "nodelist", ",".join(spec.node_names)
    yield "reservation", spec.reservation
    yield "dependency", dependency_text(spec.dependencies)
    yield "array", array_text(spec)
    yield "nice", str(spec.nice) if spec.nice else ""
    yield "begin", moment_text(spec.begin_at)
    yield "deadline", moment_text(spec.deadline_at)


def qos(spec: JobSpec) -> str:
    """Its own, else that of the name of its priority word."""
    return spec.qos or (str(spec.priority) if spec.priority is not PriorityWord.NORMAL else "")


def dependency_text(dependencies: tuple[Dependency, ...]) -> str:
    return ",".join(
        str(each.kind) if each.kind is DependencyKind.SINGLETON else f"{each.kind}:{slurm_id(each.job, each.task)}"
        for each in dependencies
    )


def array_text(spec: JobSpec) -> str:
    if spec.array is None:
        return ""
    at_once = f"%{spec.array.at_once}" if spec.array.at_once else ""
    return f"{shortened(tuple(sorted(spec.array.indices)))}{at_once}"


def moment_text(at: int | None) -> str:
    """In no time zone: seconds since 1970, which Slurm reads behind `uts`."""
    return "" if at is None else f"uts{at // 1000}"


def _body(spec: JobSpec) -> Iterator[str]:
    for name, value in spec.env.items():
        yield f"export {name}={shlex.quote(value)}"
    yield f"export COCKPIT_JOB_NAME={shlex.quote(spec.name)} COCKPIT_OUTPUTS={shlex.quote(spec.output)}"
    yield from (f"export {each}" for each in _PLACE)
    yield ""
    run = _command(spec)
    yield from _held(run, hold_seconds(spec)) if spec.terminal else [run]


_PLACE = (
    'COCKPIT_JOB_ID="$SLURM_JOB_ID" COCKPIT_REPLICAS="$SLURM_JOB_NUM_NODES" COCKPIT_CPUS="$SLURM_CPUS_PER_TASK"',
    'COCKPIT_MASTER="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"',
)


def _command(spec: JobSpec) -> str:
    """On one node by itself; on several once on each, which knows its rank."""
    if spec.nodes == 1:
        return f"COCKPIT_REPLICA=0 bash -c {shlex.quote(spec.command)}"
    each = f'export COCKPIT_REPLICA="$SLURM_NODEID"; {spec.command}'
    return f"srun --kill-on-bad-exit=1 bash -c {shlex.quote(each)}"


def _held(run: str, seconds: int) -> Iterator[str]:
    """POSIX sh. Killed, it ends as any job does; told by USR1, it lets go."""
    yield "cockpit_let_go=0"
    yield "trap 'cockpit_let_go=1' USR1"
    yield run
    yield "rc=$?"
    yield 'if [ "$rc" -ne 0 ]; then'
    yield f"    until=$(($(date +%s) + {seconds}))"
    yield '    scontrol update JobId="$SLURM_JOB_ID" Comment="cockpit:held rc=$rc until=$until" || :'
    yield '    echo "cockpit: ended with $rc; this allocation is kept, cockpit shell $SLURM_JOB_ID enters it" >&2'
    yield '    while [ "$cockpit_let_go" -eq 0 ] && [ "$(date +%s)" -lt "$until" ]; do sleep 5 & wait $!; done'
    yield '    scontrol update JobId="$SLURM_JOB_ID" Comment="cockpit:released rc=$rc" || :'
    yield "fi"
    yield 'exit "$rc"'
