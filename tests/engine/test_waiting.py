"""What time alone does to queued jobs: ages that begin to count, begin times, deadlines, ends of reservations."""

from __future__ import annotations

import pytest

from cockpit.engine import decide
from cockpit.engine.submission.submit import edit
from cockpit.model import events
from cockpit.model.accounts import Association
from cockpit.model.attempt import EndCause
from cockpit.model.cluster import Cluster, Priority, PriorityFlag, PriorityKind, Reservation, UsageReset
from cockpit.model.ids import NodeName
from cockpit.model.job import JobState
from cockpit.model.spec import Dependency, DependencyKind
from tests.builders import HOUR, MINUTE, a_node, a_spec
from tests.engine.driver import EngineDriver


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4))


def told(engine: EngineDriver, kind: type) -> list[object]:
    return [record.body for record in engine.journal if isinstance(record.body, kind)]


@pytest.mark.req("SC-01")
def test_the_age_of_a_plain_job_counts_from_its_submission_without_an_event_of_its_own(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec())
    assert engine.job(job).accrues_from == engine.now
    assert not told(engine, events.AgeBegan)


@pytest.mark.req("SC-01", "SC-10")
def test_a_hold_stops_the_age_and_a_release_restarts_it(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec(hold=True))
    assert engine.job(job).accrues_from is None
    engine.pass_time(MINUTE)
    engine.act(decide.release(engine.job(job)))
    assert engine.job(job).accrues_from == engine.now
    engine.act(decide.hold(engine.job(job), "ann"))
    assert engine.job(job).accrues_from is None
    assert not told(engine, events.AgeBegan)


@pytest.mark.req("SC-10", "SC-01")
def test_the_age_starts_at_the_begin_time(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec(begin_at=engine.now + HOUR))
    assert engine.job(job).accrues_from is None
    assert engine.machine.next_at == engine.now + HOUR
    engine.pass_time(HOUR)
    assert engine.job(job).accrues_from == engine.now
    assert engine.machine.next_at is None
    assert len(told(engine, events.AgeBegan)) == 1


@pytest.mark.req("SC-10")
def test_the_begin_time_of_a_held_job_writes_no_event(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec(begin_at=engine.now + HOUR, hold=True))
    assert engine.machine.next_at is None
    engine.pass_time(2 * HOUR)
    assert engine.job(job).accrues_from is None
    engine.act(decide.release(engine.job(job)))
    assert engine.job(job).accrues_from == engine.now


@pytest.mark.req("SC-10", "JT-42")
def test_a_begin_time_may_be_moved(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec(begin_at=engine.now + HOUR))
    engine.act(edit(engine.machine, engine.job(job), a_spec(begin_at=engine.now + 2 * HOUR)))
    engine.pass_time(HOUR)
    assert engine.job(job).accrues_from is None
    engine.act(edit(engine.machine, engine.job(job), a_spec()))
    assert engine.job(job).accrues_from == engine.now


@pytest.mark.req("SC-01")
def test_with_accrue_always_the_age_counts_whatever_stops_the_job(engine: EngineDriver) -> None:
    engine.tell(events.ClusterConfigured(Cluster(priority=Priority(flags=(PriorityFlag.ACCRUE_ALWAYS,)))))
    (first,) = engine.submit(a_spec("first", hold=True))
    (second,) = engine.submit(a_spec("second", dependencies=(Dependency(DependencyKind.AFTER_OK, first),)))
    (third,) = engine.submit(a_spec("third", begin_at=engine.now + HOUR))
    assert [engine.job(job).accrues_from for job in (first, second, third)] == [engine.now] * 3


@pytest.mark.req("SC-10", "JT-31")
def test_a_waiting_job_that_cannot_end_by_its_deadline_is_ended(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec("late", hold=True, time_limit_seconds=3600, deadline_at=engine.now + 2 * HOUR))
    (other,) = engine.submit(a_spec("other", dependencies=(Dependency(DependencyKind.AFTER_NOT_OK, job),)))
    engine.pass_time(HOUR)
    assert engine.job(job).state is JobState.QUEUED
    engine.pass_time(1)
    ended = engine.job(job)
    assert (ended.state, ended.end_cause, ended.kept) == (JobState.ERROR, EndCause.DEADLINE, False)
    assert engine.job(other).waits_for == ()


@pytest.mark.req("SC-10")
def test_a_job_starts_at_the_last_time_before_its_deadline_and_not_after(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec("a", time_limit_seconds=3600, deadline_at=engine.now + 2 * HOUR))
    engine.now += HOUR + 1
    engine.schedule()
    assert engine.job(job).state is JobState.QUEUED
    engine.now -= 1
    engine.schedule()
    assert engine.job(job).state is JobState.STARTING


@pytest.mark.req("SC-10")
def test_an_expired_reservation_is_removed(engine: EngineDriver) -> None:
    span = {"start_at": engine.now, "end_at": engine.now + HOUR}
    engine.tell(events.ReservationMade(Reservation(name="course", nodes=(NodeName("n1"),), users=("ann",), **span)))
    assert engine.machine.next_at == engine.now + HOUR
    engine.pass_time(HOUR)
    assert engine.machine.state.reservations == {}
    assert engine.machine.next_at is None


@pytest.mark.req("SC-02", "SC-01")
def test_usage_decays_every_period_while_anything_waits_runs_or_was_used(engine: EngineDriver) -> None:
    minutes = Priority(kind=PriorityKind.MULTIFACTOR, calc_period_seconds=60)
    account = Association(account="nlp", parent="root"), Association(account="nlp", user="ann", default=True)
    engine.tell(events.ClusterConfigured(Cluster(priority=minutes)), events.AccountsChanged(account))
    assert engine.machine.next_at is None
    (job,) = engine.run(a_spec())
    engine.pass_time(0)
    assert engine.machine.next_at == engine.now + MINUTE
    engine.pass_time(MINUTE)
    engine.ended(job, code=0)
    assert engine.machine.state.usage
    before = len(told(engine, events.UsageDecayed))
    engine.pass_time(MINUTE)
    assert len(told(engine, events.UsageDecayed)) == before + 1
    assert engine.machine.next_at == engine.now + MINUTE


@pytest.mark.req("SC-02")
def test_usage_is_reset_to_zero_when_its_period_is_over(engine: EngineDriver) -> None:
    daily = Priority(kind=PriorityKind.MULTIFACTOR, usage_reset=UsageReset.DAILY)
    engine.tell(events.ClusterConfigured(Cluster(priority=daily)))
    engine.submit(a_spec(hold=True))
    engine.pass_time(0)
    engine.pass_time(HOUR)
    engine.pass_time(24 * HOUR)
    assert [body.reset for body in told(engine, events.UsageDecayed)] == [False, False, True]


def test_a_cluster_without_priorities_computes_no_usage(engine: EngineDriver) -> None:
    engine.run(a_spec())
    engine.pass_time(HOUR)
    assert not told(engine, events.UsageDecayed)
