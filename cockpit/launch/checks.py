"""All rules of a spec at once: its fields, their conflicts, and the grammar of its command."""

from __future__ import annotations

from cockpit.launch.command import ENTRYPOINT, command_errors, words_of
from cockpit.launch.workspace import can_be_shown
from cockpit.model.image import ImageKind, image_of
from cockpit.model.rules.bounds import NODES
from cockpit.model.rules.kinds import MOST_BATCH_TASKS
from cockpit.model.rules.spec import spec_errors
from cockpit.model.rules.text import COMMAND_BYTES
from cockpit.model.spec import JobSpec, Mode

COMPUTE_QOS = "alibabacloud.com/compute-qos"
"""The label of pods of best effort: `best-effort`."""
SUPERVISED = "job-supervisor.kube-ai.io/managed-by-job-supervisor"
"""The annotation of pods that are told before they are evicted: `true`."""


def submission_errors(spec: JobSpec) -> list[str]:
    """One sentence per wrong field, led by its path. The engine asks this of every submission."""
    return [*spec_errors(spec), *grammar_errors(spec)]


def meeting_errors(spec: JobSpec) -> list[str]:
    """A job that says nothing is standalone, which has one node. Not asked of a part that a fleet hands to one of its
    clusters. Nodes of a divided job do not reach each other, and those of an elastic one are told of the others
    otherwise."""
    elastic = spec.elastic is not None and spec.resume is None
    if spec.mode is not None or not 1 < spec.nodes <= NODES.high or spec.divide_over_clusters or elastic:
        return []
    said = (
        f"mode: without one it is standalone, of one node, and there are {spec.nodes}; write {Mode.PYTORCH} (the "
        f"command runs on each), {Mode.SLURM} or {Mode.DEEPSPEED} (on the first), {Mode.HOROVOD} (under mpirun), "
        f"{Mode.TENSORFLOW}, or nodes: 1"
    )
    return [said]


def warnings(spec: JobSpec) -> tuple[str, ...]:
    """What is allowed and probably not meant, led by its field's path."""
    found = []
    if spec.is_best_effort and spec.elastic is not None and not spec.elastic.supervised:
        found.append(f"elastic.supervised: without it ({SUPERVISED}) best-effort workers are killed without a notice")
    if spec.script is not None and not can_be_shown(spec.script.work_dir):
        found.append(
            f"script.work_dir: of {spec.script.work_dir} the job has a copy of its own, and what it writes there is "
            "lost; submit from another folder, or write #SBATCH --chdir"
        )
    commands = [spec.command, *(pool.command for pool in spec.worker_pools), *(task.command for task in spec.tasks)]
    images = {spec.root_image, *(pool.image for pool in spec.worker_pools if pool.image)}
    has_own = any(image_of(image).kind is ImageKind.NAMED for image in images)
    if not has_own and any(words_of(command)[:1] == [ENTRYPOINT] for command in commands if ENTRYPOINT in command):
        found.append(
            f"command: `{ENTRYPOINT}` is what an image of podman or docker runs; without one write the program"
        )
    return tuple(found)


def grammar_errors(spec: JobSpec) -> list[str]:
    """What is wrong with the commands as commands. An empty or oversized one has its error from the rules already."""
    commands = {"command": spec.command}
    commands |= {f"tasks[{index}].command": task.command for index, task in enumerate(spec.tasks[:MOST_BATCH_TASKS])}
    commands |= {f"worker_pools[{index}].command": pool.command for index, pool in enumerate(spec.worker_pools)}
    return [
        f"{path}: {error}"
        for path, command in commands.items()
        if command and len(command) <= COMMAND_BYTES
        for error in command_errors(command)
    ]
