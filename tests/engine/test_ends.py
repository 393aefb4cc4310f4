"""How jobs end, and what is kept of those that failed."""

from __future__ import annotations

import pytest

from cockpit.engine import decide, evictions
from cockpit.engine.effects import KeepContainer, RecordEnded, RemoveContainer, SignalKind, SignalReplica
from cockpit.engine.views.rows import job_row
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.ids import NodeName
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import DebugHold, HoldCards
from tests.builders import HOUR, MINUTE, SECOND, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cards=2), a_node("n2", cards=2))


@pytest.mark.req("JT-31")
def test_exit_code_zero_succeeds_and_removes_the_container(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(terminal=True))
    engine.ended(job, code=0)
    assert engine.job(job).state is JobState.SUCCEEDED
    assert RemoveContainer(engine.replicas(job)[0]) in engine.effects
    assert RecordEnded(job) in engine.effects
    assert not engine.machine.occupied


@pytest.mark.req("JT-40")
def test_a_failed_job_is_held_and_its_cards_are_free(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(terminal=True, card_milli=2000))
    engine.ended(job, code=3)
    assert engine.job(job).state is JobState.ERROR
    assert engine.job(job).held_until == engine.now + 4 * HOUR
    assert KeepContainer(engine.replicas(job)[0], HoldCards.FREE, engine.job(job).held_until) in engine.effects
    assert not engine.machine.occupied


@pytest.mark.req("JT-40", "JT-20")
def test_a_debug_hold_may_retain_the_cards_but_no_cpus(engine: EngineDriver) -> None:
    hold = DebugHold(cards=HoldCards.KEEP, window_seconds=60)
    (job,) = engine.run(a_spec(terminal=True, card_milli=2000, debug_hold=hold))
    engine.ended(job, code=1)
    (kept,) = engine.machine.occupied[job]
    assert (kept.cpus, kept.memory_mib, kept.card_milli) == (0, 0, 2000)
    engine.pass_time(MINUTE)
    assert not engine.machine.occupied
    assert RemoveContainer(engine.replicas(job)[0]) in engine.effects


@pytest.mark.req("JT-20")
def test_without_a_terminal_no_container_is_held(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(terminal=False))
    engine.ended(job, code=3)
    assert engine.job(job).held_until is None
    refused = decide.open_shell(engine.job(job), 0, ())
    assert isinstance(refused, Refusal)
    assert "terminal: true" in refused.message


@pytest.mark.req("JT-40")
@pytest.mark.parametrize(
    ("status", "kept"), [({"signal": 9, "oom": True}, True), ({"code": 0}, False), ({"lost": "its shim died"}, True)]
)
def test_oom_and_loss_are_abnormal_ends(engine: EngineDriver, status: dict[str, object], kept: bool) -> None:
    (job,) = engine.run(a_spec(terminal=True))
    engine.ended(job, **status)
    assert engine.job(job).kept is kept


@pytest.mark.req("JT-40", "JT-21")
def test_a_timed_out_job_expires_and_is_held(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(terminal=True, time_limit_seconds=60, grace_seconds=10))
    engine.pass_time(MINUTE)
    assert SignalReplica(engine.replicas(job)[0], SignalKind.TERM) in engine.effects
    engine.pass_time(10 * SECOND)
    assert SignalReplica(engine.replicas(job)[0], SignalKind.KILL) in engine.effects
    engine.ended(job, signal=9)
    assert engine.job(job).state is JobState.EXPIRED
    assert engine.job(job).kept


@pytest.mark.req("JT-36")
def test_stopping_a_job_terminates_then_kills_it_and_holds_no_container(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(terminal=True))
    engine.act(decide.cancel(engine.job(job), engine.now, None))
    assert engine.job(job).state is JobState.RUNNING
    engine.pass_time(29 * SECOND)
    assert SignalReplica(engine.replicas(job)[0], SignalKind.KILL) not in engine.effects
    engine.pass_time(1 * SECOND)
    assert SignalReplica(engine.replicas(job)[0], SignalKind.KILL) in engine.effects
    engine.ended(job, signal=9)
    assert (engine.job(job).state, engine.job(job).kept) == (JobState.STOPPED, False)


@pytest.mark.req("JT-36")
def test_a_queued_job_stops_at_once_and_stopping_an_ended_one_is_refused(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec(hold=True))
    engine.act(decide.cancel(engine.job(job), engine.now, None))
    assert engine.job(job).state is JobState.STOPPED
    refused = decide.cancel(engine.job(job), engine.now, None)
    assert isinstance(refused, Refusal)
    assert refused.kind is RefusalKind.CONFLICT


