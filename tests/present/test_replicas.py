"""The replicas of an elastic job: READY, RESTARTS, and how long a recalled worker still has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.views.rows import job_row
from cockpit.model.ids import JobId, Millis
from cockpit.model.jobdetail import JobDetail
from cockpit.model.resilience import WorkerRestart
from cockpit.present.columns import Context
from cockpit.present.job.page import replicas
from cockpit.present.job_values import why
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.replicas import REPLICAS, replica_rows
from tests.builders import SECOND, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import begun, elastic, ends, engine, grow

MINUTE = 60 * SECOND


def recalled() -> tuple[EngineDriver, JobId]:
    """Worker 3, which has replaced worker 1, was recalled 48 s ago with a grace period of five minutes."""
    driver = engine(nodes=3)
    restarts = WorkerRestart.ON_FAILURE
    spec = elastic("train", 1, 3, 3, worker_restart_policy=restarts, backoff_limit=3, grace_seconds=300)
    (job,) = begun(driver, spec)
    ends(driver, job, 1, code=1)
    grow(driver)
    driver.pass_time(MINUTE)
    driver.submit(a_spec("urgent", cpus=4, qos="high"))
    driver.schedule()
    driver.pass_time(48 * SECOND)
    return driver, job


def cells(driver: EngineDriver, job: JobId) -> list[dict[str, str]]:
    rows, context = list(replica_rows(driver.job(job))), Context(now=driver.now)
    texts = [column.texts(rows, context) for column in REPLICAS.columns]
    return [dict(zip([each.id for each in REPLICAS.columns], row, strict=True)) for row in zip(*texts, strict=True)]


@pytest.mark.req("EL-02", "EL-07")
def test_each_replica_has_its_readiness_restarts_and_time_until_the_kill() -> None:
    driver, job = recalled()
    shown = [(each["name"], each["ready"], each["status"], each["restarts"]) for each in cells(driver, job)]
    assert shown == [
        ("train-worker-0", "1/1", "running", "0"),
        ("train-worker-1", "0/1", "left", "0"),
        ("train-worker-2", "1/1", "running", "0"),
        ("train-worker-3", "1/1", "leaving", "1"),
    ]
    last = cells(driver, job)[-1]
    assert (last["age_seconds"], last["leaves_in"]) == ("1 min 48 s", "4 min 12 s")
    assert last["because"] == "is preempted by job 2, whose QOS may preempt its own"
    assert cells(driver, job)[0]["leaves_in"] == "–"


@pytest.mark.req("EL-02")
def test_the_row_and_the_page_count_down_to_the_kill_of_a_recalled_worker() -> None:
    driver, job = recalled()
    row, context = job_row(driver.job(job), None), Context(now=driver.now)
    assert why(row, context) == "1 worker leaves, killed in 4 min 12 s; retry 1 of 3"
    (column,) = [each for each in JOBS.columns if each.id == "leaves_in"]
    assert list(column.facts([row], context)) == [252]
    later = Context(now=Millis(driver.now + 600 * SECOND))
    assert list(column.facts([row], later)) == [0]
    detail = JobDetail(row=row, job=driver.job(job), explanation=None, events=())
    lines = list(replicas(detail, context))
    assert lines[1].endswith(" · 1/1 ready, 0 restarts")
    assert lines[-1].endswith(
        " · 1/1 ready, 1 restart · is preempted by job 2, whose QOS may preempt its own, killed in 4 min 12 s"
    )
    ends(driver, job, 3, code=255)
    assert job_row(driver.job(job), None).leaving is None


@pytest.mark.req("EL-04")
def test_below_the_minimum_all_workers_count_down_to_one_kill() -> None:
    driver = engine(nodes=2)
    (job,) = begun(driver, elastic("train", 2, 2, 2, grace_seconds=300))
    driver.submit(a_spec("urgent", cpus=4, qos="high"))
    driver.schedule()
    ending = driver.job(job).ending
    row = job_row(driver.job(job), None)
    assert row.leaving == (2, ending.kill_at)
    assert "2 workers leave, killed in " in (why(row, Context(now=driver.now)) or "")
    assert [each.kill_at for each in replica_rows(driver.job(job))] == [ending.kill_at] * 2


@pytest.mark.req("EL-02")
def test_a_job_that_is_not_elastic_has_no_countdown() -> None:
    driver = engine(nodes=2)
    (job,) = begun(driver, a_spec("plain", cpus=4, qos="low"))
    driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.schedule()
    assert driver.job(job).ending is not None
    assert job_row(driver.job(job), None).leaving is None
    unplaced = replace(driver.job(job), attempt=None, ending=None)
    assert list(replica_rows(unplaced)) == []
