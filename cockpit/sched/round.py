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
from cockpit.sched.decisions import Growth, Start, Turn
from cockpit.sched.eviction.clearing import Clearing
from cockpit.sched.eviction.reclaim import Claim, Reclaim
from cockpit.sched.faults import Faults
from cockpit.sched.feasible import infeasible
from cockpit.sched.fleet.reserved import reserved_room
from cockpit.sched.fleet.totals import by_totals
from cockpit.sched.gates import NO_USE, Gates, Use
from cockpit.sched.growth import Wanted, further_workers, growing, grown
from cockpit.sched.index import Index
from cockpit.sched.launchers import launcher_node
from cockpit.sched.lawful import limit_now, limit_of_all, within_limits
from cockpit.sched.lineup import LineUp
from cockpit.sched.nodes.reserved import NO_BARS, Bars
from cockpit.sched.placement import Fit, Found, find
from cockpit.sched.policy import Policy
from cockpit.sched.refusals import Noted, Refusals
from cockpit.sched.request import NO_SHAPE, OPEN, Ask, Request
from cockpit.sched.rules.amounts import ONE, Amounts
from cockpit.sched.rules.limits import NOBODY
from cockpit.sched.rules.tres import BILLING
from cockpit.sched.shape import Shape, alternative
from cockpit.sched.sizes import Sizes
from cockpit.sched.snapshot import Snapshot
from cockpit.sched.turns import take_turns

LINES: dict[BackfillKind, type[InOrder | Conservative]] = {
    BackfillKind.OFF: InOrder,
    BackfillKind.EASY: Easy,
    BackfillKind.CONSERVATIVE: Conservative,
}
"""Who keeps whose place in line."""


_NOBODY: Mapping[JobId, NoGrowth] = MappingProxyType({})
MOST_RECLAIMS = 32
"""So many jobs get room back in one pass, since a search takes a while; for the others there is one a second later."""


