"""What one scheduling cycle decided, and on what grounds."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Placement
from cockpit.sched.index import Index
from cockpit.sched.priorities import PriorityTable
from cockpit.sched.refusals import Refusals


class Start(msgspec.Struct, frozen=True):
    """Start this job now."""

    job: JobId
    spec_index: int
    """Which of its alternatives was placed."""
    placement: Placement
    partition: str = ""
    billing: float = 0.0


class Reserved(msgspec.Struct, frozen=True):
    """Where and when a job that waits for room starts at the latest, if nobody overruns."""

    job: JobId
    reserved_at: Millis
    spec_index: int
    placement: Placement


class Line(Protocol):
    """Who keeps whose place in line: what a pass knows of those that wait for room."""

    @property
    def reservations(self) -> list[Reserved]: ...


class Plan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Decisions for one snapshot; nothing of it has happened yet. What only people ask for is derived when they do."""

    version: int
    """Of the snapshot."""
    now: Millis
    starts: tuple[Start, ...]
    refusals: Refusals
    """Why the rest does not start. `WouldDelay` holds only for jobs that end after the reservation."""
    line: Line
    priorities: PriorityTable
    """For the next cycle, and for whoever asks why this order."""
    next_at: Millis | None = None
    """The first moment at which time alone may let something start: a begin time, a reservation's start or end."""
    index: Index
    """For the next cycle. Without this plan's starts: they come back as changes once they have happened."""

    @cached_property
    def reservations(self) -> tuple[Reserved, ...]:
        """In the order of the queue: under EASY of the first job that waits for room, else of every job that does."""
        started = {start.job for start in self.starts}  # one that waits in a partition may start in another
        return tuple(each for each in self.line.reservations if each.job not in started)

    @cached_property
    def order(self) -> tuple[JobId, ...]:
        """The queue as it was gone through, held jobs and starting ones included; a job of several partitions once."""
        return tuple(dict.fromkeys([job.id for job, _ in self.priorities.order]))

    @property
    def reservation(self) -> Reserved | None:
        """That of the first job that waits for room."""
        return self.reservations[0] if self.reservations else None
