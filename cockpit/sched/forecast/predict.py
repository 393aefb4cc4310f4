"""Predicts when a job starts: its likely start, the range around it, and the latest start if the policy promises one.

Three simulations answer it: the *likely* one with mean run times, the *careful* one with run times that nine of ten
jobs keep, and the *hard* one with whole time limits; the last two also with jobs that may still be submitted.

1. The likely start comes from the likely simulation.
2. The latest start is promised only where the policy promises one (`bounds`).
3. Else the range ends between the careful and the hard start (`_latest_likely`). Behind more than `SIMULATE_WITHIN`
   jobs these two are not simulated, but scaled by the work that is ahead (`work_ratio`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import takewhile
from typing import TypeVar

from msgspec.structs import replace

from cockpit.model.cluster import BackfillKind
from cockpit.model.forecast import AwaitedJob, Forecast, NoBound
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import Explanation, NodesReserved
from cockpit.sched.cycle import run_pass
from cockpit.sched.equivalence import EquivalenceCache, PartitionEntry, by_seniority
from cockpit.sched.explain import explain, reasons_of
from cockpit.sched.faults import Faults, described
from cockpit.sched.forecast.bounds import Ends, GatesAhead, is_strict, likely_range, opens_at, unstable_order
from cockpit.sched.forecast.future import ClusterSimulation, PredictedStart, fails_at, simulation_index
from cockpit.sched.forecast.history import History, expected_arrivals
from cockpit.sched.forecast.moves import Basis, waits_its_turn
from cockpit.sched.forecast.runtime_predictors import (
    MeanRuntimePredictor,
    P90RuntimePredictor,
    RuntimePredictor,
    TimeLimitPredictor,
)
from cockpit.sched.forecast.shared_limits import SharedLimits
from cockpit.sched.forecast.work_ratio import Shares, work_ratios
from cockpit.sched.index import Index, refresh_index
from cockpit.sched.pass_queue import ListQueue
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from cockpit.sched.priority.priorities import PriorityTable, prioritised
from cockpit.sched.snapshot import Snapshot

Result = TypeVar("Result")

MOST_AWAITED = 5
CAREFUL_FACTOR, LIKELY_FACTOR, LIMIT_FACTOR = 1.1, 1.5, 0.5
"""The end of the range, in waits: at least 1.1 times the careful one, 1.5 times the likely one and half the hard one.
Found on published logs: with smaller factors fewer than 95 of 100 jobs start before the end of the range; with larger
ones the range says less."""
SIMULATE_WITHIN = 64
"""Behind at most so many jobs all three simulations are run; behind more, only the likely one."""
MOST_CANDIDATE_JOBS, LEAST_PASSES = 100_000, 16
"""A what-if considers at most so many jobs over all its passes, but does at least so many passes. There are some twenty
what-ifs, so behind a long queue each sees only the nearer future."""
HYPOTHETICAL = JobId(1 << 52)
"""Ids from here on belong to simulated jobs that no user has submitted."""


class StartPredictor:
    """Predicts starts from one snapshot. Each simulation is run once, as far as the questions need it."""

    def __init__(self, snapshot: Snapshot, plan: Plan | None, policy: Policy, history: History) -> None:
        """`snapshot`: frozen. `plan`: the last plan, or None; it saves work, and neither changes nor is changed."""
        self.snapshot = snapshot
        self._policy, self._history = policy, history
        self._index = refresh_index(plan.index.with_own_caches() if plan is not None else None, snapshot)
        self._calculator = plan.priorities.calculator if plan is not None else None
        self._likely_runtimes = MeanRuntimePredictor(history)
        self.faults: Faults = {}
        """Jobs for which a defect has cost part of the answer; the answers for all others are complete."""
        self._unstable_by_partitions: dict[tuple[str, ...], NoBound | None] = {}

    @cached_property
    def plan(self) -> Plan:
        """The plan that the cycle would make now."""
        # the simulations' cache has judged the queue already, and serves here too if it has the same rules: they differ
        # where simulations leave out time slices
        index = self._index.fork()
        known = self._simulation_index.equivalence
        index.equivalence = (
            known if known.rules is index.equivalence.rules else EquivalenceCache(index.equivalence.rules)
        )
        table, queue = (
            PriorityTable(self.snapshot, None, self._entries),
            ListQueue(index.equivalence.further_entries(self._entries)),
        )
        return run_pass(self.snapshot, index, self._policy, table, queue)

    def explanation(self, job: JobId) -> Explanation | None:
        """Explain why a queued job waits; None: it starts now."""
        explanation = explain(self.snapshot, self.plan, job)
        for each, error in self.plan.scheduling_pass.faults.items():
            self.faults.setdefault(each, error)
        return explanation

    def failure(self, job: JobId) -> str:
        """Return what went wrong while the job was judged, in a line; empty where nothing did."""
        error = self.faults.get(job)
        return described(error) if error is not None else ""

    def forecast(self, job: JobId) -> Forecast:
        """Predict the start of a queued job, with the ends that it waits for; empty where a defect hinders."""
        forecast = self.start(job)
        return self._contained(job, lambda: self._with_ends(job, forecast), forecast)

    def start(self, job: JobId) -> Forecast:
        """Predict the start of a queued job: the same figures for every reader of this snapshot."""
        return self._contained(job, lambda: self._start(job), Forecast())

    def _contained(self, job: JobId, work: Callable[[], Result], otherwise: Result) -> Result:
        """Do what concerns this job alone: a defect in it is noted, and all other answers are given."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - one job's defect costs no other its forecast
            self.faults.setdefault(job, error)
            return otherwise

    def _estimate(self, job: JobId) -> PredictedStart | None:
        likely = self._likely.estimate(job)
        for each, error in self._likely.faults.items():
            self.faults.setdefault(each, error)
        return likely

    def _with_ends(self, job: JobId, forecast: Forecast) -> Forecast:
        # an extrapolated start is not among these: it has no placement, and so no ends to name
        likely = self._likely.begun.get(job)
        return forecast if likely is None or forecast.now else replace(forecast, after=_awaited(self._likely, likely))

    def _start(self, job: JobId) -> Forecast:
        """Predict the start, as `start` does, but raise what goes wrong; the steps are those at the top of the
        module."""
        # 1. the likely start
        likely = self._estimate(job) if job in self._queued else None
        if likely is None:
            return Forecast()
        now, bound = self.snapshot.now, self.bounds.get(job)
        # it starts in the pass of this very moment: nothing is left to be uncertain about
        if likely.at == now:
            return Forecast(now=True, likely_at=now, latest_at=now, likely_from=now, likely_to=now)
        unstable = self._unstable(self._queued[job])
        # 3. a range where the policy promises nothing
        if bound is None:
            first, last = likely_range(now, likely.at, self._latest_likely(job, likely.at), unstable)
            why = unstable or self._not_promised.get(job, NoBound.NO_RESERVATION)
            return Forecast(likely_at=likely.at, likely_from=first, likely_to=last, no_bound=why)
        # 2. The plan is made again after each early end, so conservative backfill may delay a job beyond its current
        # reservation. The reservation is what is promised: neither the likely start nor the range may exceed it. So
        # the careful simulation, which takes seconds under conservative backfill, is not needed.
        likely_at = min(likely.at, bound)
        first, _ = likely_range(now, likely_at, None, unstable)
        return Forecast(likely_at=likely_at, latest_at=bound, likely_from=first, likely_to=bound)

    @cached_property
    def bounds(self) -> Mapping[JobId, Millis]:
        """The latest starts that the policy promises, by job, for all jobs for which it promises one."""
        # for all jobs at once: `BoundHistory` compares the bounds of two snapshots, whether they were shown or not
        kept = {job: at for job, at in self._reserved_starts.items() if job not in self._not_promised}
        return {job: at for job, at in kept.items() if not self._may_fail_before(job, at)}

    def _may_fail_before(self, job: JobId, at: Millis) -> bool:
        """Return whether the job fails by its deadline if it has not started before that moment."""
        fails = fails_at(self._queued[job])
        return fails is not None and fails <= at

    @cached_property
    def _not_promised(self) -> Mapping[JobId, NoBound]:
        """The reasons for which some jobs with a reserved start may start later: a limit may stop the job itself; or a
        job ahead may take its nodes that has no reserved start, or one that a limit may delay."""
        plan, now, queued = self.plan, self.snapshot.now, self._queued
        reserved = {*(each.job for each in plan.reservations), *self._reserved_starts}
        left = {job for job, at in self._reserved_starts.items() if at > now}
        limits, not_promised = self._shared_limits, dict[JobId, NoBound]()
        gates = GatesAhead(self.snapshot.cluster, self.snapshot.nodes.values())
        # running jobs that are being requeued come back to their places; the last one is the first to be passed
        returning = sorted(self._returning, key=by_seniority, reverse=True)
        # in the order of the queue, so that `gates` has exactly the jobs ahead of each one
        for job_id in plan.order:
            if not left:
                break
            job = queued.get(job_id)
            if job is None or job.held_by:
                continue
            while returning and by_seniority(returning[-1]) < by_seniority(job):
                gates.add(returning.pop(), now)
            if job_id in left:
                left.discard(job_id)
                if gates.may_delay(job, self._reserved_starts[job_id]):
                    not_promised[job_id] = NoBound.CONDITION_AHEAD
                # such a job may start later than planned, and then delays those behind it: it is a gate itself
                if limits is not None and limits.may_stop(job_id):
                    not_promised[job_id] = NoBound.SHARED_LIMIT
                    gates.add(job, self._reserved_starts[job_id])
            # of a job of several partitions, any of them may open
            opens = (opens_at(reason, now) for reason in reasons_of(plan, job))
            at = min((each for each in opens if each is not None), default=None)
            # beyond the window or the depth: the scheduler keeps nothing for it, and lets it go first once it can start
            if job_id not in reserved and waits_its_turn(plan, job):
                at = now
            if at is not None:
                gates.add(job, at)
        return dict.fromkeys(self._delayed_by_rounding(), NoBound.ROUNDED) | not_promised

    @cached_property
    def _shared_limits(self) -> SharedLimits | None:
        """The limits that other jobs may use up first; None where there are no limits."""
        index = self._simulation_index
        throttled = any(job.array is not None and job.array.at_once for job in self.snapshot.queue)
        if not (throttled or index.equivalence.rules.binding):
            return None
        return SharedLimits(self.snapshot, index, index.equivalence.further_entries(self._entries))

    @property
    def _returning(self) -> Iterable[Job]:
        """The running jobs that wait again once they have ended."""
        known = (self.snapshot.jobs.get(each) for each in self.snapshot.occupied)
        return (job for job in known if job is not None and job.ending is not None and job.ending.requeue)

    @cached_property
    def _reserved_starts(self) -> Mapping[JobId, Millis]:
        """The latest starts by the plan's reservations, for the jobs whose order is fixed."""
        plan, now, queued = self.plan, self.snapshot.now, self._queued
        promised = [each for each in plan.reservations if each.job in queued and self._is_stable(queued[each.job])]
        if self._policy.backfill.kind is BackfillKind.OFF:
            # where the first waiting job has no reservation, the next one has it, and still may not pass the first
            head = plan.scheduling_pass.backfiller.head
            promised = [each for each in promised if each.job == head and self._goes_first(head)]
        starts = {each.job: max(now, each.reserved_at) for each in promised}
        starting = [start.job for start in plan.starts if start.job in queued]
        if is_strict(self._policy, self._index.equivalence.rules):
            # only with strict order are simulations at full time limits bounds: nothing can pass these jobs
            behind = [queued[job] for job in plan.order if job not in starts and job not in starting]
            starts |= self._strict_starts(behind[:SIMULATE_WITHIN])
        # jobs that start now hold their nodes until then too
        ends = Ends(self.snapshot, [*starts.items(), *((job, now) for job in starting)])
        bounds = {job: ends.after(start) for job, start in starts.items()}
        return bounds | {job: now for job in starting if self._is_stable(queued[job])}

    def _delayed_by_rounding(self) -> Iterable[JobId]:
        """Yield the jobs that may start later than the plan says although every job uses its whole time limit.

        The plan rounds its moments up to the resolution, but jobs start in between, and then perhaps on other nodes
        than planned, which delays jobs that were planned there. Only the first `SIMULATE_WITHIN` are simulated; all
        others count as delayed.
        """
        if not self._policy.backfill.resolution_seconds:
            return
        bounds = self._reserved_starts
        for place, job in enumerate(job for job in self.plan.order if job in bounds):
            begun = self._contained(job, partial(self._hard.start_of, job), None) if place < SIMULATE_WITHIN else None
            if begun is None or begun.at > bounds[job]:
                yield job

    def _goes_first(self, head: JobId) -> bool:
        """Return whether no job ahead of it waits for an advance reservation to be over: without backfill the scheduler
        passes over such a job and plans nothing for it, but later lets it take its place again."""
        ahead = takewhile(lambda each: each != head, self.plan.order)
        queued = (self._queued[each] for each in ahead if each in self._queued)
        reasons = (reason for job in queued for reason in reasons_of(self.plan, job))
        return not any(isinstance(reason, NodesReserved) for reason in reasons)

    @property
    def basis(self) -> Basis:
        """The state and plan that the bounds follow from."""
        return Basis(self.snapshot, self.plan, self.bounds)

    def _strict_starts(self, jobs: Iterable[Job]) -> dict[JobId, Millis]:
        """Return the starts of the jobs that only wait for the jobs ahead, if every job uses its whole time limit."""
        waiting = [job.id for job in jobs if waits_its_turn(self.plan, job) and self._is_stable(job)]
        starts = {job: self._contained(job, partial(self._hard.start_of, job), None) for job in waiting}
        return {job: begun.at for job, begun in starts.items() if begun is not None}

    def _is_stable(self, job: Job) -> bool:
        """Return whether the order cannot change ahead of the job; False if judging it raises an exception."""
        return self._contained(job.id, lambda: self._unstable(job) is None, False)

    def _unstable(self, job: Job) -> NoBound | None:
        """Return why the order may change ahead of the job; worked out once for all jobs of the same partitions."""
        if job.partitions not in self._unstable_by_partitions:
            reason = unstable_order(job, self._index.equivalence.rules, self.snapshot.nodes.values())
            self._unstable_by_partitions[job.partitions] = reason
        return self._unstable_by_partitions[job.partitions]

    def if_instead(self, job: Job, before: Millis | None) -> Forecast:
        """Predict the start if the job of this id were this one instead (a what-if); empty unless it is sooner than
        `before` and near enough to be simulated."""
        return self._contained(job.id, lambda: self._instead(job, before), Forecast())

    def _instead(self, job: Job, before: Millis | None) -> Forecast:
        # at the same place in the queue: an edit keeps it, and only another priority is ordered again below
        queue = tuple(job if each.id == job.id else each for each in self.snapshot.queue)
        changed = replace(self.snapshot, queue=queue, jobs={**self.snapshot.jobs, job.id: job})
        future = self._future(changed, self._order(changed), self._likely_runtimes)
        begun = future.start_of(job.id, before, max(LEAST_PASSES, MOST_CANDIDATE_JOBS // len(queue)))
        if begun is None:
            return Forecast()
        return Forecast(now=begun.at == self.snapshot.now, likely_at=begun.at, after=_awaited(future, begun))

    @cached_property
    def _queued(self) -> Mapping[JobId, Job]:
        return {job.id: job for job in self.snapshot.queue}

    @cached_property
    def _entries(self) -> Sequence[PartitionEntry]:
        return self._order(self.snapshot)

    @cached_property
    def _likely(self) -> ClusterSimulation:
        return self._future(self.snapshot, self._entries, self._likely_runtimes)

    @cached_property
    def _careful(self) -> ClusterSimulation:
        return self._future(self.snapshot, self._entries, P90RuntimePredictor(self._history), self._expected_arrivals)

    @cached_property
    def _hard(self) -> ClusterSimulation:
        return self._future(self.snapshot, self._entries, TimeLimitPredictor(), self._expected_arrivals)

    @cached_property
    def _expected_arrivals(self) -> Sequence[Job]:
        return expected_arrivals(self._history, self.snapshot.now, JobId(HYPOTHETICAL + 1))

    def _latest_likely(self, job: JobId, likely_at: Millis) -> Millis | None:
        """Return the end of the range: 1.1 times the careful wait, at least 1.5 times the likely wait and half the hard
        wait; not later than the hard start and the job's reservation."""
        now = self.snapshot.now
        careful_at, hard_at = self._careful_and_hard_start(job, likely_at)
        bounds = [each for each in (hard_at, self._reserved.get(job)) if each is not None]
        if careful_at is not None:
            wait = max(CAREFUL_FACTOR * (careful_at - now), LIKELY_FACTOR * (likely_at - now))
            wait = max(wait, LIMIT_FACTOR * (hard_at - now)) if hard_at is not None else wait
            # whole milliseconds; `bounds` may also have the hard start and the reservation, which no wait may exceed
            bounds.append(Millis(now + int(wait)))
        return max(likely_at, min(bounds)) if bounds else None

    @cached_property
    def _reserved(self) -> Mapping[JobId, Millis]:
        return {each.job: each.reserved_at for each in self.plan.reservations}

    def _careful_and_hard_start(self, job: JobId, likely_at: Millis) -> tuple[Millis | None, Millis | None]:
        """Return the careful and the hard start. Behind many jobs, the likely wait is scaled by how much more work is
        ahead."""
        # two simulations more, each run no further than to this job's start: near the head that is quick
        if self._likely.starts_before(job) <= SIMULATE_WITHIN:
            careful, hard = self._careful.start_of(job), self._hard.start_of(job)
            return careful.at if careful else None, hard.at if hard else None
        now, (careful_times, hard_times) = self.snapshot.now, self._work_ratios[job]
        wait = likely_at - now
        return Millis(now + int(careful_times * wait)), Millis(now + int(hard_times * wait))

    @cached_property
    def _work_ratios(self) -> dict[JobId, tuple[float, float]]:
        """Ratios of the work ahead of each job by careful run times, and by time limits, to the likely work ahead."""
        snapshot, predictors = (
            self.snapshot,
            (self._likely_runtimes, P90RuntimePredictor(self._history), TimeLimitPredictor()),
        )
        running = [snapshot.jobs[each] for each in snapshot.occupied if each in snapshot.jobs]
        return work_ratios(self._likely.order(), running, Shares(snapshot.nodes), predictors, snapshot.now)

    def _future(
        self,
        snapshot: Snapshot,
        order: Sequence[PartitionEntry],
        predictor: RuntimePredictor,
        arrivals: Sequence[Job] = (),
    ) -> ClusterSimulation:
        return ClusterSimulation(snapshot, self._simulation_index, self._policy, order, predictor, arrivals)

    @cached_property
    def _simulation_index(self) -> Index:
        return simulation_index(self._index)

    def _order(self, snapshot: Snapshot) -> Sequence[PartitionEntry]:
        """Order the queue, with what the last priority table knows of rules and usage, but not with its columns, which
        belong to the cycle."""
        known = PriorityTable(snapshot, self._calculator, ()) if self._calculator is not None else None
        return list(prioritised(snapshot, known).order)


def _awaited(future: ClusterSimulation, begun: PredictedStart) -> tuple[AwaitedJob, ...]:
    """The last ends that a start waits for, without simulated jobs."""
    ends = [end for end in future.awaited(begun) if end.job < HYPOTHETICAL]
    return tuple(AwaitedJob(end.job, end.at) for end in ends[-MOST_AWAITED:])
