"""The scheduling cycle. The only code that starts a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.model.cluster import BackfillKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.reasons import BeginsLater, BehindHead, NotEvaluated, Reason
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
from cockpit.sched.request import Request
from cockpit.sched.reserved_nodes import Bars
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot
from cockpit.sched.tres import BILLING

_UNTRIED = NotEvaluated()

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
    entries, bars = priorities.order, Bars(snapshot.reservations, snapshot.now)
    requests = index.book.of_all(entries, bars)
    descent = _descent(index, policy, requests)
    round_ = _Round(snapshot, index, policy, bars, requests, descent)
    for (job, _), request in zip(entries, requests, strict=True):
        # 3. gates: what a rule stops needs no room, holds nobody up, and is asked once for all that are alike
        if round_.untried(job, request) and round_.passes(job, request):
            # 4. place or reserve: who waits for room, and who may pass them, is the line's to say
            round_.consider(job, request)
    if descent:
        index.floor.at_hand = {descent.targets: descent}
    # 5. plan: what starts, and against what is left then, why the rest does not
    return Plan(
        version=snapshot.version,
        now=snapshot.now,
        starts=tuple(round_.starts),
        refusals=round_.refusals(requests),
        reservations=tuple(round_.line.reservations),
        order=tuple(dict.fromkeys([job.id for job, _ in entries])),
        next_at=round_.next_at(),
        bars=bars,
        priorities=priorities,
        index=index,
    )


class _Round:
    """One pass over the queue. Its starts appear in an index of its own, made for the first of them."""

    def __init__(
        self,
        snapshot: Snapshot,
        index: Index,
        policy: Policy,
        bars: Bars,
        requests: Sequence[Request],
        fit: Fit | None,
    ) -> None:
        self.starts: list[Start] = []
        self.refused: dict[Request, Reason] = {}
        """By a gate."""
        self.started: set[JobId] = set()
        self.failed: dict[Shape, Reason | None] = {}
        """None: no room."""
        backfill = policy.backfill
        self.line = LINES[backfill.kind](snapshot.now, backfill, fit)
        self._snapshot = snapshot
        self._given = self._index = index
        self._bars = bars
        self._gates = Gates(snapshot, index.book, index.counters.fork(), bars)
        self._open: dict[Request, Shape] = {}
        """Of requests that a limit leaves only some of their alternatives."""
        self._begins: Millis | None = None
        self._left = backfill.depth or len(requests)
        """How many of those that wait may still be looked at."""

    def untried(self, job: Job, request: Request) -> bool:
        """Whether nothing like the job has failed, or it may fare better than what did."""
        if request in self.refused:
            return False
        reason = self.failed.get(self._open.get(request, request.shape), _UNTRIED)
        return reason is _UNTRIED or self.line.may_pass(job, reason)

    def passes(self, job: Job, request: Request) -> bool:
        """Whether no rule stops the job; notes what does."""
        if job.id in self.started:  # in another partition
            return False
        if (own := self._gates.own(job)) is not None:
            if isinstance(own, BeginsLater):
                self._begins = min(own.begin_at, self._begins or own.begin_at)
            return False
        if (shared := self._gates.shared(request)) is not None:
            self.refused[request] = shared
        return shared is None

    def consider(self, job: Job, request: Request) -> None:
        """Start the job, or note why its shape failed."""
        shape = self._gates.open_shape(request)
        if shape is not request.shape:
            self._open[request] = shape
        if never := infeasible(shape, self._index.floor):
            self.failed[shape] = never
            return
        found = self._place(job, shape)
        if isinstance(found, Found):
            self._start(job, request, shape, found)
        else:
            self.failed[shape] = found

    def refusals(self, requests: Sequence[Request]) -> Mapping[Request, Reason]:
        """Why each request failed, as things stand after the last start."""
        return Refusals(requests, self.refused, self.failed, self._open, self._index)

    def next_at(self) -> Millis | None:
        """When time alone may let something start: those that a gate did not let see their moment wait for more."""
        return min(filter(None, (self._begins, self._bars.next_at())), default=None)

    def _place(self, job: Job, shape: Shape) -> Found | Reason | None:
        """As far as the depth goes."""
        line = self.line
        if line.head is not None and not self._left:
            return BehindHead(line.head)
        found = line.place(self._index, job, shape)
        if line.head is not None:
            self._left -= 1
        return found

    def _start(self, job: Job, request: Request, shape: Shape, found: Found) -> None:
        amounts = self._gates.amounts(found.placement, shape.partition)
        if exceeded := self._gates.exceeded(request, amounts):  # it takes more than it asked for
            self.refused[request] = exceeded
            return
        spec_index = job.spec.specs.index(shape.specs[found.spec_index])
        self.starts.append(Start(job.id, spec_index, found.placement, shape.partition, amounts[BILLING] / ONE))
        self.started.add(job.id)
        if self._index is self._given:
            self._index = self._given.fork()
        end = Millis(self._snapshot.now + 1000 * job.spec.time_limit_seconds)
        self._index.apply(((job.id, found.placement),), {job.id: end})
        self._gates.started(job, shape.partition, amounts)
        self.line.started(job, found.placement)


def _descent(index: Index, policy: Policy, requests: Sequence[Request]) -> GradientDescent | None:
    """With what an earlier cycle worked out for the same workload, unless another cycle has it just now."""
    if policy.fraction_fit is FractionFit.BEST:
        return None
    targets = policy.workload or target_workload((request.shape for request in requests), index.running())
    return index.floor.at_hand.pop(targets, None) or GradientDescent(targets)
