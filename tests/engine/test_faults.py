"""Faults of nodes and slow iterations, under jobs that resume from their checkpoints."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine import faults
from cockpit.engine.effects import SignalKind, SignalReplica
from cockpit.engine.views.rows import job_row
from cockpit.model import events
from cockpit.model.attempt import EndCause, Slow
from cockpit.model.catalogue import UserEntry
from cockpit.model.ids import NodeName
from cockpit.model.job import JobState
from cockpit.model.resilience import OnSlow, Performance
from cockpit.model.spec import JobSpec
from tests.builders import SECOND, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_resuming import begins_again, engine, resuming

SLOW = Slow(rank=0, hardware_ms=95.0, e2e_ms=100.0)
DOWN = "the network interface eth0 is down"


def watching(action: OnSlow = OnSlow.ALERT, most: int = 2, **fields: object) -> JobSpec:
    spec = resuming(most, **fields)
    assert spec.resume is not None
    return replace(spec, resume=replace(spec.resume, performance=Performance(threshold=0.9, action=action)))


def told(driver: EngineDriver, kind: type) -> list[object]:
    return [record.body for record in driver.journal if isinstance(record.body, kind)]


@pytest.mark.req("EL-11", "JT-17")
def test_a_fault_makes_every_resuming_job_of_the_node_save_and_resume_on_other_nodes() -> None:
    driver = engine()
    hit, other, plain = driver.run(resuming(cpus=2), resuming(cpus=4, name="other"), a_spec("plain", cpus=2))
    node = driver.job(hit).attempt.placement[0].node
    assert driver.job(other).attempt.placement[0].node != node
    driver.effects.clear()
    driver.act(faults.faulty(driver.machine, node, DOWN, driver.now))
    assert told(driver, events.FaultFound) == [events.FaultFound(hit, 1, node, DOWN)]
    assert driver.effects == [SignalReplica(driver.replicas(hit)[0], SignalKind.TERM)]
    assert driver.job(hit).ending.kill_at == driver.now + 60 * SECOND
    assert driver.machine.state.nodes[node].state_reason == DOWN
    assert driver.job(plain).ending is driver.job(other).ending is None
    assert faults.faulty(driver.machine, node, DOWN, driver.now) == []
    driver.ended(hit, code=0)  # it saved what it had, and ended well
    waiting = driver.job(hit)
    assert (waiting.state, waiting.retries, waiting.attempt.cause) == (JobState.QUEUED, 1, EndCause.FAULT)
    driver.ended(other, code=0)
    begins_again(driver, hit)
    assert driver.job(hit).attempt.placement[0].node != node


@pytest.mark.req("EL-11")
def test_a_fault_ends_a_job_without_remaining_resumes() -> None:
    driver = engine()
    (job,) = driver.run(resuming(most=0))
    driver.act(faults.faulty(driver.machine, driver.job(job).attempt.placement[0].node, DOWN, driver.now))
    driver.ended(job, code=0)
    assert (driver.job(job).state, driver.job(job).end_cause) == (JobState.ERROR, EndCause.FAULT)


@pytest.mark.req("EL-13")
def test_an_alert_is_sent_once_per_attempt_and_does_not_change_the_job() -> None:
    driver = engine()
    driver.tell(events.CatalogueChanged((UserEntry(name="ann", email="ann@example.org"),)))
    (job,) = driver.run(watching())
    (replica,) = driver.replicas(job)
    assert faults.slow(driver.machine, replica, replace(SLOW, hardware_ms=90.0), driver.now) == []  # not above
    driver.act(faults.slow(driver.machine, replica, SLOW, driver.now))
    assert told(driver, events.PerformanceFell) == [
        events.PerformanceFell(job, 1, SLOW, 0.9, address="ann@example.org")
    ]
    assert (driver.job(job).state, driver.job(job).ending, driver.job(job).attempt.slow) == ("running", None, SLOW)
    assert faults.slow(driver.machine, replica, SLOW, driver.now) == []
    assert job_row(driver.job(job), None).slow == (0.95, 0.9)


@pytest.mark.req("EL-13", "JT-17")
def test_a_slow_job_configured_to_move_resumes_on_other_nodes_and_avoids_the_slow_ones() -> None:
    driver = engine()
    (job,) = driver.run(watching(OnSlow.RESCHEDULE, most=1))
    first = driver.job(job).attempt.placement[0].node
    (replica,) = driver.replicas(job)
    driver.act(faults.slow(driver.machine, replica, SLOW, driver.now))
    ((fell),) = told(driver, events.PerformanceFell)
    other = ({NodeName("n1"), NodeName("n2")} - {first}).pop()
    assert fell.elsewhere == (other,)
    driver.ended(job, code=255)
    assert (driver.job(job).state, driver.job(job).retries) == (JobState.QUEUED, 1)
    begins_again(driver, job)
    attempt = driver.job(job).attempt
    assert (attempt.placement[0].node, attempt.slow) == (other, None)
    (replica,) = driver.replicas(job)
    driver.act(faults.slow(driver.machine, replica, SLOW, driver.now))  # no resume is left, and no node
    assert told(driver, events.PerformanceFell)[1].elsewhere == ()
    assert driver.job(job).ending is None
    driver.ended(job, code=1)
    assert driver.job(job).state is JobState.ERROR


@pytest.mark.req("EL-13")
def test_a_slow_job_that_fits_on_no_other_nodes_is_not_moved() -> None:
    driver = engine()
    (job,) = driver.run(watching(OnSlow.RESCHEDULE, nodes=2))
    driver.act(faults.slow(driver.machine, driver.replicas(job)[1], replace(SLOW, rank=1), driver.now))
    assert told(driver, events.PerformanceFell)[0].elsewhere == ()
    assert driver.job(job).ending is None
