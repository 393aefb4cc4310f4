"""Checks a job spec by all rules at once: its fields, their conflicts, and the grammar of its command.

Also lists the fields that need a container, for machines that do not let their engine create containers.
"""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.launch.command import ENTRYPOINT, command_errors, words_of
from cockpit.launch.workspace import can_be_shown
from cockpit.model.image import HOST, ImageKind, image_of
from cockpit.model.rules.bounds import NODES
from cockpit.model.rules.conflicts import MOST_BATCH_TASKS
from cockpit.model.rules.spec import spec_errors
from cockpit.model.rules.text import COMMAND_BYTES
from cockpit.model.spec import JobSpec, Mode

COMPUTE_QOS = "alibabacloud.com/compute-qos"
"""Label that pods of best effort have, with the value `best-effort`."""
SUPERVISED = "job-supervisor.kube-ai.io/managed-by-job-supervisor"
"""Annotation of pods that are warned before they are evicted, with the value `true`."""


def submission_errors(spec: JobSpec) -> list[str]:
    """Return one sentence for each wrong field, which begins with its path. The engine checks every submission."""
    return [*spec_errors(spec), *grammar_errors(spec)]


def meeting_errors(spec: JobSpec) -> list[str]:
    """Return an error for a job of several nodes without a mode: such a job is standalone, which has one node.

    Divided jobs are exempt, because their nodes do not reach each other, and so are elastic jobs, whose workers find
    each other by `launch.world`. A part of a job that a fleet gives to one cluster is not checked.
    """
    elastic = spec.elastic is not None and spec.resume is None
    # Too many nodes have an error of their own.
    if spec.mode is not None or not 1 < spec.nodes <= NODES.high or spec.divide_over_clusters or elastic:
        return []
    message = (
        f"mode: without one it is standalone, of one node, and there are {spec.nodes}; write {Mode.PYTORCH} (the "
        f"command runs on each), {Mode.SLURM} or {Mode.DEEPSPEED} (on the first), {Mode.HOROVOD} (under mpirun), "
        f"{Mode.TENSORFLOW}, or nodes: 1"
    )
    return [message]


def warnings(spec: JobSpec) -> tuple[str, ...]:
    """Return sentences about fields that are allowed but probably not intended; each begins with the field's path."""
    messages = []
    if spec.is_best_effort and spec.elastic is not None and not spec.elastic.supervised:
        messages.append(
            f"elastic.supervised: without it ({SUPERVISED}) best-effort workers are killed without a notice"
        )
    if spec.script is not None and not can_be_shown(spec.script.work_dir):
        messages.append(
            f"script.work_dir: of {spec.script.work_dir} the job has a copy of its own, and what it writes there is "
            "lost; submit from another folder, or write #SBATCH --chdir"
        )
    commands = [spec.command, *(pool.command for pool in spec.worker_pools), *(task.command for task in spec.tasks)]
    images = {spec.root_image, *(pool.image for pool in spec.worker_pools if pool.image)}
    # Only an image of podman or docker has an ENTRYPOINT.
    has_own = any(image_of(image).kind is ImageKind.NAMED for image in images)
    if not has_own and any(words_of(command)[:1] == [ENTRYPOINT] for command in commands if ENTRYPOINT in command):
        messages.append(
            f"command: `{ENTRYPOINT}` is what an image of podman or docker runs; without one write the program"
        )
    return tuple(messages)


def grammar_errors(spec: JobSpec) -> list[str]:
    """Return the errors in the grammar of all commands; empty and too long ones have an error of `spec_errors`."""
    commands = {"command": spec.command}
    commands |= {f"tasks[{index}].command": task.command for index, task in enumerate(spec.tasks[:MOST_BATCH_TASKS])}
    commands |= {f"worker_pools[{index}].command": pool.command for index, pool in enumerate(spec.worker_pools)}
    return [
        f"{path}: {error}"
        for path, command in commands.items()
        if command and len(command) <= COMMAND_BYTES
        for error in command_errors(command)
    ]


def needs_container(spec: JobSpec) -> list[str]:
    """Return the fields because of which the job needs a container, each with the reason and what to do."""
    return list(_needs(spec))


def _needs(spec: JobSpec) -> Iterator[str]:
    """Yield the fields that plain processes cannot provide."""
    if spec.root_image != HOST:
        yield "image: plain processes have no other root than this machine's; leave it out"
    if spec.staging:
        yield "staging: plain processes could write into a copy that others use; leave it out"
    if spec.most_nodes > 1:
        yield (
            "nodes: several replicas need a network of their own, which plain processes do not have; write nodes: 1 "
            "and have one command start all processes"
        )
