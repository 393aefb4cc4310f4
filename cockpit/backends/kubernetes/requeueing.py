"""Has jobs begin anew under their numbers.

A live job is suspended until its pods are gone, and resumed: its object stays, whatever happens meanwhile. Of a job
that Kueue manages the admission is stopped and allowed again, since Kueue would resume it by itself. A job that has
ended, and a bare pod, can only be deleted and created once more. So that nothing is lost if that fails half-way, the
server is asked before whether it would accept the job, and the manifest is in a file until the new job exists.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cockpit.backends.kubernetes.editing import job_name
from cockpit.backends.kubernetes.mapping.recreation import recreated
from cockpit.backends.kubernetes.resources import KUEUE_WORKLOADS, KUEUE_WORKLOADS_2, PODS
from cockpit.backends.kubernetes.ssh_secret import SshSecrets
from cockpit.backends.kubernetes.wire.discovery import served_among
from cockpit.backends.kubernetes.writing import DRY_RUN, ObjectWriter, refuse
from cockpit.errors import CockpitError
from cockpit.model.ids import JobId, job_words
from cockpit.model.job import ENDED, JobState
from cockpit.model.refusal import RefusalKind

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.queue_acts import QueueActs
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.wire.api import Api

GONE_SECONDS = 120.0
"""Longest time that the pods of a job may take to end."""


class Requeuer:
    """Requeues jobs for one user."""

    def __init__(
        self, api: Api, writer: ObjectWriter, inventory: Inventory, queue: QueueActs, folder: Path | None
    ) -> None:
        """`folder`: for manifests of jobs that are being created once more; None: one of this cockpit's own."""
        self._api, self._writer, self._inventory, self._queue = api, writer, inventory, queue
        self._folder, self._secrets = folder, SshSecrets(writer)

    async def requeue(self, number: JobId, resource: Resource, job: KubeJob) -> None:
        if job.state is JobState.QUEUED:
            refuse(f"Job {job_name(number, job)} is queued already.", RefusalKind.CONFLICT)
        if (owner := job.meta.controller) is not None:
            message = f"Job {job_name(number, job)} belongs to the {owner.kind} {owner.name}, which decides about it."
            refuse(message, RefusalKind.CONFLICT)
        if resource == PODS or job.state in ENDED:
            await self._create_anew(number, resource, job)
        elif job.queued is not None:
            await self._readmit(number, job)
        else:
            await self._queue.set_suspended(resource, job, suspended=True)
            await self._until_without_pods(number, job, f"cockpit resume {job_words(number)}")
            await self._queue.set_suspended(resource, job, suspended=False)

    async def _readmit(self, number: JobId, job: KubeJob) -> None:
        """Have Kueue evict the job, and queue it once more."""
        assert job.queued is not None
        meta = job.queued.metadata
        (kind,) = await served_among(self._api, (KUEUE_WORKLOADS, KUEUE_WORKLOADS_2))
        await self._writer.patch(kind, meta.namespace, meta.name, {"spec": {"active": False}}, uid=meta.uid)
        undo = (
            f'kubectl patch workload {meta.name} -n {meta.namespace} --type=merge -p \'{{"spec":{{"active":true}}}}\''
        )
        await self._until_without_pods(number, job, undo)
        await self._writer.patch(kind, meta.namespace, meta.name, {"spec": {"active": True}}, uid=meta.uid)

    async def _until_without_pods(self, number: JobId, job: KubeJob, then: str) -> None:
        def has_none() -> bool:
            now = self._inventory.jobs.job(job.meta.uid)
            return now is None or all(pod.has_ended for pod in now.pods)

        if not await self._writer.until(has_none, GONE_SECONDS):
            message = (
                f"Job {job_name(number, job)} is suspended, but its pods have not ended within {GONE_SECONDS:.0f} s. "
                f"When they have: {then}"
            )
            refuse(message, RefusalKind.UNAVAILABLE)

    async def _create_anew(self, number: JobId, resource: Resource, job: KubeJob) -> None:
        """Delete the job's object and create it once more.

        1. Ask the server whether it would accept the job, under a name of its choice: the present one is taken.
        2. Write the manifest into a file.
        3. Delete the object, its pods first: those of the new one may have the same names.
        4. Create it, with the Secret that was deleted with it. Then the file is not needed any more.
        """
        namespace, name = job.meta.namespace, job.meta.name
        manifest = recreated(await self._writer.read(resource, namespace, name), number)
        unnamed = {key: value for key, value in manifest["metadata"].items() if key != "name"}
        trial = {**manifest, "metadata": {**unnamed, "generateName": f"{name[:50]}-"}}
        await self._writer.create(resource, trial, (DRY_RUN,))  # step 1
        file = self._keep(manifest)  # step 2
        try:
            await self._writer.delete(resource, job.meta, propagation="Foreground")  # step 3
            if not await self._writer.until(lambda: self._inventory.version(job.meta) is None, GONE_SECONDS):
                refuse(f"Its pods have not ended within {GONE_SECONDS:.0f} s.", RefusalKind.UNAVAILABLE)
            written = await self._writer.create(resource, manifest, ())  # step 4
            await self._secrets.make(resource, written)
        except CockpitError as error:
            why = str(error).rstrip(".")
            message = (
                f"Job {job_name(number, job)} may be deleted and was not created once more: {why}. "
                f"Its manifest is kept; create it with: kubectl create -f {file}"
            )
            refuse(message, RefusalKind.UNAVAILABLE)
        file.unlink(missing_ok=True)
        await self._writer.until_seen(written)

    def _keep(self, manifest: dict[str, Any]) -> Path:
        """Write a manifest into a file that only the user may read, and return it."""
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        meta = manifest["metadata"]
        prefix = f"cockpit-{meta['namespace']}-{meta['name']}-"
        with tempfile.NamedTemporaryFile("w", dir=self._folder, prefix=prefix, suffix=".json", delete=False) as file:
            json.dump(manifest, file, indent=1)
        return Path(file.name)
