"""Replays a history of jobs on virtual time: arrivals and run times are given, and `sched.cycle` decides what starts.

One step of the replay (`moments`) is one moment at which something happens:

1. Find the next moment: the next arrival or the next end.
2. Take all arrivals and all ends of that moment.
3. Apply them as events in the order of the policy's `TieOrder`, which also says after which of them a pass follows.
4. A pass (`_run_pass`) is left out where it could start nothing; else its plan becomes events too.

It uses the same machine, decisions and cycle as a real engine, so that a replay shows what the engine would have done.
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
        """Called with every event and its time once the machine has applied it; None: nothing is called."""
        self._policy, self._ties = policy, policy.ties
        self._arrivals = arrivals
        self._runs_ms = {arrival.submitted.job: arrival.runs_ms for arrival in arrivals}
        limited = [each.submitted for each in arrivals if each.runs_ms == 1000 * each.submitted.spec.time_limit_seconds]
        self._at_limit = {submitted.job for submitted in limited}
        """Jobs that run for exactly their time limit, and so are ended by it."""
        self._ends: list[tuple[Millis, int, JobId]] = []
        """A heap of the running jobs' ends: moment, tie-break by the policy's order, job."""
        self._waiting = 0
        """How many jobs have come and not started."""
        self._plan: Plan | None = None
        self._now = Millis(0)
        self._passed_at = -1
        """Sequence number of the state that the last pass left; a pass without a new event would decide the same."""
        self._free_index: Index | None = None
        """The index of the free resources after the last pass; None: a job has ended since."""
        self._has_ended_job = False
        """Whether a job has ended since the last pass, which released its resources."""
        for body in (events.NodesChanged(tuple(nodes)), *rules):
            self._apply(body)
        self._decays = self.machine.state.cluster.priority.kind is PriorityKind.MULTIFACTOR

    def moments(self) -> Iterator[int]:
        """Replay the history moment by moment; yield the number of jobs that have ended so far."""
        arrivals, ends, together = self._arrivals, self._ends, self._ties.one_cycle_a_moment
        next_at = arrivals[0].at if arrivals else _NEVER
        coming, count, ended = 0, len(arrivals), 0
        while ends or coming < count:
            # 1. The next moment. The end of a job is in the heap once the job has started.
            end_at = ends[0][0] if ends else _NEVER
            ends_first = end_at < next_at
            self._now = now = end_at if ends_first else next_at
            # 2. All arrivals, and if there are any all ends.
            first = coming
            while next_at == now:
                coming += 1
                next_at = arrivals[coming].at if coming < count else _NEVER
            # 3. Without an end, and with a pass for each arrival, the order at this moment is plain.
            if end_at == now or together:
                # Taken from the heap before anything is applied: what starts now and ends now belongs to the next step.
                ending = []
                while ends and ends[0][0] == now:
                    ending.append(heappop(ends)[2])
                self._moment(arrivals[first:coming], ending)
                ended += len(ending)
            else:
                self._submit_each(arrivals[first:coming])
            yield ended

    def _moment(self, arriving: Sequence[Arrival], ending: Sequence[JobId]) -> None:
        """Apply the arrivals and ends of one moment in the order of the policy."""
        ties = self._ties
        # The published EASY schedules count a job at its limit as gone before its end is handled (SC-20).
        if ties.limits_free_at_once:
            for job in ending:
                if job in self._at_limit:
                    self._end(job)
        if ties.one_cycle_a_moment:
            for job in ending:
                self._end(job)
            self._waiting += len(arriving)
            for arrival in arriving:
                self._apply(arrival.submitted)
            self._run_pass()
            return
        if arriving and ties.submissions_first:
            self._submit_each(arriving)
        # A pass after each end, since the next end must find what the one before it let start.
        for job in ending:
            self._end(job)
            self._run_pass()
        if arriving and not ties.submissions_first:
            self._submit_each(arriving)

    def _submit_each(self, arriving: Sequence[Arrival]) -> None:
        only_what_fits = self._ties.only_what_fits_sets_off_a_cycle
        for arrival in arriving:
            submitted = arrival.submitted
            self._waiting += 1
            self._apply(submitted)
            self._run_pass(submitted.job if only_what_fits else None)

    def _end(self, job_id: JobId) -> None:
        """End the job, unless it has ended already. Its record is removed at once, since histories are long."""
        job = self.machine.state.jobs.get(job_id)
        # A job at its limit has been ended already, ahead of the others of its moment.
        if job is None or job.attempt is None:
            return
        self._free_index = None
        for part in job.attempt.placement:
            for body in decide.replica_ended(self.machine, ReplicaId(job_id, 1, part.rank), _WELL, self._now):
                self._apply(body)
        self._apply(events.JobArchived(job_id))

    def _run_pass(self, arrived: JobId | None = None) -> None:
        """Do one scheduling pass and carry out its plan. `arrived`: the job whose arrival alone is the cause.

        The tests before the pass come in the order of their cost, as most arrivals of a history start nothing:

        1. Nothing waits, or nothing has happened since the last pass.
        2. The job that arrived does not fit into what is free.
        3. No waiting job fits.
        """
        machine = self.machine
        # 1. Nothing to do.
        if not self._waiting or self._passed_at == machine.state.seq:
            return
        if self._decays:
            self._let_usage_decay()
        plan, index = self._plan, self._free_index
        job = machine.state.jobs[arrived] if arrived else None
        # 2. The arrival: first without a snapshot, if what is free is known.
        if index is not None and job is not None and not _fits(index, job):
            return
        snapshot = machine.peek(self._now)
        if index is None:
            index = self._free_index = next_index(plan, snapshot)
            # A replay never reads an earlier plan, so that this index may be changed in place.
            index.shared, self._has_ended_job = False, True
            if job is not None and not _fits(index, job):
                return
        # 3. The queue.
        if job is None and not can_start_any(plan, snapshot, index):
            return
        self._plan = plan = self._next_plan(snapshot, index)
        if plan.starts:
            for placed in decide.carry_out_plan(machine, plan):
                if isinstance(placed, events.JobPlaced):
                    self._start(placed)
                else:
                    self._apply(placed)
        # The pass has put its starts into this index, as the events have into the state.
        self._free_index = plan.scheduling_pass.index
        self._passed_at = machine.state.seq

    def _next_plan(self, snapshot: Snapshot, index: Index) -> Plan:
        """Make the plan for the snapshot, with what the last plan saves."""
        self.machine.looked()
        last = self._plan
        if last is not None and not self._has_ended_job:
            return next_plan(last, snapshot, self._policy, index)
        # An end changes verdicts, so that the last pass cannot be continued: a whole pass at once saves that test.
        index.version, self._has_ended_job = snapshot.version, False
        return cycle(snapshot, index, self._policy, last.priorities if last is not None else None)

    def _let_usage_decay(self) -> None:
        """Decay the usage up to the last full period before it is used. Periods without any use of it are taken in one
        step."""
        state = self.machine.state
        due = next_decay(state, busy=True)
        if due is not None and due <= self._now:
            period = due - state.usage_at
            # The last whole period before now: two half steps of decay equal one (SC-02).
            at = Millis(self._now - (self._now - state.usage_at) % period)
            # The event must have the time of the decay, which lies before the facts that are being applied.
            now, self._now = self._now, at
            self._apply(events.UsageDecayed())
            self._now = now

    def _start(self, placed: events.JobPlaced) -> None:
        """Start a job whose placement was decided: all replicas at once, and its end is known from the history."""
        job, number = placed.job, placed.attempt
        self._apply(placed)
        for part in placed.placement:
            self._apply(events.ReplicaStarted(job, number, part.rank))
        self._waiting -= 1
        tie = len(self.started_at) if self._ties.ends_in_order_of_start else job
        self.started_at[job] = self._now
        heappush(self._ends, (Millis(self._now + self._runs_ms[job]), tie, job))

    def _apply(self, body: events.EventBody) -> None:
        machine = self.machine
        seq = machine.state.seq + 1
        machine.follow(events.EventRecord(seq=seq, at=self._now, actor="replay", origin="replay", body=body))
        if self.on_event is not None:
            self.on_event(body, self._now)


def _fits(index: Index, job: Job) -> bool:
    """Return whether the job fits into what is free now, in any of its partitions."""
    # Two comparisons of integers, which answer for most jobs of a loaded cluster.
    if index.lacks_cpus_for(job.spec.specs):
        return False
    if not job.partitions:
        return fits_now(index, index.equivalence.equivalence_class(job, "").shape)
    return any(
        fits_now(index, index.equivalence.equivalence_class(job, partition).shape) for partition in partitions_of(job)
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
