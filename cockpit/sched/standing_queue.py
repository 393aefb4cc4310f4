"""A queue in order of submission that passes follow one after the other, by what happens to it alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from cockpit.model.ids import JobId
from cockpit.model.job import QUEUED
from cockpit.sched.entries import partitions_of
from cockpit.sched.request import OPEN, Ask, Bounds, RequestBook

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.sched.request import Request
    from cockpit.sched.snapshot import Snapshot


class StandingQueue:
    """A queue in order of submission that follows one snapshot after the other."""

    def __init__(self) -> None:
        self._asks: dict[JobId | tuple[JobId, str], Ask] = {}
        """By job, and partition where it may run in several."""
        self._several: dict[JobId, Sequence[str]] = {}
        """Those partitions."""
        self._youngest = JobId(0)
        self._numbers: Sequence[Request] = ()
        """Those by which the asks go."""
        self._version = self.before = -1
        """Of the snapshot whose queue it is, and of the one whose queue it was before."""
        self.came: list[Ask] | None = None
        """What it has now at its end; None where others are not what they were, but for those that left."""
        self.left = 0
        """How many jobs have gone."""

    def __len__(self) -> int:
        return len(self._asks)

    def __iter__(self) -> Iterator[Ask]:
        return iter(self._asks.values())

    def unbounded(self, shapes: int, requests: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * requests

    def open(self, _shapes: Bounds, _requests: Bounds) -> Iterable[Ask]:
        return self._asks.values()

    def follow(self, snapshot: Snapshot, book: RequestBook) -> Self:
        """Become the queue of the snapshot."""
        touched, version = snapshot.touched, self._version
        if version == snapshot.version and self._numbers is book.requests:
            return self
        self.before, self._version = version, snapshot.version
        if (
            touched is None
            or self._numbers is not book.requests
            or not snapshot.changes_from <= version <= snapshot.version
            or (book.held > 1024 and book.tidied(len(snapshot.queue)))
            or not self._amend(touched, snapshot.jobs, book)
        ):
            self._begin(snapshot, book)
        return self

    def _amend(self, touched: Iterable[JobId], jobs: Mapping[JobId, Job], book: RequestBook) -> bool:
        """False where somebody would have to go between others."""
        asks, left, same = self._asks, 0, True
        came: list[Ask] = []
        for job_id in touched:
            job = jobs.get(job_id)
            if job is None or job.state is not QUEUED:
                if asks.pop(job_id, None) is not None or (self._several and self._leave(job_id)):
                    left += 1
            elif job.attempt is not None:
                return False
            elif job_id > self._youngest:
                came += self._join(job, book)
            elif job_id in asks:
                same = False
                asks[job_id] = book.ask(job, partitions_of(job)[0])
            else:
                return False
        self.left, self.came = left, came if same else None
        return True

    def _join(self, job: Job, book: RequestBook) -> Sequence[Ask]:
        self._youngest, partitions = job.id, job.partitions
        if len(partitions) < 2:
            ask = self._asks[job.id] = book.ask(job, partitions[0] if partitions else "")
            return (ask,)
        self._several[job.id] = partitions
        asks = [book.ask(job, name) for name in partitions]
        self._asks.update(zip([(job.id, name) for name in partitions], asks, strict=True))
        return asks

    def _leave(self, job: JobId) -> bool:
        partitions = self._several.pop(job, ())
        for name in partitions:
            del self._asks[job, name]
        return bool(partitions)

    def _begin(self, snapshot: Snapshot, book: RequestBook) -> None:
        book.tidied(len(snapshot.queue))
        self._asks, self._several, self._numbers, self.came = {}, {}, book.requests, None
        for job in snapshot.queue:
            self._join(job, book)
        self._youngest = max([job.id for job in snapshot.queue], default=JobId(0))
