"""One pass over the queue, which starts jobs and notes for each shape that fails why it failed.

`cycle.py` holds the numbered steps of the whole cycle. A pass does the middle of it:

1. `plan_timeslices`: suspended jobs resume where they can; the CPUs of the others are kept free for them.
2. `place_nominated`: jobs for which others were evicted in an earlier pass start, or their resources stay reserved.
3. `serve_guaranteed`: jobs within the guaranteed part (min) of their quota start, or borrowed resources are reclaimed.
4. `schedule_queue`: every other job, best first: gates (`passes_gates`), then placement, eviction or reservation
   (`place_or_refuse`).
5. `grow`: running elastic jobs take what is left.

`pass_state.py` holds what these steps read and change.
"""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.model.cluster import Cluster
from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import BeginsLater, BehindHead, NodesReserved
from cockpit.sched.equivalence import OPEN, QueueEntry
from cockpit.sched.eviction.reclaim import QuotaClaim
from cockpit.sched.feasible import infeasible
from cockpit.sched.fleet.totals import reserved_placement
from cockpit.sched.gates import CounterAmounts
from cockpit.sched.growth import grow_jobs, growing_jobs
from cockpit.sched.limited_shapes import limit_now, limit_of_all, within_limits
from cockpit.sched.nodes.reservation_windows import NO_WINDOWS
from cockpit.sched.pass_queue import PassQueue
from cockpit.sched.pass_state import PassState
from cockpit.sched.placement import JobPlacement, find_placement
from cockpit.sched.shape import Shape
from cockpit.sched.timeslicing import plan_timeslices

MOST_RECLAIMS = 32
"""The most jobs for which borrowed resources are reclaimed in one pass, since each search takes a while. The next pass,
one second later, serves the others."""


