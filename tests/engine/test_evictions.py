"""Giving way in the engine: events on both sides, attempts that are kept, time that is neither lost nor doubled."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine import decide, evictions
from cockpit.engine.effects import FreezeReplica, RemoveContainer, SignalKind, SignalReplica, ThawReplica
from cockpit.model import events
from cockpit.model.accounts import Accounts, Qos
from cockpit.model.attempt import EndCause, EvictionMode, Grounds
from cockpit.model.cluster import Cluster, Preemption
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal
from tests.builders import SECOND, a_node, a_spec
from tests.engine.driver import EngineDriver

MINUTE = 60 * SECOND


def engine(*mode: str, **low) -> EngineDriver:
    """Two cards and four CPUs; `high` preempts `low`."""
    driver = EngineDriver(a_node(cpus=4, cards=2))
    qos = (Qos(name="low", **low), Qos(name="high", priority=9, preempt=("low",)))
    driver.tell(
        events.ClusterConfigured(Cluster(preemption=Preemption(kind="preempt/qos", mode=mode))),
        events.AccountsChanged(tuple(Accounts().associations.values()), qos),
    )
    return driver


def run(driver: EngineDriver, name: str, qos: str = "low", **fields) -> JobId:
    (job,) = driver.run(a_spec(name, qos=qos, **fields))
    driver.pass_time(SECOND)
    return job


def told(driver: EngineDriver, job: JobId, kind: type) -> list:
    return [each.body for each in driver.journal if isinstance(each.body, kind) and each.body.job == job]


@pytest.mark.req("SC-08", "JT-31")
def test_a_requeued_job_keeps_its_attempts_and_starts_again_when_it_fits() -> None:
    driver = engine("REQUEUE", grace_seconds=20)
    victim = run(driver, "victim", card_milli=2000)
    driver.pass_time(MINUTE)
    (urgent,) = driver.submit(a_spec("urgent", qos="high", card_milli=2000))
    driver.schedule()
    kill_at = driver.now + 20 * SECOND
    assert told(driver, victim, events.EndingBegan) == [
        events.EndingBegan(victim, EndCause.PREEMPTED, kill_at, urgent, Grounds.QOS, requeue=True)
    ]
    assert told(driver, urgent, events.EvictionsDecided) == [
        events.EvictionsDecided(urgent, (victim,), EvictionMode.REQUEUE, Grounds.QOS)
    ]
    (asked,) = [each for each in driver.effects if isinstance(each, SignalReplica)]
    assert asked.force is SignalKind.TERM
    driver.schedule()
    assert driver.job(urgent).state is JobState.QUEUED
    driver.pass_time(20 * SECOND)
    assert [each.force for each in driver.effects if isinstance(each, SignalReplica)][-1] is SignalKind.KILL
    first = driver.replicas(victim)[0]
    driver.ended(victim, signal=9)
    assert driver.job(victim).state is JobState.QUEUED
    assert RemoveContainer(first) in driver.effects
    driver.schedule()
    assert (driver.job(urgent).state, driver.job(victim).state) == (JobState.STARTING, JobState.QUEUED)
    driver.started(urgent)
    driver.ended(urgent, code=0)
    driver.schedule()
    again = driver.job(victim)
    assert again.attempt is not None
    assert [each.number for each in (*again.earlier, again.attempt)] == [1, 2]
    (before,) = again.earlier
    assert (before.cause, before.replicas[0].exit.signal) == (EndCause.PREEMPTED, 9)
    assert before.ended_at - before.placed_at == 81 * SECOND


@pytest.mark.req("SC-08")
def test_a_victim_to_cancel_is_stopped_and_its_resources_go_to_no_other_job() -> None:
    driver = engine("CANCEL")
    victim = run(driver, "victim", card_milli=2000)
    (urgent,) = driver.submit(a_spec("urgent", qos="high", card_milli=2000))
    driver.schedule()
    (thief,) = driver.submit(a_spec("thief", qos="low", card_milli=1000))
    driver.ended(victim, signal=9)
    driver.schedule()
    assert (driver.job(victim).state, driver.job(victim).end_cause) == (JobState.STOPPED, EndCause.PREEMPTED)
    assert (driver.job(urgent).state, driver.job(thief).state) == (JobState.STARTING, JobState.QUEUED)


@pytest.mark.req("SC-08", "JT-31")
def test_a_suspended_job_resumes_when_its_preemptor_has_ended() -> None:
    driver = engine("SUSPEND", "GANG")
    victim = run(driver, "victim", cpus=4, card_milli=1000, time_limit_seconds=600)
    (urgent,) = driver.submit(a_spec("urgent", qos="high", cpus=2, card_milli=1000))
    driver.schedule()
    assert FreezeReplica(driver.replicas(victim)[0]) in driver.effects
    assert (driver.job(victim).state, driver.job(urgent).state) == (JobState.SUSPENDED, JobState.STARTING)
    (held,) = driver.machine.occupied[victim]
    assert (held.cpus, held.card_milli, held.memory_mib > 0) == (0, 1000, True)
    driver.started(urgent)
    (small,) = driver.submit(a_spec("small", qos="low", cpus=1))
    driver.schedule()
    driver.started(small)
    driver.pass_time(20 * SECOND)
    driver.ended(urgent, code=0)
    driver.schedule()
    assert driver.job(victim).state is JobState.SUSPENDED  # the small one has a CPU of its four
    (smaller,) = driver.submit(a_spec("smaller", qos="low", cpus=1))
    driver.schedule()
    assert driver.job(smaller).state is JobState.QUEUED
    driver.ended(small, code=0)
    driver.schedule()
    assert driver.job(victim).state is JobState.RUNNING
    assert ThawReplica(driver.replicas(victim)[0]) in driver.effects
    attempt = driver.job(victim).attempt
    assert attempt is not None
    assert attempt.suspended_ms == 20 * SECOND
    assert driver.machine.ends[victim] == attempt.placed_at + 620 * SECOND


@pytest.mark.req("SC-08")
def test_jobs_of_one_partition_share_by_timeslicing() -> None:
    driver = engine("SUSPEND", "GANG")
    one, two = (run(driver, name, cpus=2) for name in ("one", "two"))
    (urgent,) = driver.submit(a_spec("urgent", qos="high", cpus=4, time_limit_seconds=600))
    driver.schedule()
    driver.started(urgent)
    driver.schedule()
    assert driver.plan.next_at == driver.now + 30 * SECOND
    states = []
    for _ in range(3):
        driver.pass_time(30 * SECOND)
        driver.schedule()
        states.append(tuple(driver.job(job).state.value for job in (one, two, urgent)))
    assert states == [
        ("running", "running", "suspended"),
        ("suspended", "suspended", "running"),
        ("running", "running", "suspended"),
    ]
    suspension = driver.job(urgent).suspension
    assert suspension is not None
    assert suspension.for_jobs == (one, two)
    driver.ended(one, code=0)
    driver.ended(two, code=0)
    driver.schedule()
    assert driver.job(urgent).state is JobState.RUNNING


@pytest.mark.req("SC-08", "SC-02")
def test_usage_counts_the_segments_that_ran_and_nothing_twice() -> None:
    driver = engine("SUSPEND", "GANG")
    victim = run(driver, "victim", cpus=4)
    driver.pass_time(9 * SECOND)
    driver.act(evictions.suspend(driver.job(victim), "ann"))
    driver.pass_time(100 * SECOND)
    driver.act(evictions.resume(driver.machine, driver.job(victim)))
    driver.pass_time(5 * SECOND)
    driver.act(evictions.requeue(driver.machine, driver.job(victim), driver.now, 0))
    driver.ended(victim, signal=9)
    driver.schedule()
    driver.started(victim)
    driver.pass_time(7 * SECOND)
    driver.ended(victim, code=0)
    used = driver.machine.state.qos_usage["low"]
    assert used.wall_seconds == pytest.approx(10 + 5 + 7, rel=1e-4)


@pytest.mark.req("JT-31")
def test_forbidden_actions_are_refused_with_the_reason() -> None:
    driver = engine("SUSPEND", "GANG")
    first = run(driver, "first", cpus=4)
    assert isinstance(evictions.resume(driver.machine, driver.job(first)), Refusal)
    assert driver.act(evictions.suspend(driver.job(first), "ann")) is None
    assert "only a running job" in driver.act(evictions.suspend(driver.job(first), "ann")).message
    second = run(driver, "second", cpus=3)
    assert driver.act(evictions.resume(driver.machine, driver.job(first))).message.startswith(
        "Of its 4 CPUs on n1 1 are free"
    )
    assert "suspended" in driver.act(decide.open_shell(driver.job(first), 0, ())).message
    driver.ended(second, code=0)
    assert driver.act(evictions.resume(driver.machine, driver.job(first))) is None
    driver.submit(a_spec("urgent", qos="high", cpus=2))
    driver.schedule()
    refused = driver.act(evictions.resume(driver.machine, driver.job(first)))
    assert "was preempted by another" in refused.message


@pytest.mark.req("JT-31")
def test_an_ended_job_is_requeued_under_its_id() -> None:
    driver = engine("REQUEUE")
    job = run(driver, "failing", terminal=True)
    driver.ended(job, code=3)
    assert driver.job(job).kept
    driver.act(evictions.requeue(driver.machine, driver.job(job), driver.now))
    assert (driver.job(job).state, driver.job(job).kept, driver.job(job).end_cause) == (JobState.QUEUED, False, None)
    driver.schedule()
    driver.started(job)
    driver.ended(job, code=0)
    done = driver.job(job)
    assert done.state is JobState.SUCCEEDED
    assert [(each.number, each.cause) for each in done.earlier] == [(1, EndCause.EXIT)]
    assert isinstance(evictions.requeue(driver.machine, replace(done, deleted=True), driver.now), Refusal)


@pytest.mark.req("SC-08")
def test_a_suspended_job_waits_until_the_job_that_needs_its_cpus_has_everything() -> None:
    """The urgent job also waits for the grace time of a second job: the first one may not resume meanwhile."""
    driver = EngineDriver(a_node(cpus=4, cards=2))
    qos = (
        Qos(name="frozen", preempt_mode="SUSPEND"),
        Qos(name="low", preempt_mode="REQUEUE", grace_seconds=20),
        Qos(name="high", priority=9, preempt=("frozen", "low")),
    )
    driver.tell(
        events.ClusterConfigured(Cluster(preemption=Preemption(kind="preempt/qos", mode=("REQUEUE", "GANG")))),
        events.AccountsChanged(tuple(Accounts().associations.values()), qos),
    )
    sleeper = run(driver, "sleeper", qos="frozen", cpus=3)
    other = run(driver, "other", card_milli=2000)
    (urgent,) = driver.submit(a_spec("urgent", qos="high", cpus=4, card_milli=2000))
    driver.schedule()
    for _ in range(2):
        driver.pass_time(SECOND)
        driver.schedule()
        assert driver.job(sleeper).state is JobState.SUSPENDED
    driver.ended(other, signal=9)
    driver.schedule()
    assert (driver.job(urgent).state, driver.job(sleeper).state) == (JobState.STARTING, JobState.SUSPENDED)
