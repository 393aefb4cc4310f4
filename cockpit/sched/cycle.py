"""The scheduling cycle. The only code that starts a job."""

from __future__ import annotations

from collections.abc import Iterable

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
from cockpit.sched.lineup import LineUp, line_up
from cockpit.sched.placement import Fit, Found
from cockpit.sched.plan import Plan, Start
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.priorities import PriorityTable, prioritised
from cockpit.sched.refusals import Refusals
from cockpit.sched.request import NO_SHAPE, Ask, Request
from cockpit.sched.reserved_nodes import Bars
from cockpit.sched.shape import Shape, alternative
from cockpit.sched.snapshot import Snapshot
from cockpit.sched.tres import BILLING

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
    return pass_over(snapshot, index, policy, prioritised(snapshot, priorities))


def pass_over(snapshot: Snapshot, index: Index, policy: Policy, priorities: PriorityTable) -> Plan:
    """The cycle from its third step on: `index` and `priorities` are already those of the snapshot."""
    queue = line_up(priorities, index.book)
    descent = _descent(index, policy, queue)
    round_ = _Round(snapshot, index, policy, queue, descent)
    for ask in queue.open(round_.shapes, round_.requests):
        # 3. gates: what a rule stops needs no room, holds nobody up, and is asked once for all that are alike
        if round_.passes(ask):
            # 4. place or reserve: who waits for room, and who may pass them, is the line's to say
            round_.consider(ask)
    if descent:
        index.floor.at_hand = {descent.targets: descent}
    # 5. plan: what starts, and against what is left then, why the rest does not
    return Plan(
        version=snapshot.version,
        now=snapshot.now,
        starts=tuple(round_.starts),
        refusals=round_.refusals(),
        line=round_.line,
        next_at=round_.next_at(),
        priorities=priorities,
        index=index,
    )


class _Round:
    """One pass over the queue. Its starts appear in an index of its own, made for the first of them."""

    def __init__(self, snapshot: Snapshot, index: Index, policy: Policy, queue: LineUp, fit: Fit | None) -> None:
        self.starts: list[Start] = []
        book, backfill = index.book, policy.backfill
        self.shapes, self.requests = queue.unbounded(len(book.shapes)), queue.unbounded(len(book.requests))
        self.shapes[NO_SHAPE] = 0
        self.line = LINES[backfill.kind](snapshot.now, backfill, fit)
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
        self._left = backfill.depth or len(queue)
        """How many of those that wait may still be looked at."""
        self._close(self._gates.stopped())

    def passes(self, ask: Ask) -> bool:
        """Whether no rule stops the job; closes its request where one stops all of it."""
        if ask.job.id in self._started:  # in another partition
            return False
        if self._gates.shared(ask.request) is not None:
            self._stop(ask)
            return False
        own = self._gates.own(ask.job)
        if isinstance(own, BeginsLater):
            self._begins = min(own.begin_at, self._begins or own.begin_at)
        return own is None

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

    def _stop(self, ask: Ask) -> None:
        self._close([ask.number])
        if (stop := self._gates.stop(ask.request)) is not None:
            self._given.book.stops.add(ask.number, stop)

    def _close(self, numbers: Iterable[int]) -> None:
        requests = self.requests
        for number in numbers:
            requests[number] = 0

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
            self._close([ask.number])
            return
        spec_index = alternative(job.spec, shape, found.spec_index)
        self.starts.append(Start(job.id, spec_index, found.placement, shape.partition, amounts[BILLING] / ONE))
        self._started.add(job.id)
        if self._index is self._given:
            self._index = self._given.fork()
        end = Millis(self._snapshot.now + 1000 * job.spec.time_limit_seconds)
        self._index.apply(((job.id, found.placement),), {job.id: end})
        self._close(self._gates.started(job, shape.partition, amounts))
        self.line.started(self._index, job, found.placement)


def _descent(index: Index, policy: Policy, queue: LineUp) -> GradientDescent | None:
    """With what an earlier cycle worked out for the same workload, unless another cycle has it just now."""
    if policy.fraction_fit is FractionFit.BEST:
        return None
    targets = policy.workload or target_workload((ask.request.shape for ask in queue), index.running())
    return index.floor.at_hand.pop(targets, None) or GradientDescent(targets)
