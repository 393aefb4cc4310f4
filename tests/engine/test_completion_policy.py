"""Whose end is the job's, where only some replicas decide."""

from __future__ import annotations

import pytest

from cockpit.engine import decide
from cockpit.engine.completion_policy import first_failure
from cockpit.engine.effects import SignalKind, SignalReplica
from cockpit.engine.views.rows import job_row
from cockpit.model.attempt import EndCause
from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.spec import Mode, WorkerPool
from tests.builders import a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1"), a_node("n2"), a_node("n3"))


@pytest.mark.req("LA-12", "LA-40")
@pytest.mark.parametrize("mode", [Mode.HOROVOD, Mode.DEEPSPEED])
@pytest.mark.parametrize(("code", "state"), [(0, JobState.SUCCEEDED), (3, JobState.ERROR)])
def test_where_rank_0_launches_the_job_ends_with_rank_0(
    engine: EngineDriver, mode: Mode, code: int, state: JobState
) -> None:
    (job,) = engine.run(a_spec(nodes=2, mode=mode))
    engine.ended(job, 0, code=code)
    assert engine.job(job).state is JobState.RUNNING
    ending = engine.job(job).ending
    assert ending is not None
    assert ending.cause is EndCause.EXIT
    assert engine.effects[-1] == SignalReplica(engine.replicas(job)[1], SignalKind.KILL if code else SignalKind.TERM)
    engine.ended(job, 1, signal=15)
    assert (engine.job(job).state, engine.job(job).exit.code) == (state, code)


@pytest.mark.req("LA-12")
def test_a_lost_worker_that_waits_for_the_launcher_fails_the_job(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(nodes=3, mode=Mode.HOROVOD))
    engine.ended(job, 2, lost="its container disappeared")
    engine.now = Millis(engine.now + 1)
    engine.ended(job, 1, signal=9)
    engine.ended(job, 0, signal=9)
    assert engine.job(job).state is JobState.ERROR
    assert engine.job(job).exit.lost == "its container disappeared"


@pytest.mark.req("LA-30")
def test_where_each_replica_runs_the_command_all_must_end(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(nodes=2, mode=Mode.PYTORCH))
    engine.ended(job, 0, code=0)
    assert engine.job(job).ending is None
    engine.ended(job, 1, code=0)
    assert engine.job(job).state is JobState.SUCCEEDED


POOLS = (WorkerPool(replicas=1), WorkerPool(replicas=2))


@pytest.mark.req("LA-60", "UI-01")
def test_a_pool_worker_that_fails_is_in_the_row_while_the_job_runs_and_after_it_succeeded(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(mode=Mode.WORKER_POOLS, worker_pools=POOLS))
    assert job_row(engine.job(job), None).failed is None
    engine.ended(job, 2, code=7)
    assert engine.job(job).state is JobState.RUNNING
    assert job_row(engine.job(job), None).failed == (2, 7)
    engine.now = Millis(engine.now + 1)
    engine.ended(job, 0, code=0)
    engine.ended(job, 1, signal=15)
    row = job_row(engine.job(job), None)
    assert (row.state, row.failed) == (JobState.SUCCEEDED, (2, 7))


@pytest.mark.req("LA-60", "UI-01")
def test_a_replica_stopped_with_the_primary_has_not_failed(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(mode=Mode.WORKER_POOLS, worker_pools=POOLS))
    engine.ended(job, 0, code=0)
    engine.now = Millis(engine.now + 1)
    engine.ended(job, 1, signal=15)
    engine.ended(job, 2, signal=9)
    assert engine.job(job).state is JobState.SUCCEEDED
    assert first_failure(engine.job(job)) is None


@pytest.mark.req("LA-30", "UI-01")
def test_the_first_replica_that_failed_is_named_and_none_of_a_job_that_was_stopped(engine: EngineDriver) -> None:
    failed, stopped = engine.run(
        a_spec("failed", nodes=2, mode=Mode.PYTORCH), a_spec("stopped", nodes=2, mode=Mode.PYTORCH)
    )
    engine.ended(failed, 1, code=3)
    engine.now = Millis(engine.now + 1)
    engine.ended(failed, 0, signal=9)
    assert first_failure(engine.job(failed)) == (1, 3)
    engine.act(decide.cancel(engine.job(stopped), engine.now, 0))
    engine.ended(stopped, 0, signal=9)
    engine.ended(stopped, 1, signal=9)
    assert (engine.job(stopped).state, first_failure(engine.job(stopped))) == (JobState.STOPPED, None)
