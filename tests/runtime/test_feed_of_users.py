"""What the feed sends to a user who does not see every job."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.engine.access import Actor
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.cluster import Cluster, Project
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.job import JobState
from cockpit.model.node import Allocation
from cockpit.model.reasons import Held
from cockpit.model.spec import Access
from cockpit.model.staging import Progress
from cockpit.protocol.pages import rows_of
from cockpit.runtime import feed
from cockpit.runtime.feed import JobFeed, Subscription
from tests.builders import ANN, BOB, NOON, a_node, a_spec
from tests.runtime.test_feed import PlanningHost

if TYPE_CHECKING:
    from cockpit.model.events import EventBody
    from cockpit.model.job import Submitter
    from cockpit.protocol.pages import JobsChange

pytestmark = pytest.mark.req("TR-13")
ADMIN, USER = Actor(ANN, admin=True), Actor(ANN, admin=False)
MEMBER = Actor(ANN, admin=False, projects=frozenset({"nlp"}))


@pytest.fixture
async def host(monkeypatch: pytest.MonkeyPatch) -> PlanningHost:
    monkeypatch.setattr(feed, "TICK_SECONDS", 0)
    host = PlanningHost()
    await host.happens(events.NodesChanged((a_node(cpus=8),)))
    return host


def a_feed(host: PlanningHost) -> JobFeed:
    seen: Any = host
    return JobFeed(seen)


def submitted(job: int, by: Submitter = ANN, project: str = "ann", **fields: object) -> EventBody:
    return events.JobSubmitted(JobId(job), a_spec(f"job-{job}", **fields), by, project)


def placed(job: int, cpus: int = 8) -> EventBody:
    allocation = Allocation(rank=0, node=NodeName("n1"), cpus=cpus, memory_mib=1024, slices=())
    return events.JobPlaced(JobId(job), 1, 0, (allocation,))


async def following(jobs: JobFeed, subscription: Subscription) -> JobsChange:
    async with asyncio.timeout(60), aclosing(jobs.changes(subscription)) as changes:  # type: ignore[type-var] # a generator
        return await anext(changes)


def ids(change: JobsChange) -> tuple[list[int], list[int], list[int]]:
    return [row.id for row in rows_of(change.new)], [job for job, *_ in change.changed], list(change.removed)


async def test_a_user_gets_the_new_changed_and_removed_rows_of_own_jobs_alone(host: PlanningHost) -> None:
    jobs = a_feed(host)
    await host.happens(submitted(1), submitted(2), submitted(3, BOB))
    subscription = jobs.subscribe(USER)
    assert [row.id for row in jobs.rows(USER)] == [1, 2]
    await host.happens(
        submitted(4), submitted(5, BOB), events.JobHeld(JobId(1), "ann"), events.JobHeld(JobId(3), "bob")
    )
    change = await following(jobs, subscription)
    assert ids(change) == ([4], [1], [])
    assert change.version == host.machine.state.seq
    assert jobs.row_sent(subscription, JobId(1)).reason == Held("ann", NOON)
    assert jobs.row_sent(subscription, JobId(4)).name == "job-4"
    await host.happens(
        events.JobReleased(JobId(1)),
        events.JobEnded(JobId(2), JobState.STOPPED, EndCause.STOP),
        events.JobDeleted(JobId(2)),
    )
    assert ids(await following(jobs, subscription)) == ([], [1], [2])
    assert not isinstance(jobs.row_sent(subscription, JobId(1)).reason, Held)
    assert jobs.is_up_to_date
    await host.happens(events.JobHeld(JobId(4), "ann"))
    assert ids(await following(jobs, subscription)) == ([], [4], [])


async def test_a_user_is_not_told_of_changes_that_they_may_not_see(host: PlanningHost) -> None:
    jobs = a_feed(host)
    await host.happens(submitted(1), submitted(2, BOB))
    subscription = jobs.subscribe(USER)
    assert subscription.seen is None
    told: list[JobsChange] = []

    async def follow() -> None:
        told.append(await following(jobs, subscription))

    async with asyncio.TaskGroup() as group:
        group.create_task(follow())
        await host.happens(events.JobHeld(JobId(2), "bob"))
        while not jobs.is_up_to_date:  # noqa: ASYNC110 - turns of the loop
            await asyncio.sleep(0)
        await host.happens(events.JobHeld(JobId(1), "ann"))
    assert [ids(each) for each in told] == [([], [1], [])]


async def test_a_user_who_follows_all_events_is_told_of_one_that_changes_no_row(host: PlanningHost) -> None:
    jobs = a_feed(host)
    await host.happens(submitted(1), submitted(2, BOB))
    subscription = jobs.subscribe(USER, anything=True)
    await host.happens(events.ReservationEnded("course"))
    change = await following(jobs, subscription)
    assert (ids(change), change.version) == (([], [], []), host.machine.state.seq)
    assert subscription.seen == host.machine.state.seq
    assert jobs.is_up_to_date


async def test_rows_of_a_projects_job_come_and_go_with_the_right_to_see_it(host: PlanningHost) -> None:
    jobs = a_feed(host)
    rules = Cluster(projects=(Project(name="nlp", users=("ann", "bob")),))
    await host.happens(events.ClusterConfigured(rules), submitted(1), submitted(2, BOB, "nlp", access=Access.RO))
    subscription = jobs.subscribe(MEMBER)
    assert [(row.id, row.may) for row in jobs.rows(MEMBER)] == [(1, Access.RW), (2, Access.RO)]
    assert [(row.id, row.may) for row in jobs.rows(ADMIN)] == [(1, Access.RW), (2, Access.RW)]
    spec = a_spec("job-2", access=Access.NONE)
    await host.happens(events.JobEdited(JobId(2), spec))
    assert ids(await following(jobs, subscription)) == ([], [], [2])
    await host.happens(events.JobEdited(JobId(2), a_spec("job-2", access=Access.RW)))
    change = await following(jobs, subscription)
    assert ids(change) == ([2], [], [])
    assert [row.may for row in rows_of(change.new)] == [Access.RW]


async def test_a_row_shows_the_progress_of_the_slowest_replicas_copies(host: PlanningHost) -> None:
    progress = {0: Progress(10, 100, 1), 1: Progress(60, 100, 1)}

    class Executor:
        def staging(self, replica: ReplicaId) -> Progress | None:
            return progress.get(replica.rank)

    seen: Any = host
    seen.executor = Executor()
    jobs = a_feed(host)
    allocations = tuple(
        Allocation(rank=rank, node=NodeName("n1"), cpus=1, memory_mib=1024, slices=()) for rank in range(3)
    )
    packed = submitted(1, nodes=3, image="tar:/images/torch.tar")
    await host.happens(packed, events.JobPlaced(JobId(1), 1, 0, allocations))
    (row,) = jobs.rows(USER)
    assert (row.state, row.staged) == (JobState.STAGING, progress[0])
