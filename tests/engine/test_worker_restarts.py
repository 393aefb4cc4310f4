"""What becomes of an elastic job one of whose workers fails, by the policies that it has."""

from __future__ import annotations

import pytest

from cockpit.engine import evictions
from cockpit.engine.effects import RemoveContainer, StartReplica, WriteWorkersFile
from cockpit.model import events
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.resilience import JobRestart, WorkerRestart
from tests.builders import SECOND, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import begun, elastic, ends, engine, ranks, told

ON_FAILURE = {"worker_restart_policy": WorkerRestart.ON_FAILURE}
SOME = {"worker_restart_policy": WorkerRestart.EXIT_CODE}
AGAIN = {"job_restart_policy": JobRestart.ON_FAILURE}


def three(driver: EngineDriver, **policies) -> JobId:
    (job,) = begun(driver, elastic("train", 2, 3, 3, **policies))
    driver.effects.clear()
    return job


@pytest.mark.req("EL-07", "JT-26")
def test_a_failed_worker_is_replaced_and_the_others_are_notified() -> None:
    driver = engine()
    job = three(driver, **ON_FAILURE)
    had = {part.rank: part for part in driver.job(job).attempt.placement}
    ends(driver, job, 1, code=3)
    after = driver.job(job)
    assert driver.journal[-1].body == events.WorkerReplaced(job, 1, 1, 3, 1)
    assert (after.state, after.retries, ranks(driver, job)) == (JobState.RUNNING, 1, [0, 2, 3])
    assert after.attempt.placement[-1].node == had[1].node
    assert after.attempt.replicas[1].exit == ExitStatus(code=3)
    assert [each.replica.rank for each in driver.effects if isinstance(each, RemoveContainer)] == [1]
    assert [each.replica.rank for each in driver.effects if isinstance(each, StartReplica)] == [3]
    assert {each.replica.rank for each in driver.effects if isinstance(each, WriteWorkersFile)} >= {0, 2}
    driver.started(job)
    for rank in (0, 2, 3):
        ends(driver, job, rank, code=0)
    assert driver.job(job).state is JobState.SUCCEEDED


@pytest.mark.req("EL-07")
@pytest.mark.parametrize(
    ("policy", "status", "replaced"),
    [
        ({}, {"code": 3}, False),
        (ON_FAILURE, {"signal": 9, "oom": True}, True),
        (ON_FAILURE, {"lost": "its container disappeared"}, True),
        (SOME, {"code": 1}, False),
        (SOME, {"code": 127}, False),
        (SOME, {"code": 128}, True),
        (SOME, {"code": 255}, True),
        (SOME, {"signal": 11}, True),
        (SOME, {"lost": "its container disappeared"}, True),
    ],
)
def test_failures_that_restart_a_worker(policy: dict, status: dict, replaced: bool) -> None:
    driver = engine()
    job = three(driver, **policy)
    ends(driver, job, 2, **status)
    assert bool(told(driver, events.WorkerReplaced)) is replaced
    assert (driver.job(job).ending is None) is replaced


@pytest.mark.req("EL-07")
def test_the_backoff_limit_counts_restarts_of_workers_and_job_together() -> None:
    driver = engine()
    job = three(driver, **ON_FAILURE, **AGAIN, backoff_limit=1)
    ends(driver, job, 2, code=1)
    driver.started(job)
    assert driver.job(job).retries == 1
    ends(driver, job, 0, code=1)
    for rank in (1, 3):
        ends(driver, job, rank, signal=9)
    assert (driver.job(job).state, driver.job(job).retries) == (JobState.ERROR, 1)


@pytest.mark.req("EL-07", "JT-18")
def test_the_job_restarts_where_no_worker_may() -> None:
    driver = engine()
    job = three(driver, **AGAIN)
    ends(driver, job, 0, code=1)
    for rank in (1, 2):
        ends(driver, job, rank, signal=9)
    assert (driver.job(job).state, driver.job(job).retries) == (JobState.QUEUED, 1)


@pytest.mark.req("EL-02", "EL-07")
def test_a_recalled_worker_and_an_ending_job_use_no_restart() -> None:
    driver = engine()
    job = three(driver, **ON_FAILURE)
    driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.schedule()
    (recalled,) = told(driver, events.WorkersRecalled)
    ends(driver, job, recalled.ranks[0], code=255)
    assert driver.job(job).retries == 0
    driver.act(evictions.requeue(driver.machine, driver.job(job), driver.now))
    for rank in (0, 1):
        ends(driver, job, rank, code=1)
    assert (driver.job(job).state, driver.job(job).retries) == (JobState.QUEUED, 0)
    assert told(driver, events.WorkerReplaced) == []


@pytest.mark.req("EL-07", "UI-09")
def test_resources_of_a_worker_and_its_replacement_are_accounted_once() -> None:
    driver = engine()
    began = driver.now
    job = three(driver, **ON_FAILURE)
    driver.pass_time(9 * SECOND)
    ends(driver, job, 1, code=3)
    driver.started(job)
    driver.pass_time(10 * SECOND)
    for rank in (0, 2, 3):
        ends(driver, job, rank, code=0)
    held = driver.job(job).attempt.held(began, driver.now)
    assert sum(part.cpus * ms for part, ms in held) == 3 * 4 * 20 * SECOND
