"""The object that a job becomes on a cluster, by the kinds that the cluster serves."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from cockpit.backends.kubernetes.capabilities import NO_HOST_IMAGE
from cockpit.backends.kubernetes.hold_wrapper import wrap
from cockpit.backends.kubernetes.mapping.kube_jobs import JOB_SUSPENDED, SUBMITTED_BY, SUSPENDED_BY, KubeJob
from cockpit.backends.kubernetes.objects.workload import Workload
from cockpit.backends.kubernetes.resources import (
    JOBS,
    MPI_JOBS,
    MPI_JOBS_V1,
    PYTORCH_JOBS,
    TF_JOBS,
    TRAINING_JOBS,
    VOLCANO_JOBS,
    Resource,
)
from cockpit.errors import RequestRefused
from cockpit.formats.foreign.kubernetes_jobs import write_job, write_mpi_job, write_tf_job
from cockpit.formats.foreign.pytorchjob import write_pytorch_job
from cockpit.formats.foreign.trainingjob import is_for_elastic_training, write_training_job
from cockpit.formats.foreign.volcanojob import write_volcano_job
from cockpit.model.image import HOST
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Mode

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

Write = Callable[["JobSpec"], dict[str, Any]]

_KINDS: Mapping[Mode, tuple[Write, tuple[Resource, ...]]] = {
    Mode.PYTORCH: (write_pytorch_job, (PYTORCH_JOBS,)),
    Mode.TENSORFLOW: (write_tf_job, (TF_JOBS,)),
    Mode.HOROVOD: (write_mpi_job, (MPI_JOBS, MPI_JOBS_V1)),
    Mode.DEEPSPEED: (write_mpi_job, (MPI_JOBS, MPI_JOBS_V1)),
}
_RESUMES = 1000
"""How often a job of Volcano can be suspended and resumed."""
_IN_VOLCANO = (write_volcano_job, VOLCANO_JOBS)
"""The form of a distributed job where the kind of its mode is not served."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def manifest_of(
    spec: JobSpec, served: Collection[Resource], namespace: str, user: str
) -> tuple[Resource, dict[str, Any]]:
    """Return the kind and the manifest of a job. Raises `RequestRefused` for a job that the cluster cannot run.

    `namespace`: where a job without a project goes; `user`: the user's name on the cluster.
    """
    resource, write = _kind(spec, served) if spec.elastic is None else _elastic_kind(spec, served)
    if not _NAME.fullmatch(spec.name):
        _refuse("name", f"{spec.name!r} is no name on Kubernetes: use lower-case letters, digits and hyphens")
    if spec.image == HOST:
        _refuse("image", NO_HOST_IMAGE)
    if resource == VOLCANO_JOBS and (spec.hold or spec.terminal):
        _refuse("hold" if spec.hold else "terminal", "a Job of Volcano starts unheld, and its failed containers end")
    if spec.dependencies or spec.begin_at is not None:
        _refuse("dependencies" if spec.dependencies else "begin", "Kubernetes starts no job after others or later")
    manifest = write(spec)
    metadata = manifest["metadata"]
    metadata.setdefault("namespace", namespace)
    metadata["annotations"] = {**metadata.get("annotations", {}), SUBMITTED_BY: user}
    manifest["apiVersion"] = resource.api_version
    if resource == VOLCANO_JOBS:
        # Each resume counts as a retry. Of itself Volcano retries nothing: the manifest has no policies.
        manifest["spec"]["maxRetry"] = _RESUMES
    if resource == TRAINING_JOBS and spec.hold:
        metadata["annotations"] |= {JOB_SUSPENDED: "true", SUSPENDED_BY: user}
    if spec.terminal:
        wrap(manifest, spec)
    return resource, manifest


def kueue_queue(spec: JobSpec, namespace: str, queues: Mapping[str, Collection[str]]) -> str:
    """Return the queue of Kueue that is to start a job: its partition; empty: none. Refused where it does not exist.

    `queues`: the names of Kueue's queues by namespace; empty: the cluster has none, and the partition is no such name.
    """
    if not queues or not spec.partitions:
        return ""
    if len(spec.partitions) > 1:
        _refuse("partitions", "a job waits in one queue of Kueue; name one")
    name, known = spec.partitions[0], sorted(queues.get(spec.project or namespace, ()))
    if name not in known:
        there = f"there {'are' if len(known) > 1 else 'is'} {', '.join(known)}" if known else "it has none"
        _refuse("partitions", f"namespace {spec.project or namespace} has no queue {name!r} of Kueue; {there}")
    return name


def job_of(resource: Resource, manifest: Mapping[str, Any]) -> KubeJob:
    """Return the job of a manifest, which has no pods yet."""
    workload = msgspec.convert(manifest, Workload, strict=False)
    return KubeJob(resource.kind, workload.metadata, workload, ())


def _elastic_kind(spec: JobSpec, served: Collection[Resource]) -> tuple[Resource, Write]:
    """Return the kind for an elastic job's mode. Any other kind would run it with a fixed number of workers."""
    if spec.mode is Mode.PYTORCH:
        return _kind(spec, served)
    if not is_for_elastic_training(spec):
        modes = f"{Mode.PYTORCH}, {Mode.HOROVOD} or {Mode.DEEPSPEED}"
        _refuse("elastic", f"on Kubernetes an elastic job needs the mode {modes}")
    if TRAINING_JOBS not in served:
        _refuse("elastic", f"this cluster does not serve {TRAINING_JOBS.shown}, which run elastic {spec.mode} jobs")
    return TRAINING_JOBS, write_training_job


def _kind(spec: JobSpec, served: Collection[Resource]) -> tuple[Resource, Write]:
    """Return the kind for the job's mode, in the first of its versions that is served; a Job for a single replica."""
    write, kinds = _KINDS.get(spec.mode, (write_job, (JOBS,))) if spec.mode is not None else (write_job, (JOBS,))
    resource = next((each for each in kinds if each in served), None)
    if resource is None and VOLCANO_JOBS in served:
        write, resource = _IN_VOLCANO
    if resource is None:
        _refuse("mode", f"this cluster does not serve {kinds[0].shown}, which runs jobs of the mode {spec.mode}")
    if resource == JOBS and spec.nodes > 1:
        _refuse(
            "mode", "a job of several nodes needs a mode, such as pytorch, that says how its replicas find each other"
        )
    return resource, write


def _refuse(field: str, message: str) -> NoReturn:
    raise RequestRefused(Refusal(RefusalKind.INVALID, f"{field}: {message}."))
