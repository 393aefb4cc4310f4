"""The rings of an elastic job: who trained together, and why the ring changed."""

from __future__ import annotations

import pytest

from cockpit.model.attempt import Grounds
from cockpit.model.events import EventRecord, WorkersRecalled
from cockpit.model.ids import JobId, Millis
from cockpit.model.jobdetail import JobDetail
from cockpit.model.resilience import WorkerRestart
from cockpit.present.columns import Context
from cockpit.present.moments import clock
from cockpit.present.rings import ring_lines, rings, rings_json, shrinking_rule
from tests.builders import SECOND, a_spec
from tests.doubles.samples import job_row
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import begun, elastic, ends, engine, grow


def detail_of(driver: EngineDriver, job: JobId, last: int = 1000) -> JobDetail:
    told = [each for each in driver.journal if getattr(each.body, "job", None) == job]
    return JobDetail(row=job_row(int(job)), job=driver.job(job), explanation=None, events=tuple(told[-last:]))


def seen(driver: EngineDriver, detail: JobDetail) -> list[str]:
    return [each.strip() for each in ring_lines(detail, Context(now=driver.now))]


def grown_and_shrunk() -> tuple[EngineDriver, JobId]:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 2, 4, worker_restart_policy=WorkerRestart.ON_FAILURE, backoff_limit=3))
    driver.pass_time(60 * SECOND)
    grow(driver)
    driver.pass_time(60 * SECOND)
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.schedule()
    driver.pass_time(SECOND)
    ends(driver, job, 2, code=255)
    ends(driver, job, 3, code=255)
    driver.schedule()
    driver.started(urgent)
    driver.pass_time(60 * SECOND)
    ends(driver, job, 1, code=1)
    return driver, job


@pytest.mark.req("EL-01", "EL-05", "EL-07")
def test_each_change_of_the_workers_forms_a_ring_with_its_cause() -> None:
    driver, job = grown_and_shrunk()
    detail = detail_of(driver, job)
    formed = rings(detail)
    assert [[each.replica for each in ring.workers] for ring in formed] == [[0, 1], [0, 1, 2, 3], [0, 1], [0, 4]]
    causes = [str(type(each.record.body).__struct_config__.tag) for each in formed]
    assert causes == ["job_placed", "workers_added", "workers_recalled", "worker_replaced"]
    assert [(each.rank, each.host, each.node) for each in formed[-1].workers] == [
        (0, "train-worker-0", "n1"),
        (1, "train-worker-4", "n2"),
    ]
    lines = seen(driver, detail)
    assert lines[0].endswith("2 now, at least 1, at most 4")
    first, last = (clock(at, driver.now, None) for at in (rings(detail)[0].since, driver.now))
    assert lines[1].endswith(f"  {first} to {last}")
    assert first != clock(rings(detail)[1].since, driver.now, None)
    assert lines[1].startswith("▅")
    assert "█" in lines[1]
    assert lines[2].endswith("2 workers  was placed on n1 and n2")
    assert lines[3] == "0 train-worker-0 on n1, 1 train-worker-1 on n2"
    assert lines[4].endswith("4 workers  grows by 2 workers: n3 and n4")
    assert "2 workers  is preempted by job 2, whose QOS may preempt its own: replicas 2 and 3 are recalled" in lines[6]
    assert lines[7].startswith(
        "rule: of the jobs that may be preempted, that with the lowest QOS priority and then the"
    )
    assert lines[9].endswith("2 workers  replica 1 ended, and replica 4 takes its place, retry 1")


@pytest.mark.req("EL-01", "UI-40")
def test_scripts_get_every_ring_with_its_workers() -> None:
    driver, job = grown_and_shrunk()
    found = rings_json(detail_of(driver, job), Context(now=driver.now))
    assert [(each["size"], each["cause"]) for each in found] == [
        (2, "job_placed"),
        (4, "workers_added"),
        (2, "workers_recalled"),
        (2, "worker_replaced"),
    ]
    assert found[0]["workers"][1] == {"rank": 1, "replica": 1, "host": "train-worker-1", "node": "n2"}
    assert [each["rule"] is None for each in found] == [True, True, False, True]
    assert [each["version"] for each in found] == sorted(each["version"] for each in found)


@pytest.mark.req("EL-01")
@pytest.mark.parametrize("last", range(2, 40))
def test_rings_agree_wherever_the_list_of_events_begins(last: int) -> None:
    driver, job = grown_and_shrunk()
    whole, part = (rings(detail_of(driver, job, size)) for size in (1000, last))
    assert part == whole[len(whole) - len(part) :]


@pytest.mark.req("EL-04")
def test_a_suspended_job_has_no_ring_until_it_resumes() -> None:
    driver = engine(nodes=2)
    (job,) = begun(driver, elastic("train", 2, 2, 2))
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, qos="high"))
    driver.schedule()
    assert [len(each.workers) for each in rings(detail_of(driver, job))] == [2, 0]
    for rank in (0, 1):
        ends(driver, job, rank, code=255)
    driver.schedule()
    driver.started(urgent)
    ends(driver, urgent, 0, code=0)
    driver.schedule()
    assert [len(each.workers) for each in rings(detail_of(driver, job))] == [2, 0, 2]


@pytest.mark.req("EL-01")
@pytest.mark.parametrize("grounds", Grounds)
def test_every_recall_has_the_rule_by_which_this_job_shrinks(grounds: Grounds) -> None:
    body = WorkersRecalled(JobId(1), (2,), Millis(5), None, grounds)
    assert shrinking_rule(EventRecord(seq=1, at=Millis(1), actor="e", origin="e", body=body))


@pytest.mark.req("EL-01")
def test_a_job_that_is_not_elastic_has_no_ring() -> None:
    driver = engine()
    (job,) = begun(driver, a_spec("plain", cpus=4))
    assert rings(detail_of(driver, job)) == []
    assert list(ring_lines(detail_of(driver, job), Context(now=driver.now))) == []