class SchedulingPass(PassState):
    """A pass over the queue: the steps of the cycle that decide on jobs."""

    __slots__ = ()

    def plan_timeslices(self, cluster: Cluster) -> None:
        """Resume suspended jobs where they can run; keep the CPUs of the others free for them."""
        taken = plan_timeslices(self.snapshot, cluster, self.index)
        self.switches, self._slice_ends = taken.switches, taken.next_at
        if taken.after is not self.index:
            self._continue_with(taken.after)

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
        # class numbers, which cost less to compare than classes
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

    def grow(self) -> None:
        """Give running elastic jobs what is left (step 6 of the cycle), unless the depth kept some waiting job from
        being considered at all."""
        if not self.snapshot.elastic or (self.backfiller.head is not None and not self._depth_left):
            return
        # a job must not get back in the same pass what is being taken from it
        if growers := [each for each in growing_jobs(self.snapshot) if not self._loses_resources(each[0].id)]:
            self._continue_with(self.index.fork())
            done = grow_jobs(
                self.snapshot, growers, self.index, self.backfiller, self._fit, self._sizes(), self._off_reserved
            )
            self.growths, self.no_growth, self.growth_limits = done
            # `grow_jobs` counts through the gates, which have copied the counters for that
            self.index.counters = self._gates.counters

    def _loses_resources(self, job: JobId) -> bool:
        """Return whether this pass evicts, shrinks or suspends the job."""
        is_evicted = self.eviction_planner is not None and self.eviction_planner.loses_resources(job)
        return is_evicted or any(job in switch.others for switch in self.switches)

    def passes_gates(self, entry: QueueEntry) -> bool:
        """Return whether no rule stops the job. If a rule stops its whole class, the class is closed for the rest of
        the pass."""
        if self._started and entry.job.id in self._started:  # it started in another partition
            return False
        # the class before the job: its verdict closes the class for all jobs behind, the job's own only for itself
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
        # no event comes when a begin time is reached, so the pass itself asks to be repeated then
        if isinstance(own, BeginsLater):
            self._next_begin_at = min(own.begin_at, self._next_begin_at or own.begin_at)
        return own is None

    def place_or_refuse(self, entry: QueueEntry) -> None:
        """Start the job, evict others for it, or note why its shape failed.

        1. Shapes that no nodes could hold fail at once. Where only an advance reservation keeps the job from nodes that
           it needs, the backfiller may plan its start behind that, so that no later job delays it.
        2. Behind the first waiting job, at most `Backfill.depth` jobs are considered.
        3. A job that may preempt, and does not fit, evicts others.
        4. Else the backfiller places the job, if that delays no job ahead of it.
        """
        shape = entry.equivalence_class.shape if entry.free and self._windows is NO_WINDOWS else self._shape(entry)
        layout = self.index.layout
        # 1. shapes that no nodes could hold
        backfiller = self.backfiller
        if (
            shape not in layout.possible
            and (never := infeasible(shape, layout))
            and not (isinstance(never, NodesReserved) and backfiller.plans_beyond_reservations)
        ):
            self._fail(entry, shape, never, 0)
            return
        # 2. the depth of backfill
        head = backfiller.head
        if head is not None and head != entry.job.id:
            if not self._depth_left:
                # a verdict on the same shape from before the depth ran out says more than "behind the first job"
                self._fail(entry, shape, self._failed.get(shape, BehindHead(head)), 0)
                return
            # counted before it is tried: a job that starts behind the head has been considered too
            self._depth_left -= 1
        # 3. preemption
        if entry.equivalence_class.preemption_key and self._evict_for(entry, shape):
            return
        # 4. a place, or a reservation
        job_placement = self.place(entry.job, shape)
        # the test for None comes first because `isinstance(None, JobPlacement)` is slow, and most jobs get None
        if job_placement is not None and isinstance(job_placement, JobPlacement):
            self._start(entry, shape, job_placement)
            if head is not None and head != entry.job.id and entry.job.id in self._started:
                self._depth_of_starts += 1
        else:
            self._fail(entry, shape, job_placement, backfiller.fails_from(job_placement))

    def _evict_for(self, entry: QueueEntry, shape: Shape) -> bool:
        """Evict others for a job that does not fit (step 5 of the cycle). True: the job starts at once or is nominated,
        and keeps the resources that come free."""
        # a job that fits may still have to wait for the jobs ahead of it, and no victim changes that
        eviction_planner = self.eviction_planner
        if eviction_planner is None or find_placement(self.index, shape, self._fit) is not None:
            return False
        proposal = eviction_planner.propose(entry, shape, self.index, self.backfiller.place_after_evictions)
        if (
            proposal is None
            or self._gates.exceeded(entry.equivalence_class, self._amounts(proposal.job_placement, shape)) is not None
        ):
            return False
        # from here on the victims are lost, so every test that might stop the job comes before
        eviction_planner.commit(proposal)
        if proposal.at_once:
            self._continue_with(proposal.after)
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
        # 2. a start now
        for shape, amounts, _ in guaranteed:
            if gates.exceeded(equivalence_class, amounts) is None and self._start_guaranteed(entry, shape):
                return True
        # 3. a reclaim
        return any(self._reclaim_for(entry, shape, claim) for shape, _, claim in guaranteed)

    def _start_guaranteed(self, entry: QueueEntry, shape: Shape) -> bool:
        """Start the job if it fits now, on nodes where it breaks no limit and stays within the guarantee."""
        shape = within_limits(self._gates, entry.equivalence_class, shape, self.index)
        if find_placement(self.index, shape, self._fit) is None:
            return False
        job_placement = self.place(entry.job, shape)
        if not isinstance(job_placement, JobPlacement) or not self._is_guaranteed(entry, shape, job_placement):
            return False
        # `_start` tests the limits once more, on the amounts that the job really gets, and may not start it
        self._start(entry, shape, job_placement)
        return entry.job.id in self._started

    def _is_guaranteed(self, entry: QueueEntry, shape: Shape, job_placement: JobPlacement) -> bool:
        """Return whether the guarantee covers all that the job would hold: whole nodes, or slices of cards, may be more
        than it asks for."""
        assert self.reclaim is not None
        amounts = self._amounts(job_placement, shape)
        return self.reclaim.claim(entry.equivalence_class.scope.queue, amounts, self._gates.counters) is not None

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
        if proposal is None or not self._is_guaranteed(entry, shape, proposal.job_placement):
            return False
        self._reclaims += 1
        self.eviction_planner.commit(proposal)
        # without victims of its own the job waits for jobs that are ending anyway
        leaving = [each.job for each in proposal.evictions] or self.eviction_planner.ending_jobs()
        self._nominate(entry, shape, proposal.job_placement, leaving)
        return True

    def _place_nominated(self, entry: QueueEntry, shape: Shape) -> None:
        """Start a nominated job if its resources are free; else keep those that will be once the victims are gone."""
        # while its victims end, a limit that they still fill stops it for now and not for good
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
        eviction_planner.nominate(entry.job.id, others)
        job = eviction_planner.with_wait_added(entry.job)
        self._started.add(job.id)
        self._continue_with(self.index.fork())
        placed, ends = self.index.placed, self.index.ends
        # 2. a job that only shrinks keeps its own end
        others = [other for other in others if not eviction_planner.keeps_running(other)]
        gone_at = {
            other: min(end, ends.get(other, end))
            for other in others
            if (end := eviction_planner.gone_at(other)) is not None
        }
        # 3. the job itself
        gone_at[job.id] = Millis(self.snapshot.now + 1000 * job.spec.time_limit_seconds)
        leaving = [(other, placed[other]) for other in others if other in placed]
        self.index.apply([*leaving, (job.id, job_placement.placement)], gone_at)
        # 4. limits and backfill
        self._count(job, shape.partition, self._amounts(job_placement, shape))
        self.backfiller.started(self.index, job, job_placement.placement)
        self.backfiller.evicted(self.index)
