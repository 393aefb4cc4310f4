"""Computes the priorities of long queues in numpy columns: one row for each queued job and partition.

The results are those of `factors`, operation by operation, down to the last bit. The rows only cache what
`PriorityInputs` says; they are updated with the queue, and new columns would give the same result. This is the only
module that imports numpy, and it is imported late, so that a short queue never pays for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast, overload

import numpy as np

from cockpit.model.accounts import AssocKey
from cockpit.model.ids import JobId
from cockpit.model.job import Job, JobState
from cockpit.sched.equivalence import OPEN, URGENCY, PartitionEntry, by_seniority, partitions_of
from cockpit.sched.priority.factors import MOST
from cockpit.sched.priority.priority_context import PriorityContext, PriorityInputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cockpit.sched.equivalence import Bounds, EquivalenceCache, QueueEntry
    from cockpit.sched.priority.priority_context import PriorityCalculator
    from cockpit.sched.snapshot import Highest, Snapshot

FIELDS = 9
SINCE, ASSOC, SIZE, PARTITION, QOS, TRES, SITE, NICE, FIXED = range(FIELDS)
"""Fields of a row: when age begins (infinity: not yet), the contributions that time does not change, nice, and the
fixed priority of a job that is held or was set directly (NaN: it is computed)."""

KEYS = 4
ASSOCIATION, TIER, URGENT, WAITS = range(KEYS)
"""Integer fields of a row: the index of its association's fair share, its tier (the highest is 0), its priority word
(the most urgent is 0), and whether it waits at all."""

_FIRST_STEP, _LONGEST_STEP = 64, 8192
"""The number of rows that are compared with the bounds at once: small at first, since bounds tighten fastest at the
beginning of a pass."""
_NEVER = float("inf")
_COUNTED = float("nan")


class Order(Sequence[PartitionEntry]):
    """Entries, best first, looked up when they are read: most of a long order never is."""

    def __init__(self, jobs: Sequence[Job], partitions: Sequence[str], rows: NDArray[np.int64]) -> None:
        self.rows = rows
        self._jobs = jobs
        self._partitions = partitions

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[PartitionEntry]:
        rows = self.rows.tolist()
        return zip(map(self._jobs.__getitem__, rows), map(self._partitions.__getitem__, rows), strict=True)

    @overload
    def __getitem__(self, place: int) -> PartitionEntry: ...
    @overload
    def __getitem__(self, place: slice) -> list[PartitionEntry]: ...
    def __getitem__(self, place: int | slice) -> PartitionEntry | list[PartitionEntry]:
        if isinstance(place, slice):
            return list(Order(self._jobs, self._partitions, self.rows[place]))
        row = int(self.rows[place])
        return self._jobs[row], self._partitions[row]


class RankedQueue:
    """The queue of one pass, in columns. With a list instead, a pass over 100 000 gangs (PF-01) takes 147 ms of CPU and
    not 67."""

    def __init__(self, entries: Sequence[QueueEntry | None], marks: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """`rows`: the waiting rows, best first; each has an entry."""
        self._entries = entries
        self._marks = marks
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[QueueEntry]:
        return filter(None, map(self._entries.__getitem__, self._rows.tolist()))

    def unbounded(self, shapes: int, classes: int) -> tuple[Bounds, Bounds]:
        return cast("Bounds", np.full(shapes, OPEN, np.int64)), cast("Bounds", np.full(classes, OPEN, np.int64))

    def open(self, shapes: Bounds, classes: Bounds) -> Iterator[QueueEntry]:
        start, step = 0, _FIRST_STEP
        while start < len(self._rows):
            for row in self._within(self._rows[start : start + step], shapes, classes):
                entry = self._entries[row]
                assert entry is not None
                yield entry
            # bounds tighten ever more slowly, so later steps compare more rows at once
            start, step = start + step, min(2 * step, _LONGEST_STEP)

    def _within(self, rows: NDArray[np.int64], shapes: Bounds, classes: Bounds) -> list[int]:
        shape, number, seconds = self._marks[:, rows]
        # one comparison for the whole step; the caller tests each entry again, since bounds may tighten meanwhile
        within = (seconds < np.asarray(shapes)[shape]) & (seconds < np.asarray(classes)[number])
        open_rows: list[int] = rows[within].tolist()
        return open_rows


class Columns:
    """The rows, in order of submission. A job that leaves the queue leaves its rows behind, since it may return."""

    def __init__(self, context: PriorityContext, snapshot: Snapshot) -> None:
        self._context = context
        self._version = snapshot.version
        self._jobs: list[Job] = []
        self._partitions: list[str] = []
        self._rows: dict[JobId, range] = {}
        self._youngest = (0, 0)
        self._associations: dict[AssocKey | None, int] = {None: 0}
        """The index of each association's fair share in a column."""
        capacity = 1024 + 2 * len(snapshot.queue)
        self._fields: NDArray[np.float64] = np.zeros((FIELDS, capacity))
        self._keys: NDArray[np.int64] = np.zeros((KEYS, capacity), np.int64)
        self._tiers = {tier: place for place, tier in enumerate(sorted({1, *context.tiers.values()}, reverse=True))}
        self._equivalence: EquivalenceCache | None = None
        """The cache whose shape and class numbers are in `_marks`."""
        self._entries: list[QueueEntry | None] = []
        self._marks: NDArray[np.int64] = np.zeros((3, capacity), np.int64)
        """For each row, the numbers of its entry's shape and class, and the time limit in seconds."""
        self._unmarked: list[int] = []
        # rows only ever grow at the end, so the oldest job comes first
        for job in sorted(snapshot.queue, key=by_seniority):
            self._append(job)

    def follow(self, context: PriorityContext, snapshot: Snapshot) -> bool:
        """Apply what happened to the queue; False where new columns must be made."""
        # other rules or nodes may change every contribution
        if context is not self._context:
            return False
        if snapshot.version != self._version:
            if snapshot.touched is None or not snapshot.changes_from <= self._version <= snapshot.version:
                return False
            if snapshot.touched:
                # the last table's order still looks up its jobs in these lists
                self._jobs, self._partitions = self._jobs.copy(), self._partitions.copy()
            if not all(self._amend(job, snapshot.jobs.get(job)) for job in snapshot.touched):
                return False
            self._version = snapshot.version
        # totals are computed for every row: once most rows belong to jobs that left, new columns are made
        return len(self._jobs) <= 1024 + 2 * int(np.count_nonzero(self._key(WAITS)))

    def ranked(self, calculator: PriorityCalculator, minimums: Highest) -> tuple[Order, Iterable[int]]:
        """Return the entries, best first, and their priorities."""
        totals = self.totals(calculator)
        if minimums:
            totals = np.where(np.isnan(self._field(FIXED)), np.maximum(totals, self._minimum_column(minimums)), totals)
        rows = self._sorted(totals)
        return Order(self._jobs, self._partitions, rows), map(int, map(totals.__getitem__, rows))

    def pass_queue(self, equivalence: EquivalenceCache, order: Order) -> RankedQueue:
        """Return the order, which these columns made, as the queue of a pass."""
        count = len(self._jobs)
        # numbers of another cache mean nothing in this one: all rows are marked again
        if equivalence.purge(count) or equivalence is not self._equivalence:
            self._equivalence, self._entries, self._unmarked = equivalence, [None] * count, order.rows.tolist()
        self._entries += [None] * (count - len(self._entries))
        for row in self._unmarked:
            if self._keys[WAITS, row]:
                entry = self._entries[row] = equivalence.entry(self._jobs[row], self._partitions[row])
                self._marks[:, row] = entry.shape_number, entry.class_number, entry.seconds
        self._unmarked = []
        return RankedQueue(self._entries, self._marks, order.rows)

    def totals(self, calculator: PriorityCalculator) -> NDArray[np.int64]:
        """Return every row's priority, clamped and truncated, also of rows that do not wait; see
        `factors.weighted_sum`."""
        weights, priority = calculator.context.priority.weights, calculator.context.priority
        most = max(1, 1000 * priority.max_age_seconds)
        # in place from here on, so that no further array of the queue's length is made
        age = calculator.at - self._field(SINCE)
        np.maximum(age, 0.0, out=age)
        age /= most
        np.minimum(age, 1.0, out=age)
        # summed in the order of `factors.weighted_sum`, since floating-point sums depend on the order
        named = np.multiply(age, weights.age, out=age)
        named += self._field(ASSOC)
        named += (self._fairshare(calculator) * weights.fairshare)[self._key(ASSOCIATION)]
        for field in (SIZE, PARTITION, QOS, TRES, SITE):
            named += self._field(field)
        named -= self._field(NICE)
        counted = np.clip(named, 1.0, float(MOST), out=named).astype(np.int64)
        fixed = self._field(FIXED)
        # held jobs have 0, which the clamp above would have raised to 1
        np.copyto(counted, fixed, where=~np.isnan(fixed), casting="unsafe")
        return counted

    def _field(self, field: int) -> NDArray[np.float64]:
        row: NDArray[np.float64] = self._fields[field, : len(self._jobs)]
        return row

    def _key(self, key: int) -> NDArray[np.int64]:
        row: NDArray[np.int64] = self._keys[key, : len(self._jobs)]
        return row

    def _fairshare(self, calculator: PriorityCalculator) -> NDArray[np.float64]:
        return np.array([calculator.shares.get(key, 0.0) if key else 0.0 for key in self._associations])

    def _minimum_column(self, minimums: Highest) -> NDArray[np.int64]:
        entries = zip(self._jobs, self._partitions, strict=True)
        return np.array([minimums.get(job.id, {}).get(name, 0) for job, name in entries], np.int64)

    def _sorted(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the waiting rows by tier, priority, priority word and submission.

        All of these are packed into one integer, with the row in the lowest bits: to sort integers is faster than to
        sort by several keys.
        """
        count = len(self._jobs)
        bits = count.bit_length()
        # tier | inverted priority (32 bits) | priority word (2 bits, only without a QOS weight) | row: ascending order
        # is then the order of the queue, since rows are in order of submission
        places = self._key(TIER) << 32
        places += MOST
        places -= totals
        if not self._context.priority.weights.qos:
            places <<= 2
            places += self._key(URGENT)
        places <<= bits
        places += np.arange(count)
        places = places[self._key(WAITS) > 0]
        places.sort()
        places &= (1 << bits) - 1
        return places

    def _append(self, job: Job) -> bool:
        """Append the job as the last submitted; False where it is not."""
        # rows are in order of submission, which breaks ties, so nothing is inserted between them
        if (seniority := by_seniority(job)) < self._youngest:
            return False
        self._youngest = seniority
        first = len(self._jobs)
        self._rows[job.id] = range(first, first + len(partitions_of(job)))
        self._jobs += [job] * len(partitions_of(job))
        self._partitions += partitions_of(job)
        while len(self._jobs) > self._keys.shape[1]:
            self._grow()
        self._write(job)
        return True

    def _amend(self, job: JobId, now: Job | None) -> bool:
        """Update the job's rows; False where they would have to move."""
        rows = self._rows.get(job, range(0))
        if now is None or now.state is not JobState.QUEUED:
            self._keys[WAITS, rows.start : rows.stop] = False
            return True
        # other partitions need other rows; the old ones stay behind, unused
        if self._partitions[rows.start : rows.stop] != list(partitions_of(now)):
            self._keys[WAITS, rows.start : rows.stop] = False
            return self._append(now)
        self._write(now)
        return True

    def _write(self, job: Job) -> None:
        for row, name in zip(self._rows[job.id], partitions_of(job), strict=True):
            inputs = self._context.inputs(job, name)
            self._jobs[row] = job
            self._fields[:, row] = _fields(self._context, job, inputs)
            # fair shares change with usage, not with jobs, so a row holds a position in the column of shares
            place = self._associations.setdefault(inputs.association, len(self._associations))
            self._keys[:, row] = place, self._tiers[self._context.tiers.get(name, 1)], URGENCY[job.spec.priority], True
            self._unmarked.append(row)

    def _grow(self) -> None:
        self._fields = np.concatenate((self._fields, np.zeros_like(self._fields)), axis=1)
        self._keys = np.concatenate((self._keys, np.zeros_like(self._keys)), axis=1)
        self._marks = np.concatenate((self._marks, np.zeros_like(self._marks)), axis=1)


def _fields(context: PriorityContext, job: Job, inputs: PriorityInputs) -> tuple[float, ...]:
    """Return the job's values of all `FIELDS`, in their order."""
    # contributions, already weighted: time changes only the age, and usage only the fair share
    weights = context.priority.weights
    tres = 0.0
    for name, raw in zip(context.tres, inputs.tres, strict=True):
        tres += raw * weights.tres[name]
    return (
        _NEVER if inputs.since is None else inputs.since,
        inputs.assoc * weights.assoc,
        inputs.job_size * weights.job_size,
        inputs.partition * weights.partition,
        inputs.qos * weights.qos,
        tres,
        inputs.site,
        job.spec.nice,
        0 if job.held_by else _COUNTED if job.direct_priority is None else job.direct_priority,
    )
