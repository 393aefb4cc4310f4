"""The lists of an elastic job's workers: one version for each list, and ranks in the order in which workers came."""

from __future__ import annotations

import pytest

from cockpit.engine import decide
from cockpit.launch.world import world
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.resilience import NoGrowth, WorkerRestart
from cockpit.sched.growth import why_not
from tests.builders import SECOND, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import begun, elastic, ends, engine, grow

RESTARTS = {"worker_restart_policy": WorkerRestart.ON_FAILURE, "backoff_limit": 5}


def listed(driver: EngineDriver, job: JobId) -> list[int]:
    """The replicas by rank."""
    workers = world(driver.job(job)).workers
    assert [each.rank for each in workers] == list(range(len(workers)))
    return [each.replica for each in workers]


@pytest.mark.req("EL-01", "EL-03")
def test_each_list_has_one_version_whatever_else_happens_to_the_job() -> None:
    driver = engine()
    (job,) = driver.submit(elastic("train", 1, 2, 4, **RESTARTS))
    driver.schedule()
    seen: dict[int, tuple] = {}

    def note() -> int:
        found = world(driver.job(job))
        content = (found.workers, found.leaving)
        # One number stands for one list, and a list keeps its number until it changes.
        last = max(seen, default=None)
        assert seen.setdefault(found.version, content) == content
        assert last is None or (seen[last] == content) is (last == found.version)
        return found.version

    placed = note()
    assert placed == driver.machine.state.seq
    driver.started(job)
    assert note() == placed, "the start of a replica changes no list"
    driver.pass_time(SECOND)
    driver.schedule()
    grown = note()
    assert grown > placed
    grow(driver)
    assert note() == grown
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.schedule()
    recalled = note()
    assert recalled > grown
    ends(driver, job, 3, code=255)
    left = note()
    assert left > recalled, "one worker less is asked to end"
    ends(driver, job, 2, code=255)
    driver.schedule()
    driver.started(urgent)
    before = note()
    ends(driver, job, 0, code=1)
    assert note() > before
    driver.act(decide.cancel(driver.job(job), driver.now, None))
    note()
    assert len(seen) == 7


@pytest.mark.req("EL-01", "EL-07")
def test_those_that_stay_keep_their_order_and_new_workers_come_last() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 3, 4, **RESTARTS))
    driver.schedule()
    grow(driver)
    assert listed(driver, job) == [0, 1, 2, 3]
    ends(driver, job, 0, signal=9)
    assert listed(driver, job) == [1, 2, 3, 4], "the one that takes its place is the last, not the first"
    driver.started(job)
    ends(driver, job, 2, code=1)
    assert listed(driver, job) == [1, 3, 4, 5]
    driver.started(job)
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, nodes=1, qos="high"))
    driver.schedule()
    assert listed(driver, job) == [1, 3, 4], "the youngest leaves"
    ends(driver, job, 5, code=255)
    driver.schedule()
    driver.started(urgent)
    driver.ended(urgent, code=0)
    driver.schedule()
    assert listed(driver, job) == [1, 3, 4, 6]


@pytest.mark.req("EL-01")
def test_a_job_with_all_its_workers_of_which_one_leaves_is_shrinking_and_not_at_its_maximum() -> None:
    driver = engine(nodes=2)
    (job,) = begun(driver, elastic("train", 1, 2, 2))
    record = driver.job(job)
    assert why_not(record, record.attempt) is NoGrowth.AT_MAXIMUM
    driver.submit(a_spec("urgent", cpus=4, qos="high"))
    driver.schedule()
    record = driver.job(job)
    assert record.state is JobState.RUNNING
    assert len(record.attempt.placement) == 2
    assert why_not(record, record.attempt) is NoGrowth.BEING_EVICTED
