"""Lists the fields of a job spec that Slurm does not support, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.backends.slurm.mapping.containers import Runtime, image_refusals
from cockpit.backends.slurm.mapping.groups import groups, is_in_workspace
from cockpit.backends.slurm.mapping.jobparts import NO_COMMAND
from cockpit.launch.command import ENTRYPOINT, words_of
from cockpit.model.rules.bounds import NODES
from cockpit.model.rules.pools import pool_conflicts, sweep_conflicts
from cockpit.model.spec import JobKind, JobSpec


def refusals(spec: JobSpec, runtime: Runtime | None = None) -> Iterator[str]:
    """Yield one line for each field that a Slurm cluster does not support. `runtime`: its container runtime."""
    yield from image_refusals(spec, runtime)
    if spec.command == NO_COMMAND:
        yield "command: this job's script came on standard input; submit the script itself, or write a command"
    if spec.elastic is not None:
        yield "elastic: a Slurm job keeps the nodes that it started with; say how many `nodes`"
    if spec.volumes:
        yield "volumes: Slurm mounts nothing; use the cluster's own file systems"
    if len(spec.specs) > 1:
        yield "specs: Slurm takes one size of node; keep one of them"
    if "\\" in spec.output:
        yield "output: Slurm takes backslashes out of the names of files; choose another folder"
    yield from _group_refusals(spec)
    if spec.pool is not None or spec.driver_version is not None:
        yield "pool: choose a partition instead"
    yield from _life_refusals(spec)
    yield from _container_refusals(spec)
    yield from _manifest_refusals(spec)
    if spec.node_selector or spec.tolerations:
        yield "node_selector: Slurm's nodes have no labels and taints; choose a partition, or name nodes"
    if spec.divide_over_clusters:
        yield "divide_over_clusters: this is one cluster"
    if spec.suspension.scheduling:
        yield "suspension: Slurm has no queues of a quota tree"


def _manifest_refusals(spec: JobSpec) -> Iterator[str]:
    """Yield refusals of what only Kubernetes' manifests ask for."""
    if words_of(spec.command)[:1] == [ENTRYPOINT]:
        yield f"command: `{ENTRYPOINT}` is the image's own, which Slurm's containers do not run; write the program"
    if spec.labels and spec.terminal:
        yield "labels: the comment that would hold them marks jobs with terminal: true; leave one of them out"


def _life_refusals(spec: JobSpec) -> Iterator[str]:
    """Yield refusals of what cockpit's own engine does around a command and after it."""
    # A restart after a lost node is what --requeue does, which is always given (`script.options`).
    if spec.restart is not None and not spec.restart.lost_only:
        yield "restart: Slurm begins a failed job again only by `scontrol requeue`, which its script may call"
    if spec.resume is not None:
        yield "resume: Slurm requeues jobs that it preempts; let the script look for its checkpoint"
    if spec.hooks.before_start or spec.hooks.after_end:
        yield "hooks: a Slurm job has none; write them into its script"


def _container_refusals(spec: JobSpec) -> Iterator[str]:
    """Yield refusals of features of cockpit's own containers, launchers and catalogue."""
    if spec.kind is JobKind.BATCH:
        yield "kind: Slurm has no batches; submit each task as a job, or an array"
    if spec.kind is JobKind.INTERACTIVE:
        yield "kind: Slurm has no sessions; run `salloc` there, or enter a job that runs"
    for field, given in (("datasets", spec.datasets), ("models", spec.models)):
        if given:
            yield f"{field}: Slurm mounts nothing; use the cluster's own file systems"
    if spec.algorithm is not None and not spec.algorithm.path:
        yield "algorithm.name: nothing has a name on a Slurm cluster; write its path"


def _group_refusals(spec: JobSpec) -> Iterator[str]:
    """Yield refusals about the nodes of a job, equal ones and groups of different ones."""
    yield from (f"{path}: {error}" for path, error in (*pool_conflicts(spec), *sweep_conflicts(spec)))
    if error := NODES.error(spec.nodes):
        yield f"nodes: {error}"  # sbatch takes 0, and leaves the job on no node
        return
    all_groups = groups(spec)
    if any(is_in_workspace(each.command) for each in all_groups):
        yield "command: a Slurm cluster has no /workspace; write the paths that files have there"
    for path, each in zip(_paths(spec), all_groups, strict=False):
        if each.each.shares_a_card:
            yield f"{path}.cards: ask for whole cards; shares are this cluster's gres/shard, in a script of your own"
        if len(each.each.card_models) > 1:
            yield f"{path}.card_models: Slurm takes one model; keep one of them"
    if len(all_groups) > 1 and (spec.array is not None or spec.sweep is not None):
        field = "array" if spec.array is not None else "sweep"
        yield f"{field}: Slurm has no arrays of jobs whose nodes are not all alike"


def _paths(spec: JobSpec) -> list[str]:
    """Return the path of the spec of each group of nodes in the job file."""
    pools = [f"worker_pools[{position}].spec" for position, pool in enumerate(spec.worker_pools) if pool.replicas]
    return pools or ["specs[0]", "parameter_servers"]
