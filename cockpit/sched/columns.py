"""Priorities of long queues, in columns: one row for each queued job and partition, every step elementwise.

The doubles are those of `factors`, operation by operation. The rows are only a memory of what a claim says: they follow
the queue, and what is made of them is the same as if they were new. The one module that imports numpy, and itself
imported late: a short queue never pays for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from cockpit.model.accounts import AssocKey
from cockpit.model.ids import JobId
from cockpit.model.job import Job, JobState
from cockpit.sched.entries import URGENCY, Entry, Highest, by_seniority, partitions_of
from cockpit.sched.factors import MOST, Claim, Scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cockpit.sched.measure import Measure
    from cockpit.sched.snapshot import Snapshot

FIELDS = 9
SINCE, ASSOC, SIZE, PARTITION, QOS, TRES, SITE, NICE, FIXED = range(FIELDS)
"""Fields of a row: when age begins (infinity: not yet), the contributions that stay, nice, and a priority that is fixed
because the job is held or it was set directly (NaN: it is counted)."""

_NEVER = float("inf")
_COUNTED = float("nan")
_GONE = np.iinfo(np.int64).max
"""The place of a row whose job does not wait: behind all others."""


class Columns:
    """Rows in order of seniority. A job that leaves the queue leaves its rows behind, for it may come back."""

    def __init__(self, scale: Scale, snapshot: Snapshot) -> None:
        self._scale = scale
        self._version = snapshot.version
        self._entries: list[Entry] = []
        self._rows: dict[JobId, range] = {}
        self._youngest = (0, 0)
        self._associations: dict[AssocKey | None, int] = {None: 0}
        """Where each one's fair share stands in a column of them."""
        room = 1024 + 2 * len(snapshot.queue)
        self._fields: NDArray[np.float64] = np.zeros((FIELDS, room))
        self._association: NDArray[np.int64] = np.zeros(room, np.int64)
        self._first: NDArray[np.int64] = np.zeros(room, np.int64)
        """What sorts before the priority: the tier, the highest as 0."""
        self._urgency: NDArray[np.int64] = np.zeros(room, np.int64)
        self._waits: NDArray[np.bool_] = np.zeros(room, np.bool_)
        self._tiers = {tier: place for place, tier in enumerate(sorted({1, *scale.tiers.values()}, reverse=True))}
        self._ranked: tuple[NDArray[np.int64], list[Entry]] | None = None
        """The rows, best first, and their entries, as last handed out; None: the rows have changed since."""
        for job in sorted(snapshot.queue, key=by_seniority):
            self._append(job)

    def follow(self, scale: Scale, snapshot: Snapshot) -> bool:
        """Take over what happened to the queue; False where only new columns can."""
        if scale is not self._scale:
            return False
        if snapshot.version != self._version:
            if snapshot.touched is None or not snapshot.changes_from <= self._version <= snapshot.version:
                return False
            if not all(self._amend(job, snapshot.jobs.get(job)) for job in snapshot.touched):
                return False
            self._version = snapshot.version
        return len(self._entries) <= 1024 + 2 * int(np.count_nonzero(self._waits))

    def ranked(self, measure: Measure, floor: Highest) -> tuple[list[Entry], Iterable[int]]:
        """The entries, best first, and their priorities. Sorts only when the order has moved."""
        totals = self.totals(measure)
        if floor:
            totals = np.where(np.isnan(self._field(FIXED)), np.maximum(totals, self._floor(floor)), totals)
        places = self._places(totals)
        if self._ranked is None or not _ascending(places[self._ranked[0]]):
            rows = np.argsort(places)[: np.count_nonzero(self._waits)]
            entries = self._entries
            self._ranked = rows, [entries[row] for row in rows.tolist()]
        rows, order = self._ranked
        return order, map(int, totals[rows])

    def totals(self, measure: Measure) -> NDArray[np.int64]:
        """Every row's priority, clamped and truncated; of rows that do not wait too. `factors.weighted_sum`."""
        weights, priority = measure.scale.priority.weights, measure.scale.priority
        most = max(1, 1000 * priority.max_age_seconds)
        age = np.minimum(np.maximum(measure.at - self._field(SINCE), 0.0) / most, 1.0)
        named = age * weights.age
        named += self._field(ASSOC)
        named += (self._fairshare(measure) * weights.fairshare)[self._association[: len(self._entries)]]
        for field in (SIZE, PARTITION, QOS, TRES, SITE):
            named += self._field(field)
        named -= self._field(NICE)
        counted = np.clip(named, 1.0, float(MOST), out=named).astype(np.int64)
        fixed = self._field(FIXED)
        np.copyto(counted, fixed, where=~np.isnan(fixed), casting="unsafe")
        return counted

    def _field(self, field: int) -> NDArray[np.float64]:
        row: NDArray[np.float64] = self._fields[field, : len(self._entries)]
        return row

    def _fairshare(self, measure: Measure) -> NDArray[np.float64]:
        return np.array([measure.shares.get(key, 0.0) if key else 0.0 for key in self._associations])

    def _floor(self, floor: Highest) -> NDArray[np.int64]:
        return np.array([floor.get((job.id, name), 0) for job, name in self._entries], np.int64)

    def _places(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """One integer by which rows sort: tier, priority, urgency, seniority; none is there twice."""
        count = len(self._entries)
        places = (self._first[:count] << 32) + (MOST - totals)
        if not self._scale.priority.weights.qos:
            places = (places << 2) + self._urgency[:count]
        places = (places << count.bit_length()) + np.arange(count)
        return np.where(self._waits[:count], places, _GONE)

    def _append(self, job: Job) -> bool:
        """As the youngest; False where it is not."""
        if (seniority := by_seniority(job)) < self._youngest:
            return False
        self._youngest = seniority
        first = len(self._entries)
        self._rows[job.id] = range(first, first + len(partitions_of(job)))
        self._entries += [(job, name) for name in partitions_of(job)]
        while len(self._entries) > self._waits.size:
            self._grow()
        self._write(job)
        return True

    def _amend(self, job: JobId, now: Job | None) -> bool:
        """The job is as `now` says; False where its rows would have to move."""
        self._ranked = None
        rows = self._rows.get(job, range(0))
        if now is None or now.state is not JobState.QUEUED:
            self._waits[rows.start : rows.stop] = False
            return True
        if [self._entries[row][1] for row in rows] != list(partitions_of(now)):
            self._waits[rows.start : rows.stop] = False
            return self._append(now)
        self._write(now)
        return True

    def _write(self, job: Job) -> None:
        for row, name in zip(self._rows[job.id], partitions_of(job), strict=True):
            claim = self._scale.claim(job, name)
            self._entries[row] = job, name
            self._fields[:, row] = _fields(self._scale, job, claim)
            self._association[row] = self._associations.setdefault(claim.association, len(self._associations))
            self._first[row] = self._tiers[self._scale.tiers.get(name, 1)]
            self._urgency[row] = URGENCY[job.spec.priority]
            self._waits[row] = True

    def _grow(self) -> None:
        self._fields = np.concatenate((self._fields, np.zeros_like(self._fields)), axis=1)
        for name in ("_association", "_first", "_urgency", "_waits"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate((column, np.zeros_like(column))))


def _fields(scale: Scale, job: Job, claim: Claim) -> tuple[float, ...]:
    weights = scale.priority.weights
    tres = 0.0
    for name, raw in zip(scale.tres, claim.tres, strict=True):
        tres += raw * weights.tres[name]
    return (
        _NEVER if claim.since is None else claim.since,
        claim.assoc * weights.assoc,
        claim.job_size * weights.job_size,
        claim.partition * weights.partition,
        claim.qos * weights.qos,
        tres,
        claim.site,
        job.spec.nice,
        0 if job.held_by else _COUNTED if job.direct_priority is None else job.direct_priority,
    )


def _ascending(places: NDArray[np.int64]) -> bool:
    return bool((places[1:] > places[:-1]).all())