class Round:
    """One pass over the queue. Its starts appear in an index of its own, made for the first of them."""

    __slots__ = (
        "_bars",
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
        "clearing",
        "faults",
        "given",
        "growths",
        "index",
        "line",
        "no_growth",
        "policy",
        "reclaim",
        "requests",
        "shapes",
        "snapshot",
        "starts",
        "turns",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        index: Index,
        policy: Policy,
        queue: LineUp,
        fit: Fit | None,
        clearing: Clearing | None = None,
    ) -> None:
        """`clearing`: None where no rule lets anybody take another's room."""
        book, backfill = index.book, policy.backfill
        self._begin(snapshot, index, policy, fit, clearing)
        self.faults: Faults = {}
        """Jobs that a defect kept from being judged: they wait, and all others are judged."""
        self.shapes, self.requests = queue.unbounded(len(book.shapes), len(book.requests))
        self.shapes[NO_SHAPE] = 0
        self.line = LINES[backfill.kind](snapshot.now, backfill, fit)
        self._failed: dict[Shape, Reason | None] = {}
        """None: no room."""
        self._narrowed: dict[Request, Shape] = {}
        """Of requests that a limit leaves only some of their alternatives."""
        self._exceeded: dict[Request, Limit] = {}
        self._left = backfill.depth - 1 if backfill.depth else OPEN
        """How many may still be looked at behind the first that waits."""
        self._begins: Millis | None = None
        self._unhurried = bool(self._bars.lasting or backfill.depth or index.floor.totalled)
        """Shapes depend on the job, or who is looked at is counted."""
        if book.stops:
            self._close(self._gates.stopped())

    def _begin(
        self, snapshot: Snapshot, index: Index, policy: Policy, fit: Fit | None, clearing: Clearing | None
    ) -> None:
        self.policy, self._fit, self.clearing = policy, fit, clearing
        self.reclaim: Reclaim | None = None
        """None where nothing is kept for any queue."""
        if clearing is not None and index.book.rules.quotas.guarantees:
            self.reclaim = Reclaim(index.book.rules, snapshot, clearing)
        self._reclaims, self._put_off = 0, False
        self.turns: tuple[Turn, ...] = ()
        self._slice_ends: Millis | None = None
        self.starts: list[Start] = []
        self.growths: Sequence[Growth] = ()
        self.no_growth: Mapping[JobId, NoGrowth] = _NOBODY
        """Why elastic jobs that run take no further worker, as far as they were looked at."""
        self._started: set[JobId] = set()
        self.snapshot = snapshot
        self.given = self.index = index
        """As the pass found things, and as it leaves them if what it starts has started."""
        self._bars = Bars(snapshot.reservations, snapshot.now) if snapshot.reservations else NO_BARS
        self._gates = Gates(snapshot, index.book, index.counters, self._bars)

    def resumed(self, snapshot: Snapshot, index: Index) -> Round:
        """The same pass, later, to be gone on with: `index` is as this one left things. What was decided stays decided;
        this one is left as it is, unless nobody looks at it any more."""
        fresh = self._copied() if index.shared else self
        fresh._begin(snapshot, index, self.policy, self._fit, None)  # noqa: SLF001 - of its own kind
        fresh.faults = self.faults.copy()
        fresh.line = self.line.resumed(snapshot.now)
        fresh.shapes.extend([OPEN] * (len(index.book.shapes) - len(fresh.shapes)))
        fresh.requests.extend([OPEN] * (len(index.book.requests) - len(fresh.requests)))
        return fresh

    def _copied(self) -> Round:
        """What it found out, to be added to."""
        fresh = Round.__new__(Round)
        fresh._left, fresh._begins, fresh._unhurried = self._left, self._begins, self._unhurried  # noqa: SLF001 - of its own kind
        fresh._failed, fresh._narrowed = self._failed.copy(), self._narrowed.copy()  # noqa: SLF001 - of its own kind
        fresh._exceeded = self._exceeded.copy()  # noqa: SLF001 - of its own kind
        fresh.shapes, fresh.requests = [*self.shapes], [*self.requests]
        return fresh

    def take_turns(self, cluster: Cluster) -> None:
        """Those who stand still go on where they can; where not yet, their CPUs are kept for them."""
        taken = take_turns(self.snapshot, cluster, self.index)
        self.turns, self._slice_ends = taken.turns, taken.next_at
        if taken.after is not self.index:
            self._take_over(taken.after)

    def keep_promises(self, asks: Iterable[Ask]) -> None:
        """Those for whom others were made to go come before everybody: they start, or what they wait for is kept."""
        assert self.clearing is not None
        free = self.clearing.coming_free(self._gates.counters)
        for ask in asks:
            try:
                self._try_promise(ask, free)
            except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                self._contain(ask, error)

    def _try_promise(self, ask: Ask, free: Use) -> None:
        if ask.job.id in self._started or self._gates.own(ask.job) is not None:
            return
        if self._gates.shared(ask.request, free) is None and self._limit(ask.request, free) is None:
            shape = self._shape(ask, free)
            if not infeasible(shape, self.index.floor):
                self._keep_promise(ask, shape)

    def serve_guaranteed(self, queue: LineUp) -> None:
        """Best first: they start, or what others have borrowed is taken back for them. Who cannot be served is left to
        the others' order."""
        vain: set[int] = set()
        for ask in queue.open(self.shapes, self.requests):
            if not (ask.seconds < self.shapes[ask.shape] and ask.seconds < self.requests[ask.number]):
                continue
            if ask.number in vain or not ask.request.party.queue or ask.job.id in self._started:
                continue
            try:
                if self._gates.own(ask.job) is None and not self._served(ask):
                    vain.add(ask.number)
            except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                self._contain(ask, error)

    def go_through(self, queue: LineUp) -> None:
        """Best first."""
        shapes, requests, most_cpus, most_cards = self.shapes, self.requests, OPEN, OPEN
        for ask in queue.open(shapes, requests):
            # 3. gates: what a rule stops needs no room, holds nobody up, and is asked once for all that are alike
            if ask.cpus > most_cpus or ask.cards > most_cards:  # a cheap no, for which no rule need be asked
                if shapes[ask.shape]:
                    self._failed[ask.request.shape] = None
                    shapes[ask.shape] = 0
            elif ask.seconds < shapes[ask.shape] and ask.seconds < requests[ask.number]:
                try:
                    if (ask.free and not self._started) or self.passes(ask):
                        # 4. place, or make room, or reserve: who waits, and who may pass them, is the line's to say
                        self.consider(ask)
                        if self.line.guarded and not self._unhurried:
                            most_cpus, most_cards = self.index.widest, self.index.most_cards
                except Exception as error:  # noqa: BLE001 - one job's defect costs no other its turn
                    self._contain(ask, error)

    def _contain(self, ask: Ask, error: Exception) -> None:
        """Let the job wait. Raises the error again where part of the job's start is in the plan already: such a plan
        may not be carried out."""
        if ask.job.id in self._started:
            raise error
        self.faults.setdefault(ask.job.id, error)

    def grow(self) -> None:
        """6. Elastic jobs that run take what is left, unless somebody who waits has not even been looked at."""
        if not self.snapshot.elastic or (self.line.head is not None and not self._left):
            return
        if who := [each for each in growing(self.snapshot) if not self._is_taken_from(each[0].id)]:
            self._take_over(self.index.fork())
            done = grown(self.snapshot, who, self.index, self.line, self._fit, self._sizes(), self._off_reserved)
            self.growths, self.no_growth = done
            self.index.counters = self._gates.counters

    def _is_taken_from(self, job: JobId) -> bool:
        """By what this pass decided."""
        gives_way = self.clearing is not None and self.clearing.gives_way(job)
        return gives_way or any(job in turn.others for turn in self.turns)

    def passes(self, ask: Ask) -> bool:
        """Whether no rule stops the job; closes its request where one stops all of it."""
        if self._started and ask.job.id in self._started:  # in another partition
            return False
        if ask.free:
            return True
        if self._gates.shared(ask.request) is not None:
            self._stop(ask)
            return False
        limit = self._limit(ask.request)
        if limit is not None:
            self._exceeded[ask.request] = limit
            self._close([ask.number])
            return False
        own = self._gates.own(ask.job)
        if isinstance(own, BeginsLater):
            self._begins = min(own.begin_at, self._begins or own.begin_at)
        return own is None

    def consider(self, ask: Ask) -> None:
        """Start the job, or note why its shape failed."""
        shape = ask.request.shape if ask.free and self._bars is NO_BARS else self._shape(ask)
        floor = self.index.floor
        if shape not in floor.possible and (never := infeasible(shape, floor)):
            self._fail(ask, shape, never, 0)
            return
        line = self.line
        if line.head is not None and line.head != ask.job.id:  # as far as the depth goes
            if not self._left:
                self._fail(ask, shape, self._failed.get(shape, BehindHead(line.head)), 0)  # what was seen of it, counts
                return
            self._left -= 1
        if ask.request.claim and self._made_room(ask, shape):
            return
        found = self.place(ask.job, shape)
        if found is not None and isinstance(found, Found):  # to ask of None whether it is a Struct takes a while
            self._start(ask, shape, found)
        else:
            self._fail(ask, shape, found, line.fails_from(found))

    def place(self, job: Job, shape: Shape) -> Found | Reason | None:
        """A place that delays nobody who is served before it; else why not, None: no room."""
        if shape.partition in self.index.floor.totalled:
            return by_totals(self.index, self.snapshot, job, shape)
        return self.line.place(self.index, job, shape)

    def refusals(self) -> Refusals:
        """Why the rest failed, as things stand after the last start."""
        noted = Noted(self._failed, self._narrowed, self._exceeded)
        return Refusals(self._gates, self._bars, noted, self.line, self.index, self.clearing)

    def next_at(self) -> Millis | None:
        """When time alone may let something start: those that a gate did not let see their moment wait for more."""
        if self.clearing is None and self._begins is None and self._bars is NO_BARS:
            return None
        cleared = self.clearing.next_at() if self.clearing is not None else None
        bars = self._bars.next_at() if self._bars.lasting else None
        soon = Millis(self.snapshot.now + 1000) if self._put_off else None
        return min([each for each in (self._begins, bars, cleared, soon, self._slice_ends) if each], default=None)

    def _made_room(self, ask: Ask, shape: Shape) -> bool:
        """5. preempt or reclaim: whether others give way for a job that has no room; then it starts, or is promised."""
        clearing = self.clearing
        if clearing is None or find(self.index, shape, self._fit) is not None:
            return False
        cleared = clearing.room_for(ask, shape, self.index, self.line.place_cleared)
        if cleared is None or self._gates.exceeded(ask.request, self._amounts(cleared.found, shape)) is not None:
            return False
        clearing.carried_out(cleared)
        if cleared.at_once:
            self._take_over(cleared.after)
            self._start(ask, shape, cleared.found)
        else:
            self._promise(ask, shape, cleared.found, [each.job for each in cleared.evictions])
        return True

    def _served(self, ask: Ask) -> bool:
        """Whether a job that stays within what is kept for its queue starts, or is promised room."""
        assert self.reclaim is not None
        gates, request = self._gates, ask.request
        beside = gates.beside_quota(request)
        if gates.shared(beside) is not None:
            return False
        kept = [
            (self._off_reserved(ask.job, shape), amounts, claim)
            for shape, amounts in gates.alternatives(request)
            if (claim := self.reclaim.claim(request.party.queue, amounts, gates.counters)) is not None
            and gates.exceeded(beside, amounts) is None
            and limit_of_all(gates, request, shape, amounts, self.index.floor) is None
            and limit_now(gates, beside, shape, self.index.floor) is None
        ]
        for shape, amounts, _ in kept:
            if gates.exceeded(request, amounts) is None and find(self.index, shape, self._fit) is not None:
                found = self.place(ask.job, shape)
                if isinstance(found, Found):
                    self._start(ask, shape, found)
                    return ask.job.id in self._started
        return any(self._reclaimed(ask, shape, claim) for shape, _, claim in kept)

    def _reclaimed(self, ask: Ask, shape: Shape, claim: Claim) -> bool:
        """Whether others give back what they borrowed; the job is promised the room."""
        assert self.reclaim is not None
        assert self.clearing is not None
        if infeasible(shape, self.index.floor):
            return False
        if self._reclaims == MOST_RECLAIMS:
            self._put_off = True
            return False
        cleared = self.reclaim.room_for(
            ask.job, shape, claim, self.index, self._gates.counters, self.line.place_cleared
        )
        if cleared is None:
            return False
        self._reclaims += 1
        self.clearing.carried_out(cleared)
        going = [each.job for each in cleared.evictions] or self.clearing.leaving()
        self._promise(ask, shape, cleared.found, going)
        return True

    def _keep_promise(self, ask: Ask, shape: Shape) -> None:
        allowed = self._gates.shared(ask.request) is None
        found = reserved_room(self.index, ask.job) or find(self.index, shape, self._fit)
        if allowed and found is not None:
            self._start(ask, shape, found)
        elif self.clearing is not None and (later := self.clearing.promised_room(shape, self.index)) is not None:
            self._promise(ask, shape, later, self.clearing.gone_for(ask.job.id))

    def _promise(self, ask: Ask, shape: Shape, found: Found, others: Iterable[JobId]) -> None:
        """Nobody else gets this room, though others are still in it until they have had their grace."""
        assert self.clearing is not None
        clearing, others = self.clearing, list(others)
        clearing.promise(ask.job.id, others)
        job = clearing.delayed(ask.job)
        self._started.add(job.id)
        self._take_over(self.index.fork())
        placed, ends = self.index.placed, self.index.ends
        others = [other for other in others if not clearing.stays(other)]  # a job that only shrinks ends when it does
        gone_at = {
            other: min(end, ends.get(other, end)) for other in others if (end := clearing.gone_at(other)) is not None
        }
        gone_at[job.id] = Millis(self.snapshot.now + 1000 * job.spec.time_limit_seconds)
        going = [(other, placed[other]) for other in others if other in placed]
        self.index.apply([*going, (job.id, found.placement)], gone_at)
        self._count(job, shape.partition, self._amounts(found, shape))
        self.line.started(self.index, job, found.placement)

    def _take_over(self, index: Index) -> None:
        self.line.settle()
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

    def _shape(self, ask: Ask, free: Use = NO_USE) -> Shape:
        """As it may be placed now: within the limits, and off what is reserved. `free`: does not count."""
        request = ask.request
        shape = self._gates.open_shape(request, free)
        shape = within_limits(self._gates, request, shape, self.index, free)
        if shape is not request.shape:
            self._narrowed[request] = shape
        return self._off_reserved(ask.job, shape)

    def _off_reserved(self, job: Job, shape: Shape) -> Shape:
        barred = self._bars.against_job(job) if self._bars.lasting else ()
        return replace(shape, barred=barred) if barred else shape

    def _fail(self, ask: Ask, shape: Shape, reason: Reason | None, seconds: int) -> None:
        """Jobs that ask for as long or longer, and at least for `seconds`, are not tried again."""
        self._failed[shape] = reason
        bounds, number = self.shapes, ask.shape
        if self._narrowed and ask.request in self._narrowed:
            bounds, number = self.requests, ask.number
        if shape.barred:
            seconds = max(seconds, self._bars.least_seconds(shape.barred))
        is_tighter = seconds < bounds[number]
        if is_tighter:
            bounds[number] = seconds

    def _stop(self, ask: Ask) -> None:
        self._close([ask.number])
        if (stop := self._gates.stop(ask.request)) is not None:
            self.given.book.stops.add(ask.number, stop)

    def _close(self, numbers: Iterable[int]) -> None:
        requests = self.requests
        for number in numbers:
            requests[number] = 0

    def _widened(self, job: Job, shape: Shape, found: Found) -> tuple[Shape, Found]:
        """With as many of the workers that an elastic job asks for as there is room for."""
        end = Millis(self.snapshot.now + 1000 * job.spec.time_limit_seconds)
        spec, held = shape.specs[found.spec_index], found.placement
        wanted = Wanted(job.id, shape, spec, held, False, job.spec.nodes, len(held), end)
        lawful = self._sizes().lawful(job, shape.partition)
        placement = (*held, *further_workers(wanted, self.index, self.line, self._fit, lawful).placement)
        position = self.index.floor.position
        in_order = sorted(placement, key=lambda part: position[part.node])  # neighbours stay neighbours
        ranked = tuple([replace(part, rank=rank) for rank, part in enumerate(in_order, job.spec.first_worker)])
        return replace(shape, nodes=len(ranked)), Found(found.spec_index, ranked)

    def _limit(self, request: Request, free: Use = NO_USE) -> Limit | None:
        """The limit for which the job would hold too much, whichever nodes it were given."""
        return limit_now(self._gates, request, self._gates.open_shape(request, free), self.index.floor, free)

    def _passing(self, request: Request, limit: Limit) -> Limit:
        """The limit as one that passes, where only the nodes that are free just now make it look as if it did not."""
        if not isinstance(limit, LimitReached | QuotaFull) or not limit.never:
            return limit
        each = self._gates.alternatives(request)
        for_good = all(limit_of_all(self._gates, request, shape, asked, self.index.floor) for shape, asked in each)
        return limit if for_good else replace(limit, asked=limit.allowed)

    def _sizes(self) -> Sizes:
        return Sizes(self.index.book.rules, self._gates, self.snapshot.nodes)

    def _start(self, ask: Ask, shape: Shape, found: Found) -> None:
        job, spec, request = ask.job, ask.job.spec, ask.request
        totalled = shape.partition in self.index.floor.totalled
        if spec.elastic is not None and not totalled:
            shape, found = self._widened(job, shape, found)
        amounts = self._gates.amounts(found, shape)
        if request.party is not NOBODY and (exceeded := self._gates.exceeded(request, amounts)) is not None:
            self._exceeded[request] = self._passing(request, exceeded)  # it takes more than it asked for
            self._close([ask.number])
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
            self.line.settle()
        self.index.place(job.id, found.placement, Millis(self.snapshot.now + 1000 * spec.time_limit_seconds))
        if self._gates.may_count(job):
            self._count(job, shape.partition, amounts)
        if not totalled:
            self.line.started(self.index, job, found.placement)
