"""Workloads: the objects of which each is a job, as one struct that has the fields of all their kinds.

Sources: batch/v1 JobSpec; kubeflow.org PyTorchJobSpec, TFJobSpec, MPIJobSpec (also v1alpha1) and RunPolicy, in the
training operator's form and in that of arena, which has the run policy's fields beside the replicas;
trainer.kubeflow.org TrainJobSpec; jobset.x-k8s.io JobSetSpec; kai.alibabacloud.com TrainingJobSpec; batch.volcano.sh
JobSpec.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta
from cockpit.backends.kubernetes.objects.pod import Container, PodSpec, PodTemplate, Resources
from cockpit.backends.kubernetes.objects.volcano import VolcanoState, VolcanoTask


class ReplicaSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Equal replicas of one role."""

    replicas: int | None = None
    template: PodTemplate | None = None
    restart_policy: str = ""
    min_replicas: int | None = None
    max_replicas: int | None = None


Replicas = dict[str, ReplicaSpec]


class RunPolicy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How a job of the training operator runs."""

    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    clean_pod_policy: str = ""


class ElasticPolicy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The bounds of an elastic PyTorchJob."""

    min_replicas: int | None = None
    max_replicas: int | None = None


class Trainer(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The trainer of a TrainJob, whose pods a training runtime describes."""

    num_nodes: int | None = None
    image: str = ""
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    resources_per_node: Resources | None = None


class RuntimeRef(msgspec.Struct, frozen=True, gc=False):
    """The training runtime of a TrainJob."""

    name: str = ""
    kind: str = ""


class JobTemplateSpec(msgspec.Struct, frozen=True, gc=False):
    """The batch/v1 JobSpec inside of a replicated job."""

    parallelism: int | None = None
    completions: int | None = None
    template: PodTemplate | None = None


class JobTemplate(msgspec.Struct, frozen=True, gc=False):
    """The template of a replicated job."""

    spec: JobTemplateSpec = JobTemplateSpec()


class ReplicatedJob(msgspec.Struct, frozen=True, gc=False):
    """Equal jobs of a JobSet."""

    name: str = ""
    replicas: int | None = None
    template: JobTemplate = JobTemplate()


class WorkloadSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a workload is to be; each kind has some of these fields."""

    # batch/v1 Job, JobSet, TrainJob, and arena's form of the kubeflow kinds
    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    template: PodTemplate | None = None
    replicated_jobs: tuple[ReplicatedJob, ...] | None = None
    # kubeflow.org
    run_policy: RunPolicy | None = None
    pytorch_replica_specs: Replicas | None = None
    tf_replica_specs: Replicas | None = None
    mpi_replica_specs: Replicas | None = None
    xgb_replica_specs: Replicas | None = None
    paddle_replica_specs: Replicas | None = None
    jax_replica_specs: Replicas | None = None
    replicas: int | None = None
    """Workers of an MPIJob in arena's form (v1alpha1), whose template is that of a worker."""
    elastic_policy: ElasticPolicy | None = None
    # trainer.kubeflow.org
    trainer: Trainer | None = None
    runtime_ref: RuntimeRef | None = None
    # kai.alibabacloud.com
    et_replica_specs: Replicas | None = None
    restart_policy: str = ""
    backoff_limit: int | None = None
    """How often a TrainingJob is restarted at most; of a batch/v1 Job how many of its pods may fail."""
    # batch.volcano.sh
    tasks: tuple[VolcanoTask, ...] | None = None
    queue: str = ""
    priority_class_name: str = ""
    max_retry: int = 3


class ReplicaStatus(msgspec.Struct, frozen=True, gc=False):
    """The number of a role's pods by their state."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0


class WorkloadStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a workload is at present."""

    conditions: tuple[Condition, ...] | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    phase: str = ""
    launcher_status: str = ""
    """`Active`, `Succeeded` or `Failed`, of an MPIJob in arena's form, which has no conditions."""
    # kai.alibabacloud.com
    current_workers: tuple[str, ...] | None = None
    restart_count: int = 0
    target_workers: tuple[str, ...] | None = None
    # batch.volcano.sh
    state: VolcanoState | str | None = None
    retry_count: int = 0

    @property
    def volcano_state(self) -> VolcanoState | None:
        return self.state if isinstance(self.state, VolcanoState) else None


NO_STATUS = WorkloadStatus()
_BACKOFF_LIMIT = 6
"""The default of a TrainingJob."""
SUSPENDED_PHASE = "Suspended"
"""Phase and condition of a TrainingJob that waits for its least number of workers, without pods."""


class Workload(msgspec.Struct, frozen=True, gc=False):
    """A job of any kind."""

    metadata: ObjectMeta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus | None = None

    @property
    def now(self) -> WorkloadStatus:
        return self.status or NO_STATUS

    @property
    def is_suspended(self) -> bool:
        """Whether its spec says that it shall have no pods."""
        policy, state = self.spec.run_policy, self.now.volcano_state
        return bool(
            self.spec.suspend
            or (policy is not None and policy.suspend)
            or self.spec.parallelism == 0
            or self.is_short_of_workers
            # A job of Volcano has no field for it; a command sends it there.
            or (state is not None and state.is_suspended)
        )

    @property
    def is_short_of_workers(self) -> bool:
        """Whether it has released its pods because it could not have its least number of workers."""
        return self.now.phase == SUSPENDED_PHASE

    @property
    def restarts(self) -> tuple[int, int] | None:
        """How often a TrainingJob has been restarted, and how often it may be; None: it never is."""
        if not self.spec.et_replica_specs or self.spec.restart_policy != "OnFailure":
            return None
        most = _BACKOFF_LIMIT if self.spec.backoff_limit is None else self.spec.backoff_limit
        return self.now.restart_count, most

    @property
    def deadline_seconds(self) -> int | None:
        """How long it may run; None: as long as it needs."""
        policy = self.spec.run_policy
        own = policy.active_deadline_seconds if policy is not None else None
        return own if own is not None else self.spec.active_deadline_seconds


class ReplicaGroup(msgspec.Struct, frozen=True, gc=False):
    """The pods of one role that a workload asks for."""

    role: str
    count: int
    template: PodTemplate
    least: int
    """The number without which the job does not start; less than `count` for elastic jobs."""
    most: int | None = None
    """The number to which an elastic job may grow; None: the job is not elastic."""


LAUNCHER = "launcher"
"""The role that starts the others, and comes last, as the job's command runs there but its cards are elsewhere. Kinds
write the names of roles with capitals or without."""
WORKER = "worker"


def starts_others(role: str) -> bool:
    """Return whether the job's command runs in this role, which starts the others."""
    return role.lower() == LAUNCHER


def groups_of(workload: Workload) -> tuple[ReplicaGroup, ...]:
    """Return the roles of a workload with their pod templates; empty where another object has the templates."""
    spec = workload.spec
    for replicas in (
        spec.pytorch_replica_specs,
        spec.tf_replica_specs,
        spec.mpi_replica_specs,
        spec.xgb_replica_specs,
        spec.paddle_replica_specs,
        spec.jax_replica_specs,
        spec.et_replica_specs,
    ):
        if replicas:
            return tuple(_of_roles(replicas, spec.elastic_policy))
    if spec.tasks:
        return tuple(_of_task(each) for each in spec.tasks)
    if spec.replicated_jobs:
        return tuple(_of_replicated(each) for each in spec.replicated_jobs)
    if spec.template is not None:
        count = spec.replicas if spec.replicas is not None else _at_once(spec.parallelism, spec.completions)
        return (ReplicaGroup("", count, spec.template, count),)
    if spec.runtime_ref is not None:
        return (_of_trainer(spec.trainer or Trainer()),)
    return ()


def _of_trainer(trainer: Trainer) -> ReplicaGroup:
    """Return the nodes of a TrainJob as far as it describes them itself; the rest is in its runtime."""
    count = 1 if trainer.num_nodes is None else trainer.num_nodes
    container = Container(
        image=trainer.image, command=trainer.command, args=trainer.args, resources=trainer.resources_per_node
    )
    return ReplicaGroup("", count, PodTemplate(spec=PodSpec(containers=(container,))), count)


def _of_roles(replicas: Replicas, elastic: ElasticPolicy | None) -> list[ReplicaGroup]:
    groups = []
    # Stable, so that the first role stays before the workers: its first pod is rank 0.
    for role in sorted(replicas, key=starts_others):
        each = replicas[role]
        count = 1 if each.replicas is None else each.replicas
        least, most = _bounds(each, elastic if role.lower() == WORKER else None)
        # TrainingJobSpec: the least number is that of the replicas, and the most is not limited.
        if least is not None or most is not None:
            most = count if most is None else most
        groups.append(
            ReplicaGroup(role, count, each.template or PodTemplate(), count if least is None else least, most)
        )
    return groups


def _bounds(each: ReplicaSpec, elastic: ElasticPolicy | None) -> tuple[int | None, int | None]:
    """Return the least and the most replicas, by the role itself or else by the job's elastic policy."""
    if elastic is not None and each.min_replicas is None and each.max_replicas is None:
        return elastic.min_replicas, elastic.max_replicas
    return each.min_replicas, each.max_replicas


def _of_task(each: VolcanoTask) -> ReplicaGroup:
    count = 1 if each.replicas is None else each.replicas
    least = count if each.min_available is None else each.min_available
    return ReplicaGroup(each.name, count, each.template or PodTemplate(), least)


def _of_replicated(each: ReplicatedJob) -> ReplicaGroup:
    inner = each.template.spec
    count = (1 if each.replicas is None else each.replicas) * _at_once(inner.parallelism, inner.completions)
    return ReplicaGroup(each.name, count, inner.template or PodTemplate(), count)


def _at_once(parallelism: int | None, completions: int | None) -> int:
    """Return how many pods of a Job run at the same time (JobSpec: parallelism is 1 by default)."""
    # A suspended work queue has parallelism 0, and would have at least one pod.
    wanted = max(1, parallelism if parallelism is not None else 1)
    return min(wanted, completions) if completions else wanted
