"""The decisions that a scheduling pass takes on a job."""

from __future__ import annotations

import msgspec

from cockpit.model.attempt import EvictionMode, Grounds
from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Placement


class Start(msgspec.Struct, frozen=True, gc=False):
    """Start this job now."""

    job: JobId
    spec_index: int
    """Number of the alternative (node spec) that was placed."""
    placement: Placement
    partition: str = ""
    billing: float = 0.0
    launcher: str = ""
    """The node of an elastic job's launcher; empty: it has none."""


class Growth(msgspec.Struct, frozen=True):
    """A running elastic job takes further workers."""

    job: JobId
    placement: Placement
    """The placement of the new workers."""
    billing: float
    """Billing of the whole job from then on, by the weights of its partition."""


class Reserved(msgspec.Struct, frozen=True):
    """The place and the latest start of a waiting job, if no job runs over its time limit."""

    job: JobId
    reserved_at: Millis
    spec_index: int
    placement: Placement


class Eviction(msgspec.Struct, frozen=True):
    """A running job is evicted now for a job that starts in this plan or is nominated."""

    job: JobId
    for_job: JobId
    mode: EvictionMode
    grounds: Grounds
    grace_seconds: int = 0
    """Seconds between the notice and the end, where the job ends."""
    ranks: tuple[int, ...] = ()
    """Ranks of the workers that end, where the job shrinks."""


class SliceSwitch(msgspec.Struct, frozen=True):
    """A suspended job resumes."""

    job: JobId
    others: tuple[JobId, ...] = ()
    """Running jobs whose time slice is over: they are suspended from now on."""
    instead: tuple[JobId, ...] = ()
    """All jobs that resume in the place of `others`."""
