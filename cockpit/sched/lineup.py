"""A pass's view of the queue: what is asked for, best first, and of that only what may still succeed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, cast

from cockpit.sched.request import OPEN, Ask, Bounds, RequestBook

if TYPE_CHECKING:
    from cockpit.sched.columns import Order
    from cockpit.sched.priorities import PriorityTable


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
        for ask in self:
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
