"""Puts jobs into the queues of KubeQueue, holds them there, and suspends jobs as their kind and their queue want it.

KubeQueue queues a job that its annotation suspends, and takes the annotation back when it dequeues the job; a batch/v1
Job it queues by `spec.suspend`. Operators that do not know the annotation have `runPolicy.suspend`, which newer
versions of KubeQueue set and clear as well; so both are written where the kind of job has both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from cockpit.backends.kubernetes.editing import job_name
from cockpit.backends.kubernetes.mapping.kube_jobs import KUEUE_QUEUE
from cockpit.backends.kubernetes.objects.kube_queue import SUSPEND
from cockpit.backends.kubernetes.resources import (
    JOBS,
    QUEUE_UNITS,
    TRAINING_JOBS,
    VOLCANO_COMMANDS,
    VOLCANO_JOBS,
    Resource,
)
from cockpit.backends.kubernetes.submitting import kueue_queue
from cockpit.backends.kubernetes.volcano_acts import volcano_command
from cockpit.backends.kubernetes.writing import DRY_RUN, STRICT, refuse
from cockpit.errors import RequestRefused
from cockpit.model.refusal import RefusalKind

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.dialects import Dialects
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.training_acts import TrainingActs
    from cockpit.backends.kubernetes.writing import ObjectWriter
    from cockpit.model.ids import JobId
    from cockpit.model.spec import JobSpec


class QueueActs:
    """Carries out the changes of jobs in queues. Its methods raise `RequestRefused`."""

    def __init__(self, writer: ObjectWriter, dialects: Dialects, training: TrainingActs) -> None:
        self._writer, self._dialects, self._training = writer, dialects, training
        self.takes_jobs_of: Callable[[str], bool] | None = None
        """Whether KubeQueue has a queue for the jobs of a namespace; None: the cluster has no KubeQueue."""
        self.kueue_queues: Mapping[str, Collection[str]] = {}
        """The names of Kueue's queues by namespace."""

    def enqueued(self, resource: Resource, manifest: dict[str, Any], spec: JobSpec) -> dict[str, Any]:
        """Return the manifest of a new job for its queue: with the name of Kueue's, or suspended for KubeQueue."""
        if queue := kueue_queue(spec, manifest["metadata"]["namespace"], self.kueue_queues):
            # Kueue itself suspends what has this label.
            metadata = {
                **manifest["metadata"],
                "labels": {**manifest["metadata"].get("labels", {}), KUEUE_QUEUE: queue},
            }
            return {**manifest, "metadata": metadata}
        if self.takes_jobs_of is None:
            if spec.suspension.scheduling:
                about = f"no queue could start the job, as this cluster does not serve {QUEUE_UNITS.shown}"
                refuse(f"suspension: {about}.", RefusalKind.INVALID)
            return manifest
        if not spec.suspension.scheduling and not self.takes_jobs_of(manifest["metadata"]["namespace"]):
            return manifest
        job_spec, metadata = dict(manifest["spec"]), dict(manifest["metadata"])
        if resource == JOBS:
            job_spec["suspend"] = True
        else:
            metadata["annotations"] = {**metadata.get("annotations", {}), SUSPEND: "true"}
            if "runPolicy" in job_spec:
                job_spec["runPolicy"] = {**job_spec["runPolicy"], "suspend": True}
        return {**manifest, "metadata": metadata, "spec": job_spec}

    async def accepted(self, resource: Resource, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return the manifest in the form that the server would accept."""
        try:
            await self._writer.create(resource, manifest, (STRICT, DRY_RUN))
        except RequestRefused as refused:
            if (alone := _by_annotation_alone(manifest, refused)) is None:
                raise
            await self._writer.create(resource, alone, (STRICT, DRY_RUN))
            return alone
        return manifest

    async def set_suspended(self, resource: Resource, job: KubeJob, *, suspended: bool) -> None:
        """Suspend a job, or let it go on: one of KubeQueue's by the annotation, and by the run policy if it has one.

        One of Volcano is sent a command; a TrainingJob is annotated for its operator.
        """
        if resource == VOLCANO_JOBS:
            await self._writer.create(VOLCANO_COMMANDS, volcano_command(job, is_abort=suspended))
            return
        is_in_queue = job.turn is not None or SUSPEND in (job.meta.annotations or {})
        if resource == TRAINING_JOBS and not is_in_queue:
            await self._training.set_suspended(job, suspended=suspended)
            return
        if resource == JOBS or not is_in_queue:
            await self._patch(resource, job, await self._dialects.patch(resource, {"suspend": suspended}))
            return
        patch: dict[str, Any] = {"metadata": {"annotations": {SUSPEND: "true" if suspended else "false"}}}
        if job.workload is not None and job.workload.spec.run_policy is not None:
            patch["spec"] = {"runPolicy": {"suspend": suspended}}
        try:
            await self._patch(resource, job, patch)
        except RequestRefused as refused:
            if (alone := _by_annotation_alone(patch, refused)) is None:
                raise
            await self._patch(resource, job, alone)

    async def set_held(self, job: KubeJob, number: JobId, *, held: bool) -> None:
        """Keep a waiting job in its queue whatever is free, or let it have its turn again."""
        unit, shown = job.turn.unit if job.turn is not None else None, job_name(number, job)
        if not held and not job.is_held:
            message = f"Job {shown} waits in queue {job.queue}; KubeQueue starts it when its turn has come."
            refuse(message, RefusalKind.CONFLICT)
        if unit is None:
            refuse(f"KubeQueue has not made the queue unit of job {shown} yet; try again.", RefusalKind.CONFLICT)
        meta, patch = unit.metadata, {"spec": {"active": not held}}
        try:
            written = await self._writer.patch(QUEUE_UNITS, meta.namespace, meta.name, patch, uid=meta.uid)
        except RequestRefused as refused:
            # Only Koord-Queue's later versions have the field.
            if "spec.active" not in refused.refusal.message:
                raise
            message = (
                f"This cluster's KubeQueue cannot hold job {shown} in its queue: its queue units have no field "
                "spec.active. Cancel the job, or lower the priority of its queue unit."
            )
            refuse(message, RefusalKind.UNAVAILABLE)
        await self._writer.until_seen(written)

    async def _patch(self, resource: Resource, job: KubeJob, patch: Mapping[str, Any]) -> None:
        meta = job.meta
        written = await self._writer.patch(resource, meta.namespace, meta.name, patch, uid=meta.uid)
        await self._writer.until_seen(written)


def _by_annotation_alone(change: Mapping[str, Any], refused: RequestRefused) -> dict[str, Any] | None:
    """Return a manifest or patch without `runPolicy.suspend`, if the cluster refused it as a field that its kind of job
    lacks; None: it was refused for something else."""
    policy = change.get("spec", {}).get("runPolicy", {})
    if "suspend" not in policy or "runPolicy.suspend" not in refused.refusal.message:
        return None
    rest = {key: value for key, value in policy.items() if key != "suspend"}
    return {**change, "spec": {**change["spec"], "runPolicy": rest}}
