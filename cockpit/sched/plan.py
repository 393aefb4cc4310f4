"""What one scheduling cycle decided, and on what grounds."""

from __future__ import annotations

from functools import cached_property

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.sched.decisions import Eviction, Growth, Reserved, SliceSwitch, Start
from cockpit.sched.index import Index
from cockpit.sched.priority.priorities import PriorityTable
from cockpit.sched.refusals import Refusals
from cockpit.sched.scheduling_pass import SchedulingPass


class Plan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Decisions for one snapshot; nothing of it has happened yet. What only people ask for is derived when they do."""

    version: int
    """Of the snapshot."""
    now: Millis
    starts: tuple[Start, ...]
    evictions: tuple[Eviction, ...] = ()
    """Who gives way, in the order in which that was decided; a start that needs nothing but suspended jobs is among the
    starts, any other job that they make room for starts once they are gone."""
    growths: tuple[Growth, ...] = ()
    """Who takes what nobody else can use; all that after the starts."""
    switches: tuple[SliceSwitch, ...] = ()
    """Who goes on after standing still; all that before anybody gives way or starts."""
    round: SchedulingPass
    """The pass it comes from: a next one may go on where it ended."""
    priorities: PriorityTable
    """For the next cycle, and for whoever asks why this order."""

    @property
    def index(self) -> Index:
        """As of the snapshot: without this plan's starts, which come back as changes once they have happened."""
        return self.round.given

    @cached_property
    def refusals(self) -> Refusals:
        """Why the rest does not start. `WouldDelay` holds only for jobs that end after the reservation."""
        return self.round.refusals()

    @property
    def next_at(self) -> Millis | None:
        """The first moment at which time alone may let something start: a begin time, a reservation's start or end."""
        return self.round.next_at()

    @cached_property
    def reservations(self) -> tuple[Reserved, ...]:
        """In the order of the queue: under EASY of the first job that waits for room, else of every job that does."""
        started = {start.job for start in self.starts}  # one that waits in a partition may start in another
        return tuple(each for each in self.round.backfiller.reservations if each.job not in started)

    @cached_property
    def order(self) -> tuple[JobId, ...]:
        """The queue as it was gone through, held jobs and starting ones included; a job of several partitions once."""
        return tuple(dict.fromkeys([job.id for job, _ in self.priorities.order]))

    @property
    def reservation(self) -> Reserved | None:
        """That of the first job that waits for room."""
        return self.reservations[0] if self.reservations else None
