"""A pass's view of the queue: what is asked for, best first, and of that only what may still succeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, cast

from cockpit.model.ids import JobId
from cockpit.sched.entries import partitions_of
from cockpit.sched.request import OPEN, Ask, Bounds, RequestBook

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.sched.priority.columns import Order
    from cockpit.sched.priority.priorities import PriorityTable
    from cockpit.sched.snapshot import Snapshot


class LineUp(Protocol):
    """The queue of one pass."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Ask]: ...

    def unbounded(self, shapes: int, requests: int) -> tuple[Bounds, Bounds]:
        """For so many numbers of shapes and of requests: everything is tried."""
        ...

    def open(self, shapes: Bounds, requests: Bounds) -> Iterable[Ask]:
        """Everybody who is within the bounds when their turn comes; they may be tightened meanwhile. Some of the others
        may be among them."""
        ...


class Listed(list[Ask]):
    """A short queue, or one in order of submission."""

    def unbounded(self, shapes: int, requests: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * requests

    def open(self, _shapes: Bounds, _requests: Bounds) -> Iterable[Ask]:
        return self


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

    def unbounded(self, shapes: int, requests: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * requests

    def open(self, _shapes: Bounds, _requests: Bounds) -> Iterable[Ask]:
        return self._asks.values()


def line_up(priorities: PriorityTable, snapshot: Snapshot, book: RequestBook) -> LineUp:
    """Everybody in the order of the table."""
    standing = priorities.standing
    if standing is not None:
        return standing.follow(snapshot, book)
    if priorities.columns is None:
        return Listed(book.asks(priorities.order))
    return priorities.columns.line_up(book, cast("Order", priorities.order))
