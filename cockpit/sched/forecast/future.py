"""Simulates the cluster's future with the scheduling cycle itself. Only when jobs end, and which jobs will be
submitted, is assumed.

One step of the simulation (`_advance`):

1. Find the next moment at which something happens: a job ends, workers leave, a gate opens, a waiting job misses its
   deadline, a job is submitted.
2. Behind `EXACT_PASSES` passes, take the moments near it together, so that a far future costs few passes.
3. Let the jobs whose end has come leave, charge what they have used, and settle the dependencies on them; let waiting
   jobs fail that have missed their deadline; let new jobs join the queue.
4. If anything may start, do one pass of the cycle and carry out its plan in the simulated state.

Priorities stay as they are now: jobs that come later are put behind all others, in order of submission, and a running
job that is requeued takes the place that it would have in the queue now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, QUEUED, Job
from cockpit.model.node import Placement
from cockpit.model.reasons import never_starts
from cockpit.model.resilience import AfterWait
from cockpit.model.spec import Dependency, DependencyKind
from cockpit.sched.cycle import run_pass
from cockpit.sched.decisions import Start
from cockpit.sched.equivalence import EquivalenceCache, PartitionEntry, QueueEntry, by_seniority, partitions_of
from cockpit.sched.faults import Faults
from cockpit.sched.feasible import infeasible
from cockpit.sched.forecast.extrapolation import Extrapolation, SimulatedSpan
from cockpit.sched.forecast.runtime_predictors import ContainedPredictor, RuntimePredictor
from cockpit.sched.forecast.simulated_state import SimulatedState
from cockpit.sched.forecast.work_ratio import Shares
from cockpit.sched.index import Index, count
from cockpit.sched.pass_queue import ReplayQueue
from cockpit.sched.placement import find_placement
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from cockpit.sched.priority import usage
from cockpit.sched.priority.priorities import PriorityTable, prioritised
from cockpit.sched.rules.rulebook import GANG, Rulebook
from cockpit.sched.shape import shape_of
from cockpit.sched.snapshot import Snapshot

EXACT_PASSES = 256
"""The number of passes that are simulated at their exact moments. Behind them, all moments within a 32nd of their
distance are taken together, at the middle of that span."""
COARSENESS = 32
MOST_PASSES = 600
"""The number of passes after which the simulation gives up."""
EXTRAPOLATE_AFTER = 400
"""The number of simulated starts after which the start of a job is extrapolated from the rate at which the queue moved
until then. In the long queue of the tests that is off by a tenth on average; to simulate all of it would take several
times as long."""


_ON_SUCCESS = (DependencyKind.AFTER_OK, DependencyKind.AFTER_CORR)


class PredictedStart(msgspec.Struct, frozen=True):
    """The predicted start of a job."""

    at: Millis
    placement: Placement


class PredictedEnd(msgspec.Struct, frozen=True):
    """The predicted end of a job."""

    at: Millis
    job: JobId
    placement: Placement


class ClusterSimulation:
    """A simulation of the cluster, run as far as a reader needs it. It changes nothing that it was made from."""

    def __init__(
        self,
        snapshot: Snapshot,
        index: Index,
        policy: Policy,
        order: Sequence[PartitionEntry],
        predictor: RuntimePredictor,
        arrivals: Sequence[Job] = (),
    ) -> None:
        """`index`: from `simulation_index`; it and `order` belong to the snapshot. `arrivals`: jobs that will be
        submitted, soonest first."""
        self.begun: dict[JobId, PredictedStart] = {}
        self.ended: list[PredictedEnd] = []
        """Predicted ends, soonest first."""
        self.began_at = self._now = snapshot.now
        self._policy = policy
        self._index = index.fork()
        self.faults: Faults = {}
        """Exceptions raised while judging single jobs. Those jobs stay in the queue; all others are simulated."""
        predictor = ContainedPredictor(predictor, self.faults)
        self._state = state = SimulatedState(snapshot, predictor)
        self._predictor, self._jobs, self._leaving_at_first = predictor, snapshot.jobs, dict(state.leaves_at)
        self._extrapolated: tuple[Millis, Extrapolation] | None = None
        self._original = snapshot
        self._start_order: dict[JobId, int] = {}
        """How many jobs have started before each job that has."""
        # the simulated state's own mappings: each pass reads them as they are then, without a copy
        self._snapshot = replace(
            snapshot, queue=(), jobs=state.jobs, occupied=state.occupied, ends=state.ends, changes=(), touched=None
        )
        self._table = PriorityTable(self._snapshot, None, ())
        self._waiting = {job.id: job for job in snapshot.queue}
        self._queue = ReplayQueue(index.equivalence.further_entries(order))
        """The waiting jobs, best first."""
        # a pointer instead of a pop: the predictor shares one list of arrivals among its simulations
        self._arrivals, self._arrived = arrivals, 0
        self._passes = 0
        self._next_at: Millis | None = None
        # a dependency that can never be satisfied stays so, though the job that it names is no longer in the snapshot
        self._failed: list[Job] = []
        """Jobs that were ended before they were over, or never started: no job that waits for their success ever
        starts."""
        self._failure_times: list[tuple[Millis, JobId]] = []
        """A heap of the moments at which waiting jobs fail (`fails_at`); entries that are no longer true are
        skipped."""
        for job in snapshot.queue:
            self._expect_failure(job)
        self._usage_rules = _usage_rules(snapshot, index.equivalence.rules)
        self._conditional = {job.id for job in snapshot.queue if job.waits_for and job.never is None}
        self._run_pass()

    def start_of(self, job: JobId, before: Millis | None = None, passes: int = MOST_PASSES) -> PredictedStart | None:
        """Return when and where the job starts; None: it never starts in this state of the cluster, not before
        `before`, or beyond `passes` passes."""
        # the simulation goes on from where the last question left it, and stops as soon as this one is answered
        while job not in self.begun and self._passes < passes and self._advance():
            if before is not None and self._now >= before:
                return None
        return self.begun.get(job)

    def estimate(self, job: JobId) -> PredictedStart | None:
        """Return about when the job starts: simulated; behind many starts, extrapolated and without a placement."""
        enough = EXTRAPOLATE_AFTER
        while job not in self.begun and self._passes < MOST_PASSES:
            if len(self.begun) >= enough:
                if (at := self._extrapolation.start_of(job)) is not None:
                    return PredictedStart(at, ())
                # too few starts for a rate: simulate twice as many before the next try
                enough *= 2
            if not self._advance():
                break
        return self.begun.get(job)

    def starts_before(self, job: JobId) -> int:
        """Return the number of jobs that start before this one, as far as the simulation has run."""
        # only ever grows, so an equal length means that nothing has started since
        if len(self._start_order) != len(self.begun):
            self._start_order = {each: place for place, each in enumerate(self.begun)}
        return self._start_order.get(job, len(self.begun))

    def order(self) -> list[Job]:
        """Return the jobs that have started so far, in that order, and behind them the queue without held jobs."""
        return [*self._known_jobs(self.begun), *(entry.job for entry in self._entries_once() if not entry.job.held_by)]

    def _entries_once(self) -> Iterable[QueueEntry]:
        """Return the queue without jobs that never start; a job of several partitions appears only in its first
        place."""
        first: dict[JobId, QueueEntry] = {}
        for entry in self._queue:
            if not self._never_starts(entry):
                first.setdefault(entry.job.id, entry)
        return first.values()

    def _never_starts(self, entry: QueueEntry) -> bool:
        """Return whether the job can never start in that partition, whatever comes free, and so delays no other."""
        if entry.job.never is not None or entry.equivalence_class.refused is not None:
            return True
        never = infeasible(entry.equivalence_class.shape, self._index.layout)
        return never is not None and never_starts(never)

    def awaited(self, begun: PredictedStart) -> list[PredictedEnd]:
        """Return the ends before a start on the nodes that it uses, soonest first."""
        # ends on other nodes may have let other jobs start first, but these are the ones that a user can follow
        nodes = {part.node for part in begun.placement}
        return [end for end in self.ended if end.at <= begun.at and any(part.node in nodes for part in end.placement)]

    @property
    def _extrapolation(self) -> Extrapolation:
        """The extrapolation from the current moment of the simulation."""
        # one extrapolation answers for all jobs at this moment
        if self._extrapolated is None or self._extrapolated[0] != self._now:
            state, first = self._state, self._leaving_at_first
            shares = Shares(self._snapshot.nodes)
            running = [state.jobs[each] for each in state.leaves_at if each in state.jobs]
            layout = self._index.layout
            # jobs that would not start even on an empty cluster have no start, and delay no job behind them
            waiting = [
                entry for entry in self._entries_once() if infeasible(entry.equivalence_class.shape, layout) is None
            ]
            begun = self._known_jobs(self.begun)
            passed = SimulatedSpan(
                self.began_at,
                self._now,
                begun,
                waiting,
                shares,
                self._predictor,
                (self._known_jobs(first), first),
                (running, state.leaves_at),
            )
            self._extrapolated = self._now, Extrapolation(passed)
        return self._extrapolated[1]

    def _known_jobs(self, jobs: Iterable[JobId]) -> list[Job]:
        return [self._jobs[each] for each in jobs if each in self._jobs]

    def _advance(self) -> bool:
        """Simulate one step; False when nothing more can happen."""
        # 1. the next moment
        moment = min(self._moments(), default=None)
        if moment is None:
            return False
        # 2. the moments near it
        span = (moment - self.began_at) // COARSENESS if self._passes > EXACT_PASSES else 0
        # the middle of the span, so that starts are off by at most half of it; never back in time
        self._now = max(Millis(moment + span // 2), self._now)
        # 3. ends, failures and arrivals
        left = self._end_jobs(Millis(moment + span)) | self._shrink(Millis(moment + span)) | self._give_up()
        may_fit = self._arrive()
        # an arrival that does not fit changes nothing, so it needs no pass of its own
        if left or may_fit or (self._next_at is not None and self._next_at <= self._now):
            self._run_pass()
        return True

    def _moments(self) -> Iterator[Millis]:
        """Yield the next moment of each kind; the simulation goes on at the earliest."""
        if (end := self._state.next_end()) is not None:
            yield end
        if (shrink_at := self._state.next_shrink()) is not None:
            yield shrink_at
        if self._next_at is not None:
            yield self._next_at
        if self._failure_times:
            yield self._failure_times[0][0]
        # with an empty queue no arrival can delay any job that is asked about
        if self._arrived < len(self._arrivals) and self._waiting:
            yield self._arrivals[self._arrived].submitted_at

    def _end_jobs(self, until: Millis) -> bool:
        """Let the jobs leave whose end has come by then; True if there are any."""
        gone: list[JobId] = []
        for left in self._state.leave(until):
            self.ended.append(PredictedEnd(left.at, left.job, left.placement))
            gone.append(left.job)
            if left.ended is not None:
                self._charge(left.ended, left.at)
                if left.killed:
                    self._failed.append(left.ended)
            # its evictor was nominated, and goes first: the place in the queue decides only about what is left
            if left.requeued is not None:
                self._enqueue(left.requeued)
                # a requeued job goes back to its place by priority, not to the end
                self._queue.sort(self._ranks)
        if gone:
            self._index.apply([(job, None) for job in gone], {})
            # `apply` knows no rules: the counters of limits are brought up to date by themselves
            self._index.counters = self._index.counters.changed(dict.fromkeys(gone))
            self._settle_dependencies()
        return bool(gone)

    def _charge(self, job: Job, at: Millis) -> None:
        """Add what a job has used until its end to the usage that budgets (GrpTRESMins, GrpWall) count, as the engine
        does. Usage does not decay in the simulation."""
        if self._usage_rules is not None:
            snapshot = self._snapshot
            before = usage.Ledger(dict(snapshot.usage), dict(snapshot.qos_usage), snapshot.usage_at)
            after = usage.with_usage_of(before, self._usage_rules, job, at)
            self._snapshot = replace(snapshot, usage=after.associations, qos_usage=after.qos)

    def _give_up(self) -> bool:
        """Let the waiting jobs fail that can no longer end by their deadline, or whose wait for enough workers is over;
        True if there are any."""
        gone: list[JobId] = []
        while self._failure_times and self._failure_times[0][0] <= self._now:
            at, job_id = heappop(self._failure_times)
            job = self._waiting.get(job_id)
            # a job that has started meanwhile, or was requeued with another moment, is left alone
            if job is None or fails_at(job) != at:
                continue
            # out of everything that names it: the next pass looks up each nominated job
            del self._waiting[job_id], self._state.jobs[job_id]
            self._queue.take(job)
            self._state.nominated.pop(job_id, None)
            self._conditional.discard(job_id)
            self._failed.append(job)
            gone.append(job_id)
        if gone:
            self._settle_dependencies()
        return bool(gone)

    def _expect_failure(self, job: Job) -> None:
        if (at := fails_at(job)) is not None:
            heappush(self._failure_times, (at, job.id))

    def _shrink(self, until: Millis) -> bool:
        """Let workers leave whose grace is over by then, while their jobs keep running; True if there are any."""
        jobs = self._state.shrink(until) if self._state.elastic else []
        if jobs:
            self._update_index(jobs, self._snapshot)
        return bool(jobs)

    def _update_index(self, jobs: Iterable[JobId], snapshot: Snapshot) -> None:
        """Bring what these jobs hold from the simulated state into the index."""
        # the last pass may still refer to this index, in a reservation that is computed later
        changes = {job: self._state.occupied[job] for job in jobs}
        self._index = self._index.fork()
        self._index.apply(changes.items(), self._state.ends)
        count(self._index, changes, snapshot)

    def _arrive(self) -> bool:
        """Let submitted jobs join the queue. True: one of them may start."""
        may_fit = False
        while self._arrived < len(self._arrivals) and self._arrivals[self._arrived].submitted_at <= self._now:
            job = self._arrivals[self._arrived]
            self._arrived += 1
            self._enqueue(job)
            # of several arrivals one is enough for a pass
            may_fit = (
                may_fit
                or self._index.equivalence.rules.may_evict
                or any(
                    find_placement(self._index, shape_of(job.spec, partition)) is not None
                    for partition in partitions_of(job)
                )
            )
        return may_fit

    def _enqueue(self, job: Job) -> None:
        """Put the job at the end of the queue."""
        # a requeued job's deadline still holds
        self._waiting[job.id] = self._state.jobs[job.id] = job
        self._expect_failure(job)
        self._queue.put(self._index.equivalence.further_entries((job, partition) for partition in partitions_of(job)))

    @cached_property
    def _ranks(self) -> Mapping[tuple[JobId, str], int]:
        """The places of waiting and running jobs, by job and partition, if all of them waited now."""
        first = self._original
        running = [
            job for each in first.occupied if (job := first.jobs.get(each)) is not None and job.state in OCCUPYING
        ]
        # running jobs are ranked too, since an evicted one returns to the queue
        queue = sorted([*first.queue, *(replace(job, state=QUEUED) for job in running)], key=by_seniority)
        order = prioritised(replace(first, queue=queue, touched=None)).order
        return {(job.id, partition): rank for rank, (job, partition) in enumerate(order)}

    def _run_pass(self) -> None:
        """Do one pass of the cycle, and carry out its plan."""
        self._passes += 1
        state = self._state
        nominated, suspended = tuple(state.nominated), tuple(state.suspended)
        elastic = sorted(state.elastic)
        snapshot = replace(self._snapshot, now=self._now, nominated=nominated, suspended=suspended, elastic=elastic)
        plan = run_pass(snapshot, self._index, self._policy, self._table, self._queue)
        self.faults |= plan.scheduling_pass.faults
        # a moment that is not in the future would repeat the same pass for ever
        self._next_at = plan.next_at if plan.next_at is not None and plan.next_at > self._now else None
        if plan.scheduling_pass.eviction_planner is not None:
            self._carry_out(plan, snapshot)
            return
        # without evictions the pass's own index is the next one: no change has to be applied a second time
        self._start_jobs(plan.starts)
        for growth in plan.growths:
            state.grow(growth)
        if plan.starts or plan.growths:
            self._index = plan.scheduling_pass.index  # it has the starts already
            count(self._index, {job: state.occupied[job] for job in _placed(plan)}, snapshot)

    def _carry_out(self, plan: Plan, snapshot: Snapshot) -> None:
        """Carry out a plan that may contain evictions. The pass's index cannot be taken over: it has nominated jobs in
        it, which have not started yet."""
        state, now = self._state, self._now
        for switch in plan.switches:
            state.switch(switch, now)
        for eviction in plan.evictions:
            state.evict(eviction, now)
            # the taker now names its victims (`clears`), which its next pass reads from the queue's entry
            self._replace_waiting(state.jobs[eviction.for_job])
        self._start_jobs(plan.starts)
        for growth in plan.growths:
            state.grow(growth)
        moved = [job for switch in plan.switches for job in (switch.job, *switch.others)]
        moved += [*(each.job for each in plan.evictions), *_placed(plan)]
        if moved:
            self._update_index(moved, snapshot)

    def _start_jobs(self, starts: Sequence[Start]) -> None:
        for start in starts:
            job = self._waiting.pop(start.job)
            self._queue.take(job)
            self._state.begin(job, start, self._now)
            # only the first start counts: a job that is evicted later starts again
            self.begun.setdefault(start.job, PredictedStart(self._now, start.placement))

    def _replace_waiting(self, job: Job) -> None:
        """Replace the record of a waiting job."""
        self._waiting[job.id] = self._state.jobs[job.id] = job
        self._queue.put(self._index.equivalence.entry(job, partition) for partition in partitions_of(job))

    def _settle_dependencies(self) -> None:
        """Settle the dependencies on jobs that have ended; these are assumed to end as their dependents need."""
        # a copy, since settled jobs are discarded on the way
        for job_id in [*self._conditional]:
            try:
                self._settle_dependencies_of(job_id)
            except Exception as error:  # noqa: BLE001 - one job's defect costs no other its future
                self.faults.setdefault(job_id, error)
                self._conditional.discard(job_id)

    def _settle_dependencies_of(self, job_id: JobId) -> None:
        job = self._waiting.get(job_id)
        left = tuple(each for each in job.waits_for if self._still_waits_for(each, job)) if job is not None else ()
        if job is not None and left != job.waits_for:
            self._replace_waiting(replace(job, waits_for=left))
        if not left:
            self._conditional.discard(job_id)

    def _still_waits_for(self, condition: Dependency, job: Job) -> bool:
        """Return whether the job must still wait for this dependency."""
        others = (each for each in self._state.jobs.values() if each.id != job.id and not each.ended)
        if condition.kind is DependencyKind.SINGLETON:
            owner = (job.submitter.uid, job.spec.name)
            return any((each.submitter.uid, each.spec.name) == owner and each.id < job.id for each in others)
        # the job waits on: what has failed can no longer succeed
        if condition.kind in _ON_SUCCESS and any(each.is_meant(condition) for each in self._failed):
            return True
        return any(each.is_meant(condition) for each in others)


def fails_at(job: Job) -> Millis | None:
    """Return when a waiting job fails unless it starts before; None: never.

    A job fails after the latest start by which it can end by its deadline; an elastic one also when its wait for enough
    workers is over, if it asks for that.
    """
    too_late = Millis(job.spec.latest_start_at + 1) if job.spec.latest_start_at is not None else None
    elastic = job.spec.elastic
    given_up = job.waits_until if elastic is not None and elastic.after_wait is AfterWait.FAIL else None
    return min((each for each in (too_late, given_up) if each is not None), default=None)


def _usage_rules(snapshot: Snapshot, rules: Rulebook) -> usage.Rules | None:
    """Return the rules by which ended jobs are charged; None where no budget counts what they have used."""
    accounts = snapshot.accounts
    limits = [each.limits for each in accounts.associations.values()]
    limits += [each.limits for each in accounts.qos.values()]
    if not rules.binding or not any(each.grp_tres_minutes or each.grp_wall_seconds is not None for each in limits):
        return None
    return usage.Rules(snapshot.cluster, accounts, snapshot.nodes)


def simulation_index(index: Index) -> Index:
    """Return an index for simulations, with an equivalence cache of its own: only the cycle writes to its own cache."""
    fork = index.fork()
    fork.equivalence = EquivalenceCache(_without_slices(index.equivalence.rules))
    return fork


def _placed(plan: Plan) -> list[JobId]:
    """Return the jobs that hold more after the plan than before."""
    return [*(start.job for start in plan.starts), *(growth.job for growth in plan.growths)]


def _without_slices(rules: Rulebook) -> Rulebook:
    """Return the rules without time slices: a job that has the CPUs keeps them to its end. Slices of half a minute are
    too short to be simulated for days."""
    preemption = rules.cluster.preemption
    if GANG not in preemption.mode:
        return rules
    patient = replace(preemption, mode=tuple(mode for mode in preemption.mode if mode != GANG))
    return rules.with_cluster(replace(rules.cluster, preemption=patient))
