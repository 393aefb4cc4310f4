"""Time limits that change while a job waits or runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.timelimits import set_time_limit
from cockpit.model import events
from cockpit.model.accounts import Association, ResourceLimits
from cockpit.model.asking import WantedLimit
from cockpit.model.attempt import EndCause
from cockpit.model.cluster import Cluster, Enforce, Partition, Reservation
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import InReservation, LimitReached, NodesReserved, PartitionRefuses, PartitionRule
from cockpit.model.refusal import Refusal, RefusalKind
from tests.builders import ANN, BOB, HOUR, NOON, a_node, a_spec
from tests.engine.driver import EngineDriver

MEMBER, ADMIN = Actor(ANN, admin=False), Actor(BOB, admin=True)
TWO_HOURS = a_spec("a", time_limit_seconds=7200)


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4))


def asked(
    engine: EngineDriver, job: JobId, seconds: int, by: Actor = MEMBER, *, beside: bool = False
) -> Refusal | None:
    wanted = WantedLimit(seconds, beside)
    return engine.act(set_time_limit(engine.machine, engine.job(job), wanted, by, engine.now))


def refused_for(refusal: Refusal | None) -> object:
    assert refusal is not None
    assert refusal.kind is RefusalKind.INVALID
    ((path, reason),) = refusal.reasons
    assert path == "time_limit"
    return reason


@pytest.mark.req("JT-35")
def test_a_running_job_ends_when_its_new_limit_is_over_and_not_before(engine: EngineDriver) -> None:
    (job,) = engine.run(TWO_HOURS)
    assert asked(engine, job, 3 * 3600) is None
    engine.pass_time(2 * HOUR + HOUR // 2)
    assert engine.job(job).ending is None
    engine.pass_time(HOUR)
    ending = engine.job(job).ending
    assert ending is not None
    assert ending.cause is EndCause.TIME_LIMIT


@pytest.mark.req("JT-35")
def test_a_changed_time_limit_does_not_interrupt_the_attempt(engine: EngineDriver) -> None:
    (job,) = engine.run(TWO_HOURS)
    before = engine.job(job)
    assert asked(engine, job, 3600, beside=True) is None
    after = engine.job(job)
    assert after.spec.time_limit_seconds == 3 * 3600
    assert (after.attempt, after.state, after.state_since) == (before.attempt, before.state, before.state_since)


@pytest.mark.req("JT-35")
def test_a_changed_time_limit_replans_the_waiting_jobs(engine: EngineDriver) -> None:
    """The first in the queue waits for all four CPUs; another fits before it only where the running one runs longer."""
    (running,) = engine.run(a_spec("long", cpus=2, time_limit_seconds=3600))
    _first, other = engine.submit(
        a_spec("first", cpus=4, time_limit_seconds=3600), a_spec("other", cpus=2, time_limit_seconds=7200)
    )
    engine.schedule()
    assert engine.job(other).state is JobState.QUEUED
    assert asked(engine, running, 3 * 3600) is None
    engine.schedule()
    assert engine.job(other).state is JobState.STARTING


@pytest.mark.req("JT-35")
def test_a_time_limit_below_the_time_already_run_is_refused(engine: EngineDriver) -> None:
    (job,) = engine.run(TWO_HOURS)
    engine.pass_time(HOUR)
    refusal = asked(engine, job, 1800)
    assert refusal is not None
    assert "has run for 1h" in refusal.message
    assert f"cockpit cancel {job}" in refusal.message
    assert asked(engine, job, 3660) is None


@pytest.mark.req("JT-35")
def test_the_time_limit_of_a_queued_job_is_edited_and_of_an_ended_one_refused(engine: EngineDriver) -> None:
    (running,) = engine.run(a_spec("all", cpus=4))
    (waiting,) = engine.submit(TWO_HOURS)
    assert asked(engine, waiting, -3600, beside=True) is None
    assert engine.job(waiting).spec.time_limit_seconds == 3600
    assert refused_kind(asked(engine, waiting, -3600, beside=True)) is RefusalKind.INVALID
    engine.ended(running, code=0)
    assert refused_kind(asked(engine, running, 60)) is RefusalKind.CONFLICT


def refused_kind(refusal: Refusal | None) -> RefusalKind | None:
    return None if refusal is None else refusal.kind


@pytest.mark.req("JT-35")
def test_the_partition_limit_applies_to_a_changed_time_limit_except_for_administrators(engine: EngineDriver) -> None:
    engine.tell(
        events.ClusterConfigured(Cluster(partitions=(Partition(name="short", default=True, max_time_seconds=7200),)))
    )
    (job,) = engine.run(TWO_HOURS)
    assert refused_for(asked(engine, job, 7260)) == PartitionRefuses("short", PartitionRule.MAX_TIME, "7200", "7260")
    assert asked(engine, job, 7260, ADMIN) is None
    assert asked(engine, job, 7200) is None, "back again is shorter"


@pytest.mark.req("JT-35")
def test_the_account_limit_applies_to_a_changed_time_limit(engine: EngineDriver) -> None:
    tree = (
        Association(account="lab", parent="root", limits=ResourceLimits(max_wall_seconds=7200)),
        Association(account="lab", user="ann", default=True),
    )
    engine.tell(events.AccountsChanged(tree), events.ClusterConfigured(Cluster(enforce=(Enforce.LIMITS,))))
    (job,) = engine.run(a_spec("a", time_limit_seconds=7200, account="lab"))
    reason = refused_for(asked(engine, job, 9000))
    assert isinstance(reason, LimitReached)
    assert reason.limit == "MaxWall"
    assert asked(engine, job, 3600) is None


@pytest.mark.req("JT-35", "SC-11")
def test_a_time_limit_is_not_extended_into_a_reservation_of_the_nodes(engine: EngineDriver) -> None:
    begin, end = NOON + 3 * HOUR, NOON + 5 * HOUR
    engine.tell(
        events.ReservationMade(
            Reservation(name="upkeep", nodes=(NodeName("n1"),), start_at=begin, end_at=end, maintenance=True)
        )
    )
    (job,) = engine.run(TWO_HOURS)
    assert refused_for(asked(engine, job, 4 * 3600)) == NodesReserved("upkeep", begin, end)
    assert asked(engine, job, 3 * 3600 - 60) is None


@pytest.mark.req("JT-35", "SC-11")
def test_a_job_does_not_outlast_the_reservation_it_runs_in(engine: EngineDriver) -> None:
    begin, end = NOON, NOON + 3 * HOUR
    kept = Reservation(name="class", nodes=(NodeName("n1"),), start_at=begin, end_at=end, users=("ann",))
    engine.tell(events.ReservationMade(kept))
    (job,) = engine.run(a_spec("a", time_limit_seconds=7200, reservation="class"))
    assert refused_for(asked(engine, job, 4 * 3600)) == InReservation("class", end_at=end)


@pytest.mark.req("JT-35", "LA-50")
def test_the_limit_of_a_job_that_runs_in_other_clusters_is_refused_with_their_names(engine: EngineDriver) -> None:
    (job,) = engine.run(TWO_HOURS)
    known = engine.job(job)
    assert known.attempt is not None
    spread = replace(known, attempt=replace(known.attempt, members=("east", "west", "east")))
    refusal = set_time_limit(engine.machine, spread, WantedLimit(3600, beside=True), ADMIN, engine.now)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is RefusalKind.CONFLICT
    assert "runs in east and west, where its time limit cannot be changed from here" in refusal.message


@pytest.mark.req("JT-35")
def test_the_limit_of_a_job_that_is_being_ended_is_refused(engine: EngineDriver) -> None:
    (job,) = engine.run(TWO_HOURS)
    engine.pass_time(2 * HOUR)
    assert engine.job(job).ending is not None
    refusal = asked(engine, job, 3 * 3600, by=ADMIN)
    assert refusal is not None
    assert "is being ended already" in refusal.message
