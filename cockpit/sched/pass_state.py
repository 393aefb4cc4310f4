"""The state of one scheduling pass: the index with all that the pass starts, what it noted of each shape that failed,
and the bounds that keep a pass over 100 000 queued jobs short.

A *shape* that failed once need not be tried again for jobs that ask for the same or more time (`shape_bounds`), and a
rule that stops one job stops its whole equivalence class (`class_bounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Self

from msgspec.structs import replace

from cockpit.model.cluster import BackfillKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import Limit, LimitReached, QuotaFull, Reason
from cockpit.model.resilience import NoGrowth
from cockpit.sched.backfill.conservative import Conservative
from cockpit.sched.backfill.easy import Easy, StrictOrder
from cockpit.sched.decisions import Growth, SliceSwitch, Start
from cockpit.sched.equivalence import NO_SHAPE, OPEN, EquivalenceClass, QueueEntry, partitions_of
from cockpit.sched.eviction.eviction_planner import EvictionPlanner
from cockpit.sched.eviction.reclaim import Reclaim
from cockpit.sched.faults import Faults
from cockpit.sched.fleet.totals import by_totals
from cockpit.sched.gates import NO_AMOUNTS, CounterAmounts, Gates
from cockpit.sched.growth import GrowthRequest, GrowthTests, further_workers
from cockpit.sched.index import Index
from cockpit.sched.limited_shapes import limit_now, limit_of_all, within_limits
from cockpit.sched.nodes.eligibility import launcher_node
from cockpit.sched.nodes.reservation_windows import NO_WINDOWS, ReservationWindows
from cockpit.sched.pass_queue import PassQueue
from cockpit.sched.placement import Fit, JobPlacement
from cockpit.sched.policy import Policy
from cockpit.sched.refusals import PassNotes, Refusals
from cockpit.sched.rules.limits import NO_SCOPE
from cockpit.sched.rules.tres import BILLING, ONE, Amounts
from cockpit.sched.shape import Shape, alternative
from cockpit.sched.snapshot import Snapshot

BACKFILLERS: dict[BackfillKind, type[StrictOrder | Conservative]] = {
    BackfillKind.OFF: StrictOrder,
    BackfillKind.EASY: Easy,
    BackfillKind.CONSERVATIVE: Conservative,
}
"""The class that decides which jobs may start before those that wait, for each kind of backfill."""


_NO_GROWTH: Mapping[JobId, NoGrowth] = MappingProxyType({})


class PassState:
    """The state of one pass, and what each decision does to it. It changes a copy of the index, made for the first job
    that starts, and never `initial_index`."""

    __slots__ = (
        "_considers_all",
        "_depth_left",
        "_depth_of_starts",
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
        "growth_limits",
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
        # jobs that the rules alone refuse share this number, so one bound keeps all of them out
        self.shape_bounds[NO_SHAPE] = 0
        self.backfiller = BACKFILLERS[backfill.kind](snapshot.now, backfill, fit)
        self._failed: dict[Shape, Reason | None] = {}
        """The reason for which each shape failed; None: too few free resources."""
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
            # limits that were reached in an earlier pass and still are: their classes are not judged again
            self._close(self._gates.stopped())

    def _begin(
        self,
        snapshot: Snapshot,
        index: Index,
        policy: Policy,
        fit: Fit | None,
        eviction_planner: EvictionPlanner | None,
    ) -> None:
        """Set what belongs to one pass alone: decisions, index, and gates of this snapshot."""
        self.policy, self._fit, self.eviction_planner = policy, fit, eviction_planner
        self.reclaim: Reclaim | None = None
        """None where no queue has guaranteed resources."""
        if eviction_planner is not None and index.equivalence.rules.quotas.guarantees:
            self.reclaim = Reclaim(index.equivalence.rules, snapshot, eviction_planner)
        self._reclaims, self._reclaims_deferred = 0, False
        self.switches: tuple[SliceSwitch, ...] = ()
        self._slice_ends: Millis | None = None
        self.starts: list[Start] = []
        self._depth_of_starts = 0
        """The number of jobs that this pass starts and counted as considered behind the first waiting job."""
        self.growths: Sequence[Growth] = ()
        self.no_growth: Mapping[JobId, NoGrowth] = _NO_GROWTH
        """The reasons for which running elastic jobs take no more workers, for those that were considered."""
        self.growth_limits: Mapping[JobId, Reason] = {}
        """The limits that keep running elastic jobs from more workers."""
        self._started: set[JobId] = set()
        """Jobs that this pass starts or nominates; they are not considered again in another partition."""
        self.snapshot = snapshot
        self.initial_index = self.index = index
        """The index before the pass, and the index with everything that the pass starts."""
        self._windows = ReservationWindows(snapshot.reservations, snapshot.now) if snapshot.reservations else NO_WINDOWS
        self._gates = Gates(snapshot, index.equivalence, index.counters, self._windows)

    def resumed(self, snapshot: Snapshot, index: Index) -> Self:
        """Return a pass that continues this one at a later snapshot, for jobs that were submitted meanwhile. `index`:
        what this pass left. All decisions stay. This pass itself is not changed if its index may still be read
        (`Index.shared`)."""
        # a replay reads no plan of the past, so it continues with the same object
        fresh = self._copied() if index.shared else self
        fresh._depth_left += self._depth_of_starts  # noqa: SLF001 - same class; the depth counts only jobs that wait
        # what a pass does is its own; verdicts and bounds are taken over, since they hold (`incremental`)
        fresh._begin(snapshot, index, self.policy, self._fit, None)  # noqa: SLF001 - same class
        fresh.faults = self.faults.copy()
        fresh.backfiller = self.backfiller.resumed(snapshot.now)
        # shapes and classes that came with the new jobs have no verdict yet
        fresh.shape_bounds.extend([OPEN] * (len(index.equivalence.shapes) - len(fresh.shape_bounds)))
        fresh.class_bounds.extend([OPEN] * (len(index.equivalence.classes) - len(fresh.class_bounds)))
        return fresh

    def _copied(self) -> Self:
        """Return a pass with copies of the verdicts and bounds of this one."""
        fresh = type(self).__new__(type(self))
        fresh._depth_left, fresh._next_begin_at = self._depth_left, self._next_begin_at  # noqa: SLF001 - same class
        fresh._considers_all = self._considers_all  # noqa: SLF001 - same class
        fresh._failed, fresh._narrowed = self._failed.copy(), self._narrowed.copy()  # noqa: SLF001 - same class
        fresh._exceeded = self._exceeded.copy()  # noqa: SLF001 - same class
        fresh.shape_bounds, fresh.class_bounds = [*self.shape_bounds], [*self.class_bounds]
        return fresh

    def _contain(self, entry: QueueEntry, error: Exception) -> None:
        """Note a defect that came up for one job, and let that job wait. Raises the error again if part of the job's
        start is in the plan already: such a plan must not be carried out."""
        if entry.job.id in self._started:
            raise error
        self.faults.setdefault(entry.job.id, error)

    def place(self, job: Job, shape: Shape) -> JobPlacement | Reason | None:
        """Return a placement that delays no job ahead of this one; else why there is none. None: too few free
        resources."""
        if shape.partition in self.index.layout.totalled:
            return by_totals(self.index, self.snapshot, job, shape)
        return self.backfiller.place(self.index, job, shape)

    def refusals(self) -> Refusals:
        """Return why the other jobs do not start, judged by the index after the last start."""
        noted = PassNotes(self._failed, self._narrowed, self._exceeded)
        return Refusals(self._gates, self._windows, noted, self.backfiller, self.index, self.eviction_planner)

    def limit_stops_reserved_job(self) -> bool:
        """Return whether a job that this pass keeps resources for is now stopped by a limit, or the bound of its array,
        which a job behind it reached by starting."""
        # for every plan with a start: without limits and arrays it must cost nothing
        if not (self._gates.binding or self.index.counters.used):
            return False
        jobs = (
            self.snapshot.jobs[each] for each in self.backfiller.jobs_with_reservation() if each not in self._started
        )
        counted = [job for job in jobs if self._gates.may_count(job)]
        classes = {self._gates.equivalence_class(job, name) for job in counted for name in partitions_of(job)}
        # classes that the rules refuse were refused before any job started
        reasons = (self._gates.class_refusal(each) for each in classes if each.refused is None)
        return any(reason is not None for reason in reasons)

    def others_may_start(self) -> bool:
        """Return whether the starts of this pass let jobs start that it passed over: those beyond the depth, which
        counts no job that has started; those that would have delayed the head on nodes that are taken now; those behind
        a head that started in another partition; those that may preempt what has started; and those that would delay a
        job which a limit stops by now."""
        return bool(self.starts) and (
            self._depth_left == 0
            or self.backfiller.refusals_may_change
            or self.backfiller.involves(self._started)
            or (self.eviction_planner is not None and bool(self.eviction_planner.insufficient))
            or self.limit_stops_reserved_job()
        )

    def next_at(self) -> Millis | None:
        """Return the first moment at which a job may start although nothing else happens: a begin time, the start or
        end of a reservation, the moment from which on a reservation keeps the first waiting job off, an exempt time,
        the next second after `MOST_RECLAIMS`, the end of a time slice, or at once if another pass would consider jobs
        that this one did not. None: there is no such moment."""
        # the next moment that there is, since moments are whole milliseconds
        if self.others_may_start():
            return Millis(self.snapshot.now + 1)
        if self.eviction_planner is None and self._next_begin_at is None and self._windows is NO_WINDOWS:
            return None
        moments = (
            self._next_begin_at,
            self._windows.next_at() if self._windows.lasting else None,
            self._head_is_barred_at(),
            self.eviction_planner.next_at() if self.eviction_planner is not None else None,
            # a second, in which other jobs get their turn: many searches for victims take long
            Millis(self.snapshot.now + 1000) if self._reclaims_deferred else None,
            self._slice_ends,
        )
        return min([each for each in moments if each is not None], default=None)

    def _head_is_barred_at(self) -> Millis | None:
        """Return when an advance reservation begins to keep the first waiting job off, so that jobs behind it may start
        (`plans_beyond_reservations`). None: never, or it is planned behind the reservation and still goes first."""
        head = self.backfiller.head
        if head is None or not self._windows.lasting or self.backfiller.plans_beyond_reservations:
            return None
        return self._windows.bars_at(self.snapshot.jobs[head])

    def _continue_with(self, index: Index) -> None:
        """Use another index from now on. Deferred reservations are computed first: they refer to the old one."""
        self.backfiller.compute_deferred()
        # a new index brings its own counters, which may lack what this pass has started
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
        """Return the shape by which the job may be placed now: without alternatives that a limit stops, and off
        reserved nodes. `free`: amounts about to come free, which do not count."""
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
        # never loosened: an earlier verdict of the pass, for shorter jobs, still holds
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
        refusal = self._sizes().refusal(job, shape.partition)
        placement = (*held, *further_workers(wanted, self.index, self.backfiller, self._fit, refusal).placement)
        position = self.index.layout.position
        # neighbouring ranks stay on neighbouring nodes
        in_order = sorted(placement, key=lambda part: position[part.node])
        ranked = tuple([replace(part, rank=rank) for rank, part in enumerate(in_order, job.spec.first_worker)])
        return replace(shape, nodes=len(ranked)), JobPlacement(job_placement.spec_index, ranked)

    def _limit(self, equivalence_class: EquivalenceClass, free: CounterAmounts = NO_AMOUNTS) -> Limit | None:
        """Return the limit that the job would break on any node that it could get; None: there is none."""
        return limit_now(
            self._gates, equivalence_class, self._gates.open_shape(equivalence_class, free), self.index.layout, free
        )

    def _as_temporary(self, equivalence_class: EquivalenceClass, limit: Limit) -> Limit:
        """Return the limit without its mark "never" where the job breaks it only on the nodes that are free just now:
        on other nodes it may be billed less."""
        if not isinstance(limit, LimitReached | QuotaFull) or not limit.never:
            return limit
        each = self._gates.alternatives(equivalence_class)
        for_good = all(
            limit_of_all(self._gates, equivalence_class, shape, amounts, self.index.layout) for shape, amounts in each
        )
        return limit if for_good else replace(limit, asked=limit.allowed)

    def _sizes(self) -> GrowthTests:
        return GrowthTests(self.index.equivalence.rules, self._gates, self.snapshot.nodes)

    def _start(self, entry: QueueEntry, shape: Shape, job_placement: JobPlacement) -> None:
        """Start the job there.

        1. An elastic job takes more workers.
        2. Whole nodes, cards or spread tasks may hold more than the job asked for: the limits are tested again.
        3. The start goes into the plan, into the index, to the limits' counters and to the backfiller.
        """
        # 1. further workers
        job, spec, equivalence_class = entry.job, entry.job.spec, entry.equivalence_class
        totalled = shape.partition in self.index.layout.totalled
        if spec.elastic is not None and not totalled:
            shape, job_placement = self._with_extra_workers(job, shape, job_placement)
        # 2. limits on what it really holds
        amounts = self._gates.amounts(job_placement, shape)
        if (
            equivalence_class.scope is not NO_SCOPE
            and (exceeded := self._gates.exceeded(equivalence_class, amounts)) is not None
        ):
            self._exceeded[equivalence_class] = self._as_temporary(equivalence_class, exceeded)
            self._close([entry.class_number])
            return
        # 3. the start
        spec_index = alternative(spec, shape, job_placement.spec_index) if len(spec.specs) > 1 else 0
        has_launcher = spec.elastic is not None and spec.has_launcher
        launcher = launcher_node(shape, job_placement.placement, self.snapshot.nodes) if has_launcher else ""
        billing = amounts[BILLING] / ONE
        self._started.add(job.id)
        self.starts.append(Start(job.id, spec_index, job_placement.placement, shape.partition, billing, launcher))
        # copied only for the first start: a pass that starts nothing copies nothing
        if self.index is self.initial_index:
            self._continue_with(self.initial_index.writable())
        else:
            self.backfiller.compute_deferred()
        # before the backfiller, which takes the job to be in the index
        self.index.place(job.id, job_placement.placement, Millis(self.snapshot.now + 1000 * spec.time_limit_seconds))
        if self._gates.may_count(job):
            self._count(job, shape.partition, amounts)
        if not totalled:
            self.backfiller.started(self.index, job, job_placement.placement)
