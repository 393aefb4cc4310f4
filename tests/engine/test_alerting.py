"""Which events raise an alert about a job, and how often."""

from __future__ import annotations

import pytest

from cockpit.engine import faults, workers
from cockpit.engine.effects import SendAlert
from cockpit.engine.views.rows import job_row
from cockpit.model import events
from cockpit.model.alerts import Alert, AlertKind
from cockpit.model.attempt import ExitStatus, Slow
from cockpit.model.ids import JobId
from cockpit.model.resilience import AfterWait, JobRestart, WorkerRestart
from tests.builders import MINUTE, SECOND
from tests.engine.driver import EngineDriver
from tests.engine.nodes.test_reclaiming import effortless, pressed, reclaim_node
from tests.engine.test_below_min import suspended
from tests.engine.test_faults import DOWN, watching
from tests.engine.test_resuming import engine as resuming_engine
from tests.engine.test_workers import begun, elastic, ends, engine

SLOW = Slow(rank=0, hardware_ms=95.0, e2e_ms=100.0)
PAUSE = 10 * MINUTE


def alerting(driver: EngineDriver) -> EngineDriver:
    driver.alert_pause_ms = PAUSE
    return driver


def raised(driver: EngineDriver) -> list[tuple[JobId, AlertKind]]:
    found = [record.body for record in driver.journal if isinstance(record.body, events.AlertRaised)]
    return [(each.job, each.alert.kind) for each in found]


def last(driver: EngineDriver, job: JobId) -> Alert:
    """The one that the job's row shows, which was sent too."""
    alert = job_row(driver.job(job), None).alert
    assert SendAlert(job, alert) in driver.effects
    return alert


@pytest.mark.req("EL-11", "EL-13")
def test_a_fault_and_slow_iterations_raise_an_alert_each() -> None:
    driver = alerting(resuming_engine())
    (job,) = driver.run(watching())
    (replica,) = driver.replicas(job)
    driver.act(faults.report_slow(driver.machine, replica, SLOW, driver.now))
    assert (last(driver, job).slow, last(driver, job).threshold) == (SLOW, 0.9)
    node = driver.job(job).attempt.placement[0].node
    driver.act(faults.drain_faulty(driver.machine, node, DOWN, driver.now))
    assert raised(driver) == [(job, AlertKind.PERFORMANCE), (job, AlertKind.FAULT)]
    driver.now += SECOND
    assert [each.kind for each in driver.job(job).alerts] == [AlertKind.PERFORMANCE, AlertKind.FAULT]
    assert last(driver, job) in driver.job(job).alerts


@pytest.mark.req("EL-11", "JT-17")
def test_a_job_that_has_used_up_its_resumes_raises_an_alert_at_its_end() -> None:
    driver = alerting(resuming_engine())
    (job,) = driver.run(watching(most=1))
    driver.ended(job, code=3)
    assert raised(driver) == []
    driver.schedule()
    driver.started(job)
    driver.ended(job, code=3)
    assert raised(driver) == [(job, AlertKind.EXHAUSTED)]
    assert (last(driver, job).retries, last(driver, job).exit) == (1, ExitStatus(code=3))


@pytest.mark.req("EL-07")
@pytest.mark.parametrize(
    "policy", [{"worker_restart_policy": WorkerRestart.ON_FAILURE}, {"job_restart_policy": JobRestart.ON_FAILURE}]
)
def test_an_elastic_job_that_has_used_up_its_backoff_limit_raises_an_alert(policy: dict[str, object]) -> None:
    driver = alerting(engine())
    (job,) = begun(driver, elastic("train", 1, 1, 1, backoff_limit=1, **policy))
    ends(driver, job, 0, code=3)
    driver.schedule()
    driver.started(job)
    assert raised(driver) == []
    ends(driver, job, max(part.rank for part in driver.job(job).attempt.placement), code=3)
    assert raised(driver) == [(job, AlertKind.EXHAUSTED)]


@pytest.mark.req("EL-07")
def test_a_job_without_restarts_that_fails_raises_no_alert() -> None:
    driver = alerting(engine())
    (job,) = begun(driver, elastic("train", 1, 1, 1))
    ends(driver, job, 0, code=3)
    assert (driver.job(job).ended, raised(driver)) == (True, [])


@pytest.mark.req("EL-02")
def test_a_reclaimed_node_raises_one_alert_for_each_job_there_and_a_second_node_soon_after_none() -> None:
    driver = alerting(engine())
    (job,) = begun(driver, elastic("train", 1, 3, 3))
    first, second, third = (part.node for part in driver.job(job).attempt.placement)
    reclaim_node(driver, first)
    alert = last(driver, job)
    assert (alert.nodes, alert.ranks, alert.continues) == ((first,), (0,), True)
    assert alert.kill_at == driver.now + 5 * MINUTE
    reclaim_node(driver, second)
    assert raised(driver) == [(job, AlertKind.RECLAIM)]
    driver.now += PAUSE
    reclaim_node(driver, third)
    assert raised(driver) == [(job, AlertKind.RECLAIM)] * 2
    assert (last(driver, job).nodes, last(driver, job).continues) == ((), False)
    assert len(driver.job(job).alerts) == 1


@pytest.mark.req("EL-08")
def test_memory_pressure_on_a_best_effort_job_is_a_reclaim() -> None:
    driver = alerting(engine())
    (job,) = begun(driver, effortless("scraps", 1, 2, 2))
    pressed(driver, driver.job(job).attempt.placement[0].node)
    assert raised(driver) == [(job, AlertKind.RECLAIM)]


@pytest.mark.req("EL-04")
@pytest.mark.parametrize("after", AfterWait)
def test_a_suspension_below_the_minimum_and_its_end_raise_an_alert_each(after: AfterWait) -> None:
    driver = alerting(engine())
    job, _ = suspended(driver, max_wait_seconds=60, after_wait=after)
    assert raised(driver) == [(job, AlertKind.SUSPENDED)]
    driver.pass_time(60 * SECOND)
    assert raised(driver)[1:] == [(job, AlertKind.WAITING)]
    assert last(driver, job).continues is (after is AfterWait.QUEUE)


@pytest.mark.req("EL-05")
def test_a_silent_worker_that_is_put_on_the_block_list_raises_an_alert() -> None:
    driver = alerting(engine())
    (job,) = begun(driver, elastic("train", 1, 2, 2, max_wait_seconds=60))
    driver.now += MINUTE
    driver.act(workers.handle_silent_worker(driver.machine, driver.replicas(job)[1], None, driver.now))
    alert = last(driver, job)
    assert (alert.kind, alert.because) == (AlertKind.BLOCKED, "it has not answered for 61 s")
    assert set(alert.nodes) == set(driver.job(job).attempt.blocked)
