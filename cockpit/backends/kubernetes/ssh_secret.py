"""The Secret with which the launcher of a TrainingJob reaches the workers by SSH.

Source: arena's chart `etjob`. The elastic training operator mounts the Secret of the job's name into all its pods, and
makes it itself only where its administrator says so.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.resources import Resource

_CONFIG = b"StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
"""Workers come and go, with host keys of their own."""
_BITS = 2048


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
