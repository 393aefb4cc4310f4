"""Arrivals and ends of the past fed to the engine on virtual time. What starts, and when, `sched.cycle` decides.

Arrivals and ends are facts, which the machine gets as events, as it gets the decisions of the cycle's plan. The
policy's `TieOrder` decides which of the facts of one moment comes first, and after which of them a pass is made.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import fsum
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine import decide
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.timers import next_decay
from cockpit.model import events
from cockpit.model.attempt import ExitStatus
from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.job import Job
from cockpit.sched.cycle import cycle, next_plan
from cockpit.sched.equivalence import partitions_of
from cockpit.sched.incremental import can_start_any, next_index
from cockpit.sched.placement import fits_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cockpit.model.node import Node
    from cockpit.sched.index import Index
    from cockpit.sched.plan import Plan
    from cockpit.sched.policy import Policy
    from cockpit.sched.snapshot import Snapshot


_WELL = ExitStatus(code=0)
_NEVER = Millis(1 << 62)


class Arrival(msgspec.Struct, frozen=True):
    """A job that came, and how long it runs once it has started. It is ended at its time limit if it runs longer."""

    at: Millis
    submitted: events.JobSubmitted
    runs_ms: int


class Replay:
    """The replay of one history on one cluster. `started_at` fills up while `moments` is iterated."""

    def __init__(
        self,
        nodes: Sequence[Node],
        arrivals: Sequence[Arrival],
        policy: Policy,
        rules: Sequence[events.EventBody] = (),
    ) -> None:
        """`arrivals` in order of their moments, ids increasing. `rules`: what configures the cluster."""
        self.machine = Machine(ClusterState())
        self.started_at: dict[JobId, Millis] = {}
        self.on_event: Callable[[events.EventBody, Millis], None] | None = None
        """Called with every event once the machine has applied it; None: no caller follows."""
        self._policy, self._ties = policy, policy.ties
        self._arrivals = arrivals
        self._runs_ms = {arrival.submitted.job: arrival.runs_ms for arrival in arrivals}
        limited = [each.submitted for each in arrivals if each.runs_ms == 1000 * each.submitted.spec.time_limit_seconds]
        self._at_limit = {submitted.job for submitted in limited}
        """Jobs that their time limit ends."""
        self._ends: list[tuple[Millis, int, JobId]] = []
        """A heap; at one moment in the order that the policy wants."""
        self._waiting = 0
        """How many jobs have come and not started."""
        self._plan: Plan | None = None
        self._now = Millis(0)
        self._looked_at = -1
        """Version of the state that the last cycle left behind."""
        self._free_index: Index | None = None
        """The free resources since the last pass or look; None: they have changed."""
        self._has_ended_job = False
        """Whether a job has ended since the last pass, which released its resources."""
        for body in (events.NodesChanged(tuple(nodes)), *rules):
            self._tell(body)
        self._decays = self.machine.state.cluster.priority.kind is PriorityKind.MULTIFACTOR

    def moments(self) -> Iterator[int]:
        """Replay the history moment by moment; yield the number of jobs that have ended so far."""
        arrivals, ends, together = self._arrivals, self._ends, self._ties.one_cycle_a_moment
        next_at = arrivals[0].at if arrivals else _NEVER
        coming, count, ended = 0, len(arrivals), 0
        while ends or coming < count:
            end_at = ends[0][0] if ends else _NEVER
            ends_first = end_at < next_at
            self._now = now = end_at if ends_first else next_at
            first = coming
            while next_at == now:
                coming += 1
                next_at = arrivals[coming].at if coming < count else _NEVER
            if end_at == now or together:
                ending = []
                while ends and ends[0][0] == now:
                    ending.append(heappop(ends)[2])
                self._moment(arrivals[first:coming], ending)
                ended += len(ending)
            else:
                self._submit_each(arrivals[first:coming])
            yield ended

    def _moment(self, arriving: Sequence[Arrival], ending: Sequence[JobId]) -> None:
        ties = self._ties
        if ties.limits_free_at_once:
            for job in ending:
                if job in self._at_limit:
                    self._end(job)
        if ties.one_cycle_a_moment:
            for job in ending:
                self._end(job)
            self._waiting += len(arriving)
            for arrival in arriving:
                self._tell(arrival.submitted)
            self._look()
            return
        if arriving and ties.submissions_first:
            self._submit_each(arriving)
        for job in ending:
            self._end(job)
            self._look()
        if arriving and not ties.submissions_first:
            self._submit_each(arriving)

    def _submit_each(self, arriving: Sequence[Arrival]) -> None:
        only_what_fits = self._ties.only_what_fits_sets_off_a_cycle
        for arrival in arriving:
            submitted = arrival.submitted
            self._waiting += 1
            self._tell(submitted)
            self._look(submitted.job if only_what_fits else None)

    def _end(self, job_id: JobId) -> None:
        """End the job, unless it has ended already. Its record is removed at once, since histories are long."""
        job = self.machine.state.jobs.get(job_id)
        if job is None or job.attempt is None:
            return
        self._free_index = None
        for part in job.attempt.placement:
            for body in decide.replica_ended(self.machine, ReplicaId(job_id, 1, part.rank), _WELL, self._now):
                self._tell(body)
        self._tell(events.JobArchived(job_id))

    def _look(self, for_the_sake_of: JobId | None = None) -> None:
        """Run a scheduling pass if any job can start; after a single arrival only if enough is free for it."""
        machine = self.machine
        if not self._waiting or self._looked_at == machine.state.seq:
            return
        if self._decays:
            self._let_usage_decay()
        plan, room = self._plan, self._free_index
        came = machine.state.jobs[for_the_sake_of] if for_the_sake_of else None
        if room is not None and came is not None and not _has_room(room, came):
            return
        snapshot = machine.peek(self._now)
        if room is None:
            room = self._free_index = next_index(plan, snapshot)
            room.shared, self._has_ended_job = False, True  # a replay never reads an earlier plan
            if came is not None and not _has_room(room, came):
                return
        if came is None and not can_start_any(plan, snapshot, room):
            return
        self._plan = plan = self._planned(snapshot, room)
        if plan.starts:
            for placed in decide.carry_out_plan(machine, plan):
                if isinstance(placed, events.JobPlaced):
                    self._start(placed)
                else:
                    self._tell(placed)
        self._free_index = plan.scheduling_pass.index
        self._looked_at = machine.state.seq

    def _planned(self, snapshot: Snapshot, room: Index) -> Plan:
        self.machine.looked()
        last = self._plan
        if last is not None and not self._has_ended_job:
            return next_plan(last, snapshot, self._policy, room)
        room.version, self._has_ended_job = snapshot.version, False
        return cycle(snapshot, room, self._policy, last.priorities if last is not None else None)

    def _let_usage_decay(self) -> None:
        """Decay the usage up to the last full period before it is used. Periods without any use of it are taken in one
        step."""
        state = self.machine.state
        due = next_decay(state, busy=True)
        if due is not None and due <= self._now:
            period = due - state.usage_at
            at = Millis(self._now - (self._now - state.usage_at) % period)
            now, self._now = self._now, at
            self._tell(events.UsageDecayed())
            self._now = now

    def _start(self, placed: events.JobPlaced) -> None:
        job, number = placed.job, placed.attempt
        self._tell(placed)
        for part in placed.placement:
            self._tell(events.ReplicaStarted(job, number, part.rank))
        self._waiting -= 1
        tie = len(self.started_at) if self._ties.ends_in_order_of_start else job
        self.started_at[job] = self._now
        heappush(self._ends, (Millis(self._now + self._runs_ms[job]), tie, job))

    def _tell(self, body: events.EventBody) -> None:
        machine = self.machine
        seq = machine.state.seq + 1
        machine.follow(events.EventRecord(seq=seq, at=self._now, actor="replay", origin="replay", body=body))
        if self.on_event is not None:
            self.on_event(body, self._now)


def _has_room(room: Index, job: Job) -> bool:
    if room.lacks_cpus_for(job.spec.specs):
        return False
    if not job.partitions:
        return fits_now(room, room.equivalence.equivalence_class(job, "").shape)
    return any(
        fits_now(room, room.equivalence.equivalence_class(job, partition).shape) for partition in partitions_of(job)
    )


BOUND_SECONDS = 10
"""τ of the bounded slowdown: shorter jobs count as if they were so long."""


class Run(msgspec.Struct, frozen=True):
    """One job of a schedule; times in seconds."""

    submitted: int
    waited: int
    ran: int
    processors: int

    @property
    def bounded_slowdown(self) -> float:
        """max(1, (wait + run) / max(run, τ)), after Feitelson et al., "Theory and Practice in Parallel Job Scheduling",
        1997."""
        return max(1.0, (self.waited + self.ran) / max(self.ran, BOUND_SECONDS))

    @property
    def ended(self) -> int:
        return self.submitted + self.waited + self.ran


class Figures(msgspec.Struct, frozen=True):
    """Means over all jobs, and the share of the machine in use from the first submission to the last end."""

    mean_bounded_slowdown: float
    mean_wait: float
    utilisation: float


def figures(runs: Sequence[Run], processors: int) -> Figures:
    """Return the figures of a schedule; all are 0 for one without jobs."""
    if not runs:
        return Figures(0.0, 0.0, 0.0)
    span = max(run.ended for run in runs) - min(run.submitted for run in runs)
    used = sum(run.processors * run.ran for run in runs)
    return Figures(
        mean_bounded_slowdown=fsum(run.bounded_slowdown for run in runs) / len(runs),
        mean_wait=sum(run.waited for run in runs) / len(runs),
        utilisation=used / (processors * span) if span else 0.0,
    )
