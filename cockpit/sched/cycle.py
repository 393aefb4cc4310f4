"""The scheduling cycle. The only code that starts a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.model.cluster import BackfillKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import BeginsLater, NotEvaluated, Reason, WouldDelay
from cockpit.sched.amounts import ONE
from cockpit.sched.feasible import infeasible
from cockpit.sched.fragmentation import GradientDescent, target_workload
from cockpit.sched.gates import Gates
from cockpit.sched.index import Index, refreshed
from cockpit.sched.placement import Fit, Found, find
from cockpit.sched.plan import Plan, Start
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.priorities import PriorityTable, prioritised
from cockpit.sched.request import Request
from cockpit.sched.reservation import Guard, Horizon
from cockpit.sched.reserved_nodes import Bars
from cockpit.sched.shape import Shape
from cockpit.sched.shortage import Shortages
from cockpit.sched.snapshot import Snapshot
from cockpit.sched.tres import BILLING

_UNTRIED = NotEvaluated()


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
    round_ = _Round(snapshot, index.fork(), policy, bars, requests)
    for (job, _), request in zip(entries, requests, strict=True):
        # 3. gates: what a rule stops needs no room, holds nobody up, and is asked once for all that are alike
        if round_.untried(job, request) and round_.passes(job, request):
            # 4. place or reserve: a shape that failed is not tried again; the first that waits for room is kept some
            round_.consider(job, request)
    # 5. plan: what starts, and against what is left then, why the rest does not
    return Plan(
        version=snapshot.version,
        now=snapshot.now,
        starts=tuple(round_.starts),
        refusals=round_.refusals(requests),
        reservation=round_.guard.reservation() if round_.guard else None,
        order=tuple(dict.fromkeys([job.id for job, _ in entries])),
        next_at=round_.next_at(),
        bars=bars,
        priorities=priorities,
        index=index,
    )


class _Round:
    """One pass over the queue, on an index of its own in which the starts of the pass appear."""

    def __init__(
        self, snapshot: Snapshot, index: Index, policy: Policy, bars: Bars, requests: Sequence[Request]
    ) -> None:
        self.starts: list[Start] = []
        self.refused: dict[Request, Reason] = {}
        """By a gate."""
        self.started: set[JobId] = set()
        self.failed: dict[Shape, Reason | None] = {}
        """None: no room."""
        self.guard: Guard | None = None
        self._snapshot = snapshot
        self._index = index
        self._policy = policy
        self._bars = bars
        self._gates = Gates(snapshot, index.book, index.counters, bars)
        self._open: dict[Request, Shape] = {}
        """Of requests that a limit leaves only some of their alternatives."""
        self._begins: Millis | None = None
        self._fit = _fit(snapshot, policy, requests)
        self._ends = dict(snapshot.ends)
        self._horizon = Horizon(index, self._ends, snapshot.now)

    def untried(self, job: Job, request: Request) -> bool:
        """Whether nothing like the job has failed, or only such as end later: to delay the head takes time."""
        if request in self.refused:
            return False
        reason = self.failed.get(self._open.get(request, request.shape), _UNTRIED)
        return reason is _UNTRIED or self._may_pass(job, reason)

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
        """Start the job, or note that its shape failed."""
        shape = self._gates.open_shape(request)
        if shape is not request.shape:
            self._open[request] = shape
        if never := infeasible(shape, self._index.floor):
            self.failed[shape] = never
        elif (found := find(self._index, shape, self._fit)) is None:
            self.failed[shape] = None
            self.guard = self.guard or self._horizon.guard(job.id, shape)
        elif self.guard and not (found := self._beside_head(self.guard, job, shape, found)):
            self.failed[shape] = WouldDelay(self.guard.head, self.guard.reserved_at)
        else:
            self._start(job, request, shape, found)

    def refusals(self, requests: Iterable[Request]) -> dict[Request, Reason]:
        """Why each request failed, as things stand after the last start."""
        shortages = Shortages(self._index)
        of_shapes = {shape: reason or shortages.reason(shape) for shape, reason in self.failed.items()}
        shapes = {request: self._open.get(request, request.shape) for request in requests}
        told = {request: self.refused.get(request) or of_shapes.get(shape) for request, shape in shapes.items()}
        return {request: reason for request, reason in told.items() if reason is not None}

    def next_at(self) -> Millis | None:
        """When time alone may let something start: those that a gate did not let see their moment wait for more."""
        return min(filter(None, (self._begins, self._bars.next_at())), default=None)

    def _may_pass(self, job: Job, reason: Reason | None) -> bool:
        return (
            isinstance(reason, WouldDelay)
            and self._policy.backfill.kind is not BackfillKind.OFF
            and self._end(job) <= reason.reserved_at
        )

    def _beside_head(self, guard: Guard, job: Job, shape: Shape, found: Found) -> Found | None:
        """The room found, else other room off the head's nodes; None when the job would delay the head in either."""
        if self._policy.backfill.kind is BackfillKind.OFF:
            return None
        if self._admitted(guard, job, found.placement):
            return found
        other = find(self._index, shape, self._fit, avoid=guard.reserved_nodes())
        return other if other and self._admitted(guard, job, other.placement) else None

    def _admitted(self, guard: Guard, job: Job, placement: Placement) -> bool:
        return guard.admits(job.id, self._end(job), placement)

    def _start(self, job: Job, request: Request, shape: Shape, found: Found) -> None:
        amounts = self._gates.amounts(found.placement, shape.partition)
        if exceeded := self._gates.exceeded(request, amounts):  # it takes more than it asked for
            self.refused[request] = exceeded
            return
        spec_index = job.spec.specs.index(shape.specs[found.spec_index])
        self.starts.append(Start(job.id, spec_index, found.placement, shape.partition, amounts[BILLING] / ONE))
        self.started.add(job.id)
        self._ends[job.id] = self._end(job)
        self._index.apply({job.id: found.placement})
        self._gates.started(job, shape.partition, amounts)
        if self.guard:
            self.guard.start(job.id, self._end(job), found.placement)

    def _end(self, job: Job) -> Millis:
        return Millis(self._snapshot.now + 1000 * job.spec.time_limit_seconds)


def _fit(snapshot: Snapshot, policy: Policy, requests: Sequence[Request]) -> Fit | None:
    if policy.fraction_fit is FractionFit.BEST:
        return None
    running = (snapshot.occupied[job] for job in snapshot.ends if job in snapshot.occupied)
    return GradientDescent(target_workload((request.shape for request in requests), running))
