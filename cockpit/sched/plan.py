"""The result of one scheduling cycle: its decisions, and the pass that explains them."""

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
    """The decisions for one snapshot; none of them has been carried out yet. What only users read (reasons,
    reservations) is derived on first access."""

    version: int
    """Version of the snapshot."""
    now: Millis
    starts: tuple[Start, ...]
    evictions: tuple[Eviction, ...] = ()
    """The jobs to evict, in the order of the decisions. A start that needs only suspensions is among `starts`; any
    other job for which jobs are evicted starts in a later pass, once they have ended."""
    growths: tuple[Growth, ...] = ()
    """Workers that running elastic jobs get; they come after the starts."""
    switches: tuple[SliceSwitch, ...] = ()
    """Suspended jobs that resume, and the jobs that are suspended in their place; they come before all evictions and
    starts."""
    scheduling_pass: SchedulingPass
    """The pass that made the plan; a later pass may continue it."""
    priorities: PriorityTable
    """The priority table, for the next cycle and for explanations of the order."""

    @property
    def index(self) -> Index:
        """The index of the snapshot, without this plan's starts; these come back as changes once they have happened."""
        return self.scheduling_pass.initial_index

    @cached_property
    def refusals(self) -> Refusals:
        """The reasons of the jobs that do not start. `WouldDelay` holds only for jobs that end after the
        reservation."""
        return self.scheduling_pass.refusals()

    @property
    def next_at(self) -> Millis | None:
        """The first moment at which time alone may let something start: a begin time, a reservation's start or end."""
        return self.scheduling_pass.next_at()

    @cached_property
    def reservations(self) -> tuple[Reserved, ...]:
        """The reservations in the order of the queue: under EASY that of the first waiting job, under conservative
        backfill those of all waiting jobs."""
        started = {start.job for start in self.starts}  # one that waits in a partition may start in another
        return tuple(each for each in self.scheduling_pass.backfiller.reservations if each.job not in started)

    @cached_property
    def order(self) -> tuple[JobId, ...]:
        """The jobs in the order of the queue, including held and starting ones; a job of several partitions appears
        once."""
        return tuple(dict.fromkeys([job.id for job, _ in self.priorities.order]))

    @property
    def reservation(self) -> Reserved | None:
        """The reservation of the first waiting job."""
        return self.reservations[0] if self.reservations else None
