"""A pass's view of the queue: what is asked for, best first, and of that only what may still succeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, cast

from cockpit.model.ids import JobId
from cockpit.sched.equivalence import OPEN, Bounds, EquivalenceCache, QueueEntry
from cockpit.sched.queue_order import partitions_of

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
        """For so many numbers of shapes and of requests: everything is tried."""
        ...

    def open(self, shapes: Bounds, classes: Bounds) -> Iterable[QueueEntry]:
        """Everybody who is within the bounds when their turn comes; they may be tightened meanwhile. Some of the others
        may be among them."""
        ...


class ListQueue(list[QueueEntry]):
    """A short queue, or one in order of submission."""

    def unbounded(self, shapes: int, classes: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * classes

    def open(self, _shapes: Bounds, _classes: Bounds) -> Iterable[QueueEntry]:
        return self


class ReplayQueue:
    """A queue for pass after pass: who starts leaves it, and who comes is behind everybody."""

    def __init__(self, entries: Iterable[QueueEntry]) -> None:
        self._entries: dict[tuple[JobId, str], QueueEntry] = {}
        self.put(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueueEntry]:
        return iter(self._entries.values())

    def put(self, entries: Iterable[QueueEntry]) -> None:
        """Who is there already stays in place."""
        for entry in entries:
            self._entries[entry.job.id, entry.equivalence_class.shape.partition] = entry

    def take(self, job: Job) -> None:
        """Out of all its partitions."""
        for partition in partitions_of(job):
            del self._entries[job.id, partition]

    def unbounded(self, shapes: int, classes: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * classes

    def open(self, _shapes: Bounds, _classes: Bounds) -> Iterable[QueueEntry]:
        return self._entries.values()


def pass_queue(priorities: PriorityTable, snapshot: Snapshot, equivalence: EquivalenceCache) -> PassQueue:
    """Everybody in the order of the table."""
    fifo = priorities.fifo
    if fifo is not None:
        return fifo.follow(snapshot, equivalence)
    if priorities.columns is None:
        return ListQueue(equivalence.entries(priorities.order))
    return priorities.columns.line_up(equivalence, cast("Order", priorities.order))
