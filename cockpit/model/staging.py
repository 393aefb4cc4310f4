"""Copies that are made on a node before a job's command runs there: datasets that it stages, images that are packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.image import HOST, ImageKind, image_of

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

WEEK_SECONDS = 7 * 86_400
FULL_PERCENT = 90


class Staging(msgspec.Struct, frozen=True, kw_only=True):
    """The administrator's settings for staged copies."""

    folder: str
    """The folder of the copies, on fast storage of each node."""
    keep_seconds: int = WEEK_SECONDS
    """How long a copy stays after its last use."""
    full_percent: int = FULL_PERCENT
    """The use of the disk beyond which no copy is made; a node whose disk is fuller is drained."""


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """The progress of all of a replica's copies together."""

    done: int
    total: int
    """Bytes; 0: not known yet."""
    rate: int
    """Bytes per second, of late."""

    @property
    def seconds_left(self) -> int | None:
        """Return the estimated remaining seconds; None: unknown."""
        # Rounded up: a copy that still runs is not 0 s away from its end.
        return -(-(self.total - self.done) // self.rate) if self.rate and self.total else None


class StagedCopy(msgspec.Struct, frozen=True, kw_only=True):
    """One copy on this machine, for administrators."""

    key: str
    """Names it: of the first bytes of what it was made of."""
    what: str
    """`dataset`, `image`."""
    source: str
    """Path of the original."""
    size: int
    """Bytes."""
    users: tuple[str, ...]
    """The users whose jobs have used the copy."""
    made_at: Millis
    used_at: Millis
    """When the copy was last used; now, while it is in use."""
    jobs: tuple[JobId, ...]
    """The jobs that use the copy now."""
    progress: Progress | None = None
    """While it is being made."""


def is_staged(spec: JobSpec) -> bool:
    """Return whether something must be copied before the job's containers can be made."""
    if spec.image == HOST and not spec.worker_pools:  # most jobs
        return spec.staging and bool(spec.datasets)
    images = (spec.root_image, *(pool.image for pool in spec.worker_pools if pool.image))
    # A folder is used where it is; packed files and images of podman become a folder first.
    fetched = any(image_of(each).kind in {ImageKind.TAR, ImageKind.NAMED} for each in images)
    return (spec.staging and bool(spec.datasets)) or fetched
