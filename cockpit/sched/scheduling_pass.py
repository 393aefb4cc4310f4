"""One pass over the queue: what starts, and a verdict on every shape that does not."""

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
from cockpit.sched.fleet.reserved import reserved_room
from cockpit.sched.fleet.totals import by_totals
from cockpit.sched.gates import NO_USE, Gates, Use
from cockpit.sched.growth import Wanted, further_workers, growing, grown
from cockpit.sched.index import Index
from cockpit.sched.launchers import launcher_node
from cockpit.sched.lawful import limit_now, limit_of_all, within_limits
from cockpit.sched.nodes.reservation_windows import NO_WINDOWS, ReservationWindows
from cockpit.sched.pass_queue import PassQueue
from cockpit.sched.placement import Fit, Found, find
from cockpit.sched.policy import Policy
from cockpit.sched.refusals import Noted, Refusals
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
"""Who keeps whose place in line."""


_NOBODY: Mapping[JobId, NoGrowth] = MappingProxyType({})
MOST_RECLAIMS = 32
"""So many jobs get room back in one pass, since a search takes a while; for the others there is one a second later."""


class SchedulingPass:
    """One pass over the queue. Its starts appear in an index of its own, made for the first of them."""

    __slots__ = (
        "_begins",
        "_exceeded",
        "_failed",
        "_fit",
        "_gates",
        "_left",
        "_narrowed",
        "_put_off",
        "_reclaims",
        "_slice_ends",
        "_started",
        "_unhurried",
        "_windows",
        "backfiller",
        "classes",
        "eviction_planner",
        "faults",
        "given",
        "growths",
        "index",
        "no_growth",
        "policy",
        "reclaim",
        "shapes",
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
        """`eviction_planner`: None where no rule lets anybody take another's room."""
        equivalence, backfill = index.equivalence, policy.backfill
        self._begin(snapshot, index, policy, fit, eviction_planner)
        self.faults: Faults = {}
        """Jobs that a defect kept from being judged: they wait, and all others are judged."""
        self.shapes, self.classes = queue.unbounded(len(equivalence.shapes), len(equivalence.classes))
        self.shapes[NO_SHAPE] = 0
        self.backfiller = BACKFILLERS[backfill.kind](snapshot.now, backfill, fit)
        self._failed: dict[Shape, Reason | None] = {}
        """None: no room."""
        self._narrowed: dict[EquivalenceClass, Shape] = {}
        """Of requests that a limit leaves only some of their alternatives."""
        self._exceeded: dict[EquivalenceClass, Limit] = {}
        self._left = backfill.depth - 1 if backfill.depth else OPEN
        """How many may still be looked at behind the first that waits."""
        self._begins: Millis | None = None
        self._unhurried = bool(self._windows.lasting or backfill.depth or index.layout.totalled)
        """Shapes depend on the job, or who is looked at is counted."""
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
        """None where nothing is kept for any queue."""
        if eviction_planner is not None and index.equivalence.rules.quotas.guarantees:
            self.reclaim = Reclaim(index.equivalence.rules, snapshot, eviction_planner)
        self._reclaims, self._put_off = 0, False
        self.switches: tuple[SliceSwitch, ...] = ()
        self._slice_ends: Millis | None = None
        self.starts: list[Start] = []
        self.growths: Sequence[Growth] = ()
        self.no_growth: Mapping[JobId, NoGrowth] = _NOBODY
        """Why elastic jobs that run take no further worker, as far as they were looked at."""
        self._started: set[JobId] = set()
        self.snapshot = snapshot
        self.given = self.index = index
        """As the pass found things, and as it leaves them if what it starts has started."""
        self._windows = ReservationWindows(snapshot.reservations, snapshot.now) if snapshot.reservations else NO_WINDOWS
        self._gates = Gates(snapshot, index.equivalence, index.counters, self._windows)

    def resumed(self, snapshot: Snapshot, index: Index) -> SchedulingPass:
        """The same pass, later, to be gone on with: `index` is as this one left things. What was decided stays decided;
        this one is left as it is, unless nobody looks at it any more."""
        fresh = self._copied() if index.shared else self
        fresh._begin(snapshot, index, self.policy, self._fit, None)  # noqa: SLF001 - of its own kind
        fresh.faults = self.faults.copy()
        fresh.backfiller = self.backfiller.resumed(snapshot.now)
        fresh.shapes.extend([OPEN] * (len(index.equivalence.shapes) - len(fresh.shapes)))
        fresh.classes.extend([OPEN] * (len(index.equivalence.classes) - len(fresh.classes)))
        return fresh

    def _copied(self) -> SchedulingPass:
        """What it found out, to be added to."""
        fresh = SchedulingPass.__new__(SchedulingPass)
        fresh._left, fresh._begins, fresh._unhurried = self._left, self._begins, self._unhurried  # noqa: SLF001 - of its own kind
        fresh._failed, fresh._narrowed = self._failed.copy(), self._narrowed.copy()  # noqa: SLF001 - of its own kind
        fresh._exceeded = self._exceeded.copy()  # noqa: SLF001 - of its own kind
        fresh.shapes, fresh.classes = [*self.shapes], [*self.classes]
        return fresh

    def plan_timeslices(self, cluster: Cluster) -> None:
        """Those who stand still go on where they can; where not yet, their CPUs are kept for them."""
        taken = plan_timeslices(self.snapshot, cluster, self.index)
        self.switches, self._slice_ends = taken.switches, taken.next_at
        if taken.after is not self.index:
            self._take_over(taken.after)

    def place_nominated(self, entries: Iterable[QueueEntry]) -> None:
        """Those for whom others were made to go come before everybody: they start, or what they wait for is kept."""
        assert self.eviction_planner is not None
        free = self.eviction_planner.coming_free(self._gates.counters)
        for entry in entries:
            try:
                self._try_nominated(entry, free)
            except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                self._contain(entry, error)

    def _try_nominated(self, entry: QueueEntry, free: Use) -> None:
        if entry.job.id in self._started or self._gates.own(entry.job) is not None:
            return
        if (
            self._gates.shared(entry.equivalence_class, free) is None
            and self._limit(entry.equivalence_class, free) is None
        ):
            shape = self._shape(entry, free)
            if not infeasible(shape, self.index.layout):
                self._place_nominated(entry, shape)

    def serve_guaranteed(self, queue: PassQueue) -> None:
        """Best first: they start, or what others have borrowed is taken back for them. Who cannot be served is left to
        the others' order."""
        vain: set[int] = set()
        for entry in queue.open(self.shapes, self.classes):
            if not (entry.seconds < self.shapes[entry.shape] and entry.seconds < self.classes[entry.number]):
                continue
            if entry.number in vain or not entry.equivalence_class.scope.queue or entry.job.id in self._started:
                continue
            try:
                if self._gates.own(entry.job) is None and not self._served(entry):
                    vain.add(entry.number)
            except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                self._contain(entry, error)

    def schedule_queue(self, queue: PassQueue) -> None:
        """Best first."""
        shapes, classes, most_cpus, most_cards = self.shapes, self.classes, OPEN, OPEN
        for entry in queue.open(shapes, classes):
            # 3. gates: what a rule stops needs no room, holds nobody up, and is asked once for all that are alike
            if entry.cpus > most_cpus or entry.cards > most_cards:  # a cheap no, for which no rule need be asked
                if shapes[entry.shape]:
                    self._failed[entry.equivalence_class.shape] = None
                    shapes[entry.shape] = 0
            elif entry.seconds < shapes[entry.shape] and entry.seconds < classes[entry.number]:
                try:
                    if (entry.free and not self._started) or self.passes(entry):
                        # 4. place, or make room, or reserve: who waits, and who may pass them, is the line's to say
                        self.consider(entry)
                        if self.backfiller.has_reservation and not self._unhurried:
                            most_cpus, most_cards = self.index.widest, self.index.most_cards
                except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                    self._contain(entry, error)

    def _contain(self, entry: QueueEntry, error: Exception) -> None:
        """Let the job wait. Raises the error again where part of the job's start is in the plan already: such a plan
        may not be carried out."""
        if entry.job.id in self._started:
            raise error
        self.faults.setdefault(entry.job.id, error)

    def grow(self) -> None:
        """6. Elastic jobs that run take what is left, unless somebody who waits has not even been looked at."""
        if not self.snapshot.elastic or (self.backfiller.head is not None and not self._left):
            return
        if who := [each for each in growing(self.snapshot) if not self._is_taken_from(each[0].id)]:
            self._take_over(self.index.fork())
            done = grown(self.snapshot, who, self.index, self.backfiller, self._fit, self._sizes(), self._off_reserved)
            self.growths, self.no_growth = done
            self.index.counters = self._gates.counters

    def _is_taken_from(self, job: JobId) -> bool:
        """By what this pass decided."""
        gives_way = self.eviction_planner is not None and self.eviction_planner.gives_way(job)
        return gives_way or any(job in switch.others for switch in self.switches)

    def passes(self, entry: QueueEntry) -> bool:
        """Whether no rule stops the job; closes its request where one stops all of it."""
        if self._started and entry.job.id in self._started:  # in another partition
            return False
        if entry.free:
            return True
        if self._gates.shared(entry.equivalence_class) is not None:
            self._stop(entry)
            return False
        limit = self._limit(entry.equivalence_class)
        if limit is not None:
            self._exceeded[entry.equivalence_class] = limit
            self._close([entry.number])
            return False
        own = self._gates.own(entry.job)
        if isinstance(own, BeginsLater):
            self._begins = min(own.begin_at, self._begins or own.begin_at)
        return own is None

    def consider(self, entry: QueueEntry) -> None:
        """Start the job, or note why its shape failed."""
        shape = entry.equivalence_class.shape if entry.free and self._windows is NO_WINDOWS else self._shape(entry)
        layout = self.index.layout
        if shape not in layout.possible and (never := infeasible(shape, layout)):
            self._fail(entry, shape, never, 0)
            return
        backfiller = self.backfiller
        if backfiller.head is not None and backfiller.head != entry.job.id:  # as far as the depth goes
            if not self._left:
                self._fail(
                    entry, shape, self._failed.get(shape, BehindHead(backfiller.head)), 0
                )  # what was seen of it, counts
                return
            self._left -= 1
        if entry.equivalence_class.preemption_key and self._made_room(entry, shape):
            return
        found = self.place(entry.job, shape)
        if found is not None and isinstance(found, Found):  # to ask of None whether it is a Struct takes a while
            self._start(entry, shape, found)
        else:
            self._fail(entry, shape, found, backfiller.fails_from(found))

    def place(self, job: Job, shape: Shape) -> Found | Reason | None:
        """A place that delays nobody who is served before it; else why not, None: no room."""
        if shape.partition in self.index.layout.totalled:
            return by_totals(self.index, self.snapshot, job, shape)
        return self.backfiller.place(self.index, job, shape)

    def refusals(self) -> Refusals:
        """Why the rest failed, as things stand after the last start."""
        noted = Noted(self._failed, self._narrowed, self._exceeded)
        return Refusals(self._gates, self._windows, noted, self.backfiller, self.index, self.eviction_planner)

    def next_at(self) -> Millis | None:
        """When time alone may let something start: those that a gate did not let see their moment wait for more."""
        if self.eviction_planner is None and self._begins is None and self._windows is NO_WINDOWS:
            return None
        cleared = self.eviction_planner.next_at() if self.eviction_planner is not None else None
        bars = self._windows.next_at() if self._windows.lasting else None
        soon = Millis(self.snapshot.now + 1000) if self._put_off else None
        return min([each for each in (self._begins, bars, cleared, soon, self._slice_ends) if each], default=None)

    def _made_room(self, entry: QueueEntry, shape: Shape) -> bool:
        """5. preempt or reclaim: whether others give way for a job that has no room; then it starts, or is promised."""
        eviction_planner = self.eviction_planner
        if eviction_planner is None or find(self.index, shape, self._fit) is not None:
            return False
        cleared = eviction_planner.room_for(entry, shape, self.index, self.backfiller.place_cleared)
        if (
            cleared is None
            or self._gates.exceeded(entry.equivalence_class, self._amounts(cleared.found, shape)) is not None
        ):
            return False
        eviction_planner.carried_out(cleared)
        if cleared.at_once:
            self._take_over(cleared.after)
            self._start(entry, shape, cleared.found)
        else:
            self._promise(entry, shape, cleared.found, [each.job for each in cleared.evictions])
        return True

    def _served(self, entry: QueueEntry) -> bool:
        """Whether a job that stays within what is kept for its queue starts, or is promised room."""
        assert self.reclaim is not None
        gates, equivalence_class = self._gates, entry.equivalence_class
        beside = gates.beside_quota(equivalence_class)
        if gates.shared(beside) is not None:
            return False
        kept = [
            (self._off_reserved(entry.job, shape), amounts, claim)
            for shape, amounts in gates.alternatives(equivalence_class)
            if (claim := self.reclaim.claim(equivalence_class.scope.queue, amounts, gates.counters)) is not None
            and gates.exceeded(beside, amounts) is None
            and limit_of_all(gates, equivalence_class, shape, amounts, self.index.layout) is None
            and limit_now(gates, beside, shape, self.index.layout) is None
        ]
        for shape, amounts, _ in kept:
            if gates.exceeded(equivalence_class, amounts) is None and find(self.index, shape, self._fit) is not None:
                found = self.place(entry.job, shape)
                if isinstance(found, Found):
                    self._start(entry, shape, found)
                    return entry.job.id in self._started
        return any(self._reclaimed(entry, shape, claim) for shape, _, claim in kept)

    def _reclaimed(self, entry: QueueEntry, shape: Shape, claim: QuotaClaim) -> bool:
        """Whether others give back what they borrowed; the job is promised the room."""
        assert self.reclaim is not None
        assert self.eviction_planner is not None
        if infeasible(shape, self.index.layout):
            return False
        if self._reclaims == MOST_RECLAIMS:
            self._put_off = True
            return False
        cleared = self.reclaim.room_for(
            entry.job, shape, claim, self.index, self._gates.counters, self.backfiller.place_cleared
        )
        if cleared is None:
            return False
        self._reclaims += 1
        self.eviction_planner.carried_out(cleared)
        going = [each.job for each in cleared.evictions] or self.eviction_planner.leaving()
        self._promise(entry, shape, cleared.found, going)
        return True

    def _place_nominated(self, entry: QueueEntry, shape: Shape) -> None:
        allowed = self._gates.shared(entry.equivalence_class) is None
        found = reserved_room(self.index, entry.job) or find(self.index, shape, self._fit)
        if allowed and found is not None:
            self._start(entry, shape, found)
        elif (
            self.eviction_planner is not None
            and (later := self.eviction_planner.promised_room(shape, self.index)) is not None
        ):
            self._promise(entry, shape, later, self.eviction_planner.gone_for(entry.job.id))

    def _promise(self, entry: QueueEntry, shape: Shape, found: Found, others: Iterable[JobId]) -> None:
        """Nobody else gets this room, though others are still in it until they have had their grace."""
        assert self.eviction_planner is not None
        eviction_planner, others = self.eviction_planner, list(others)
        eviction_planner.promise(entry.job.id, others)
        job = eviction_planner.delayed(entry.job)
        self._started.add(job.id)
        self._take_over(self.index.fork())
        placed, ends = self.index.placed, self.index.ends
        others = [
            other for other in others if not eviction_planner.stays(other)
        ]  # a job that only shrinks ends when it does
        gone_at = {
            other: min(end, ends.get(other, end))
            for other in others
            if (end := eviction_planner.gone_at(other)) is not None
        }
        gone_at[job.id] = Millis(self.snapshot.now + 1000 * job.spec.time_limit_seconds)
        going = [(other, placed[other]) for other in others if other in placed]
        self.index.apply([*going, (job.id, found.placement)], gone_at)
        self._count(job, shape.partition, self._amounts(found, shape))
        self.backfiller.started(self.index, job, found.placement)

    def _take_over(self, index: Index) -> None:
        self.backfiller.settle()
        index.counters = self._gates.counters
        self.index = index

    def _count(self, job: Job, partition: str, amounts: Amounts) -> None:
        """It counts to the limits from here."""
        stopped = self._gates.started(job, partition, amounts)
        if stopped:
            self._close(stopped)
        self.index.counters = self._gates.counters

    def _amounts(self, found: Found, shape: Shape) -> Amounts:
        return self._gates.amounts(found, shape)

    def _shape(self, entry: QueueEntry, free: Use = NO_USE) -> Shape:
        """As it may be placed now: within the limits, and off what is reserved. `free`: does not count."""
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
        """Jobs that ask for as long or longer, and at least for `seconds`, are not tried again."""
        self._failed[shape] = reason
        bounds, number = self.shapes, entry.shape
        if self._narrowed and entry.equivalence_class in self._narrowed:
            bounds, number = self.classes, entry.number
        if shape.barred:
            seconds = max(seconds, self._windows.least_seconds(shape.barred))
        is_tighter = seconds < bounds[number]
        if is_tighter:
            bounds[number] = seconds

    def _stop(self, entry: QueueEntry) -> None:
        self._close([entry.number])
        if (stop := self._gates.stop(entry.equivalence_class)) is not None:
            self.given.equivalence.limit_cache.add(entry.number, stop)

    def _close(self, numbers: Iterable[int]) -> None:
        classes = self.classes
        for number in numbers:
            classes[number] = 0

    def _widened(self, job: Job, shape: Shape, found: Found) -> tuple[Shape, Found]:
        """With as many of the workers that an elastic job asks for as there is room for."""
        end = Millis(self.snapshot.now + 1000 * job.spec.time_limit_seconds)
        spec, held = shape.specs[found.spec_index], found.placement
        wanted = Wanted(job.id, shape, spec, held, False, job.spec.nodes, len(held), end)
        lawful = self._sizes().lawful(job, shape.partition)
        placement = (*held, *further_workers(wanted, self.index, self.backfiller, self._fit, lawful).placement)
        position = self.index.layout.position
        in_order = sorted(placement, key=lambda part: position[part.node])  # neighbours stay neighbours
        ranked = tuple([replace(part, rank=rank) for rank, part in enumerate(in_order, job.spec.first_worker)])
        return replace(shape, nodes=len(ranked)), Found(found.spec_index, ranked)

    def _limit(self, equivalence_class: EquivalenceClass, free: Use = NO_USE) -> Limit | None:
        """The limit for which the job would hold too much, whichever nodes it were given."""
        return limit_now(
            self._gates, equivalence_class, self._gates.open_shape(equivalence_class, free), self.index.layout, free
        )

    def _passing(self, equivalence_class: EquivalenceClass, limit: Limit) -> Limit:
        """The limit as one that passes, where only the nodes that are free just now make it look as if it did not."""
        if not isinstance(limit, LimitReached | QuotaFull) or not limit.never:
            return limit
        each = self._gates.alternatives(equivalence_class)
        for_good = all(
            limit_of_all(self._gates, equivalence_class, shape, asked, self.index.layout) for shape, asked in each
        )
        return limit if for_good else replace(limit, asked=limit.allowed)

    def _sizes(self) -> Sizes:
        return Sizes(self.index.equivalence.rules, self._gates, self.snapshot.nodes)

    def _start(self, entry: QueueEntry, shape: Shape, found: Found) -> None:
        job, spec, equivalence_class = entry.job, entry.job.spec, entry.equivalence_class
        totalled = shape.partition in self.index.layout.totalled
        if spec.elastic is not None and not totalled:
            shape, found = self._widened(job, shape, found)
        amounts = self._gates.amounts(found, shape)
        if (
            equivalence_class.scope is not NO_SCOPE
            and (exceeded := self._gates.exceeded(equivalence_class, amounts)) is not None
        ):
            self._exceeded[equivalence_class] = self._passing(
                equivalence_class, exceeded
            )  # it takes more than it asked for
            self._close([entry.number])
            return
        spec_index = alternative(spec, shape, found.spec_index) if len(spec.specs) > 1 else 0
        has_launcher = spec.elastic is not None and spec.has_launcher
        launcher = launcher_node(shape, found.placement, self.snapshot.nodes) if has_launcher else ""
        billing = amounts[BILLING] / ONE
        self._started.add(job.id)
        self.starts.append(Start(job.id, spec_index, found.placement, shape.partition, billing, launcher))
        if self.index is self.given:
            self._take_over(self.given.changeable())
        else:
            self.backfiller.settle()
        self.index.place(job.id, found.placement, Millis(self.snapshot.now + 1000 * spec.time_limit_seconds))
        if self._gates.may_count(job):
            self._count(job, shape.partition, amounts)
        if not totalled:
            self.backfiller.started(self.index, job, found.placement)
