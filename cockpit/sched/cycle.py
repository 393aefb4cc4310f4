"""The scheduling cycle. The only code that starts a job."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from cockpit.model.cluster import BackfillKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import BeginsLater, BehindHead, LimitReached, Reason
from cockpit.sched.amounts import ONE
from cockpit.sched.conservative import Conservative
from cockpit.sched.easy import Easy, InOrder
from cockpit.sched.feasible import infeasible
from cockpit.sched.fragmentation import GradientDescent, target_workload
from cockpit.sched.gates import Gates
from cockpit.sched.index import Index, refreshed
from cockpit.sched.placement import Fit, Found
from cockpit.sched.plan import Plan, Start
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.priorities import PriorityTable, prioritised
from cockpit.sched.refusals import Refusals
from cockpit.sched.request import NO_SHAPE, Ask, Request
from cockpit.sched.reserved_nodes import Bars
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot
from cockpit.sched.tres import BILLING

_OPEN = 1 << 62
"""Longer than any time limit."""

LINES: dict[BackfillKind, type[InOrder | Conservative]] = {
    BackfillKind.OFF: InOrder,
    BackfillKind.EASY: Easy,
    BackfillKind.CONSERVATIVE: Conservative,
}
"""Who keeps whose place in line."""


def cycle(snapshot: Snapshot, index: Index | None, policy: Policy, priorities: PriorityTable | None = None) -> Plan:
    """Decide what starts now and why the rest does not. Pure: same snapshot and policy, same plan.

    `index` and `priorities` are those of the last plan, or None; they save work and change nothing else. Each step
    reads what the one before it made; a new rule is a step of its own or belongs to one.
    """
    # 1. refresh: the index follows what happened since the last cycle
    index = refreshed(index, snapshot)
    # 2. order: by priority, each job once for each partition that it may run in
    priorities = prioritised(snapshot, priorities)
    asks = index.book.asks(priorities.order)
    round_ = _Round(snapshot, index, policy, asks)
    shapes, requests = round_.shapes, round_.requests
    for ask in asks:
        shape, request, seconds, _, _ = ask
        # 3. gates: what a rule stops needs no room, holds nobody up, and is asked once for all that are alike
        if seconds < shapes[shape] and seconds < requests[request] and round_.passes(ask):
            # 4. place or reserve: who waits for room, and who may pass them, is the line's to say
            round_.consider(ask)
    # 5. plan: what starts, and against what is left then, why the rest does not
    return Plan(
        version=snapshot.version,
        now=snapshot.now,
        starts=tuple(round_.starts),
        refusals=round_.refusals(),
        reservations=tuple(round_.line.reservations),
        next_at=round_.next_at(),
        priorities=priorities,
        index=index,
    )


class _Round:
    """One pass over the queue. Its starts appear in an index of its own, made for the first of them."""

    def __init__(self, snapshot: Snapshot, index: Index, policy: Policy, asks: Sequence[Ask]) -> None:
        self.starts: list[Start] = []
        book, backfill = index.book, policy.backfill
        self.shapes = [_OPEN] * len(book.shapes)
        """By number, the time limit from which on nothing of the shape is tried any more."""
        self.shapes[NO_SHAPE] = 0
        self.requests = [_OPEN] * len(book.requests)
        """Likewise."""
        self.line = LINES[backfill.kind](snapshot.now, backfill, _fit(snapshot, policy, asks))
        self._snapshot = snapshot
        self._given = self._index = index
        self._bars = Bars(snapshot.reservations, snapshot.now)
        self._gates = Gates(snapshot, book, index.counters.fork(), self._bars)
        self._started: set[JobId] = set()
        self._failed: dict[Shape, Reason | None] = {}
        """None: no room."""
        self._narrowed: dict[Request, Shape] = {}
        """Of requests that a limit leaves only some of their alternatives."""
        self._exceeded: dict[Request, LimitReached] = {}
        self._begins: Millis | None = None
        self._left = backfill.depth or len(asks)
        """How many of those that wait may still be looked at."""

    def passes(self, ask: Ask) -> bool:
        """Whether no rule stops the job; closes its request where one stops all of it."""
        if ask.job.id in self._started:  # in another partition
            return False
        if (own := self._gates.own(ask.job)) is not None:
            if isinstance(own, BeginsLater):
                self._begins = min(own.begin_at, self._begins or own.begin_at)
            return False
        if self._gates.shared(ask.request) is not None:
            self.requests[ask.number] = 0
            return False
        return True

    def consider(self, ask: Ask) -> None:
        """Start the job, or note why its shape failed."""
        shape = self._shape(ask)
        if never := infeasible(shape, self._index.floor):
            self._fail(ask, shape, never, 0)
        elif isinstance(found := self._place(ask.job, shape), Found):
            self._start(ask, shape, found)
        else:
            self._fail(ask, shape, found, self.line.fails_from(found))

    def refusals(self) -> Refusals:
        """Why the rest failed, as things stand after the last start."""
        return Refusals(self._gates, self._bars, self._failed, self._narrowed, self._exceeded, self._index)

    def next_at(self) -> Millis | None:
        """When time alone may let something start: those that a gate did not let see their moment wait for more."""
        return min(filter(None, (self._begins, self._bars.next_at())), default=None)

    def _shape(self, ask: Ask) -> Shape:
        """As it may be placed now: within the limits, and off what is reserved."""
        request = ask.request
        shape = self._gates.open_shape(request)
        if shape is not request.shape:
            self._narrowed[request] = shape
        barred = self._bars.against_job(ask.job)
        return replace(shape, barred=barred) if barred else shape

    def _fail(self, ask: Ask, shape: Shape, reason: Reason | None, seconds: int) -> None:
        """Jobs that ask for as long or longer, and at least for `seconds`, are not tried again."""
        self._failed[shape] = reason
        bounds, number = self.shapes, ask.shape
        if ask.request in self._narrowed:
            bounds, number = self.requests, ask.number
        bounds[number] = min(bounds[number], max(seconds, self._bars.least_seconds(shape.barred)))

    def _place(self, job: Job, shape: Shape) -> Found | Reason | None:
        """As far as the depth goes."""
        line = self.line
        if line.head is not None and not self._left:
            return BehindHead(line.head)
        found = line.place(self._index, job, shape)
        if line.head is not None:
            self._left -= 1
        return found

    def _start(self, ask: Ask, shape: Shape, found: Found) -> None:
        job = ask.job
        amounts = self._gates.amounts(found.placement, shape.partition)
        if (exceeded := self._gates.exceeded(ask.request, amounts)) is not None:  # it takes more than it asked for
            self._exceeded[ask.request] = exceeded
            self.requests[ask.number] = 0
            return
        spec_index = job.spec.specs.index(shape.specs[found.spec_index])
        self.starts.append(Start(job.id, spec_index, found.placement, shape.partition, amounts[BILLING] / ONE))
        self._started.add(job.id)
        if self._index is self._given:
            self._index = self._given.fork()
        end = Millis(self._snapshot.now + 1000 * job.spec.time_limit_seconds)
        self._index.apply(((job.id, found.placement),), {job.id: end})
        self._gates.started(job, shape.partition, amounts)
        self.line.started(job, found.placement)


def _fit(snapshot: Snapshot, policy: Policy, asks: Sequence[Ask]) -> Fit | None:
    if policy.fraction_fit is FractionFit.BEST:
        return None
    running = (snapshot.occupied[job] for job in snapshot.ends if job in snapshot.occupied)
    return GradientDescent(target_workload((ask.request.shape for ask in asks), running))
