"""The engine over a cluster that another scheduler runs: it plans and explains, and starts nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
from cockpit.model.job import Job, JobState
from cockpit.model.refusal import RefusalKind
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.offline_engine import NoContainers, look, offline_engine, read_only_actor
from tests.builders import ANN, NOON, a_node, a_spec

pytestmark = pytest.mark.req("SL-02")


def a_job(job: int, **fields: Any) -> Job:
    waiting = Job(
        id=JobId(job),
        spec=a_spec(f"job-{job}", cpus=6),
        submitter=ANN,
        project="ann",
        submitted_at=NOON,
        state=JobState.QUEUED,
        state_since=NOON,
    )
    return replace(waiting, **fields)


async def test_jobs_of_another_scheduler_are_planned_and_not_started() -> None:
    state = ClusterState()
    state.nodes[NodeName("n1")] = a_node(cpus=8)
    state.jobs |= {JobId(each): a_job(each) for each in (1, 2)}
    ended = [a_job(each, state=JobState.SUCCEEDED, ended_at=NOON) for each in (7, 8, 9)]
    engine = await offline_engine(Machine(state), ended, VirtualClock(Millis(NOON + 1)), "lab")
    assert [job.id for job in await engine.host.journal.ended_jobs(limit=9)] == [9, 8, 7], "none is forgotten"
    assert (engine.cluster, engine.system) == ("lab", True)
    await look(engine)
    plan = engine.host.plan
    assert plan is not None
    assert [start.job for start in plan.starts] == [1]
    assert {job.state for job in engine.host.machine.state.jobs.values()} == {JobState.QUEUED}
    await look(engine)
    assert engine.host.plan is not plan
    await offline_engine(Machine(ClusterState()), [], VirtualClock(NOON), "empty")


async def test_containers_of_another_scheduler_cannot_be_entered() -> None:
    containers, replica = NoContainers(), ReplicaId(JobId(7), 1, 0)
    with pytest.raises(RequestRefused, match=r"Job 7 cannot be entered from here\.") as refused:
        await containers.enter(replica, [], terminal=None, label="")
    assert refused.value.refusal.kind is RefusalKind.UNAVAILABLE
    await containers.adopt([], [])
    effect: Any = None
    for step in (containers.start, containers.signal, containers.keep, containers.remove):
        await step(effect)
    assert (await containers.used(replica), await containers.copies(), await containers.remove_copy("x")) == (
        None,
        [],
        False,
    )
    assert containers.staging(replica) is None


def test_a_reader_sees_every_job_that_the_cluster_reported() -> None:
    actor = read_only_actor("ann")
    assert (actor.name, actor.admin, actor.who.home) == ("ann", True, "")
