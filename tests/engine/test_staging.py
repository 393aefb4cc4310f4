"""Jobs whose files are copied before they start, as sequences of events."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.effects import RemoveContainer, SignalReplica, StageReplica, StartReplica
from cockpit.engine.nodes import service
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.attempt import EndCause, Grounds
from cockpit.model.cluster import Cluster
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.mounts import Dataset
from cockpit.model.node import NodeState
from cockpit.model.refusal import Refusal
from cockpit.model.resilience import Elastic
from cockpit.model.staging import Staging
from tests.builders import ANN, a_node, a_spec
from tests.engine.driver import Actor, EngineDriver

CATS = Dataset(name="cats", path="/data/cats", read_only=True)


@pytest.fixture
def engine() -> EngineDriver:
    driver = EngineDriver(a_node("n1"), a_node("n2"))
    driver.tell(events.ClusterConfigured(Cluster(staging=Staging(folder="/fast"))))
    return driver


def staged_spec(**fields):
    return a_spec(staging=True, datasets=(CATS,), **fields)


def staged(engine: EngineDriver, job: int, rank: int = 0) -> None:
    engine.act(decide.replica_staged(engine.machine, engine.replicas(job)[rank]))


def begun(engine: EngineDriver, **fields) -> int:
    (job,) = engine.submit(staged_spec(**fields))
    engine.effects.clear()
    engine.schedule()
    return job


def kinds(engine: EngineDriver) -> list[type]:
    found = [type(each) for each in engine.effects]
    engine.effects.clear()
    return found


@pytest.mark.req("JT-19", "JT-35")
def test_the_time_limit_bounds_the_run_and_not_the_copying(engine) -> None:
    job = begun(engine, time_limit_seconds=60)
    engine.pass_time(100_000)
    assert (engine.job(job).state, engine.job(job).ending) == (JobState.STAGING, None)
    staged(engine, job)
    engine.pass_time(20_000)
    assert (engine.job(job).state, engine.job(job).ending) == (JobState.STARTING, None)
    engine.started(job)
    engine.pass_time(59_000)
    assert engine.job(job).ending is None
    engine.pass_time(1_000)
    assert engine.job(job).ending.cause is EndCause.TIME_LIMIT


@pytest.mark.req("JT-19", "JT-31")
def test_a_gang_starts_once_all_its_nodes_have_their_copies(engine) -> None:
    job = begun(engine, nodes=2)
    assert (engine.job(job).state, kinds(engine)) == (JobState.STAGING, [StageReplica] * 2)
    staged(engine, job, 1)
    staged(engine, job, 1)
    assert (engine.job(job).state, kinds(engine)) == (JobState.STAGING, [])
    staged(engine, job, 0)
    assert (engine.job(job).state, kinds(engine)) == (JobState.STARTING, [StartReplica] * 2)
    engine.started(job)
    assert engine.job(job).state is JobState.RUNNING


@pytest.mark.req("JT-19")
def test_a_packed_image_is_copied_too_and_others_start_at_once(engine) -> None:
    packed, plain = engine.submit(a_spec(image="tar:/x.tar"), a_spec(name="b", image="dir:/x"))
    engine.schedule()
    assert (engine.job(packed).state, engine.job(plain).state) == (JobState.STAGING, JobState.STARTING)


@pytest.mark.req("JT-50", "JT-36")
def test_a_job_is_cancelled_while_it_is_staged(engine) -> None:
    job = begun(engine, nodes=2)
    staged(engine, job, 0)
    engine.act(decide.cancel(engine.job(job), engine.now, None))
    engine.effects.clear()
    engine.act(decide.replica_staged(engine.machine, engine.replicas(job)[1]))
    assert engine.effects == []
    for rank in (0, 1):
        engine.ended(job, rank, lost="it was ended while its files were copied")
    assert (engine.job(job).state, engine.job(job).exit.lost[:12]) == (JobState.STOPPED, "it was ended")
    assert set(kinds(engine)[:2]) == {RemoveContainer}


@pytest.mark.req("JT-50")
def test_a_failed_copy_ends_the_job_with_the_reason(engine) -> None:
    job = begun(engine, nodes=2, terminal=True)
    engine.ended(job, 1, lost="datasets[0]: /data/cats: no such file or directory")
    assert SignalReplica in kinds(engine)
    engine.ended(job, 0, lost="it was ended while its files were copied")
    ended = engine.job(job)
    assert (ended.state, ended.end_cause, ended.kept) == (JobState.ERROR, events.EndCause.START_FAILED, False)
    assert ended.exit.lost.startswith("datasets[0]")


def refused(engine: EngineDriver, **fields) -> str:
    answer = submit(engine.machine, [a_spec(**fields)], Actor(ANN, admin=False))
    assert isinstance(answer, Refusal)
    return answer.message


@pytest.mark.req("JT-19", "JT-50")
def test_staging_needs_read_only_datasets_and_a_place(engine) -> None:
    writable = replace(CATS, read_only=False)
    assert refused(engine, staging=True) == "staging: has nothing to copy; add datasets, or remove staging"
    assert refused(engine, staging=True, datasets=(CATS, replace(writable, name="dogs"))) == (
        "datasets[1].read_only: must be true with staging: what is written to a copy is lost"
    )
    engine.tell(events.ClusterConfigured(Cluster()))
    assert "an administrator sets one with [staging]" in refused(engine, staging=True, datasets=(CATS,))


@pytest.mark.req("JT-50")
def test_nodes_with_a_full_disk_start_no_staged_job_until_space_is_free(engine) -> None:
    engine.act(service.drain(engine.machine, "n2", "a fan", "root"))
    engine.act(service.disk_filled(engine.machine, "/fast is filled to 95 %, beyond 90 %"))
    nodes = engine.machine.state.nodes
    assert [each.state for each in nodes.values()] == [NodeState.DRAINED] * 2
    assert nodes["n1"].state_reason == "the disk for staged copies: /fast is filled to 95 %, beyond 90 %"
    job = begun(engine)
    assert engine.job(job).state is JobState.QUEUED
    engine.act(service.disk_filled(engine.machine, ""))
    assert [each.drained_by for each in engine.machine.state.nodes.values()] == ["", "root"]
    engine.schedule()
    assert engine.job(job).state is JobState.STAGING
    assert service.disk_filled(engine.machine, "") == []


@pytest.mark.req("EL-01", "JT-19")
def test_an_elastic_job_that_shrinks_during_staging_starts_on_the_nodes_with_copies(engine) -> None:
    size = Elastic(workers=2, min_workers=1, max_workers=2)
    job = begun(engine, nodes=2, elastic=size)
    staged(engine, job, 0)
    engine.tell(events.WorkersRecalled(job, (1,), engine.now, JobId(99), Grounds.QOS))
    engine.effects.clear()
    engine.ended(job, 1, lost="it was ended while its files were copied")
    assert engine.job(job).state is JobState.STARTING
    assert StartReplica in kinds(engine)


@pytest.mark.req("EL-01", "JT-19", "JT-21")
def test_the_time_limit_does_not_bound_the_copying_of_a_job_that_shrinks_meanwhile(engine) -> None:
    size = Elastic(workers=2, min_workers=1, max_workers=2)
    job = begun(engine, nodes=2, elastic=size, time_limit_seconds=60)
    staged(engine, job, 0)
    engine.pass_time(100_000)
    engine.tell(events.WorkersRecalled(job, (1,), engine.now, JobId(99), Grounds.QOS))
    engine.ended(job, 1, lost="it was ended while its files were copied")
    assert engine.job(job).state_since == engine.now
    engine.pass_time(20_000)
    assert (engine.job(job).state, engine.job(job).ending) == (JobState.STARTING, None)
