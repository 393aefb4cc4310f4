"""Drives the pure engine the way the host does, with a clock that tests move by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine import decide, faults
from cockpit.engine.access import Actor
from cockpit.engine.alerting import alerts_raised
from cockpit.engine.dependencies import consequences
from cockpit.engine.due import due
from cockpit.engine.effects import Effect
from cockpit.engine.invariants import violations
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.attempt import ExitStatus
from cockpit.model.events import EventBody, EventRecord
from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.job import Job, JobState
from cockpit.model.refusal import Refusal
from cockpit.sched.cycle import cycle
from cockpit.sched.policy import Policy
from tests.builders import ANN, NOON, a_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.job import Submitter
    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec

HOLD_SECONDS = 4 * 3600


class EngineDriver:
    """The engine with a hand-moved clock. Invariants are checked after every event."""

    def __init__(self, *nodes: Node) -> None:
        self.now = NOON
        self.machine = Machine(ClusterState())
        self.journal: list[EventRecord] = []
        self.effects: list[Effect] = []
        self.plan = None
        self.asked_by = ("test", "test")
        """Actor and origin of the events to come."""
        self.alert_pause_ms: int | None = None
        """The least time between two alerts of one kind about a job; None: no alert is raised."""
        self.tell(events.NodesChanged(nodes or (a_node(),)))

    def tell(self, *bodies: EventBody) -> None:
        for body in bodies:
            actor, origin = self.asked_by
            record = EventRecord(seq=len(self.journal) + 1, at=self.now, actor=actor, origin=origin, body=body)
            self.journal.append(record)
            self.effects += self.machine.handle(record)
            assert violations(self.machine, body) == []

    def act(self, decision: Sequence[EventBody] | Refusal) -> Refusal | None:
        if isinstance(decision, Refusal):
            return decision
        decided = [*decision, *consequences(self.machine, decision)]
        if self.alert_pause_ms is not None:
            decided += alerts_raised(self.machine, decided, self.now, self.alert_pause_ms)
        self.tell(*decided)
        return None

    def submit(self, *specs: JobSpec, by: Submitter = ANN, admin: bool = False) -> list[JobId]:
        before = self.machine.state.last_job_id
        refused = self.act(submit(self.machine, specs, Actor(by, admin), now=self.now))
        assert refused is None, refused
        return [JobId(job) for job in range(before + 1, self.machine.state.last_job_id + 1)]

    def schedule(self) -> None:
        index, priorities = (self.plan.index, self.plan.priorities) if self.plan else (None, None)
        self.plan = cycle(self.machine.snapshot(self.now), index, Policy(), priorities)
        self.act(decide.carry_out_plan(self.machine, self.plan))

    def run(self, *specs: JobSpec) -> list[JobId]:
        """Submit, place, and let the commands start."""
        jobs = self.submit(*specs)
        self.schedule()
        for job in jobs:
            self.started(job)
        return jobs

    def started(self, job: JobId) -> None:
        """Also where its nodes have to be found in order before that."""
        if self.job(job).state is JobState.PRECHECKING:
            self.act(faults.precheck_passed(self.machine, self.replicas(job)[0], "n1 has its 4 CPUs and its memory"))
        for replica in self.replicas(job):
            self.act(decide.replica_started(self.machine, replica, "cgroup v1"))

    def ended(self, job: JobId, rank: int = 0, **status: object) -> None:
        replica = self.replicas(job)[rank]
        self.act(decide.replica_ended(self.machine, replica, ExitStatus(**status), self.now, HOLD_SECONDS))

    def replicas(self, job: JobId) -> tuple[ReplicaId, ...]:
        attempt = self.job(job).attempt
        assert attempt is not None
        return attempt.replica_ids(job)

    def pass_time(self, ms: int) -> None:
        self.now = Millis(self.now + ms)
        self.act(due(self.machine, self.now))

    def job(self, job: JobId) -> Job:
        return self.machine.state.jobs[job]
