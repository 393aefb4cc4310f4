"""A pass's view of the queue: what is asked for, best first, and of that only what may still succeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, cast

from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.sched.entries import partitions_of
from cockpit.sched.request import OPEN, Ask, Bounds, RequestBook

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.sched.priority.columns import Order
    from cockpit.sched.priority.priorities import PriorityTable
    from cockpit.sched.request import Request
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


class Standing:
    """A queue in order of submission that follows one snapshot after the other, of jobs that may each run in one
    partition alone."""

    def __init__(self) -> None:
        self._asks: dict[JobId, Ask] = {}
        self._version = -1
        """Of the snapshot whose queue it is."""
        self._numbers: list[Request] = []
        """Those by which the asks go."""
        self._youngest = JobId(0)

    def __len__(self) -> int:
        return len(self._asks)

    def __iter__(self) -> Iterator[Ask]:
        return iter(self._asks.values())

    def unbounded(self, shapes: int, requests: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * requests

    def open(self, _shapes: Bounds, _requests: Bounds) -> Iterable[Ask]:
        return self._asks.values()

    def follow(self, snapshot: Snapshot, book: RequestBook) -> bool:
        """Become the queue of the snapshot; False where somebody may run in several partitions."""
        touched = snapshot.touched
        if (
            touched is None
            or self._numbers is not book.requests
            or not snapshot.changes_from <= self._version <= snapshot.version
            or book.tidied(len(snapshot.queue))
        ):
            return self._begin(snapshot, book)
        if self._version != snapshot.version:
            asks, jobs, youngest = self._asks, snapshot.jobs, self._youngest
            for job_id in touched:
                job = jobs.get(job_id)
                if job is None or job.state is not JobState.QUEUED:
                    asks.pop(job_id, None)
                elif job.attempt is None and (job_id > youngest or job_id in asks) and len(job.partitions) < 2:
                    asks[job_id] = book.ask(job, job.partitions[0] if job.partitions else "")
                    youngest = max(youngest, job_id)
                else:  # it comes back, or has to be put in several places
                    return self._begin(snapshot, book)
            self._version, self._youngest = snapshot.version, youngest
        return True

    def _begin(self, snapshot: Snapshot, book: RequestBook) -> bool:
        book.tidied(len(snapshot.queue))
        self._version = -1
        if any([len(job.partitions) > 1 for job in snapshot.queue]):
            return False
        self._asks = {job.id: book.ask(job, partitions_of(job)[0]) for job in snapshot.queue}
        self._youngest = max(self._asks, default=JobId(0))
        self._version, self._numbers = snapshot.version, book.requests
        return True


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
        return standing if standing.follow(snapshot, book) else Listed(book.asks_in_line(snapshot.queue))
    if priorities.columns is None:
        return Listed(book.asks(priorities.order))
    return priorities.columns.line_up(book, cast("Order", priorities.order))
