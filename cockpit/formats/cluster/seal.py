"""What `cluster init` fixed, and how an edit of it shows."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec.structs import replace

from cockpit.formats.cluster.fields import ClusterFile


def seal_of(file: ClusterFile) -> str:
    """A digest of the settings that a slurmSpec has, and of nothing that is the site's own."""
    fixed = (
        file.partitions,
        file.login_node_pool,
        file.home_directory_storage,
        file.accounting,
        file.priority,
        file.preemption,
        file.prolog_bash_scripts,
        file.epilog_bash_scripts,
    )
    return hashlib.sha256(msgspec.json.encode(fixed, order="sorted")).hexdigest()[:16]


def sealed(file: ClusterFile) -> ClusterFile:
    """The file with these settings fixed."""
    return replace(file, mutable=False, fixed=seal_of(file))


def is_sealed(file: ClusterFile) -> bool:
    """Whether they are just as `cluster init` wrote them."""
    return file.fixed == seal_of(file)
