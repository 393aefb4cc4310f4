"""The queue as a pass reads it: entries best first, without those that can no longer succeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from cockpit.model.ids import JobId
from cockpit.sched.equivalence import OPEN, Bounds, EquivalenceCache, QueueEntry, partitions_of

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.sched.priority.columns import Order
    from cockpit.sched.priority.priorities import PriorityTable
    from cockpit.sched.snapshot import Snapshot


class PassQueue(Protocol):
    """The queue of one pass."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[QueueEntry]: ...

    def unbounded(self, shapes: int, classes: int) -> tuple[Bounds, Bounds]:
        """Return bounds that exclude no job, for so many shapes and classes."""
        ...

    def open(self, shapes: Bounds, classes: Bounds) -> Iterable[QueueEntry]:
        """Yield every entry that is within the bounds when its turn comes; the caller may tighten the bounds meanwhile.
        Entries outside the bounds may be yielded too."""
        ...


class ListQueue(list[QueueEntry]):
    """A list of entries, for short queues and for those in order of submission."""

    def unbounded(self, shapes: int, classes: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * classes

    def open(self, _shapes: Bounds, _classes: Bounds) -> Iterable[QueueEntry]:
        return self


class ReplayQueue:
    """A queue that a simulation keeps through hundreds of passes, instead of a new one for each: jobs that start leave
    it, and new jobs join at its end."""

    def __init__(self, entries: Iterable[QueueEntry]) -> None:
        self._entries: dict[tuple[JobId, str], QueueEntry] = {}
        self.put(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueueEntry]:
        return iter(self._entries.values())

    def put(self, entries: Iterable[QueueEntry]) -> None:
        """Add or replace entries; a job that is in the queue already keeps its place."""
        for entry in entries:
            # a dict keeps the place of a key that is assigned again
            self._entries[entry.job.id, entry.equivalence_class.shape.partition] = entry

    def sort(self, ranks: Mapping[tuple[JobId, str], int]) -> None:
        """Order the entries by these ranks; those without one stay behind all others, as they are."""
        last = len(ranks)
        self._entries = dict(sorted(self._entries.items(), key=lambda each: ranks.get(each[0], last)))

    def take(self, job: Job) -> None:
        """Remove the job from all its partitions."""
        for partition in partitions_of(job):
            del self._entries[job.id, partition]

    def unbounded(self, shapes: int, classes: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * classes

    def open(self, _shapes: Bounds, _classes: Bounds) -> Iterable[QueueEntry]:
        return self._entries.values()


def pass_queue(priorities: PriorityTable, snapshot: Snapshot, equivalence: EquivalenceCache) -> PassQueue:
    """Return the queue of the snapshot in the order of the priority table, in the quickest form for it."""
    fifo = priorities.fifo
    if fifo is not None:
        return fifo.follow(snapshot, equivalence)
    if priorities.columns is None:
        # a short queue has no columns: a list of it costs less
        return ListQueue(equivalence.entries(priorities.order))
    return priorities.columns.pass_queue(equivalence, cast("Order", priorities.order))
