"""When a job starts: its place in the cluster's future, once as things usually go and once at the latest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec.structs import replace

from cockpit.model.forecast import Awaited, Forecast
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import Explanation
from cockpit.sched.cycle import pass_over
from cockpit.sched.entries import Entry
from cockpit.sched.explain import explain
from cockpit.sched.faults import Faults, described
from cockpit.sched.forecast.future import Begun, Future, foreseeing
from cockpit.sched.forecast.habits import Habits, Lengths, Limits, Margins
from cockpit.sched.forecast.history import History, coming
from cockpit.sched.forecast.stretch import Shares, stretches
from cockpit.sched.index import Index, refreshed
from cockpit.sched.lineup import Listed
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from cockpit.sched.priority.priorities import PriorityTable, prioritised
from cockpit.sched.request import RequestBook
from cockpit.sched.snapshot import Snapshot

T = TypeVar("T")

MOST_AWAITED = 5
CAREFUL, DOUBTFUL, HARD = 1.1, 1.5, 0.5
"""So many times as long as the careful plan says, as is likely, and as limits say, may a job wait within the bound.
Found on published logs: with less the bound holds for fewer than 95 of 100 jobs, with more it says less."""
NEAR = 64
"""Behind so many jobs every course is gone through; behind more, only the usual one."""
TRIED, LEAST_LOOKS = 100_000, 16
"""A what-if looks at so many jobs, one look after the other, and at least so often: behind a long queue it sees the
nearer future alone, since there are some twenty of them."""
HYPOTHETICAL = JobId(1 << 52)
"""Ids from here on are of jobs that nobody has submitted."""


class Foresight:
    """What can be foretold from one snapshot. Its futures are gone through once, as far as the questions reach."""

    def __init__(self, snapshot: Snapshot, plan: Plan | None, policy: Policy, history: History) -> None:
        """`plan`: the last one, or None; it saves work and changes nothing."""
        self.snapshot = snapshot
        self._policy, self._history = policy, history
        self._index = refreshed(plan.index if plan is not None else None, snapshot)
        self._measure = plan.priorities.measure if plan is not None else None
        self._habits = Habits(history)
        self.faults: Faults = {}
        """Jobs of whose answers a defect has cost a part; the answers of all others are whole."""

    @cached_property
    def plan(self) -> Plan:
        """What the cycle would decide now."""
        index = self._index.fork()
        known = self._foreseeing.book
        index.book = known if known.rules is index.book.rules else RequestBook(index.book.rules)
        table, queue = PriorityTable(self.snapshot, None, self._entries), Listed(index.book.more(self._entries))
        return pass_over(self.snapshot, index, self._policy, table, queue)

    def explanation(self, job: JobId) -> Explanation | None:
        """Of a queued job; None: it starts now."""
        found = explain(self.snapshot, self.plan, job)
        for each, error in self.plan.round.faults.items():
            self.faults.setdefault(each, error)
        return found

    def failure(self, job: JobId) -> str:
        """Return what went wrong while the job was judged, in a line; empty where nothing did."""
        error = self.faults.get(job)
        return described(error) if error is not None else ""

    def likely(self, job: JobId) -> Millis | None:
        """When a queued job starts if all goes as usual; None: nobody can say."""
        begun = self._contained(job, lambda: self._about(job), None)
        return begun.at if begun is not None else None

    def forecast(self, job: JobId) -> Forecast:
        """Of a queued job; empty where a defect keeps it from being foretold."""
        return self._contained(job, lambda: self._forecast(job), Forecast())

    def _contained(self, job: JobId, work: Callable[[], T], otherwise: T) -> T:
        """Do what concerns this job alone: a defect in it is noted, and all other answers are given."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - one job's defect costs no other its forecast
            self.faults.setdefault(job, error)
            return otherwise

    def _about(self, job: JobId) -> Begun | None:
        likely = self._usual.about(job)
        for each, error in self._usual.faults.items():
            self.faults.setdefault(each, error)
        return likely

    def _forecast(self, job: JobId) -> Forecast:
        likely = self._about(job)
        if likely is None:
            return Forecast()
        return Forecast(
            now=likely.at == self.snapshot.now,
            likely_at=likely.at,
            latest_at=self._latest(job, likely.at),
            after=_awaited(self._usual, likely),
        )

    def if_instead(self, job: Job, before: Millis | None) -> Forecast:
        """The likely start if the job of this id asked for this instead; empty unless sooner than `before`, and near
        enough to be seen."""
        return self._contained(job.id, lambda: self._instead(job, before), Forecast())

    def _instead(self, job: Job, before: Millis | None) -> Forecast:
        queue = tuple(job if each.id == job.id else each for each in self.snapshot.queue)
        changed = replace(self.snapshot, queue=queue, jobs={**self.snapshot.jobs, job.id: job})
        future = self._future(changed, self._order(changed), self._habits)
        begun = future.start_of(job.id, before, max(LEAST_LOOKS, TRIED // len(queue)))
        if begun is None:
            return Forecast()
        return Forecast(now=begun.at == self.snapshot.now, likely_at=begun.at, after=_awaited(future, begun))

    @cached_property
    def _entries(self) -> Sequence[Entry]:
        return self._order(self.snapshot)

    @cached_property
    def _usual(self) -> Future:
        return self._future(self.snapshot, self._entries, self._habits)

    @cached_property
    def _careful(self) -> Future:
        return self._future(self.snapshot, self._entries, Margins(self._history), self._coming)

    @cached_property
    def _hard(self) -> Future:
        return self._future(self.snapshot, self._entries, Limits(), self._coming)

    @cached_property
    def _coming(self) -> Sequence[Job]:
        return coming(self._history, self.snapshot.now, JobId(HYPOTHETICAL + 1))

    def _latest(self, job: JobId, likely_at: Millis) -> Millis | None:
        """The careful plan and a tenth, at least half as long again as is likely, and half as long as by time limits
        alone; no later than by these, and than its reservation."""
        now = self.snapshot.now
        careful_at, hard_at = self._otherwise(job, likely_at)
        reserved = next((each.reserved_at for each in self.plan.reservations if each.job == job), None)
        bounds = [each for each in (hard_at, reserved) if each is not None]
        if careful_at is not None:
            wait = max(CAREFUL * (careful_at - now), DOUBTFUL * (likely_at - now))
            wait = max(wait, HARD * (hard_at - now)) if hard_at is not None else wait
            bounds.append(Millis(now + int(wait)))
        return max(likely_at, min(bounds)) if bounds else None

    def _otherwise(self, job: JobId, likely_at: Millis) -> tuple[Millis | None, Millis | None]:
        """When it starts if jobs run as long as a careful person counts with, and as long as they may. Behind many, as
        much later as there is more work ahead."""
        if self._usual.starts_before(job) <= NEAR:
            careful, hard = self._careful.start_of(job), self._hard.start_of(job)
            return careful.at if careful else None, hard.at if hard else None
        now, (careful_times, hard_times) = self.snapshot.now, self._stretches[job]
        wait = likely_at - now
        return Millis(now + int(careful_times * wait)), Millis(now + int(hard_times * wait))

    @cached_property
    def _stretches(self) -> dict[JobId, tuple[float, float]]:
        """By job: so many times as much work is ahead of it by margins, and by limits, as usually."""
        snapshot, courses = self.snapshot, (self._habits, Margins(self._history), Limits())
        running = [snapshot.jobs[each] for each in snapshot.occupied if each in snapshot.jobs]
        return stretches(self._usual.order(), running, Shares(snapshot.nodes), courses, snapshot.now)

    def _future(
        self, snapshot: Snapshot, order: Sequence[Entry], lengths: Lengths, arrivals: Sequence[Job] = ()
    ) -> Future:
        return Future(snapshot, self._foreseeing, self._policy, order, lengths, arrivals)

    @cached_property
    def _foreseeing(self) -> Index:
        return foreseeing(self._index)

    def _order(self, snapshot: Snapshot) -> Sequence[Entry]:
        """By what the last table knows of rules and usage; its columns are the cycle's."""
        known = PriorityTable(snapshot, self._measure, ()) if self._measure is not None else None
        return list(prioritised(snapshot, known).order)


def _awaited(future: Future, begun: Begun) -> tuple[Awaited, ...]:
    """Without those that have not been submitted."""
    ends = [end for end in future.awaited(begun) if end.job < HYPOTHETICAL]
    return tuple(Awaited(end.job, end.at) for end in ends[-MOST_AWAITED:])
