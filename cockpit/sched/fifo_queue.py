"""A queue in order of submission that passes follow one after the other, by what happens to it alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from cockpit.model.ids import JobId
from cockpit.model.job import QUEUED
from cockpit.sched.equivalence import OPEN, Bounds, EquivalenceCache, QueueEntry
from cockpit.sched.queue_order import partitions_of

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.sched.equivalence import EquivalenceClass
    from cockpit.sched.snapshot import Snapshot


class FifoQueue:
    """A queue in order of submission that follows one snapshot after the other."""

    def __init__(self) -> None:
        self._entries: dict[JobId | tuple[JobId, str], QueueEntry] = {}
        """By job, and partition where it may run in several."""
        self._several: dict[JobId, Sequence[str]] = {}
        """Those partitions."""
        self._youngest = JobId(0)
        self._numbers: Sequence[EquivalenceClass] = ()
        """Those by which the asks go."""
        self._version = self.before = -1
        """Of the snapshot whose queue it is, and of the one whose queue it was before."""
        self.came: list[QueueEntry] | None = None
        """What it has now at its end; None where others are not what they were, but for those that left."""
        self.left = 0
        """How many jobs have gone."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueueEntry]:
        return iter(self._entries.values())

    def unbounded(self, shapes: int, classes: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * classes

    def open(self, _shapes: Bounds, _classes: Bounds) -> Iterable[QueueEntry]:
        return self._entries.values()

    def follow(self, snapshot: Snapshot, equivalence: EquivalenceCache) -> Self:
        """Become the queue of the snapshot."""
        touched, version = snapshot.touched, self._version
        if version == snapshot.version and self._numbers is equivalence.classes:
            return self
        self.before, self._version = version, snapshot.version
        if (
            touched is None
            or self._numbers is not equivalence.classes
            or not snapshot.changes_from <= version <= snapshot.version
            or (equivalence.held > 1024 and equivalence.tidied(len(snapshot.queue)))
            or not self._amend(touched, snapshot.jobs, equivalence)
        ):
            self._begin(snapshot, equivalence)
        return self

    def _amend(self, touched: Iterable[JobId], jobs: Mapping[JobId, Job], equivalence: EquivalenceCache) -> bool:
        """False where somebody would have to go between others."""
        entries, left, same = self._entries, 0, True
        came: list[QueueEntry] = []
        for job_id in touched:
            job = jobs.get(job_id)
            if job is None or job.state is not QUEUED:
                if entries.pop(job_id, None) is not None or (self._several and self._leave(job_id)):
                    left += 1
            elif job.attempt is not None:
                return False
            elif job_id > self._youngest:
                came += self._join(job, equivalence)
            elif job_id in entries:
                same = False
                entries[job_id] = equivalence.entry(job, partitions_of(job)[0])
            else:
                return False
        self.left, self.came = left, came if same else None
        return True

    def _join(self, job: Job, equivalence: EquivalenceCache) -> Sequence[QueueEntry]:
        self._youngest, partitions = job.id, job.partitions
        if len(partitions) < 2:
            entry = self._entries[job.id] = equivalence.entry(job, partitions[0] if partitions else "")
            return (entry,)
        self._several[job.id] = partitions
        entries = [equivalence.entry(job, name) for name in partitions]
        self._entries.update(zip([(job.id, name) for name in partitions], entries, strict=True))
        return entries

    def _leave(self, job: JobId) -> bool:
        partitions = self._several.pop(job, ())
        for name in partitions:
            del self._entries[job, name]
        return bool(partitions)

    def _begin(self, snapshot: Snapshot, equivalence: EquivalenceCache) -> None:
        equivalence.tidied(len(snapshot.queue))
        self._entries, self._several, self._numbers, self.came = {}, {}, equivalence.classes, None
        for job in snapshot.queue:
            self._join(job, equivalence)
        self._youngest = max([job.id for job in snapshot.queue], default=JobId(0))
