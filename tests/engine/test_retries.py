"""Jobs that fail and begin again by themselves, as often as they may."""

from __future__ import annotations

import pytest

from cockpit.engine import decide, evictions
from cockpit.engine.effects import KeepContainer, RemoveContainer, SignalKind, SignalReplica, StartReplica
from cockpit.engine.machine import Machine
from cockpit.engine.retries import MOST_STARTS
from cockpit.engine.state import ClusterState
from cockpit.model import events
from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.resilience import Restart
from cockpit.model.spec import Array, Dependency, DependencyKind, HoldCards, JobSpec
from tests.builders import MINUTE, SECOND, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4, cards=2), a_node("n2", cpus=4, cards=2))


def restarting(most: int = 2, **fields) -> JobSpec:
    return a_spec(**{"restart": Restart(max_restarts=most), "terminal": True, **fields})


def begins_again(engine: EngineDriver, job: JobId) -> None:
    engine.schedule()
    engine.started(job)


@pytest.mark.req("JT-18")
def test_a_restarted_job_keeps_its_id_until_its_restarts_are_used_up(engine: EngineDriver) -> None:
    (job,) = engine.run(restarting(most=2))
    for retry in (1, 2):
        engine.ended(job, code=3)
        waiting = engine.job(job)
        assert (waiting.state, waiting.retries, waiting.exit) == (JobState.QUEUED, retry, None)
        begins_again(engine, job)
        assert engine.job(job).attempt.number == retry + 1
    engine.ended(job, code=4)
    over = engine.job(job)
    assert (over.state, over.retries, over.exit) == (JobState.ERROR, 2, ExitStatus(code=4))
    assert [each.replicas[0].exit.code for each in (*over.earlier, over.attempt)] == [3, 3, 4]


@pytest.mark.req("JT-18", "JT-40")
def test_only_the_last_failure_holds_the_container(engine: EngineDriver) -> None:
    (job,) = engine.run(restarting(most=1))
    first = engine.replicas(job)[0]
    engine.ended(job, code=1)
    assert RemoveContainer(first) in engine.effects
    assert engine.job(job).held_until is None
    begins_again(engine, job)
    engine.ended(job, code=1)
    assert KeepContainer(engine.replicas(job)[0], HoldCards.FREE, engine.job(job).held_until) in engine.effects


@pytest.mark.req("JT-18", "JT-31")
@pytest.mark.parametrize(
    "status", [{"code": 1}, {"signal": 9, "oom": True}, {"lost": "the machine was restarted while it ran"}]
)
def test_a_job_restarts_after_every_kind_of_failure(engine: EngineDriver, status: dict[str, object]) -> None:
    (job,) = engine.run(restarting(most=1))
    engine.ended(job, **status)
    assert engine.job(job).state is JobState.QUEUED
    assert [each.body for each in engine.journal][-1].retry == 1


@pytest.mark.req("JT-18")
def test_neither_success_nor_a_stop_nor_a_time_out_is_a_failure(engine: EngineDriver) -> None:
    done, stopped, late = engine.run(
        restarting(name="done", cpus=1),
        restarting(name="stopped", cpus=1),
        restarting(name="late", cpus=1, time_limit_seconds=60),
    )
    engine.ended(done, code=0)
    engine.act(decide.cancel(engine.job(stopped), engine.now, None))
    engine.ended(stopped, signal=15)
    engine.pass_time(MINUTE)
    engine.ended(late, signal=15)
    states = [engine.job(job).state for job in (done, stopped, late)]
    assert states == [JobState.SUCCEEDED, JobState.STOPPED, JobState.EXPIRED]


@pytest.mark.req("JT-18")
def test_a_gang_restarts_as_a_whole(engine: EngineDriver) -> None:
    (job,) = engine.run(restarting(nodes=2))
    engine.ended(job, 1, code=7)
    assert SignalReplica(engine.replicas(job)[0], SignalKind.KILL) in engine.effects
    assert engine.job(job).state is JobState.RUNNING
    engine.ended(job, 0, signal=9)
    assert engine.job(job).state is JobState.QUEUED
    assert [each.body.exit for each in engine.journal if isinstance(each.body, events.JobRequeued)] == [
        ExitStatus(code=7)
    ]


@pytest.mark.req("JT-18", "JT-36")
def test_a_stop_during_a_failure_prevents_the_restart(engine: EngineDriver) -> None:
    (job,) = engine.run(restarting(nodes=2))
    engine.ended(job, 0, code=1)
    assert engine.act(decide.cancel(engine.job(job), engine.now, None)) is None
    assert engine.job(job).ending.killed
    engine.ended(job, 1, signal=9)
    assert engine.job(job).state is JobState.STOPPED


@pytest.mark.req("JT-18", "JT-36")
def test_stopping_a_job_that_waits_for_its_restart_prevents_the_restart(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(grace_seconds=30))
    engine.act(evictions.requeue(engine.machine, engine.job(job), engine.now))
    due = engine.job(job).ending.kill_at
    engine.pass_time(5 * SECOND)
    assert engine.act(decide.cancel(engine.job(job), engine.now, None)) is None
    assert engine.job(job).ending.kill_at == due
    engine.ended(job, signal=15)
    assert engine.job(job).state is JobState.STOPPED


