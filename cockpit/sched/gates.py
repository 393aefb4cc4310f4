"""The gates before placement: the first rule that stops a job although there may be room."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from msgspec.structs import replace

from cockpit.model.accounts import AssocKey, Usage
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Placement
from cockpit.model.reasons import ArrayFull, LimitReached, Reason
from cockpit.sched.amounts import ONE, Amounts, held, thousandths
from cockpit.sched.conditions import unmet
from cockpit.sched.counters import Counters, of_array, tally
from cockpit.sched.limits import JOBS, WALL, Budget, Counter, Running
from cockpit.sched.request import Request, RequestBook
from cockpit.sched.reserved_nodes import Bars
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot
from cockpit.sched.tres import BILLING

_NO_USAGE = Usage()


class Gates:
    """Asked and told in the course of one pass; `counters` grow with what the pass starts."""

    def __init__(self, snapshot: Snapshot, book: RequestBook, counters: Counters, bars: Bars) -> None:
        self._snapshot = snapshot
        self._book = book
        self._rules = book.rules
        self._counters = counters
        self._bars = bars

    def refusal(self, job: Job, partition: str) -> Reason | None:
        """The first rule that stops the job in that partition; None: only room can."""
        return self.own(job) or self.shared(self._book.of(job, partition, self._bars))

    def own(self, job: Job) -> Reason | None:
        """What stops this job alone: a hold, other jobs, a moment, the reservation it names."""
        return unmet(job, self._snapshot.now) or self._bars.refusal(job)

    def shared(self, request: Request) -> Reason | None:
        """What stops every job of the request: the rules by themselves, its array, a limit."""
        if request.refused is not None:
            return request.refused
        if request.array and self._counters.of(of_array(request.array)) >= ONE * request.at_once:
            return ArrayFull(request.array, request.at_once)
        if not (request.party.running or request.party.budgets):
            return None
        reasons = [self.exceeded(request, amounts) for amounts in self._asked(request)]
        return None if None in reasons else reasons[0]

    def open_shape(self, request: Request) -> Shape:
        """Of a request that passed: its shape, without the alternatives that a limit stops."""
        shape = request.shape
        if len(shape.specs) == 1 or not (request.party.running or request.party.budgets):
            return shape
        each = zip(shape.specs, self._asked(request), strict=True)
        return replace(shape, specs=tuple(spec for spec, amounts in each if self.exceeded(request, amounts) is None))

    def exceeded(self, request: Request, amounts: Amounts) -> LimitReached | None:
        """The first limit that a job of the request would break by holding these amounts."""
        party = request.party
        told = next((told for each in party.running if (told := self._beyond(each, amounts))), None)
        return told or next((told for each in party.budgets if (told := self._spent(each, request, amounts))), None)

    def amounts(self, placement: Placement, partition: str) -> Amounts:
        """What a job would hold by this placement, running and billed."""
        amounts = held(placement, self._snapshot.nodes)
        return self._rules.billed(amounts, partition) | {JOBS: ONE}

    def started(self, job: Job, partition: str, amounts: Amounts) -> None:
        """The pass starts the job: it counts from here."""
        self._counters.set(job.id, tally(self._rules, job, partition, amounts))
        if self._rules.safe:
            self._commit(self._committed, job, partition, amounts, job.spec.time_limit_seconds)

    def _asked(self, request: Request) -> list[Amounts]:
        shape = request.shape
        return [amounts | {JOBS: ONE} for amounts in self._rules.amounts(shape.specs, shape.nodes, shape.partition)]

    def _beyond(self, bound: Running, amounts: Amounts) -> LimitReached | None:
        used, wanted = self._counters.of(bound.counter), amounts.get(bound.resource, 0)
        if not wanted or used + wanted <= bound.allowed:
            return None
        resource = "" if bound.resource == JOBS else bound.resource
        return LimitReached(bound.holder, bound.limit, resource, bound.allowed / ONE, used / ONE, wanted / ONE)

    def _spent(self, budget: Budget, request: Request, amounts: Amounts) -> LimitReached | None:
        """Without `safe` a budget stops only once it is used up; with it, what runs and the job must fit in whole."""
        used, wanted = self._used(budget.counter), 0.0
        if self._rules.safe:
            seconds = request.seconds * request.party.factor
            wanted = seconds if budget.resource == WALL else amounts.get(budget.resource, 0) / ONE * seconds / 60
            used += self._committed[budget.counter]
        if used < budget.allowed and used + wanted <= budget.allowed:
            return None
        resource = "" if budget.resource == WALL else budget.resource
        return LimitReached(budget.holder, budget.limit, resource, budget.allowed, used, wanted)

    def _used(self, counter: Counter) -> float:
        """Seconds of wall clock, or minutes of a TRES, decayed."""
        kind, name, resource = counter
        snapshot = self._snapshot
        usage = snapshot.qos_usage.get(name) if kind == "qos" else snapshot.usage.get(AssocKey(name))
        usage = usage or _NO_USAGE
        if resource == WALL:
            return usage.wall_seconds
        return usage.tres_seconds.get(resource, usage.raw if resource == BILLING else 0.0) / 60

    @cached_property
    def _committed(self) -> dict[Counter, float]:
        """Minutes that what runs may still use: from the last pass over usage, or its start, to its time limit."""
        snapshot, committed = self._snapshot, defaultdict[Counter, float](float)
        for job_id, placement in snapshot.occupied.items():
            job = snapshot.jobs[job_id]
            if job.state in OCCUPYING and job.attempt is not None and job_id in snapshot.ends:
                since = max(snapshot.usage_at, job.attempt.placed_at)
                amounts = held(placement, snapshot.nodes) | {BILLING: thousandths(job.attempt.billing)}
                seconds = max(0, snapshot.ends[job_id] - since) / 1000
                self._commit(committed, job, job.attempt.partition, amounts, seconds)
        return committed

    def _commit(
        self, committed: dict[Counter, float], job: Job, partition: str, amounts: Amounts, seconds: float
    ) -> None:
        party = self._rules.party(job, partition)
        for counter in party.charged:
            committed[counter] += amounts.get(counter[-1], 0) / ONE * seconds * party.factor / 60
