"""The cluster's future as the scheduling cycle would make it: jobs end one after the other, and each end is followed by
a pass over those that wait. The cycle itself decides; only when jobs end, and who else comes, is assumed.

Priorities stay what they are now: who comes later is put in by submission, behind everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import never_starts
from cockpit.model.spec import Dependency, DependencyKind
from cockpit.sched.cycle import run_pass
from cockpit.sched.decisions import Start
from cockpit.sched.equivalence import EquivalenceCache, QueueEntry
from cockpit.sched.faults import Faults
from cockpit.sched.feasible import infeasible
from cockpit.sched.forecast.extrapolation import Extrapolation, Passed
from cockpit.sched.forecast.runtime_predictors import ContainedPredictor, RuntimePredictor
from cockpit.sched.forecast.simulated_state import SimulatedState
from cockpit.sched.forecast.work_ratio import Shares
from cockpit.sched.index import Index, count
from cockpit.sched.pass_queue import ReplayQueue
from cockpit.sched.placement import find_placement
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from cockpit.sched.priority.priorities import PriorityTable
from cockpit.sched.queue_order import PartitionEntry, partitions_of
from cockpit.sched.rules.precedence import GANG
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.shape import shape_of
from cockpit.sched.snapshot import Snapshot

EXACT_LOOKS = 256
"""So many moments are gone through one by one; then those within a 32nd of their distance together, in their middle."""
COARSENESS = 32
MOST_LOOKS = 600
"""Then the future is too far."""
MANY = 400
"""Behind so many starts, the rate at which the queue moved until then says when a job starts. In the long queue of the
tests that is off by a tenth on average; to go through all of it would take several times as long."""


class Begun(msgspec.Struct, frozen=True):
    """A start that lies ahead."""

    at: Millis
    placement: Placement


class Ended(msgspec.Struct, frozen=True):
    """An end that lies ahead."""

    at: Millis
    job: JobId
    placement: Placement


class Future:
    """One course of things, gone through as far as somebody asks. Changes nothing that it was made from."""

    def __init__(
        self,
        snapshot: Snapshot,
        index: Index,
        policy: Policy,
        order: Sequence[PartitionEntry],
        predictor: RuntimePredictor,
        arrivals: Sequence[Job] = (),
    ) -> None:
        """`index`: as `foreseeing` makes it; it and `order` are of this snapshot. `arrivals`: who comes later, soonest
        first."""
        self.begun: dict[JobId, Begun] = {}
        self.ended: list[Ended] = []
        """Soonest first."""
        self.began_at = self._now = snapshot.now
        self._policy = policy
        self._index = index.fork()
        self.faults: Faults = {}
        """Jobs that a defect kept from being judged: they stay in the queue, and all others are followed."""
        predictor = ContainedPredictor(predictor, self.faults)
        self._state = state = SimulatedState(snapshot, predictor)
        self._predictor, self._jobs, self._leaving_at_first = predictor, snapshot.jobs, dict(state.leaves_at)
        self._extrapolated: tuple[Millis, Extrapolation] | None = None
        self._places: dict[JobId, int] = {}
        """How many have begun before each of those that have."""
        self._snapshot = replace(
            snapshot, queue=(), jobs=state.jobs, occupied=state.occupied, ends=state.ends, changes=(), touched=None
        )
        self._table = PriorityTable(self._snapshot, None, ())
        self._waiting = {job.id: job for job in snapshot.queue}
        self._line = ReplayQueue(index.equivalence.further_entries(order))
        """Who waits, best first."""
        self._arrivals, self._came = arrivals, 0
        self._looks = 0
        self._next_at: Millis | None = None
        # what can never come true stays so, though the job that made it so is not in the snapshot any more
        self._conditional = {job.id for job in snapshot.queue if job.waits_for and job.never is None}
        self._look()

    def start_of(self, job: JobId, before: Millis | None = None, looks: int = MOST_LOOKS) -> Begun | None:
        """When and where it starts; None: not as things stand, not before that moment, or further ahead than so many
        looks see."""
        while job not in self.begun and self._looks < looks and self._go_on():
            if before is not None and self._now >= before:
                return None
        return self.begun.get(job)

    def about(self, job: JobId) -> Begun | None:
        """As `start_of`; behind many, at the rate at which the queue moves, and nowhere in particular."""
        enough = MANY
        while job not in self.begun and self._looks < MOST_LOOKS:
            if len(self.begun) >= enough:
                if (at := self._extrapolation.start_of(job)) is not None:
                    return Begun(at, ())
                enough *= 2
            if not self._go_on():
                break
        return self.begun.get(job)

    def starts_before(self, job: JobId) -> int:
        """How many do, as far as it was gone through."""
        if len(self._places) != len(self.begun):
            self._places = {each: place for place, each in enumerate(self.begun)}
        return self._places.get(job, len(self.begun))

    def order(self) -> list[Job]:
        """Who has started so far, in that order, and behind them who stands in line."""
        return [*self._known(self.begun), *(entry.job for entry in self._once() if not entry.job.held_by)]

    def _once(self) -> Iterable[QueueEntry]:
        """The line without the jobs that never start; a job of several partitions stands only in its first place."""
        first: dict[JobId, QueueEntry] = {}
        for entry in self._line:
            if not self._never_starts(entry):
                first.setdefault(entry.job.id, entry)
        return first.values()

    def _never_starts(self, entry: QueueEntry) -> bool:
        """Whether the job is ahead of nobody in that partition, whatever is free."""
        if entry.job.never is not None or entry.equivalence_class.refused is not None:
            return True
        never = infeasible(entry.equivalence_class.shape, self._index.layout)
        return never is not None and never_starts(never)

    def awaited(self, begun: Begun) -> list[Ended]:
        """The ends on a start's nodes before it, soonest first."""
        nodes = {part.node for part in begun.placement}
        return [end for end in self.ended if end.at <= begun.at and any(part.node in nodes for part in end.placement)]

    @property
    def _extrapolation(self) -> Extrapolation:
        """As of now."""
        if self._extrapolated is None or self._extrapolated[0] != self._now:
            state, first = self._state, self._leaving_at_first
            shares = Shares(self._snapshot.nodes)
            there = [state.jobs[each] for each in state.leaves_at if each in state.jobs]
            layout = self._index.layout
            # Those that no free state of the cluster lets start have no time, and delay nobody behind them.
            waiting = [entry for entry in self._once() if infeasible(entry.equivalence_class.shape, layout) is None]
            begun = self._known(self.begun)
            passed = Passed(
                self.began_at,
                self._now,
                begun,
                waiting,
                shares,
                self._predictor,
                (self._known(first), first),
                (there, state.leaves_at),
            )
            self._extrapolated = self._now, Extrapolation(passed)
        return self._extrapolated[1]

    def _known(self, jobs: Iterable[JobId]) -> list[Job]:
        return [self._jobs[each] for each in jobs if each in self._jobs]

    def _go_on(self) -> bool:
        """To the next moment; False when nothing more comes."""
        moment = min(self._moments(), default=None)
        if moment is None:
            return False
        span = (moment - self.began_at) // COARSENESS if self._looks > EXACT_LOOKS else 0
        self._now = max(Millis(moment + span // 2), self._now)
        left = self._leave(Millis(moment + span)) | self._shrink(Millis(moment + span))
        node_free = self._arrive()
        if left or node_free or (self._next_at is not None and self._next_at <= self._now):
            self._look()
        return True

    def _moments(self) -> Iterator[Millis]:
        if (end := self._state.next_end()) is not None:
            yield end
        if (smaller := self._state.next_smaller()) is not None:
            yield smaller
        if self._next_at is not None:
            yield self._next_at
        if self._came < len(self._arrivals) and self._waiting:
            yield self._arrivals[self._came].submitted_at

    def _leave(self, until: Millis) -> bool:
        """Those whose end has come by then are gone."""
        gone: list[JobId] = []
        for left in self._state.leave(until):
            self.ended.append(Ended(left.at, left.job, left.placement))
            gone.append(left.job)
            if left.requeued is not None:
                self._wait(left.requeued)
        if gone:
            self._index.apply([(job, None) for job in gone], {})
            self._index.counters = self._index.counters.changed(dict.fromkeys(gone))
            self._settle()
        return bool(gone)

    def _shrink(self, until: Millis) -> bool:
        """Workers that were to give way by then are gone, and their jobs go on."""
        jobs = self._state.shrink(until) if self._state.elastic else []
        if jobs:
            self._change(jobs, self._snapshot)
        return bool(jobs)

    def _change(self, jobs: Iterable[JobId], snapshot: Snapshot) -> None:
        """These hold now what the stage says."""
        changes = {job: self._state.occupied[job] for job in jobs}
        self._index = self._index.fork()
        self._index.apply(changes.items(), self._state.ends)
        count(self._index, changes, snapshot)

    def _arrive(self) -> bool:
        """Whether there may be room for one that comes."""
        node_free = False
        while self._came < len(self._arrivals) and self._arrivals[self._came].submitted_at <= self._now:
            job = self._arrivals[self._came]
            self._came += 1
            self._wait(job)
            node_free = (
                node_free
                or self._index.equivalence.rules.takes_room
                or any(
                    find_placement(self._index, shape_of(job.spec, partition)) is not None
                    for partition in partitions_of(job)
                )
            )
        return node_free

    def _wait(self, job: Job) -> None:
        """Behind everybody."""
        self._waiting[job.id] = self._state.jobs[job.id] = job
        self._line.put(self._index.equivalence.further_entries((job, partition) for partition in partitions_of(job)))

    def _look(self) -> None:
        """One pass of the cycle over who waits."""
        self._looks += 1
        state = self._state
        promised, suspended = tuple(state.promised), tuple(state.suspended)
        elastic = sorted(state.elastic)
        snapshot = replace(self._snapshot, now=self._now, promised=promised, suspended=suspended, elastic=elastic)
        plan = run_pass(snapshot, self._index, self._policy, self._table, self._line)
        self.faults |= plan.scheduling_pass.faults
        self._next_at = plan.next_at if plan.next_at is not None and plan.next_at > self._now else None
        if plan.scheduling_pass.eviction_planner is not None:
            self._carry_out(plan, snapshot)
            return
        self._begin(plan.starts)
        for growth in plan.growths:
            state.grow(growth)
        if plan.starts or plan.growths:
            self._index = plan.scheduling_pass.index  # the pass has put its starts into one of its own
            count(self._index, {job: state.occupied[job] for job in _placed(plan)}, snapshot)

    def _carry_out(self, plan: Plan, snapshot: Snapshot) -> None:
        """Of a pass in which some may give way: what it promises is in its index, too, and has not happened."""
        state, now = self._state, self._now
        for switch in plan.switches:
            state.switch(switch, now)
        for eviction in plan.evictions:
            state.evict(eviction, now)
            self._changed(state.jobs[eviction.for_job])
        self._begin(plan.starts)
        for growth in plan.growths:
            state.grow(growth)
        moved = [job for switch in plan.switches for job in (switch.job, *switch.others)]
        moved += [*(each.job for each in plan.evictions), *_placed(plan)]
        if moved:
            self._change(moved, snapshot)

    def _begin(self, starts: Sequence[Start]) -> None:
        for start in starts:
            job = self._waiting.pop(start.job)
            self._line.take(job)
            self._state.begin(job, start, self._now)
            self.begun.setdefault(start.job, Begun(self._now, start.placement))

    def _changed(self, job: Job) -> None:
        """The record of one that waits."""
        self._waiting[job.id] = self._state.jobs[job.id] = job
        self._line.put(self._index.equivalence.entry(job, partition) for partition in partitions_of(job))

    def _settle(self) -> None:
        """Conditions on jobs that have ended come true: they are taken to end as they should."""
        for job_id in [*self._conditional]:
            try:
                self._settle_one(job_id)
            except Exception as error:  # noqa: BLE001 - one job's defect costs no other its future
                self.faults.setdefault(job_id, error)
                self._conditional.discard(job_id)

    def _settle_one(self, job_id: JobId) -> None:
        job = self._waiting.get(job_id)
        left = tuple(each for each in job.waits_for if self._holds(each, job)) if job is not None else ()
        if job is not None and left != job.waits_for:
            self._changed(replace(job, waits_for=left))
        if not left:
            self._conditional.discard(job_id)

    def _holds(self, condition: Dependency, job: Job) -> bool:
        """Whether the job must go on waiting for it."""
        others = (each for each in self._state.jobs.values() if each.id != job.id and not each.ended)
        if condition.kind is DependencyKind.SINGLETON:
            owner = (job.submitter.uid, job.spec.name)
            return any((each.submitter.uid, each.spec.name) == owner and each.id < job.id for each in others)
        return any(each.is_meant(condition) for each in others)


def foreseeing(index: Index) -> Index:
    """The index for futures, one after the other: the cycle alone writes to its own book."""
    fork = index.fork()
    fork.equivalence = EquivalenceCache(_without_slices(index.equivalence.rules))
    return fork


def _placed(plan: Plan) -> list[JobId]:
    """Who holds more by it than before."""
    return [*(start.job for start in plan.starts), *(growth.job for growth in plan.growths)]


def _without_slices(rules: Rulebook) -> Rulebook:
    """Who has the CPUs keeps them to the end: turns of half a minute are too short to be followed for days."""
    preemption = rules.cluster.preemption
    if GANG not in preemption.mode:
        return rules
    patient = replace(preemption, mode=tuple(mode for mode in preemption.mode if mode != GANG))
    return rules.with_cluster(replace(rules.cluster, preemption=patient))
