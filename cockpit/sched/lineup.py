"""A pass's view of the queue: what is asked for, best first, and of that only what may still succeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, cast

from cockpit.sched.entries import partitions_of
from cockpit.sched.request import OPEN, Ask, Bounds, RequestBook

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.sched.priority.columns import Order
    from cockpit.sched.priority.priorities import PriorityTable


class LineUp(Protocol):
    """The queue of one pass."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Ask]: ...

    def unbounded(self, count: int) -> Bounds:
        """For so many numbers: everything is tried."""
        ...

    def open(self, shapes: Bounds, requests: Bounds) -> Iterator[Ask]:
        """What is within its bounds when its turn comes; they may be tightened meanwhile."""
        ...


class Listed(list[Ask]):
    """A short queue, or one in order of submission."""

    def unbounded(self, count: int) -> Bounds:
        return [OPEN] * count

    def open(self, shapes: Bounds, requests: Bounds) -> Iterator[Ask]:
        return _open(self, shapes, requests)


class Waiting:
    """A queue for pass after pass: who starts leaves it, and who comes is behind everybody."""

    def __init__(self, asks: Iterable[Ask]) -> None:
        self._asks: dict[tuple[JobId, str], Ask] = {}
        self.put(asks)

    def __len__(self) -> int:
        return len(self._asks)

    def __iter__(self) -> Iterator[Ask]:
        return iter(self._asks.values())

    def put(self, asks: Iterable[Ask]) -> None:
        """Who is there already stays in place."""
        for ask in asks:
            self._asks[ask.job.id, ask.request.shape.partition] = ask

    def take(self, job: Job) -> None:
        """Out of all its partitions."""
        for partition in partitions_of(job):
            del self._asks[job.id, partition]

    def unbounded(self, count: int) -> Bounds:
        return [OPEN] * count

    def open(self, shapes: Bounds, requests: Bounds) -> Iterator[Ask]:
        return _open(self._asks.values(), shapes, requests)


def _open(asks: Iterable[Ask], shapes: Bounds, requests: Bounds) -> Iterator[Ask]:
    for ask in asks:
        seconds = ask.seconds
        if seconds < shapes[ask.shape] and seconds < requests[ask.number]:
            yield ask


def line_up(priorities: PriorityTable, book: RequestBook) -> LineUp:
    """Everybody in the order of the table."""
    if priorities.queue is not None:
        return Listed(book.asks_in_line(priorities.queue))
    if priorities.columns is None:
        return Listed(book.asks(priorities.order))
    return priorities.columns.line_up(book, cast("Order", priorities.order))
