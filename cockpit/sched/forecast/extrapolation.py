"""Extrapolates the starts of jobs beyond the end of a simulation, from the rate at which it proceeded so far.

1. By work: the time that the simulation took, times the work ahead of the job over the work that was done.
2. By turns: how often jobs of the same shape started, against how many of that shape are ahead.
3. The wait is the geometric mean of both. The first is too slow for small jobs, which start before others; the second
   is too slow for large ones, which start more often once few small jobs are left.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import sqrt

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.sched.equivalence import QueueEntry, partitions_of
from cockpit.sched.forecast.runtime_predictors import RuntimePredictor
from cockpit.sched.forecast.work_ratio import Shares

MANY_STARTS, MANY_OF_SHAPE = 100, 8
"""The fewest starts among competing jobs for a rate by work, and the fewest starts of the shape for a rate by turns."""


class SimulatedSpan(msgspec.Struct, frozen=True):
    """The span of time that a simulation has covered, with its starts and the jobs that still wait."""

    since: Millis
    now: Millis
    begun: list[Job]
    waiting: list[QueueEntry]
    """The waiting entries in the order of the queue."""
    shares: Shares
    predictor: RuntimePredictor
    at_first: tuple[list[Job], dict[JobId, Millis]]
    """The jobs that ran at the beginning, and their predicted ends."""
    at_last: tuple[list[Job], dict[JobId, Millis]]
    """The jobs that run at the end, and their predicted ends."""


class Extrapolation:
    """The extrapolation from one moment of a simulation."""

    def __init__(self, span: SimulatedSpan) -> None:
        self._span = span
        self._begun: dict[object, list[Job]] = defaultdict(list)
        for job in span.begun:
            self._begun[_competitors(job)].append(job)
        self._work = self._work_done()
        self._alike: Counter[object] = Counter((_competitors(job), _shape(job)) for job in span.begun)
        self._starts: dict[JobId, Millis] = {}
        self._extrapolate()

    def start_of(self, job: JobId) -> Millis | None:
        """Return about when the job starts; None where too few starts were simulated."""
        return self._starts.get(job)

    def _extrapolate(self) -> None:
        """Go through the queue once, adding up the work and the turns ahead of each job."""
        span = self._span
        work = defaultdict[object, float](float)
        turns: Counter[object] = Counter()
        for entry in span.waiting:
            job, place, shape = entry.job, _competitors(entry.job), (_competitors(entry.job), _shape(entry.job))
            if job.held_by:
                continue
            turns[shape] += 1
            # a rate is no answer for a job with conditions of its own, or with a choice of partitions
            if entry.free and len(partitions_of(job)) == 1 and len(self._begun[place]) >= MANY_STARTS:
                self._starts[job.id] = self._start(place, shape, work[place], turns[shape])
            # after the job's own start: its work is ahead of the jobs behind it alone
            work[place] += self._work_of(job)

    def _start(self, place: object, shape: object, work: float, turn: int) -> Millis:
        """Return the start of a job behind so much work, as the `turn`-th waiting job of its shape."""
        span = self._span
        took = span.now - span.since
        # 1. by work
        # the queue is assumed to proceed at the rate simulated so far: twice the work takes twice the time
        by_work = took * (1 + work / self._work[place]) if self._work[place] > 0 else took
        # 2. by turns
        starts = self._alike[shape]
        by_turn = took * (starts + turn) / starts if starts >= MANY_OF_SHAPE else by_work
        # 3. the mean
        # the geometric mean of both; the job has not started in the simulated span, so not before its end
        return Millis(span.since + int(max(took, sqrt(by_work * by_turn))))

    def _work_of(self, job: Job) -> float:
        return self._span.shares.of(job) * self._span.predictor.run_ms(job)

    def _work_done(self) -> dict[object, float]:
        """Return the work done, by competing jobs: of the jobs that ran at first or started, without what is still to
        be done."""
        span, done = self._span, defaultdict[object, float](float)
        for job in span.begun:
            done[_competitors(job)] += self._work_of(job)
        # work begun before the span is added and work left at its end taken off, so that only work done within it
        # counts
        for sign, (running, ends), at in ((1, span.at_first, span.since), (-1, span.at_last, span.now)):
            for job in running:
                done[_competitors(job)] += sign * span.shares.of(job) * (ends[job.id] - at)
        return done


def _competitors(job: Job) -> object:
    """Return a key of jobs that compete for the same nodes."""
    spec = job.spec
    return partitions_of(job), spec.pool, spec.driver_version, spec.node_names


def _shape(job: Job) -> object:
    return job.spec.nodes, job.spec.specs
