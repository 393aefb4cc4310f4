"""The scheduling cycle. The only code that starts a job."""

from __future__ import annotations

from cockpit.model.cluster import BackfillKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import Reason, WouldDelay
from cockpit.sched.feasible import infeasible
from cockpit.sched.fragmentation import GradientDescent, target_workload
from cockpit.sched.index import Index, refreshed
from cockpit.sched.placement import Fit, Found, find
from cockpit.sched.plan import Plan, Start
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.priorities import PriorityTable, prioritised
from cockpit.sched.reservation import Guard, Horizon
from cockpit.sched.shape import Shape
from cockpit.sched.shortage import Shortages
from cockpit.sched.snapshot import Snapshot
from cockpit.sched.tres import allocated, billed


def cycle(snapshot: Snapshot, index: Index | None, policy: Policy, priorities: PriorityTable | None = None) -> Plan:
    """Decide what starts now and why the rest does not. Pure: same snapshot and policy, same plan.

    `index` and `priorities` are those of the last plan, or None; they save work and change nothing else. Each step
    reads what the one before it made; a new rule is a step of its own or belongs to one.
    """
    # 1. refresh: the index follows what happened since the last cycle
    index = refreshed(index, snapshot)
    # 2. order: by priority, each job once for each partition that it may run in
    priorities = prioritised(snapshot, priorities)
    queue = [job for job, _ in priorities.order]
    shapes = index.book.of_all(queue)
    # 3. place or reserve: a shape that failed is not tried again; the first that waits for room gets a reservation
    round_ = _Round(snapshot, index.fork(), policy, shapes)
    failed = round_.failed
    for (job, partition), shape in zip(priorities.order, shapes, strict=True):
        if job.held_by or job.id in round_.started:
            continue
        if shape not in failed or round_.may_pass(job, shape):
            round_.consider(job, partition, shape)
    # 4. plan: what starts, and against what is left then, why the rest does not
    return Plan(
        version=snapshot.version,
        now=snapshot.now,
        starts=tuple(round_.starts),
        refusals=round_.refusals(),
        reservation=round_.guard.reservation() if round_.guard else None,
        order=tuple(dict.fromkeys([job.id for job in queue])),
        priorities=priorities,
        index=index,
    )


class _Round:
    """One pass over the queue, on an index of its own in which the starts of the pass appear."""

    def __init__(self, snapshot: Snapshot, index: Index, policy: Policy, shapes: list[Shape]) -> None:
        self.starts: list[Start] = []
        self.started: set[JobId] = set()
        self.failed: dict[Shape, Reason | None] = {}
        """None: no room."""
        self.guard: Guard | None = None
        self._snapshot = snapshot
        self._index = index
        self._policy = policy
        self._fit = _fit(snapshot, policy, shapes)
        self._ends = dict(snapshot.ends)
        self._horizon = Horizon(index, self._ends, snapshot.now)

    def may_pass(self, job: Job, shape: Shape) -> bool:
        """Whether a job of a failed shape may still start: delaying the head is a matter of the time limit."""
        reason = self.failed[shape]
        return (
            isinstance(reason, WouldDelay)
            and self._policy.backfill.kind is not BackfillKind.OFF
            and self._end(job) <= reason.reserved_at
        )

    def consider(self, job: Job, partition: str, shape: Shape) -> None:
        """Start the job in the partition, or note that its shape failed."""
        if never := infeasible(shape, self._index.floor):
            self.failed[shape] = never
        elif (found := find(self._index, shape, self._fit)) is None:
            self.failed[shape] = None
            self.guard = self.guard or self._horizon.guard(job.id, shape)
        elif self.guard and not (found := self._beside_head(self.guard, job, shape, found)):
            self.failed[shape] = WouldDelay(self.guard.head, self.guard.reserved_at)
        else:
            self._start(job, partition, found)

    def refusals(self) -> dict[Shape, Reason]:
        """Why each shape failed, as things stand after the last start."""
        shortages = Shortages(self._index)
        return {shape: reason or shortages.reason(shape) for shape, reason in self.failed.items()}

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

    def _start(self, job: Job, partition: str, found: Found) -> None:
        bills = billed(allocated(found.placement, self._snapshot.nodes), self._snapshot.cluster, partition)
        self.starts.append(Start(job.id, found.spec_index, found.placement, partition, bills))
        self.started.add(job.id)
        self._ends[job.id] = self._end(job)
        self._index.apply({job.id: found.placement})
        if self.guard:
            self.guard.start(job.id, self._end(job), found.placement)

    def _end(self, job: Job) -> Millis:
        return Millis(self._snapshot.now + 1000 * job.spec.time_limit_seconds)


def _fit(snapshot: Snapshot, policy: Policy, shapes: list[Shape]) -> Fit | None:
    if policy.fraction_fit is FractionFit.BEST:
        return None
    running = (snapshot.occupied[job] for job in snapshot.ends if job in snapshot.occupied)
    return GradientDescent(target_workload(shapes, running))
