"""The Secret with which the launcher of a TrainingJob reaches the workers by SSH.

Source: arena's chart `etjob`. The elastic training operator mounts the Secret of the job's name into all its pods, and
makes it itself where its administrator wants that: then both try, and the first one counts.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

from cockpit.backends.kubernetes.resources import SECRETS, TRAINING_JOBS
from cockpit.backends.kubernetes.writing import DRY_RUN, STRICT, refuse
from cockpit.errors import RequestRefused
from cockpit.model.refusal import RefusalKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.writing import ObjectWriter

_CONFIG = b"StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
"""Workers come and go, with host keys of their own."""
_BITS = 2048
_TRIES, _PAUSE_SECONDS = 20, 0.5
"""How often, and how long between, the Secret of an earlier job is looked for that the server is removing."""


class SshSecrets:
    """Makes the Secrets of TrainingJobs. Jobs of other kinds need none."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    async def check(self, resource: Resource, manifest: Mapping[str, Any]) -> None:
        """Ask the server whether it would accept the Secret of a job that does not exist yet.

        Raises `RequestRefused`, such as for a Secret that is there already, or for a user without the right.
        """
        if resource == TRAINING_JOBS:
            namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
            await self._create({"metadata": {"name": name, "namespace": namespace}}, (STRICT, DRY_RUN), uid="")

    def shown(self, resource: Resource, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the Secret of a job that does not exist yet, without keys; None: the job needs none."""
        if resource != TRAINING_JOBS:
            return None
        metadata = {key: manifest["metadata"][key] for key in ("name", "namespace")}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}

    async def make(self, resource: Resource, job: ObjectMeta) -> None:
        """Make the Secret of a new job, unless the operator has made it. Raises `RequestRefused`."""
        if resource == TRAINING_JOBS:
            await self._create(await asyncio.to_thread(ssh_secret, resource, job), (STRICT,), uid=job.uid)

    async def _create(self, secret: Mapping[str, Any], query: Sequence[tuple[str, str]], uid: str) -> None:
        """Create a Secret. One that belongs to the job with this uid is as good; one of an earlier job goes soon."""
        namespace, name = secret["metadata"]["namespace"], secret["metadata"]["name"]
        for _ in range(_TRIES):
            try:
                await self._writer.create(SECRETS, secret, query)
            except RequestRefused as error:
                if error.refusal.kind is not RefusalKind.CONFLICT:
                    raise
            else:
                return
            owner = await self._owner(namespace, name, unknown=uid)
            if uid and owner == uid:
                return
            if owner == "":
                break
            await asyncio.sleep(_PAUSE_SECONDS)
        message = (
            f"Namespace {namespace} has a Secret {name} already, and the job needs one of that name for its SSH keys. "
            f"Give the job another name, or delete the Secret: kubectl delete secret {name} -n {namespace}"
        )
        refuse(message, RefusalKind.CONFLICT)

    async def _owner(self, namespace: str, name: str, unknown: str) -> str | None:
        """Return the uid of the TrainingJob that a Secret belongs to, empty for none; None: the Secret is gone.

        `unknown`: what is returned to a user who may not read Secrets.
        """
        try:
            secret = await self._writer.read(SECRETS, namespace, name)
        except RequestRefused as error:
            return None if error.refusal.kind is RefusalKind.NOT_FOUND else unknown
        owners = secret["metadata"].get("ownerReferences", ())
        return next((str(each["uid"]) for each in owners if each["kind"] == TRAINING_JOBS.kind), "")


def ssh_secret(resource: Resource, job: ObjectMeta) -> dict[str, Any]:
    """Return the Secret of a job, with a new pair of keys. It is deleted with the job. Takes tenths of a second."""
    import asyncssh

    key = asyncssh.generate_private_key("ssh-rsa", key_size=_BITS)
    files = {
        "config": _CONFIG,
        "id_rsa": key.export_private_key("pkcs1-pem"),
        "id_rsa.pub": key.export_public_key("openssh"),
    }
    owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": job.name, "uid": job.uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job.name, "namespace": job.namespace, "ownerReferences": [owner]},
        "type": "Opaque",
        "data": {name: base64.b64encode(content).decode() for name, content in files.items()},
    }
