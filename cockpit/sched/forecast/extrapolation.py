"""When those start whom a future has not reached: at the rate at which it got on so far.

Two clocks tell it: the work that was done, against the work that is ahead; and how often jobs of a shape started,
against how many of that shape are ahead. The first is too slow for small jobs, which pass others, the second for large
ones, which come more often once few small ones are left; a wait is taken to be the geometric mean of both.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import sqrt

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.sched.equivalence import QueueEntry
from cockpit.sched.forecast.runtime_predictors import RuntimePredictor
from cockpit.sched.forecast.work_ratio import Shares
from cockpit.sched.queue_order import partitions_of

ENOUGH, ALIKE = 100, 8
"""So many starts tell how fast things go where they happened; so many of a shape, how often those start."""


class Passed(msgspec.Struct, frozen=True):
    """What a future has gone through."""

    since: Millis
    now: Millis
    begun: list[Job]
    waiting: list[QueueEntry]
    """In their order."""
    shares: Shares
    predictor: RuntimePredictor
    at_first: tuple[list[Job], dict[JobId, Millis]]
    """Who ran at first, and until when."""
    at_last: tuple[list[Job], dict[JobId, Millis]]
    """Who runs now, and until when."""


class Extrapolation:
    """Holds for one moment of a future."""

    def __init__(self, passed: Passed) -> None:
        self._passed = passed
        self._begun: dict[object, list[Job]] = defaultdict(list)
        for job in passed.begun:
            self._begun[_place(job)].append(job)
        self._done = self._work_done()
        self._alike: Counter[object] = Counter((_place(job), _shape(job)) for job in passed.begun)
        self._starts: dict[JobId, Millis] = {}
        self._foretell()

    def start_of(self, job: JobId) -> Millis | None:
        """About when the job starts; None where what was seen says too little of it."""
        return self._starts.get(job)

    def _foretell(self) -> None:
        passed = self._passed
        work = defaultdict[object, float](float)
        turns: Counter[object] = Counter()
        for entry in passed.waiting:
            job, place, shape = entry.job, _place(entry.job), (_place(entry.job), _shape(entry.job))
            if job.held_by:
                continue
            turns[shape] += 1
            if entry.free and len(partitions_of(job)) == 1 and len(self._begun[place]) >= ENOUGH:
                self._starts[job.id] = self._start(place, shape, work[place], turns[shape])
            work[place] += self._work_of(job)

    def _start(self, place: object, shape: object, work: float, turn: int) -> Millis:
        """Behind so much work, and as the next but so many of its shape."""
        passed = self._passed
        took = passed.now - passed.since
        by_work = took * (1 + work / self._done[place]) if self._done[place] > 0 else took
        alike = self._alike[shape]
        by_turn = took * (alike + turn) / alike if alike >= ALIKE else by_work
        return Millis(passed.since + int(max(took, sqrt(by_work * by_turn))))

    def _work_of(self, job: Job) -> float:
        return self._passed.shares.of(job) * self._passed.predictor.run_ms(job)

    def _work_done(self) -> dict[object, float]:
        """By place: of what ran at first and what began, without what is still to be done of it."""
        passed, done = self._passed, defaultdict[object, float](float)
        for job in passed.begun:
            done[_place(job)] += self._work_of(job)
        for sign, (running, ends), at in ((1, passed.at_first, passed.since), (-1, passed.at_last, passed.now)):
            for job in running:
                done[_place(job)] += sign * passed.shares.of(job) * (ends[job.id] - at)
        return done


def _place(job: Job) -> object:
    """Jobs of which this agrees compete for the same nodes."""
    spec = job.spec
    return partitions_of(job), spec.pool, spec.driver_version, spec.node_names


def _shape(job: Job) -> object:
    return job.spec.nodes, job.spec.specs