@pytest.mark.req("JT-36")
def test_all_jobs_stop_together_and_no_waiting_job_starts_instead(engine: EngineDriver) -> None:
    running, ending = engine.run(a_spec("running", card_milli=2000), a_spec("ending", card_milli=2000))
    (waiting,) = engine.submit(a_spec("waiting", card_milli=2000))
    engine.act(decide.cancel(engine.job(ending), engine.now, 0))
    engine.act(decide.cancel_all(engine.machine, engine.now))
    engine.schedule()
    assert engine.job(waiting).state is JobState.STOPPED
    assert SignalReplica(engine.replicas(running)[0], SignalKind.TERM) in engine.effects
    assert decide.cancel_all(engine.machine, engine.now) == []


@pytest.mark.req("JT-36")
def test_stopping_now_after_stopping_does_not_wait(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec())
    engine.act(decide.cancel(engine.job(job), engine.now, 3600))
    assert isinstance(decide.cancel(engine.job(job), engine.now, None), Refusal)
    engine.act(decide.cancel(engine.job(job), engine.now, 0))
    assert SignalReplica(engine.replicas(job)[0], SignalKind.KILL) in engine.effects


@pytest.mark.req("JT-31", "JT-40")
def test_the_cards_of_a_gang_with_a_failed_replica_are_free_only_after_all_replicas_end(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(nodes=2, card_milli=2000, terminal=True))
    engine.ended(job, rank=1, code=7)
    assert engine.job(job).state is JobState.RUNNING
    assert SignalReplica(engine.replicas(job)[0], SignalKind.KILL) in engine.effects
    assert {each.node for each in engine.machine.occupied[job]} == {NodeName("n1"), NodeName("n2")}
    engine.ended(job, rank=0, signal=9)
    ended = engine.job(job)
    assert (ended.state, ended.end_cause) == (JobState.ERROR, EndCause.EXIT)
    assert ended.exit is not None
    assert ended.exit.code == 7
    assert not engine.machine.occupied


@pytest.mark.req("JT-31")
def test_a_container_that_could_not_be_made_is_an_error_without_a_hold(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec(terminal=True))
    engine.schedule()
    engine.ended(job, lost="output: /data/out: permission denied for user ann")
    ended = engine.job(job)
    assert (ended.state, ended.end_cause, ended.kept) == (JobState.ERROR, EndCause.START_FAILED, False)


@pytest.mark.req("JT-40")
def test_holds_are_extended_and_ended_by_users(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(terminal=True))
    engine.ended(job, code=1)
    engine.act(decide.extend_hold(engine.job(job), engine.now, 3600))
    engine.pass_time(4 * HOUR)
    assert engine.job(job).kept
    engine.act(decide.end_hold(engine.job(job)))
    assert not engine.job(job).kept
    assert isinstance(decide.end_hold(engine.job(job)), Refusal)
    assert isinstance(decide.extend_hold(engine.job(job), engine.now, 60), Refusal)


@pytest.mark.req("JT-37")
def test_an_ended_job_is_deleted_with_its_held_container(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec(terminal=True))
    assert isinstance(decide.delete(engine.job(job)), Refusal)
    engine.ended(job, code=1)
    engine.act(decide.delete(engine.job(job)))
    assert engine.job(job).deleted
    assert RemoveContainer(engine.replicas(job)[0]) in engine.effects
    assert isinstance(decide.delete(engine.job(job)), Refusal)


@pytest.mark.req("TR-01")
def test_a_repeated_observation_changes_nothing(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec())
    engine.started(job)
    engine.ended(job, code=0)
    seen = len(engine.journal)
    engine.ended(job, code=5)
    engine.started(job)
    assert len(engine.journal) == seen


@pytest.mark.req("TR-01")
def test_an_ended_job_leaves_the_live_state_for_accounting(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec())
    engine.ended(job, code=0)
    engine.pass_time(HOUR)
    assert job not in engine.machine.state.jobs


@pytest.mark.req("JT-36", "UI-01")
@pytest.mark.parametrize("running", [True, False])
def test_a_stopped_job_names_the_user_who_stopped_it(engine: EngineDriver, running: bool) -> None:
    (job,) = engine.run(a_spec()) if running else engine.submit(a_spec())
    engine.asked_by = ("bob", events.FROM_USER)
    engine.act(decide.cancel(engine.job(job), engine.now, None))
    engine.asked_by = ("engine", "runtime")
    assert job_row(engine.job(job), None).ended_by == "bob"
    if running:
        engine.ended(job, signal=15)
    row = job_row(engine.job(job), None)
    assert (row.state, row.ended_by) == (JobState.STOPPED, "bob")
    engine.act(evictions.requeue(engine.machine, engine.job(job), engine.now))
    assert job_row(engine.job(job), None).ended_by == ""


@pytest.mark.req("JT-36")
def test_no_user_is_named_where_the_engine_stops_a_job(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec())
    engine.asked_by = ("engine", "engine")
    engine.act(decide.cancel(engine.job(job), engine.now, None))
    assert job_row(engine.job(job), None).ended_by == ""
