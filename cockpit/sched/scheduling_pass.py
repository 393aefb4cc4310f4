"""One scheduling pass: goes once through the queue, starts jobs and notes for each shape that fails why it failed.

`cycle.py` holds the numbered steps of the whole cycle. A pass does the middle of it:

1. `plan_timeslices`: suspended jobs resume where they can; the CPUs of the others are kept free for them.
2. `place_nominated`: jobs for which others were evicted in an earlier pass start, or their resources stay reserved.
3. `serve_guaranteed`: jobs within the guaranteed part (min) of their quota start, or borrowed resources are reclaimed.
4. `schedule_queue`: every other job, best first: gates (`passes_gates`), then placement, eviction or reservation
   (`place_or_refuse`).
5. `grow`: running elastic jobs take what is left.

Two caches keep a pass over 100 000 queued jobs short. A *shape* that failed once need not be tried again for jobs that
ask for the same or more time (`shape_bounds`), and a rule that stops one job stops its whole equivalence class
(`class_bounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from cockpit.model.cluster import BackfillKind, Cluster
from cockpit.model.growth import NoGrowth
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import BeginsLater, BehindHead, Limit, LimitReached, QuotaFull, Reason
from cockpit.sched.backfill.conservative import Conservative
from cockpit.sched.backfill.easy import Easy, InOrder
from cockpit.sched.decisions import Growth, SliceSwitch, Start
from cockpit.sched.equivalence import NO_SHAPE, OPEN, EquivalenceClass, QueueEntry
from cockpit.sched.eviction.eviction_planner import EvictionPlanner
from cockpit.sched.eviction.reclaim import QuotaClaim, Reclaim
from cockpit.sched.faults import Faults
from cockpit.sched.feasible import infeasible
from cockpit.sched.fleet.reserved import reserved_placement
from cockpit.sched.fleet.totals import by_totals
from cockpit.sched.gates import NO_AMOUNTS, CounterAmounts, Gates
from cockpit.sched.growth import GrowthRequest, further_workers, grow_jobs, growing_jobs
from cockpit.sched.index import Index
from cockpit.sched.launchers import launcher_node
from cockpit.sched.lawful import limit_now, limit_of_all, within_limits
from cockpit.sched.nodes.reservation_windows import NO_WINDOWS, ReservationWindows
from cockpit.sched.pass_queue import PassQueue
from cockpit.sched.placement import Fit, JobPlacement, find_placement
from cockpit.sched.policy import Policy
from cockpit.sched.queue_order import partitions_of
from cockpit.sched.refusals import PassNotes, Refusals
from cockpit.sched.rules.amounts import ONE, Amounts
from cockpit.sched.rules.limits import NO_SCOPE
from cockpit.sched.rules.tres import BILLING
from cockpit.sched.shape import Shape, alternative
from cockpit.sched.sizes import Sizes
from cockpit.sched.snapshot import Snapshot
from cockpit.sched.timeslicing import plan_timeslices

BACKFILLERS: dict[BackfillKind, type[InOrder | Conservative]] = {
    BackfillKind.OFF: InOrder,
    BackfillKind.EASY: Easy,
    BackfillKind.CONSERVATIVE: Conservative,
}
"""The class that decides which jobs may start before those that wait, for each kind of backfill."""


_NO_GROWTH: Mapping[JobId, NoGrowth] = MappingProxyType({})
MOST_RECLAIMS = 32
"""At most so many jobs have borrowed resources reclaimed for them in one pass, since each search takes a while. The
next pass, one second later, serves the others."""


class SchedulingPass:
    """One pass over the queue. It changes a copy of the index, made for the first job that starts, and never
    `initial_index`."""

    __slots__ = (
        "_considers_all",
        "_depth_left",
        "_exceeded",
        "_failed",
        "_fit",
        "_gates",
        "_narrowed",
        "_next_begin_at",
        "_reclaims",
        "_reclaims_deferred",
        "_slice_ends",
        "_started",
        "_windows",
        "backfiller",
        "class_bounds",
        "eviction_planner",
        "faults",
        "growths",
        "index",
        "initial_index",
        "no_growth",
        "policy",
        "reclaim",
        "shape_bounds",
        "snapshot",
        "starts",
        "switches",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        index: Index,
        policy: Policy,
        queue: PassQueue,
        fit: Fit | None,
        eviction_planner: EvictionPlanner | None = None,
    ) -> None:
        """Prepare a pass. `fit`: the policy that chooses nodes, None for best fit. `eviction_planner`: None where no
        rule lets a job take resources from another."""
        equivalence, backfill = index.equivalence, policy.backfill
        self._begin(snapshot, index, policy, fit, eviction_planner)
        self.faults: Faults = {}
        """The exceptions raised while judging single jobs. Those jobs wait; all others are judged."""
        self.shape_bounds, self.class_bounds = queue.unbounded(len(equivalence.shapes), len(equivalence.classes))
        self.shape_bounds[NO_SHAPE] = 0
        self.backfiller = BACKFILLERS[backfill.kind](snapshot.now, backfill, fit)
        self._failed: dict[Shape, Reason | None] = {}
        """Why each shape failed; None: too few free resources."""
        self._narrowed: dict[EquivalenceClass, Shape] = {}
        """The shape that was tried, for classes that a limit leaves only some of their alternatives."""
        self._exceeded: dict[EquivalenceClass, Limit] = {}
        self._depth_left = backfill.depth - 1 if backfill.depth else OPEN
        """How many more jobs may be considered behind the first waiting job (`Backfill.depth`)."""
        self._next_begin_at: Millis | None = None
        self._considers_all = bool(self._windows.lasting or backfill.depth or index.layout.totalled)
        """Whether the shortcut by free CPUs and cards is forbidden: shapes depend on the job (advance reservations),
        the considered jobs are counted (depth), or only totals of the nodes are known."""
        if equivalence.limit_cache:
            self._close(self._gates.stopped())

    def _begin(
        self,
        snapshot: Snapshot,
        index: Index,
        policy: Policy,
        fit: Fit | None,
        eviction_planner: EvictionPlanner | None,
    ) -> None:
        self.policy, self._fit, self.eviction_planner = policy, fit, eviction_planner
        self.reclaim: Reclaim | None = None
        """None where no queue has guaranteed resources."""
        if eviction_planner is not None and index.equivalence.rules.quotas.guarantees:
            self.reclaim = Reclaim(index.equivalence.rules, snapshot, eviction_planner)
        self._reclaims, self._reclaims_deferred = 0, False
        self.switches: tuple[SliceSwitch, ...] = ()
        self._slice_ends: Millis | None = None
        self.starts: list[Start] = []
        self.growths: Sequence[Growth] = ()
        self.no_growth: Mapping[JobId, NoGrowth] = _NO_GROWTH
        """Why running elastic jobs take no more workers, for those that were considered."""
        self._started: set[JobId] = set()
        """Jobs that this pass starts or nominates; they are not considered again in another partition."""
        self.snapshot = snapshot
        self.initial_index = self.index = index
        """The index before the pass, and the index with everything that the pass starts."""
        self._windows = ReservationWindows(snapshot.reservations, snapshot.now) if snapshot.reservations else NO_WINDOWS
        self._gates = Gates(snapshot, index.equivalence, index.counters, self._windows)

    def resumed(self, snapshot: Snapshot, index: Index) -> SchedulingPass:
        """Return a pass that continues this one at a later snapshot, for jobs that were submitted meanwhile. `index`:
        what this pass left. All decisions stay. This pass itself is not changed if its index may still be read
        (`Index.shared`)."""
        fresh = self._copied() if index.shared else self
        fresh._begin(snapshot, index, self.policy, self._fit, None)  # noqa: SLF001 - same class
        fresh.faults = self.faults.copy()
        fresh.backfiller = self.backfiller.resumed(snapshot.now)
        fresh.shape_bounds.extend([OPEN] * (len(index.equivalence.shapes) - len(fresh.shape_bounds)))
        fresh.class_bounds.extend([OPEN] * (len(index.equivalence.classes) - len(fresh.class_bounds)))
        return fresh

    def _copied(self) -> SchedulingPass:
        """Return a pass with copies of the verdicts and bounds of this one."""
        fresh = SchedulingPass.__new__(SchedulingPass)
        fresh._depth_left, fresh._next_begin_at = self._depth_left, self._next_begin_at  # noqa: SLF001 - same class
        fresh._considers_all = self._considers_all  # noqa: SLF001 - same class
        fresh._failed, fresh._narrowed = self._failed.copy(), self._narrowed.copy()  # noqa: SLF001 - same class
        fresh._exceeded = self._exceeded.copy()  # noqa: SLF001 - same class
        fresh.shape_bounds, fresh.class_bounds = [*self.shape_bounds], [*self.class_bounds]
        return fresh

    def plan_timeslices(self, cluster: Cluster) -> None:
        """Resume suspended jobs where they can run; keep the CPUs of the others free for them."""
        taken = plan_timeslices(self.snapshot, cluster, self.index)
        self.switches, self._slice_ends = taken.switches, taken.next_at
        if taken.after is not self.index:
            self._take_over(taken.after)

    def place_nominated(self, entries: Iterable[QueueEntry]) -> None:
        """Start the jobs for which others were evicted, before all other jobs; if they do not fit yet, keep the
        resources that they wait for."""
        assert self.eviction_planner is not None
        free = self.eviction_planner.amounts_coming_free(self._gates.counters)
        for entry in entries:
            try:
                self._try_nominated(entry, free)
            except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                self._contain(entry, error)

    def _try_nominated(self, entry: QueueEntry, free: CounterAmounts) -> None:
        if entry.job.id in self._started or self._gates.job_refusal(entry.job) is not None:
            return
        if (
            self._gates.class_refusal(entry.equivalence_class, free) is None
            and self._limit(entry.equivalence_class, free) is None
        ):
            shape = self._shape(entry, free)
            if not infeasible(shape, self.index.layout):
                self._place_nominated(entry, shape)

    def serve_guaranteed(self, queue: PassQueue) -> None:
        """Start jobs within the guarantee of their queue, best first, or reclaim what other queues borrowed. Jobs that
        cannot be served so are left to `schedule_queue`."""
        insufficient: set[int] = set()
        for entry in queue.open(self.shape_bounds, self.class_bounds):
            if not (
                entry.seconds < self.shape_bounds[entry.shape_number]
                and entry.seconds < self.class_bounds[entry.class_number]
            ):
                continue
            if (
                entry.class_number in insufficient
                or not entry.equivalence_class.scope.queue
                or entry.job.id in self._started
            ):
                continue
            try:
                if self._gates.job_refusal(entry.job) is None and not self._serve_guaranteed_job(entry):
                    # jobs of one class have the same claim: what failed for one fails for all of them in this pass
                    insufficient.add(entry.class_number)
            except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                self._contain(entry, error)

    def schedule_queue(self, queue: PassQueue) -> None:
        """Go through the queue, best first: start each job that may start, and note why the others fail.

        The steps are numbered as in `cycle.py`. The order of the tests is the order of their cost: of a long queue,
        most jobs must be passed over by comparing integers alone.
        """
        shapes, classes, most_cpus, most_cards = self.shape_bounds, self.class_bounds, OPEN, OPEN
        for entry in queue.open(shapes, classes):
            # 3a. no node has as many free CPUs or idle cards: the job does not fit, whatever the rules say
            if entry.cpus > most_cpus or entry.cards > most_cards:
                if shapes[entry.shape_number]:
                    self._failed[entry.equivalence_class.shape] = None
                    shapes[entry.shape_number] = 0
            # 3b. skip jobs whose shape or class has already failed for jobs no longer than this one
            elif entry.seconds < shapes[entry.shape_number] and entry.seconds < classes[entry.class_number]:
                try:
                    # 3c. rules: a job that a rule stops takes no reservation, so it delays no job behind it
                    if (entry.free and not self._started) or self.passes_gates(entry):
                        # 4. start, evict others, or wait; the backfiller decides what may start before a waiting job
                        self.place_or_refuse(entry)
                        # once a job holds the reservation, later jobs that do not fit are simply passed over. Before
                        # that they must be considered: the first of them gets the reservation
                        if self.backfiller.has_reservation and not self._considers_all:
                            most_cpus, most_cards = self.index.most_cpus, self.index.most_cards
                except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                    self._contain(entry, error)

    def _contain(self, entry: QueueEntry, error: Exception) -> None:
        """Note a defect that came up for one job, and let that job wait. Raises the error again if part of the job's
        start is in the plan already: such a plan must not be carried out."""
        if entry.job.id in self._started:
            raise error
        self.faults.setdefault(entry.job.id, error)

    def grow(self) -> None:
        """Give running elastic jobs what is left (step 6 of the cycle), unless the depth kept some waiting job from
        being considered at all."""
        if not self.snapshot.elastic or (self.backfiller.head is not None and not self._depth_left):
            return
        if growers := [each for each in growing_jobs(self.snapshot) if not self._gives_way(each[0].id)]:
            self._take_over(self.index.fork())
            done = grow_jobs(
                self.snapshot, growers, self.index, self.backfiller, self._fit, self._sizes(), self._off_reserved
            )
            self.growths, self.no_growth = done
            self.index.counters = self._gates.counters

    def _gives_way(self, job: JobId) -> bool:
        """Whether this pass evicts, shrinks or suspends the job."""
        gives_way = self.eviction_planner is not None and self.eviction_planner.gives_way(job)
        return gives_way or any(job in switch.others for switch in self.switches)

    def passes_gates(self, entry: QueueEntry) -> bool:
        """Whether no rule stops the job. If a rule stops its whole class, the class is closed for the rest of the
        pass."""
        if self._started and entry.job.id in self._started:  # it started in another partition
            return False
        if entry.free:
            return True
        if self._gates.class_refusal(entry.equivalence_class) is not None:
            self._stop(entry)
            return False
        limit = self._limit(entry.equivalence_class)
        if limit is not None:
            self._exceeded[entry.equivalence_class] = limit
            self._close([entry.class_number])
            return False
        own = self._gates.job_refusal(entry.job)
        if isinstance(own, BeginsLater):
            self._next_begin_at = min(own.begin_at, self._next_begin_at or own.begin_at)
        return own is None

    def place_or_refuse(self, entry: QueueEntry) -> None:
        """Start the job, evict others for it, or note why its shape failed.

        1. Shapes that no node could ever hold fail at once.
        2. Behind the first waiting job, at most `Backfill.depth` jobs are considered.
        3. A job that may preempt, and does not fit, evicts others.
        4. Else the backfiller places the job, if that delays no job ahead of it.
        """
        shape = entry.equivalence_class.shape if entry.free and self._windows is NO_WINDOWS else self._shape(entry)
        layout = self.index.layout
        # 1.
        if shape not in layout.possible and (never := infeasible(shape, layout)):
            self._fail(entry, shape, never, 0)
            return
        # 2.
        backfiller = self.backfiller
        if backfiller.head is not None and backfiller.head != entry.job.id:
            if not self._depth_left:
                # a verdict on the same shape from before the depth ran out says more than "behind the first job"
                self._fail(entry, shape, self._failed.get(shape, BehindHead(backfiller.head)), 0)
                return
            self._depth_left -= 1
        # 3.
        if entry.equivalence_class.preemption_key and self._evict_for(entry, shape):
            return
        # 4.
        job_placement = self.place(entry.job, shape)
        # the test for None comes first because `isinstance(None, JobPlacement)` is slow, and most jobs get None
        if job_placement is not None and isinstance(job_placement, JobPlacement):
            self._start(entry, shape, job_placement)
        else:
            self._fail(entry, shape, job_placement, backfiller.fails_from(job_placement))

    def place(self, job: Job, shape: Shape) -> JobPlacement | Reason | None:
        """A placement that delays no job ahead of this one; else why there is none. None: too few free resources."""
        if shape.partition in self.index.layout.totalled:
            return by_totals(self.index, self.snapshot, job, shape)
        return self.backfiller.place(self.index, job, shape)

    def refusals(self) -> Refusals:
        """Why the other jobs do not start, judged by the index after the last start."""
        noted = PassNotes(self._failed, self._narrowed, self._exceeded)
        return Refusals(self._gates, self._windows, noted, self.backfiller, self.index, self.eviction_planner)

    def stops_reserved(self) -> bool:
        """Whether a job that this pass keeps resources for is now stopped by a limit, or the bound of its array, which
        a job behind it reached by starting."""
        jobs = (self.snapshot.jobs[each] for each in self.backfiller.kept_for() if each not in self._started)
        counted = [job for job in jobs if self._gates.may_count(job)]
        classes = {self._gates.equivalence_class(job, name) for job in counted for name in partitions_of(job)}
        reasons = (self._gates.class_refusal(each) for each in classes if each.refused is None)
        return any(reason is not None for reason in reasons)

    def next_at(self) -> Millis | None:
        """The first moment at which a job may start although nothing else happens: a begin time, the start or end of a
        reservation, an exempt time, the next second after `MOST_RECLAIMS`, or the end of a time slice. None: there is
        no such moment."""
        if self.eviction_planner is None and self._next_begin_at is None and self._windows is NO_WINDOWS:
            return None
        proposal = self.eviction_planner.next_at() if self.eviction_planner is not None else None
        bars = self._windows.next_at() if self._windows.lasting else None
        soon = Millis(self.snapshot.now + 1000) if self._reclaims_deferred else None
        return min(
            [each for each in (self._next_begin_at, bars, proposal, soon, self._slice_ends) if each], default=None
        )

    def _evict_for(self, entry: QueueEntry, shape: Shape) -> bool:
        """Evict others for a job that does not fit (step 5 of the cycle). True: the job starts at once or is nominated,
        and keeps the resources that come free."""
        eviction_planner = self.eviction_planner
        if eviction_planner is None or find_placement(self.index, shape, self._fit) is not None:
            return False
        proposal = eviction_planner.propose(entry, shape, self.index, self.backfiller.place_after_evictions)
        if (
            proposal is None
            or self._gates.exceeded(entry.equivalence_class, self._amounts(proposal.job_placement, shape)) is not None
        ):
            return False
        eviction_planner.commit(proposal)
        if proposal.at_once:
            self._take_over(proposal.after)
            self._start(entry, shape, proposal.job_placement)
        else:
            self._nominate(entry, shape, proposal.job_placement, [each.job for each in proposal.evictions])
        return True

    def _serve_guaranteed_job(self, entry: QueueEntry) -> bool:
        """Serve a job within the guarantee of its queue. True: it starts or is nominated.

        1. Find the alternatives by which the job stays within the guarantee and breaks no other limit.
        2. Start the job by the first of them that fits now.
        3. Else reclaim for the first of them for which others hold borrowed resources.
        """
        assert self.reclaim is not None
        gates, equivalence_class = self._gates, entry.equivalence_class
        beside = gates.beside_quota(equivalence_class)
        if gates.class_refusal(beside) is not None:
            return False
        # 1. the quota's max is left out (`beside`): what others borrowed above it may be reclaimed
        guaranteed = [
            (self._off_reserved(entry.job, shape), amounts, claim)
            for shape, amounts in gates.alternatives(equivalence_class)
            if (claim := self.reclaim.claim(equivalence_class.scope.queue, amounts, gates.counters)) is not None
            and gates.exceeded(beside, amounts) is None
            and limit_of_all(gates, equivalence_class, shape, amounts, self.index.layout) is None
            and limit_now(gates, beside, shape, self.index.layout) is None
        ]
        # 2.
        for shape, amounts, _ in guaranteed:
            if (
                gates.exceeded(equivalence_class, amounts) is None
                and find_placement(self.index, shape, self._fit) is not None
            ):
                job_placement = self.place(entry.job, shape)
                if isinstance(job_placement, JobPlacement):
                    self._start(entry, shape, job_placement)
                    return entry.job.id in self._started
        # 3.
        return any(self._reclaim_for(entry, shape, claim) for shape, _, claim in guaranteed)

    def _reclaim_for(self, entry: QueueEntry, shape: Shape, claim: QuotaClaim) -> bool:
        """Reclaim borrowed resources for the job. True: others are evicted, and the job is nominated."""
        assert self.reclaim is not None
        assert self.eviction_planner is not None
        if infeasible(shape, self.index.layout):
            return False
        if self._reclaims == MOST_RECLAIMS:
            self._reclaims_deferred = True
            return False
        proposal = self.reclaim.propose(
            entry.job, shape, claim, self.index, self._gates.counters, self.backfiller.place_after_evictions
        )
        if proposal is None:
            return False
        self._reclaims += 1
        self.eviction_planner.commit(proposal)
        leaving = [each.job for each in proposal.evictions] or self.eviction_planner.ending_jobs()
        self._nominate(entry, shape, proposal.job_placement, leaving)
        return True

    def _place_nominated(self, entry: QueueEntry, shape: Shape) -> None:
        allowed = self._gates.class_refusal(entry.equivalence_class) is None
        job_placement = reserved_placement(self.index, entry.job) or find_placement(self.index, shape, self._fit)
        if allowed and job_placement is not None:
            self._start(entry, shape, job_placement)
        elif (
            self.eviction_planner is not None
            and (later := self.eviction_planner.placement_after_evictions(shape, self.index)) is not None
        ):
            self._nominate(entry, shape, later, self.eviction_planner.ending_for(entry.job.id))

    def _nominate(self, entry: QueueEntry, shape: Shape, job_placement: JobPlacement, others: Iterable[JobId]) -> None:
        """Nominate the job: it gets this placement once the others have ended, and no other job gets it before.

        1. Note which jobs it waits for, and until when.
        2. Take the ending jobs out of the index at the moment by which they are gone at the latest.
        3. Put the job itself into the index, so that no later job takes the resources.
        4. Count it to the limits, and tell the backfiller.
        """
        assert self.eviction_planner is not None
        eviction_planner, others = self.eviction_planner, list(others)
        # 1. `job`: with a time limit longer by the wait, so that its end in the index is right
        eviction_planner.promise(entry.job.id, others)
        job = eviction_planner.delayed(entry.job)
        self._started.add(job.id)
        self._take_over(self.index.fork())
        placed, ends = self.index.placed, self.index.ends
        # 2. a job that only shrinks keeps its own end
        others = [other for other in others if not eviction_planner.stays(other)]
        gone_at = {
            other: min(end, ends.get(other, end))
            for other in others
            if (end := eviction_planner.gone_at(other)) is not None
        }
        # 3.
        gone_at[job.id] = Millis(self.snapshot.now + 1000 * job.spec.time_limit_seconds)
        leaving = [(other, placed[other]) for other in others if other in placed]
        self.index.apply([*leaving, (job.id, job_placement.placement)], gone_at)
        # 4.
        self._count(job, shape.partition, self._amounts(job_placement, shape))
        self.backfiller.started(self.index, job, job_placement.placement)
        self.backfiller.evicted(self.index)

    def _take_over(self, index: Index) -> None:
        """Go on with another index. Deferred reservations are worked out first: they refer to the old one."""
        self.backfiller.settle()
        index.counters = self._gates.counters
        self.index = index

    def _count(self, job: Job, partition: str, amounts: Amounts) -> None:
        """Count the job to the limits, and close the classes that reach a limit by that."""
        stopped = self._gates.started(job, partition, amounts)
        if stopped:
            self._close(stopped)
        self.index.counters = self._gates.counters

    def _amounts(self, job_placement: JobPlacement, shape: Shape) -> Amounts:
        return self._gates.amounts(job_placement, shape)

    def _shape(self, entry: QueueEntry, free: CounterAmounts = NO_AMOUNTS) -> Shape:
        """The shape by which the job may be placed now: without alternatives that a limit stops, and off reserved
        nodes. `free`: amounts about to come free, which do not count."""
        equivalence_class = entry.equivalence_class
        shape = self._gates.open_shape(equivalence_class, free)
        shape = within_limits(self._gates, equivalence_class, shape, self.index, free)
        if shape is not equivalence_class.shape:
            self._narrowed[equivalence_class] = shape
        return self._off_reserved(entry.job, shape)

    def _off_reserved(self, job: Job, shape: Shape) -> Shape:
        barred = self._windows.against_job(job) if self._windows.lasting else ()
        return replace(shape, barred=barred) if barred else shape

    def _fail(self, entry: QueueEntry, shape: Shape, reason: Reason | None, seconds: int) -> None:
        """Note why the shape failed. Jobs of the shape whose time limit is at least `seconds` are not tried again in
        this pass."""
        self._failed[shape] = reason
        bounds, number = self.shape_bounds, entry.shape_number
        # a limit left only some alternatives to this class: other classes of the shape may still fit
        if self._narrowed and entry.equivalence_class in self._narrowed:
            bounds, number = self.class_bounds, entry.class_number
        # shorter jobs end before these reservations begin, and may use more nodes
        if shape.barred:
            seconds = max(seconds, self._windows.least_seconds(shape.barred))
        is_tighter = seconds < bounds[number]
        if is_tighter:
            bounds[number] = seconds

    def _stop(self, entry: QueueEntry) -> None:
        """Close the job's class; remember the limit for later passes, so that these need not test it again."""
        self._close([entry.class_number])
        if (stop := self._gates.stop(entry.equivalence_class)) is not None:
            self.initial_index.equivalence.limit_cache.add(entry.class_number, stop)

    def _close(self, numbers: Iterable[int]) -> None:
        classes = self.class_bounds
        for number in numbers:
            classes[number] = 0

    def _with_extra_workers(self, job: Job, shape: Shape, job_placement: JobPlacement) -> tuple[Shape, JobPlacement]:
        """Add as many of the workers that an elastic job asks for as fit, beside its minimum. Ranks follow the
        cluster's order of nodes."""
        end = Millis(self.snapshot.now + 1000 * job.spec.time_limit_seconds)
        spec, held = shape.specs[job_placement.spec_index], job_placement.placement
        wanted = GrowthRequest(job.id, shape, spec, held, False, job.spec.nodes, len(held), end)
        lawful = self._sizes().lawful(job, shape.partition)
        placement = (*held, *further_workers(wanted, self.index, self.backfiller, self._fit, lawful).placement)
        position = self.index.layout.position
        # neighbouring ranks stay on neighbouring nodes
        in_order = sorted(placement, key=lambda part: position[part.node])
        ranked = tuple([replace(part, rank=rank) for rank, part in enumerate(in_order, job.spec.first_worker)])
        return replace(shape, nodes=len(ranked)), JobPlacement(job_placement.spec_index, ranked)

    def _limit(self, equivalence_class: EquivalenceClass, free: CounterAmounts = NO_AMOUNTS) -> Limit | None:
        """The limit that the job would break on any node that it could get; None: there is none."""
        return limit_now(
            self._gates, equivalence_class, self._gates.open_shape(equivalence_class, free), self.index.layout, free
        )

    def _as_temporary(self, equivalence_class: EquivalenceClass, limit: Limit) -> Limit:
        """The limit without its mark "never" where the job breaks it only on the nodes that are free just now: on other
        nodes it may be billed less."""
        if not isinstance(limit, LimitReached | QuotaFull) or not limit.never:
            return limit
        each = self._gates.alternatives(equivalence_class)
        for_good = all(
            limit_of_all(self._gates, equivalence_class, shape, amounts, self.index.layout) for shape, amounts in each
        )
        return limit if for_good else replace(limit, asked=limit.allowed)

    def _sizes(self) -> Sizes:
        return Sizes(self.index.equivalence.rules, self._gates, self.snapshot.nodes)

    def _start(self, entry: QueueEntry, shape: Shape, job_placement: JobPlacement) -> None:
        """Start the job there.

        1. An elastic job takes more workers.
        2. Whole nodes, cards or spread tasks may hold more than the job asked for: the limits are tested again.
        3. The start goes into the plan, into the index, to the limits' counters and to the backfiller.
        """
        # 1.
        job, spec, equivalence_class = entry.job, entry.job.spec, entry.equivalence_class
        totalled = shape.partition in self.index.layout.totalled
        if spec.elastic is not None and not totalled:
            shape, job_placement = self._with_extra_workers(job, shape, job_placement)
        # 2.
        amounts = self._gates.amounts(job_placement, shape)
        if (
            equivalence_class.scope is not NO_SCOPE
            and (exceeded := self._gates.exceeded(equivalence_class, amounts)) is not None
        ):
            self._exceeded[equivalence_class] = self._as_temporary(equivalence_class, exceeded)
            self._close([entry.class_number])
            return
        # 3.
        spec_index = alternative(spec, shape, job_placement.spec_index) if len(spec.specs) > 1 else 0
        has_launcher = spec.elastic is not None and spec.has_launcher
        launcher = launcher_node(shape, job_placement.placement, self.snapshot.nodes) if has_launcher else ""
        billing = amounts[BILLING] / ONE
        self._started.add(job.id)
        self.starts.append(Start(job.id, spec_index, job_placement.placement, shape.partition, billing, launcher))
        if self.index is self.initial_index:
            self._take_over(self.initial_index.writable())
        else:
            self.backfiller.settle()
        self.index.place(job.id, job_placement.placement, Millis(self.snapshot.now + 1000 * spec.time_limit_seconds))
        if self._gates.may_count(job):
            self._count(job, shape.partition, amounts)
        if not totalled:
            self.backfiller.started(self.index, job, job_placement.placement)
