"""Elastic jobs that would have fewer workers than they need are suspended, and resume by themselves (EL-04)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine import decide, evictions
from cockpit.engine.effects import SignalKind, SignalReplica, WriteWorkersFile
from cockpit.engine.machine import Machine
from cockpit.engine.submission.submit import edit
from cockpit.engine.views.rows import job_row, overview
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal
from cockpit.model.resilience import AfterWait, ReclaimSignal
from cockpit.model.spec import Mode
from tests.builders import SECOND, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import begun, elastic, ends, engine, told


def short(driver: EngineDriver, **policies: object) -> tuple[JobId, JobId]:
    """A job that needs three workers of four nodes, and one of two nodes for which it is evicted."""
    (job,) = begun(driver, elastic("train", 3, 4, 4, **policies))
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.effects.clear()
    driver.schedule()
    return job, urgent


def suspended(driver: EngineDriver, **policies: object) -> tuple[JobId, JobId]:
    job, urgent = short(driver, **policies)
    for rank in range(4):
        ends(driver, job, rank, code=255)
    driver.schedule()
    driver.started(urgent)
    return job, urgent


@pytest.mark.req("EL-04", "EL-02")
def test_every_worker_is_notified_and_none_gets_a_signal_before_the_grace_is_over() -> None:
    driver = engine()
    short(driver)
    assert {each.replica.rank for each in driver.effects if isinstance(each, WriteWorkersFile)} == {0, 1, 2, 3}
    assert [each for each in driver.effects if isinstance(each, SignalReplica)] == []
    driver.pass_time(20 * SECOND)
    assert {each.force for each in driver.effects if isinstance(each, SignalReplica)} == {SignalKind.KILL}


@pytest.mark.req("EL-02", "EL-04")
def test_a_job_may_request_an_early_signal_and_a_longer_grace() -> None:
    driver = engine()
    short(driver, reclaim_signal=ReclaimSignal.SIGTERM, grace_seconds=90)
    assert {each.force for each in driver.effects if isinstance(each, SignalReplica)} == {SignalKind.TERM}
    (ending,) = told(driver, events.EndingBegan)
    assert ending.kill_at == driver.now + 90 * SECOND


@pytest.mark.req("EL-04", "JT-31")
@pytest.mark.parametrize("mode", ["REQUEUE", "CANCEL"])
def test_a_job_below_its_minimum_is_suspended_and_resumes_when_nodes_are_free(mode: str) -> None:
    driver = engine(mode=mode)
    job, urgent = suspended(driver)
    found = driver.job(job)
    assert (found.state, found.shown_state, found.retries) == (JobState.QUEUED, JobState.SUSPENDED, 0)
    row = job_row(found, None)
    assert (row.state, row.queued, row.holds, row.placed_on) == (JobState.SUSPENDED, True, False, ())
    assert overview(driver.machine, "c").jobs_by_state == {"running": 1, "suspended": 1}
    assert Machine(driver.machine.state).indices.states.of(JobState.SUSPENDED) == {job: None}
    for rank in (0, 1):
        ends(driver, urgent, rank, code=0)
    driver.schedule()
    found = driver.job(job)
    assert (found.state, found.below_min_at, found.attempt.number) == (JobState.RESUMING, None, 2)


@pytest.mark.req("EL-04")
def test_a_job_suspended_for_long_enough_is_requeued() -> None:
    driver = engine()
    job, _ = suspended(driver)
    driver.pass_time(599 * SECOND)
    assert driver.job(job).shown_state is JobState.SUSPENDED
    driver.pass_time(SECOND)
    assert told(driver, events.WaitEnded) == [events.WaitEnded(job)]
    assert driver.job(job).shown_state is JobState.QUEUED
    assert overview(driver.machine, "c").jobs_by_state == {"running": 1, "queued": 1}


@pytest.mark.req("EL-04")
def test_a_job_suspended_for_long_enough_fails_where_configured() -> None:
    driver = engine()
    job, _ = suspended(driver, max_wait_seconds=60, after_wait=AfterWait.FAIL)
    driver.pass_time(60 * SECOND)
    found = driver.job(job)
    assert (found.state, found.end_cause, found.below_min_at) == (JobState.ERROR, EndCause.BELOW_MIN, None)


@pytest.mark.req("EL-04", "JT-42")
def test_a_suspended_job_edited_to_a_fixed_size_is_requeued() -> None:
    driver = engine()
    job, _ = suspended(driver)
    fixed = replace(driver.job(job).spec, elastic=None, nodes=2, mode=Mode.PYTORCH)
    assert driver.act(edit(driver.machine, driver.job(job), fixed, now=driver.now)) is None
    assert (driver.job(job).shown_state, driver.job(job).waits_until) == (JobState.QUEUED, None)


@pytest.mark.req("EL-04")
def test_a_user_can_stop_a_suspended_job_and_need_not_resume_it() -> None:
    driver = engine()
    job, _ = suspended(driver)
    refused = evictions.resume(driver.machine, driver.job(job))
    assert isinstance(refused, Refusal)
    assert refused.message == f"Job {job} resumes by itself once there are free resources for 3 workers."
    driver.act(decide.cancel(driver.job(job), driver.now, None))
    assert (driver.job(job).state, driver.job(job).shown_state) == (JobState.STOPPED, JobState.STOPPED)
