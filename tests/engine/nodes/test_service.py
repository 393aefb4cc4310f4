"""Nodes out of service: by administrators, and where a prolog or an epilog fails."""

from __future__ import annotations

import pytest

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.faults import epilog_failed, prolog_failed
from cockpit.engine.nodes import service
from cockpit.engine.views.rows import node_rows
from cockpit.model import events
from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import Millis, NodeName, ReplicaId
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from cockpit.model.reasons import NoEligibleNode
from cockpit.model.refusal import Refusal, RefusalKind
from tests.builders import ANN, HOUR, a_node, a_spec
from tests.engine.driver import EngineDriver

ROOT, PERSON = Actor(ANN, admin=True), Actor(ANN, admin=False)
N1, N2 = NodeName("n1"), NodeName("n2")


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4), a_node("n2", cpus=4))


def state_of(engine: EngineDriver, name: NodeName) -> tuple[NodeState, str, str]:
    node = engine.machine.state.nodes[name]
    return node.state, node.state_reason, node.drained_by


@pytest.mark.req("JT-24", "SC-15")
def test_after_a_failed_prolog_the_job_is_requeued_in_its_place_and_the_node_is_drained(engine: EngineDriver) -> None:
    (first,) = engine.run(a_spec("first", cpus=4, node_names=("n1",)))
    (behind,) = engine.submit(a_spec("behind", cpus=4, node_names=("n1",)))
    engine.act(prolog_failed(engine.machine, ReplicaId(first, 1, 0), "prolog 1 ended with 1 on n1", engine.now))
    waits = engine.job(first)
    assert waits.state is JobState.QUEUED
    assert waits.accrues_from == waits.submitted_at
    assert (waits.attempt.ended_at, waits.attempt.cause) == (engine.now, EndCause.START_FAILED)
    assert list(engine.machine.queue) == [first, behind]
    assert state_of(engine, N1) == (NodeState.DRAINED, "prolog 1 ended with 1 on n1", "engine")
    engine.schedule()
    assert engine.plan.refusals.reason(engine.job(first), "") == NoEligibleNode(
        ("n1",), out_of_service=("n1",), why_out=("drained: prolog 1 ended with 1 on n1",)
    )
    engine.act(service.resume(engine.machine, "n1", "root"))
    engine.schedule()
    assert engine.job(first).attempt.number == 2
    assert engine.job(first).state is JobState.STARTING
    engine.started(first)
    engine.ended(first, code=0)
    assert engine.job(first).state is JobState.SUCCEEDED


@pytest.mark.req("JT-24")
def test_a_gang_whose_prolog_fails_on_one_node_is_removed_from_all_its_nodes(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec("gang", nodes=2, cpus=4))
    engine.act(prolog_failed(engine.machine, ReplicaId(job, 1, 1), "prolog 1 ended with 1 on n2", engine.now))
    assert engine.job(job).state is JobState.QUEUED
    assert not engine.machine.occupied
    assert state_of(engine, N1)[0] is NodeState.UP
    late = decide.replica_ended(engine.machine, ReplicaId(job, 1, 0), ExitStatus(code=0), engine.now)
    assert late == []
    assert prolog_failed(engine.machine, ReplicaId(job, 1, 0), "again", engine.now) == []


@pytest.mark.req("JT-24")
def test_a_job_that_is_being_ended_ends_where_its_prolog_fails(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec("first", cpus=4))
    engine.schedule()
    engine.act(decide.cancel(engine.job(job), engine.now, None))
    engine.act(prolog_failed(engine.machine, ReplicaId(job, 1, 0), "prolog 1 ended with 1 on n1", engine.now))
    assert engine.job(job).state is JobState.STOPPED
    assert state_of(engine, N1)[0] is NodeState.DRAINED


@pytest.mark.req("JT-24", "SC-02")
def test_the_time_of_a_prolog_that_fails_is_used(engine: EngineDriver) -> None:
    engine.tell(events.ClusterConfigured(Cluster()))
    (job,) = engine.run(a_spec("first", cpus=4, qos="normal"))
    engine.now = engine.now + HOUR
    engine.act(prolog_failed(engine.machine, ReplicaId(job, 1, 0), "no", engine.now))
    assert engine.machine.state.qos_usage["normal"].raw > 0


@pytest.mark.req("JT-24")
def test_after_a_failed_epilog_no_job_starts_on_the_node_until_it_is_resumed(engine: EngineDriver) -> None:
    engine.act(epilog_failed(engine.machine, N1, "epilog 1 ended with 1 on n1"))
    assert epilog_failed(engine.machine, N1, "and again") == []
    (job,) = engine.submit(a_spec("first", node_names=("n1",)))
    engine.schedule()
    assert engine.job(job).state is JobState.QUEUED
    engine.act(decide.nodes_changed(engine.machine, [a_node("n1", cpus=8), a_node("n2", cpus=4)]))
    assert engine.machine.state.nodes[N1].cpus == 8
    assert state_of(engine, N1) == (NodeState.DRAINED, "epilog 1 ended with 1 on n1", "engine")
    engine.act(service.resume(engine.machine, "n1", "root"))
    engine.schedule()
    assert engine.job(job).state is JobState.STARTING


@pytest.mark.req("SC-10", "SC-15")
def test_the_row_of_a_node_shows_its_current_reason_and_whether_it_is_a_login_node() -> None:
    engine = EngineDriver(a_node("n1", pool="door"), a_node("n2"))
    course = Reservation(name="course", nodes=(N2,), start_at=engine.now, end_at=engine.now + HOUR, users=("ann",))
    engine.tell(events.ClusterConfigured(Cluster(login_pool="door")), events.ReservationMade(course))

    def told(later: int) -> list[tuple[bool, tuple[str, ...]]]:
        rows = node_rows(engine.machine, lambda _: True, Millis(engine.now + later))
        return [(row.login, row.reserved) for row in rows]

    assert told(0) == [(True, ()), (False, ("course",))]
    assert told(HOUR) == [(True, ()), (False, ())]


def test_nodes_that_are_drained_and_resumed(engine: EngineDriver) -> None:
    for refused, kind in (
        (service.drain(engine.machine, "n9", "fan", "root"), RefusalKind.NOT_FOUND),
        (service.drain(engine.machine, "n1", "", "root"), RefusalKind.INVALID),
        (service.resume(engine.machine, "n1", "root"), RefusalKind.CONFLICT),
    ):
        assert isinstance(refused, Refusal)
        assert refused.kind is kind
    (running,) = engine.run(a_spec("first", node_names=("n1",)))
    engine.act(service.drain(engine.machine, "n1", "fan", "root"))
    assert engine.job(running).state is JobState.RUNNING
    again = service.drain(engine.machine, "n1", "fan", "root")
    assert isinstance(again, Refusal)
    assert "drained already, by root: fan" in again.message


@pytest.mark.req("JT-24")
def test_a_node_that_is_no_longer_configured_stays_drained_while_a_job_occupies_it_and_leaves_after(
    engine: EngineDriver,
) -> None:
    (job,) = engine.run(a_spec("first", node_names=("n1",)))
    others = [node for name, node in engine.machine.state.nodes.items() if name != N1]
    engine.act(decide.nodes_changed(engine.machine, others))
    state, because, _ = state_of(engine, N1)
    assert (state, because) == (NodeState.DRAINED, "no longer configured")
    engine.ended(job, code=0)
    engine.act(decide.nodes_changed(engine.machine, others))
    assert set(engine.machine.state.nodes) == {node.name for node in others}