@pytest.mark.req("JT-18")
def test_a_restart_keeps_the_age_and_a_requeue_by_a_user_restores_all_restarts(engine: EngineDriver) -> None:
    (job,) = engine.run(restarting(most=1))
    began = engine.job(job).accrues_from
    engine.pass_time(MINUTE)
    engine.ended(job, code=1)
    assert engine.job(job).accrues_from == began
    begins_again(engine, job)
    engine.ended(job, code=1)
    engine.act(evictions.requeue(engine.machine, engine.job(job), engine.now))
    assert engine.job(job).retries == 0
    begins_again(engine, job)
    engine.ended(job, code=1)
    assert (engine.job(job).state, engine.job(job).retries) == (JobState.QUEUED, 1)


@pytest.mark.req("JT-18", "SC-10")
def test_dependencies_are_evaluated_only_after_the_last_failure(engine: EngineDriver) -> None:
    (job,) = engine.run(restarting(most=1))
    after = (Dependency(kind=DependencyKind.AFTER_NOT_OK, job=job),)
    (waiting,) = engine.submit(a_spec("waiting", dependencies=after))
    engine.ended(job, code=1)
    assert engine.job(waiting).waits_for == after
    begins_again(engine, job)
    engine.ended(job, code=1)
    assert engine.job(waiting).waits_for == ()


@pytest.mark.req("JT-18")
def test_each_task_of_an_array_has_restarts_of_its_own(engine: EngineDriver) -> None:
    one, two = engine.run(restarting(most=1, array=Array((0, 1)), cpus=1))
    engine.ended(one, code=1)
    assert (engine.job(one).state, engine.job(two).state) == (JobState.QUEUED, JobState.RUNNING)
    assert JobId(one) not in engine.machine.state.failed_tasks.values()


@pytest.mark.req("JT-18", "TR-03")
def test_a_restarted_engine_keeps_the_count_of_restarts(engine: EngineDriver) -> None:
    (job,) = engine.run(restarting(most=2))
    engine.ended(job, code=1)
    again = Machine(ClusterState())
    for record in engine.journal:
        again.handle(record)
    assert again.state.jobs[job] == engine.job(job)
    assert again.state.jobs[job].retries == 1


@pytest.mark.req("JT-18")
def test_a_container_that_cannot_be_made_is_tried_again_too(engine: EngineDriver) -> None:
    (job,) = engine.submit(restarting(most=1))
    engine.schedule()
    engine.ended(job, lost="the container could not be made: no such folder")
    assert engine.job(job).state is JobState.QUEUED
    engine.effects.clear()
    engine.schedule()
    assert [each.replica.attempt for each in engine.effects if isinstance(each, StartReplica)] == [2]
    engine.ended(job, lost="the container could not be made: no such folder")
    assert (engine.job(job).state, engine.job(job).end_cause) == (JobState.ERROR, EndCause.START_FAILED)
    assert engine.job(job).ended_at == Millis(engine.now)


@pytest.mark.req("JT-18", "LA-70")
def test_a_job_restarted_only_when_lost_does_not_restart_when_its_command_fails(engine: EngineDriver) -> None:
    (job,) = engine.run(restarting(restart=Restart(max_restarts=2, lost_only=True), terminal=False))
    engine.ended(job, lost="its container disappeared")
    assert (engine.job(job).state, engine.job(job).retries) == (JobState.QUEUED, 1)
    begins_again(engine, job)
    engine.ended(job, code=3)
    assert engine.job(job).state is JobState.ERROR


def placed(engine: EngineDriver, spec: JobSpec) -> list[JobId]:
    jobs = engine.submit(spec)
    engine.schedule()
    return jobs


@pytest.mark.req("TR-01")
def test_a_start_that_fails_by_no_fault_of_the_job_is_tried_again_and_counts_as_no_retry(engine: EngineDriver) -> None:
    (job,) = placed(engine, a_spec(terminal=True))
    for attempt in range(1, MOST_STARTS):
        engine.ended(job, lost="its holder was killed", unstarted=True)
        waiting = engine.job(job)
        assert (waiting.state, waiting.retries, waiting.attempt.number) == (JobState.QUEUED, 0, attempt)
        engine.schedule()
    engine.ended(job, lost="its holder was killed", unstarted=True)
    over = engine.job(job)
    assert (over.state, over.end_cause, over.held_until) == (JobState.ERROR, EndCause.START_FAILED, None)
    assert over.exit.lost == "its holder was killed"


@pytest.mark.req("TR-01")
def test_a_successful_start_resets_the_count_of_failed_starts(engine: EngineDriver) -> None:
    (job,) = placed(engine, restarting(most=1))
    for _ in range(2):
        engine.ended(job, lost="its holder was killed", unstarted=True)
        engine.schedule()
    engine.started(job)
    engine.ended(job, code=1)
    engine.schedule()
    for _ in range(MOST_STARTS - 1):
        engine.ended(job, lost="its holder was killed", unstarted=True)
        assert engine.job(job).state is JobState.QUEUED
        engine.schedule()


@pytest.mark.req("TR-01")
def test_a_job_stopped_by_a_user_is_not_restarted(engine: EngineDriver) -> None:
    (job,) = placed(engine, a_spec())
    engine.act(decide.cancel(engine.job(job), engine.now, None))
    engine.ended(job, lost="its holder was killed", unstarted=True)
    assert engine.job(job).state is JobState.STOPPED


@pytest.mark.req("TR-01")
def test_a_container_that_cannot_be_made_is_not_tried_again(engine: EngineDriver) -> None:
    (job,) = placed(engine, a_spec())
    engine.ended(job, lost="the image is not there")
    assert engine.job(job).state is JobState.ERROR
