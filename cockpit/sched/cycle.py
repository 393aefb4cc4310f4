"""The scheduling cycle. The only code that starts a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.model.cluster import BackfillKind
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.reasons import BehindHead, Reason
from cockpit.sched.conservative import Conservative
from cockpit.sched.easy import Easy, InOrder
from cockpit.sched.feasible import infeasible
from cockpit.sched.fragmentation import GradientDescent, target_workload
from cockpit.sched.index import Index, refreshed
from cockpit.sched.placement import Fit, Found
from cockpit.sched.plan import Plan, Start
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.shape import Shape
from cockpit.sched.shortage import Refusals
from cockpit.sched.snapshot import Snapshot


def cycle(snapshot: Snapshot, index: Index | None, policy: Policy) -> Plan:
    """Decide what starts now and why the rest does not. Pure: same snapshot and policy, same plan.

    `index` is that of the last plan, or None; it saves work and changes nothing else. Each step reads what the one
    before it made; a new rule is a step of its own or belongs to one.
    """
    # 1. refresh: the index follows what happened since the last cycle
    index = refreshed(index, snapshot)
    # 2. order: first submitted, first considered
    queue = snapshot.queue
    shapes = index.book.of_all(queue)
    # 3. place or reserve: who waits for room, and who may pass them, is the backfill's to say
    round_ = _Round(snapshot, index, policy, shapes)
    round_.go_through(queue, shapes)
    # 4. plan: what starts, and against what is left then, why the rest does not
    return Plan(
        version=snapshot.version,
        now=snapshot.now,
        starts=tuple(round_.starts),
        refusals=round_.refusals(),
        reservations=tuple(round_.line.reservations),
        order=tuple([job.id for job in queue]),
        index=index,
    )


LINES: dict[BackfillKind, type[InOrder | Conservative]] = {
    BackfillKind.OFF: InOrder,
    BackfillKind.EASY: Easy,
    BackfillKind.CONSERVATIVE: Conservative,
}
"""Who keeps whose place in line."""


class _Round:
    """One pass over the queue. Its starts appear in an index of its own, made for the first of them."""

    def __init__(self, snapshot: Snapshot, index: Index, policy: Policy, shapes: list[Shape]) -> None:
        self.starts: list[Start] = []
        self.failed: dict[Shape, Reason | None] = {}
        """None: no room."""
        backfill = policy.backfill
        self.line = LINES[backfill.kind](snapshot.now, backfill, _fit(snapshot, policy, shapes))
        self._snapshot = snapshot
        self._given = self._index = index
        self._left = backfill.depth or len(shapes)

    def go_through(self, queue: Sequence[Job], shapes: Sequence[Shape]) -> None:
        """A shape that failed is not tried again, unless the backfill says that this job of it may fare better."""
        failed, may_pass = self.failed, self.line.may_pass
        for job, shape in zip(queue, shapes, strict=True):
            if not job.held_by and (shape not in failed or may_pass(job, failed[shape])):
                self._consider(job, shape)

    def refusals(self) -> Mapping[Shape, Reason]:
        """Why each shape failed, as things stand after the last start."""
        return Refusals(self.failed, self._index)

    def _consider(self, job: Job, shape: Shape) -> None:
        """Start the job, or note why its shape failed."""
        if never := infeasible(shape, self._index.floor):
            self.failed[shape] = never
            return
        if self.line.head is not None and not self._left:
            self.failed[shape] = BehindHead(self.line.head)
            return
        found = self.line.place(self._index, job, shape)
        if isinstance(found, Found):
            self._start(job, found)
        else:
            self.failed[shape] = found
        if self.line.head is not None:
            self._left -= 1

    def _start(self, job: Job, found: Found) -> None:
        self.starts.append(Start(job.id, found.spec_index, found.placement))
        if self._index is self._given:
            self._index = self._given.fork()
        end = Millis(self._snapshot.now + 1000 * job.spec.time_limit_seconds)
        self._index.apply(((job.id, found.placement),), {job.id: end})
        self.line.started(job, found.placement)


def _fit(snapshot: Snapshot, policy: Policy, shapes: list[Shape]) -> Fit | None:
    if policy.fraction_fit is FractionFit.BEST:
        return None
    running = (snapshot.occupied[job] for job in snapshot.ends if job in snapshot.occupied)
    return GradientDescent(target_workload(shapes, running))
