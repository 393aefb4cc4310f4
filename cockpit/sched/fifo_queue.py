"""A queue in order of submission, updated from one pass to the next by what changed.

With a new list for each pass, an EASY replay of KTH-SP2 (PF-03) takes 14 % longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from cockpit.model.ids import JobId
from cockpit.model.job import QUEUED
from cockpit.sched.equivalence import OPEN, Bounds, EquivalenceCache, QueueEntry, partitions_of

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.sched.equivalence import EquivalenceClass
    from cockpit.sched.snapshot import Snapshot


class FifoQueue:
    """A queue in order of submission, updated from snapshot to snapshot by the jobs that changed."""

    def __init__(self) -> None:
        self._entries: dict[JobId | tuple[JobId, str], QueueEntry] = {}
        """Entries by job, or by job and partition for jobs of several partitions."""
        self._several: dict[JobId, Sequence[str]] = {}
        """The partitions of the jobs that have several."""
        self._youngest = JobId(0)
        self._numbers: Sequence[EquivalenceClass] = ()
        """The list of classes that the entries' numbers refer to; another list means that all numbers are new."""
        self._version = self.before = -1
        """Version of the current snapshot, and of the one before it."""
        self.arrivals: list[QueueEntry] | None = None
        """Entries that joined with the last update; None where jobs other than those that left have changed."""
        self.left_count = 0
        """How many jobs left with the last update."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueueEntry]:
        return iter(self._entries.values())

    def unbounded(self, shapes: int, classes: int) -> tuple[Bounds, Bounds]:
        return [OPEN] * shapes, [OPEN] * classes

    def open(self, _shapes: Bounds, _classes: Bounds) -> Iterable[QueueEntry]:
        return self._entries.values()

    def follow(self, snapshot: Snapshot, equivalence: EquivalenceCache) -> Self:
        """Become the queue of the snapshot: by the changes since the last one where these are known, else from the
        beginning."""
        # 1. the same snapshot: nothing to do
        touched, version = snapshot.touched, self._version
        if version == snapshot.version and self._numbers is equivalence.classes:
            return self
        self.before, self._version = version, snapshot.version
        # 2. a new queue where the changes are not known, or the cache has assigned new numbers; else apply the changes
        if (
            touched is None
            or self._numbers is not equivalence.classes
            or not snapshot.changes_from <= version <= snapshot.version
            or (equivalence.remembered > 1024 and equivalence.purge(len(snapshot.queue)))
            or not self._amend(touched, snapshot.jobs, equivalence)
        ):
            self._begin(snapshot, equivalence)
        return self

    def _amend(self, touched: Iterable[JobId], jobs: Mapping[JobId, Job], equivalence: EquivalenceCache) -> bool:
        """Apply the changes. False: a job would have to be inserted between others, which a dict cannot do."""
        entries, left, same = self._entries, 0, True
        arrivals: list[QueueEntry] = []
        for job_id in touched:
            job = jobs.get(job_id)
            if job is None or job.state is not QUEUED:
                # without jobs of several partitions there is nothing more to look up
                if entries.pop(job_id, None) is not None or (self._several and self._leave(job_id)):
                    left += 1
            elif job.attempt is not None:
                return False  # it was requeued: its place depends on when, not on its id
            elif job_id > self._youngest:
                # ids only grow, so a job with a higher id than all before belongs at the end
                arrivals += self._join(job, equivalence)
            elif job_id in entries:
                same = False  # it was edited: the last pass's verdict on it may not hold
                entries[job_id] = equivalence.entry(job, partitions_of(job)[0])
            else:
                return False
        self.left_count, self.arrivals = left, arrivals if same else None
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
        # before the entries are made: a purge afterwards would make their numbers stale
        equivalence.purge(len(snapshot.queue))
        self._entries, self._several, self._numbers, self.arrivals = {}, {}, equivalence.classes, None
        for job in snapshot.queue:
            self._join(job, equivalence)
        self._youngest = max([job.id for job in snapshot.queue], default=JobId(0))
