"""What a pass decides on a job."""

from __future__ import annotations

import msgspec

from cockpit.model.eviction import EvictionMode, Grounds
from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Placement


class Start(msgspec.Struct, frozen=True, gc=False):
    """Start this job now."""

    job: JobId
    spec_index: int
    """Which of its alternatives was placed."""
    placement: Placement
    partition: str = ""
    billing: float = 0.0
    launcher: str = ""
    """The node of an elastic job's launcher; empty: it has none."""


class Growth(msgspec.Struct, frozen=True):
    """A running elastic job takes further workers."""

    job: JobId
    placement: Placement
    """Of the new ones."""
    billing: float
    """Of all that it holds then."""


class Reserved(msgspec.Struct, frozen=True):
    """Where and when a job that waits for room starts at the latest, if nobody overruns."""

    job: JobId
    reserved_at: Millis
    spec_index: int
    placement: Placement


class Eviction(msgspec.Struct, frozen=True):
    """A running job gives way now, for the sake of one that starts in this plan or is promised the room."""

    job: JobId
    for_job: JobId
    mode: EvictionMode
    grounds: Grounds
    grace_seconds: int = 0
    """Between the notice and the end, where it ends."""
    ranks: tuple[int, ...] = ()
    """Where it shrinks: the workers that end."""


class SliceSwitch(msgspec.Struct, frozen=True):
    """A job that stands still goes on."""

    job: JobId
    others: tuple[JobId, ...] = ()
    """Whose turn is over: they stand still from now on."""
    instead: tuple[JobId, ...] = ()
    """All who go on in the place of those."""
