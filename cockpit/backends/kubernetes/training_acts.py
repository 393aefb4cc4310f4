"""Suspends and resumes TrainingJobs, and changes how many workers they have, in the ways that their operator has.

The operator deletes the pods of a job with the annotation `job-suspended`, and never looks at it again: a job is
resumed by resetting its status, as the operator itself does when it restarts one. It changes the workers of a running
job as ScaleIns and ScaleOuts say, and knows no bounds; of a job that waits for its first workers it reads `replicas`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.backends.kubernetes.mapping.kube_jobs import JOB_SUSPENDED, JOB_VERDICT, SUSPENDED_BY
from cockpit.backends.kubernetes.objects.workload import WORKER
from cockpit.backends.kubernetes.resources import SCALE_INS, SCALE_OUTS, TRAINING_JOBS
from cockpit.backends.kubernetes.writing import DRY_RUN, ObjectWriter, refuse
from cockpit.errors import RequestRefused
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.resilience import ScalePhase
from cockpit.present.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob

REACTION_SECONDS = 15.0
"""Longest time that the operator may take to suspend a job; it takes less than one."""
LEAST_TIMEOUT = 60
"""Seconds that new workers may take to run, at least: the operator's own default."""
USUAL_TIMEOUT = 600
"""Seconds that the workers of a job may take that does not say for how long it waits."""
_ANEW: Mapping[str, Any] = {
    "phase": "",
    "conditions": [],
    "currentWorkers": None,
    "targetWorkers": None,
    "currentScaler": None,
}
"""The status with which the operator begins anew; it requires `conditions`."""


class TrainingActs:
    """Carries out the changes of one user. Its methods raise `RequestRefused`."""

    def __init__(self, writer: ObjectWriter, inventory: Inventory) -> None:
        self._writer, self._inventory = writer, inventory
        self.user = ""
        """The user's name on the cluster."""

    async def set_suspended(self, job: KubeJob, *, suspended: bool) -> None:
        if suspended:
            await self._suspend(job)
        else:
            await self._resume(job)

    async def scale(self, job: KubeJob, workers: int) -> None:
        """Have a job run with so many workers, which are within its bounds."""
        assert job.workers is not None
        name = f"{job.meta.namespace}/{job.meta.name}"
        now = job.workers[1]
        if job.scaling is not None and job.scaling.phase is not ScalePhase.FAILED:
            message = (
                f"Job {name} is being changed to {counted(now, 'worker')} by {job.scaling.name}; wait until it is done."
            )
            refuse(message, RefusalKind.CONFLICT)
        if workers == now:
            refuse(f"Job {name} has {counted(now, 'worker')} already.", RefusalKind.CONFLICT)
        if job.is_training:
            await self._scale_running(job, workers - now)
        elif workers > now and job.pods:
            message = (
                f"Job {name} waits for its {counted(now, 'worker')} to run, and gets more only then. With fewer it "
                "starts as soon as so many run."
            )
            refuse(message, RefusalKind.CONFLICT)
        else:
            await self._patch(job, {"spec": {"etReplicaSpecs": {_worker_key(job): {"replicas": workers}}}})

    async def _suspend(self, job: KubeJob) -> None:
        """Have the operator delete the pods, if the user may resume the job later and the operator does it."""
        try:
            await self._reset_status(job, {}, DRY_RUN)
        except RequestRefused as error:
            message = f"Job {job.meta.namespace}/{job.meta.name} could not be resumed: {error.refusal.message}"
            raise RequestRefused(Refusal(error.refusal.kind, message)) from error
        await self._patch(job, {"metadata": {"annotations": {JOB_SUSPENDED: "true", SUSPENDED_BY: self.user}}})

        def is_suspended() -> bool:
            now = self._inventory.jobs.job(job.meta.uid)
            return now is None or now.is_suspended

        if not await self._writer.until(is_suspended, REACTION_SECONDS):
            await self._patch(job, {"metadata": {"annotations": {JOB_SUSPENDED: None, SUSPENDED_BY: None}}})
            message = (
                f"The elastic training operator has not suspended job {job.meta.namespace}/{job.meta.name} within "
                f"{REACTION_SECONDS:.0f} s: it does not run, or is too old. The annotation was removed again."
            )
            refuse(message, RefusalKind.UNAVAILABLE)

    async def _resume(self, job: KubeJob) -> None:
        # Before the status: the operator suspends whatever has the annotation.
        await self._patch(job, {"metadata": {"annotations": dict.fromkeys((JOB_SUSPENDED, SUSPENDED_BY, JOB_VERDICT))}})
        # A job that was held from the beginning has none.
        if job.workload is not None and job.workload.now.phase:
            await self._reset_status(job, _ANEW)
        await self._writer.until(lambda: not self._is_suspended(job))

    def _is_suspended(self, job: KubeJob) -> bool:
        now = self._inventory.jobs.job(job.meta.uid)
        return now is not None and now.is_suspended

    async def _reset_status(self, job: KubeJob, status: Mapping[str, Any], *query: tuple[str, str]) -> None:
        patch = {"status": status} if status else {}
        await self._writer.patch_status(TRAINING_JOBS, job.meta.namespace, job.meta.name, patch, query)

    async def _scale_running(self, job: KubeJob, change: int) -> None:
        kind, spec = _scaler_spec(job, change)
        # No owner: only of those that have none the operator begins the status, without which it never ends them.
        meta = {"namespace": job.meta.namespace, "generateName": f"{job.meta.name[:50]}-"}
        manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
        try:
            written = await self._writer.create(kind, manifest)
        except RequestRefused as error:
            if error.refusal.kind is not RefusalKind.NOT_FOUND:
                raise
            message = f"This cluster does not serve {kind.shown}, by which the workers of a running job change."
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, message)) from error
        await self._writer.until(lambda: self._inventory.jobs.scalers.knows(written.uid))

    async def _patch(self, job: KubeJob, patch: dict[str, Any]) -> None:
        written = await self._writer.patch(TRAINING_JOBS, job.meta.namespace, job.meta.name, patch)
        await self._writer.until_seen(written)


def _scaler_spec(job: KubeJob, change: int) -> tuple[Any, dict[str, Any]]:
    """Return the kind that changes the number of workers so, and its spec."""
    selector = {"name": job.meta.name}
    if change < 0:
        return SCALE_INS, {"selector": selector, "toDelete": {"count": -change}}
    # New workers may wait for nodes and images as long as the job itself waits for workers.
    timeout = max(LEAST_TIMEOUT, job.max_wait_seconds or USUAL_TIMEOUT)
    return SCALE_OUTS, {"selector": selector, "toAdd": {"count": change}, "timeout": timeout}


def _worker_key(job: KubeJob) -> str:
    """Return how the job's spec writes the role of its workers: older definitions have capitals."""
    roles = (job.workload.spec.et_replica_specs or {}) if job.workload is not None else {}
    return next((each for each in roles if each.lower() == WORKER), WORKER)
