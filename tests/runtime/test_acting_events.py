"""Every act that is asked for over the socket leaves its event: who, when, from where, by which request."""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.model.attempt import ExitStatus
from cockpit.model.events import EventBody, EventRecord, NodesChanged, WorkersAdded, WorkersLeft
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.node import Allocation
from cockpit.model.refusal import RefusalKind
from cockpit.protocol.operations import SHELL
from cockpit.runtime.clock import SystemClock
from cockpit.runtime.host import Act
from cockpit.runtime.operations import OPERATIONS
from tests.builders import a_node
from tests.forged import READING, SPEC, UPKEEP, arguments_for
from tests.runtime.served import RawClient, ServedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

ACTING = sorted({*OPERATIONS, SHELL} - set(READING))
"""A new operation is an act until it is said to change nothing; then it needs arguments in `forged`."""

LEAVES = {
    "submit": "job_submitted",
    "edit": "job_edited",
    "cancel": "job_ended",
    "hold": "job_held",
    "release": "job_released",
    "suspend": "job_suspended",
    "resume": "job_resumed",
    "requeue": "job_requeued",
    "delete": "job_deleted",
    "set_priority": "job_edited",
    "set_time_limit": "job_edited",
    "make_reservation": "reservation_made",
    "end_reservation": "reservation_ended",
    "drain_node": "node_drained",
    "unstage": "copy_removed",
    "resume_node": "node_resumed",
    "extend_hold": "hold_extended",
    "end_hold": "hold_ended",
    "unblock": "node_unblocked",
    "shell": "shell_opened",
    "change_accounts": "accounts_changed",
    "change_catalogue": "catalogue_changed",
    "set_weights": "cluster_configured",
    "apply_quota": "quota_applied",
    "remove_quota": "quota_removed",
    "stop": "engine_stop_asked",
}


@pytest.fixture
def engine(tmp_path: Any) -> Iterator[ServedEngine]:
    with ServedEngine(tmp_path) as served:
        yield served


class Stage:
    """Jobs in the states that acts need. `first` takes the whole machine, so that the others wait."""

    def __init__(self, engine: ServedEngine, client: RawClient) -> None:
        self._engine, self._client = engine, client
        self.first = self._submit("first", specs=[{"cpus": 8}], terminal=True)
        self._until(self.first, "running")

    def job_for(self, operation: str) -> int:
        if operation == "resume":
            assert self._client.ask("suspend", {"job": self.first}).no is None
        if operation in {"shell", "stop", "submit", "suspend", "resume"}:
            return self.first
        if operation in {"extend_hold", "end_hold"}:
            self._engine.call(lambda: self._engine.engine.host.replica_ended(self._replica(), ExitStatus(code=3)))
            self._until(self.first, "error")
            return self.first
        if operation == "unblock":
            return self._excluding()
        if operation == "remove_quota":
            assert self._client.ask("apply_quota", arguments_for("apply_quota", 0)).no is None
        if operation == "end_reservation":
            assert self._client.ask("make_reservation", {"reservation": UPKEEP}).no is None
        if operation == "resume_node":
            assert self._client.ask("drain_node", {"name": "n1", "reason": "fan"}).no is None
        job = self._submit(operation, hold=operation == "release", specs=[{"cpus": 8}])
        if operation in {"delete", "requeue"}:
            assert self._client.ask("cancel", {"job": job}).no is None
        return job

    def _excluding(self) -> int:
        """Return a job with a node on its block list, where another of its workers has failed."""
        elastic = {"workers": 1, "max_workers": 2}
        job = JobId(self._submit("excluding", elastic=elastic, specs=[{"cpus": 8}]))
        self._client.ask("cancel", {"job": self.first, "grace_seconds": 0})
        self._until(job, "running")
        host, part = self._engine.engine.host, Allocation(1, NodeName("n2"), 0, 0)
        changes: list[EventBody] = [
            NodesChanged((*host.machine.state.nodes.values(), a_node("n2"))),
            WorkersAdded(job, 1, (part,), 0.0),
            WorkersLeft(job, (1,), 0.0, "it did not answer"),
        ]
        self._engine.run(host.act(lambda _machine, _now: changes, Act(actor="root", origin="engine")))
        return job

    def _submit(self, name: str, **fields: Any) -> int:
        answer = self._client.ask("submit", {"specs": [{**SPEC, "name": name, **fields}]})
        assert answer.no is None, answer.no
        return int(msgspec.msgpack.decode(answer.ok)["ids"][0])

    def _replica(self) -> ReplicaId:
        return ReplicaId(JobId(self.first), 1, 0)

    def _until(self, job: int, state: str) -> None:
        for _ in range(500):
            if msgspec.msgpack.decode(self._client.ask("job", {"job": job}).ok)["job"]["state"] == state:
                return
        pytest.fail(f"job {job} never was {state}")


@pytest.mark.req("TR-11")
@pytest.mark.parametrize("operation", ACTING)
def test_every_action_writes_its_event(engine: ServedEngine, operation: str) -> None:
    with engine.client() as client, engine.client() as reader:
        job = Stage(engine, client).job_for(operation)
        before = SystemClock().now()
        answer = client.ask(operation, arguments_for(operation, job), f"walk-{operation}")
        assert answer.no is None, answer.no
        (found,) = [record for record in events(reader) if record.request == f"{os.geteuid()}:walk-{operation}"]
    assert found.body.__struct_config__.tag == LEAVES[operation]
    assert (found.actor, found.origin) == (getpass.getuser(), "socket")
    assert before <= found.at <= SystemClock().now()


REFUSED = {("explain", RefusalKind.CONFLICT), ("fleet", RefusalKind.UNAVAILABLE)}
"""The job runs, and the engine is no fleet of several clusters."""


@pytest.mark.req("TR-11")
def test_read_operations_write_no_event(engine: ServedEngine) -> None:
    with engine.client() as client, engine.client() as reader:
        job = Stage(engine, client).first
        before = events(reader)
        for operation in READING:
            with engine.client() as asker:
                answer = asker.ask(operation, arguments_for(operation, job), f"read-{operation}")
            assert answer.no is None or (operation, answer.no.kind) in REFUSED
        assert events(reader) == before


@pytest.mark.req("TR-11")
def test_a_shell_opened_twice_writes_two_events(engine: ServedEngine) -> None:
    """Two people stand in the container, whatever ids they gave their requests."""
    with engine.client() as client, engine.client() as other, engine.client() as reader:
        job = Stage(engine, client).first
        for asker in (client, other):
            assert asker.ask(SHELL, arguments_for(SHELL, job), "same").no is None
        assert [record.body.__struct_config__.tag for record in events(reader)].count("shell_opened") == 2


def events(client: RawClient) -> list[EventRecord]:
    found: list[EventRecord] = []
    answer = client.ask("events", {"limit": 1000})
    while not answer.last:
        found += msgspec.msgpack.decode(answer.ok, type=list[EventRecord])
        answer = client.answer()
    return found
