"""An elastic job with a launcher: a replica that holds nothing, whose end is the job's (JT-26, EL-06)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.effects import RemoveContainer, SignalReplica, StartReplica, WriteWorkersFile
from cockpit.engine.nodes import service
from cockpit.engine.submission.submit import submit
from cockpit.engine.views.spending import spans
from cockpit.engine.workers import handle_silent_worker, unblock
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import NoEligibleNode
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.resilience import WorkerRestart
from cockpit.model.spec import Mode
from cockpit.sched.explain import reason_of
from tests.builders import ANN, SECOND, a_node, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import begun, elastic, ends, engine, grow, ranks, told


def launched(driver: EngineDriver, least: int = 1, wanted: int = 2, most: int = 4, **fields: object) -> JobId:
    (job,) = begun(driver, elastic("train", least, wanted, most, mode=Mode.HOROVOD, **fields))
    return job


@pytest.mark.req("JT-26", "EL-06")
def test_a_launcher_runs_beside_the_workers_and_is_allocated_no_resources() -> None:
    driver = engine(nodes=2)
    job = launched(driver)
    attempt = driver.job(job).attempt
    assert (attempt.launcher.rank, attempt.launcher.node, attempt.launcher.slices) == (0, "n1", ())
    assert [(part.rank, part.node) for part in attempt.placement] == [(1, "n1"), (2, "n2")]
    assert [each.replica.rank for each in driver.effects if isinstance(each, StartReplica)] == [0, 1, 2]
    assert driver.machine.occupied[job] == attempt.placement
    driver.pass_time(9 * SECOND)
    assert [each.cpus for each in spans(driver.job(job), driver.now)] == [8]


@pytest.mark.req("JT-26", "EL-01")
def test_a_launcher_stays_while_workers_join_and_leave() -> None:
    driver = engine()
    job = launched(driver)
    grow(driver)
    assert ranks(driver, job) == [1, 2, 3, 4]
    driver.submit(a_spec("urgent", cpus=4, nodes=3, qos="high"))
    driver.effects.clear()
    driver.schedule()
    (recalled,) = told(driver, events.WorkersRecalled)
    assert recalled.ranks == (2, 3, 4)
    assert {each.replica.rank for each in driver.effects if isinstance(each, WriteWorkersFile)} == {0, 1, 2, 3, 4}


@pytest.mark.req("JT-26")
@pytest.mark.parametrize(("code", "state"), [(0, JobState.SUCCEEDED), (3, JobState.ERROR)])
def test_a_job_ends_with_its_launcher(code: int, state: JobState) -> None:
    driver = engine()
    job = launched(driver)
    ends(driver, job, 0, code=code)
    assert driver.job(job).ending is not None
    for rank in (1, 2):
        ends(driver, job, rank, signal=15)
    assert (driver.job(job).state, driver.job(job).exit.code) == (state, code)


@pytest.mark.req("EL-05", "JT-26")
def test_after_a_worker_fails_the_others_continue_and_its_node_gets_no_worker_again() -> None:
    driver = engine(nodes=3)
    job = launched(driver, 1, 2, 3)
    grow(driver)
    driver.effects.clear()
    ends(driver, job, 2, code=1)
    (left,) = told(driver, events.WorkersLeft)
    assert (left.ranks, left.because) == ((2,), "it ended with exit 1")
    assert [each.replica.rank for each in driver.effects if isinstance(each, RemoveContainer)] == [2]
    driver.schedule()
    assert (ranks(driver, job), driver.job(job).attempt.blocked) == ([1, 3], {"n2"})
    ends(driver, job, 3, code=1)
    ends(driver, job, 1, code=1)
    assert driver.job(job).ending is not None, "it was the last"


@pytest.mark.req("EL-05")
def test_a_node_that_is_taken_off_the_block_list_gets_a_worker_again() -> None:
    driver = engine(nodes=3)
    job = launched(driver, 1, 2, 3)
    assert unblock(driver.job(job), NodeName("n2")) == Refusal(
        RefusalKind.CONFLICT, f"Node n2 is not on the block list of job {job}, which is empty."
    )
    grow(driver)
    ends(driver, job, 2, code=1)
    driver.schedule()
    assert driver.job(job).attempt.blocked == {"n2"}
    refused = unblock(driver.job(job), NodeName("n1"))
    assert isinstance(refused, Refusal)
    assert refused.message == f"Node n1 is not on the block list of job {job}; on it: n2."
    driver.act(unblock(driver.job(job), NodeName("n2")))
    assert driver.job(job).attempt.blocked == frozenset()
    assert driver.job(job).attempt.replicas[2].blocked, "the reason stays with the worker that left"
    driver.schedule()
    assert [(part.rank, part.node) for part in driver.job(job).attempt.placement] == [(1, "n1"), (3, "n3"), (4, "n2")]
    ends(driver, job, 0, code=0)
    assert isinstance(unblock(driver.job(job), NodeName("n2")), Refusal)


@pytest.mark.req("JT-26", "EL-08")
def test_a_launcher_is_placed_by_its_selector_or_the_job_waits_with_the_reason() -> None:
    driver = EngineDriver(a_node("n1", cpus=4), a_node("n2", cpus=4, labels={"instance_type": "spot-launcher"}))
    selected = elastic(
        "one", 1, 1, 1, mode=Mode.HOROVOD, qos=None, launcher_selector={"instance_type": "spot-launcher"}
    )
    (job,) = driver.run(selected)
    assert driver.job(job).attempt.launcher.node == "n2"
    assert [part.node for part in driver.job(job).attempt.placement] == ["n1"]
    driver.tell(events.NodeDrained("n2", "root", "broken"))
    (waits,) = driver.submit(replace(selected, name="next"))
    driver.schedule()
    reason = reason_of(driver.plan, driver.job(waits))
    labels, why_out = ("instance_type=spot-launcher",), ("drained: broken",)
    assert reason == NoEligibleNode(out_of_service=("n2",), labels=labels, launcher=True, why_out=why_out)


@pytest.mark.req("JT-26")
def test_a_selector_that_no_node_has_is_refused() -> None:
    driver = engine()
    nowhere = elastic("train", 1, 1, 1, mode=Mode.HOROVOD, launcher_selector={"a": "b"})
    refused = submit(driver.machine, [nowhere], Actor(ANN, admin=False), now=driver.now)
    assert isinstance(refused, Refusal)
    (reason,) = [reason for _, reason in refused.reasons]
    assert reason == NoEligibleNode(labels=("a=b",), launcher=True)


@pytest.mark.req("EL-07")
def test_a_worker_with_the_always_policy_is_replaced_also_when_it_succeeds() -> None:
    driver = engine()
    job = launched(driver, 1, 2, 2, worker_restart_policy=WorkerRestart.ALWAYS, backoff_limit=2)
    ends(driver, job, 2, code=0)
    ends(driver, job, 1, code=1)
    assert [(each.rank, each.by, each.retry) for each in told(driver, events.WorkerReplaced)] == [(2, 3, 1), (1, 4, 2)]
    assert driver.job(job).state is JobState.RUNNING


@pytest.mark.req("EL-05")
def test_an_unresponsive_worker_is_excluded_after_the_timeout_of_the_job() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 3, 3, max_wait_seconds=60))
    last = driver.replicas(job)[2]
    driver.pass_time(40 * SECOND)
    driver.act(handle_silent_worker(driver.machine, last, 90 * SECOND, driver.now))
    assert ranks(driver, job) == [0, 1, 2], "it has not run for that long"
    driver.pass_time(40 * SECOND)
    driver.act(handle_silent_worker(driver.machine, last, 50 * SECOND, driver.now))
    assert ranks(driver, job) == [0, 1, 2]
    driver.effects.clear()
    driver.act(handle_silent_worker(driver.machine, last, 60 * SECOND, driver.now))
    assert (ranks(driver, job), driver.job(job).attempt.blocked) == ([0, 1], {"n3"})
    assert RemoveContainer(last) in driver.effects
    driver.pass_time(60 * SECOND)
    assert handle_silent_worker(driver.machine, last, 99 * SECOND, driver.now) == [], "it has left already"
    grow(driver)
    assert [part.node for part in driver.job(job).attempt.placement] == ["n1", "n2", "n4"]


@pytest.mark.req("EL-05", "TR-02")
def test_a_job_ends_without_the_end_of_an_excluded_worker_whose_container_is_removed() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 3, 3, max_wait_seconds=60))
    last = driver.replicas(job)[2]
    driver.pass_time(60 * SECOND)
    driver.act(handle_silent_worker(driver.machine, last, 60 * SECOND, driver.now))
    driver.effects.clear()
    driver.act(decide.cancel(driver.job(job), driver.now, None))
    assert last not in {each.replica for each in driver.effects if isinstance(each, SignalReplica)}
    for rank in (0, 1):
        ends(driver, job, rank, signal=15)
    assert driver.job(job).state is JobState.STOPPED


@pytest.mark.req("EL-02", "EL-05")
def test_a_recalled_worker_that_saves_in_silence_has_its_whole_grace_period() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 3, 3, max_wait_seconds=60))
    last = driver.replicas(job)[2]
    driver.act(service.take_back(driver.machine, "n3", "spot", "root", driver.now, 300))
    driver.pass_time(60 * SECOND)
    assert handle_silent_worker(driver.machine, last, 60 * SECOND, driver.now) == []
    ends(driver, job, 2, code=0)
    assert (ranks(driver, job), driver.job(job).attempt.blocked) == ([0, 1], frozenset())


@pytest.mark.req("EL-05")
def test_a_worker_that_never_answered_is_excluded_too() -> None:
    driver = engine()
    (other, job) = begun(driver, a_spec("other", cpus=4, nodes=3), elastic("train", 1, 1, 2, max_wait_seconds=60))
    for rank in (0, 1, 2):
        ends(driver, other, rank, code=0)
    driver.schedule()
    driver.pass_time(60 * SECOND)
    driver.act(handle_silent_worker(driver.machine, driver.replicas(job)[1], None, driver.now))
    assert ranks(driver, job) == [0]


@pytest.mark.req("EL-05", "EL-04")
def test_a_job_with_too_few_remaining_workers_is_suspended() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 2, 2, 2, max_wait_seconds=60))
    driver.pass_time(60 * SECOND)
    driver.act(handle_silent_worker(driver.machine, driver.replicas(job)[1], 61 * SECOND, driver.now))
    assert driver.job(job).ending.cause is EndCause.BELOW_MIN
    ends(driver, job, 0, code=255)
    ends(driver, job, 1, signal=9)
    assert driver.job(job).shown_state is JobState.SUSPENDED
    driver.schedule()
    assert driver.job(job).state is JobState.RESUMING


@pytest.mark.req("EL-05")
def test_a_lost_worker_does_not_answer() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 2, 2))
    ends(driver, job, 1, lost="its container disappeared")
    assert (driver.job(job).state, ranks(driver, job)) == (JobState.RUNNING, [0])
    assert driver.job(job).attempt.replicas[1].blocked == "its container disappeared"
