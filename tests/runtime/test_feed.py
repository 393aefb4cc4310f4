from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.engine.access import Actor
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.model import events
from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Allocation
from cockpit.model.reasons import Held, NotEnoughFree
from cockpit.protocol.pages import JobsChange, JobsPage, rows_of, with_changes
from cockpit.runtime import feed
from cockpit.runtime.feed import JobFeed, Subscription
from cockpit.runtime.troubles import FaultLog
from cockpit.sched.cycle import cycle
from cockpit.sched.policy import Policy
from tests.builders import ANN, NOON, a_node, a_spec

if TYPE_CHECKING:
    from cockpit.model.events import EventBody
    from cockpit.model.jobrow import JobRow
    from cockpit.sched.plan import Plan

ADMIN = Actor(ANN, admin=True)


class PlanningHost:
    """As much of a host as a feed looks at: a machine, the last plan, and word of changes."""

    def __init__(self) -> None:
        self.machine = Machine(ClusterState())
        self.plan: Plan | None = None
        self.faults = FaultLog()
        self.changed = asyncio.Condition()

    async def happens(self, *bodies: EventBody) -> None:
        for body in bodies:
            seq = self.machine.state.seq + 1
            record = events.EventRecord(seq=seq, at=NOON, actor="ann", origin="test", request="", body=body)
            self.machine.handle(record)
        self.plan = cycle(self.machine.snapshot(NOON), self.plan.index if self.plan else None, Policy())
        async with self.changed:
            self.changed.notify_all()


def submitted(job: int, **fields: object) -> EventBody:
    return events.JobSubmitted(JobId(job), a_spec(f"job-{job}", **fields), ANN, "ann")


def placed(job: int, cpus: int) -> EventBody:
    allocation = Allocation(rank=0, node=NodeName("n1"), cpus=cpus, memory_mib=1024, slices=())
    return events.JobPlaced(JobId(job), 1, 0, (allocation,))


@pytest.fixture
async def host(monkeypatch: pytest.MonkeyPatch) -> PlanningHost:
    monkeypatch.setattr(feed, "TICK_SECONDS", 0)
    monkeypatch.setattr(feed, "REASONS_AT_ONCE", 3)
    host = PlanningHost()
    await host.happens(events.NodesChanged((a_node(cpus=8),)), submitted(1, cpus=6), placed(1, 6))
    return host


def free_cpus(row: JobRow) -> int:
    assert isinstance(row.reason, NotEnoughFree)
    return row.reason.nearest[0].free


async def test_a_reason_that_changes_for_many_jobs_is_sent_in_several_pages(host: PlanningHost) -> None:
    """And what has really happened does not wait for them."""
    jobs = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    await host.happens(*(submitted(job, cpus=8) for job in range(2, 12)))
    subscription = jobs.subscribe(ADMIN)
    told = {row.id: row for row in jobs.rows(ADMIN)}
    assert {free_cpus(row) for row in told.values() if row.id > 1} == {2}
    async with asyncio.timeout(60), aclosing(jobs.changes(subscription)) as changes:  # type: ignore[type-var] # a generator
        await host.happens(submitted(12, cpus=1), placed(12, 1))
        sizes = []
        while {free_cpus(row) for row in told.values() if 1 < row.id < 12} != {1}:
            change = await anext(changes)
            sizes.append(len(change.changed))
            _take(told, change)
            assert 12 in told
    assert sizes == [3, 3, 3, 1]


async def _follow(jobs: JobFeed, subscription: Subscription, told: dict[JobId, JobRow]) -> None:
    async for change in jobs.changes(subscription):
        _take(told, change)


def _take(told: dict[JobId, JobRow], change: JobsChange) -> None:
    """As a client does."""
    told.update((row.id, row) for row in rows_of(change.new))
    for job, _, columns in change.changed:
        told[JobId(job)] = with_changes(told[JobId(job)], columns)
    for job in change.removed:
        del told[JobId(job)]


@pytest.mark.req("TR-13")
async def test_subscribers_with_full_access_share_the_encoded_changes(host: PlanningHost) -> None:
    """They hold no rows of their own, and whatever they miss is worked out and encoded once."""
    jobs = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    await host.happens(*(submitted(job, cpus=8) for job in range(2, 12)))
    both = [jobs.subscribe(ADMIN), jobs.subscribe(ADMIN)]
    assert [each.sent for each in both] == [None, None]
    pages = [jobs.first_load(each, 5, brief=False) for each in both]
    assert pages[0] is pages[1]
    assert list(pages[0]) == list(pages[1])
    await host.happens(events.JobHeld(JobId(2), "ann"))
    async with asyncio.timeout(60):
        changes = [await anext(jobs.changes(each)) for each in both]  # type: ignore[type-var] # generators
    assert changes[0] is changes[1]
    assert jobs.encoded(changes[0]) is jobs.encoded(changes[1])


@pytest.mark.req("TR-13")
@pytest.mark.parametrize("seed", range(20))
async def test_a_late_subscriber_gets_the_current_rows(host: PlanningHost, seed: int) -> None:
    chance = random.Random(seed)
    jobs = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    await host.happens(*(submitted(job, cpus=8) for job in range(2, 12)))
    watching = [(jobs.subscribe(ADMIN), {row.id: row for row in jobs.rows(ADMIN)}) for _ in range(3)]
    last, held = 11, set[int]()
    async with asyncio.timeout(60):
        for _ in range(12):
            last += 1
            job = chance.randrange(2, last)
            change = events.JobReleased(JobId(job)) if job in held else events.JobHeld(JobId(job), "ann")
            held ^= {job}
            await host.happens(submitted(last, cpus=chance.choice([1, 8])), change)
            for subscription, told in chance.sample(watching, chance.randrange(4)):
                _take(told, await anext(jobs.changes(subscription)))  # type: ignore[type-var] # a generator
        async with asyncio.TaskGroup() as group:
            following = [group.create_task(_follow(jobs, *each)) for each in watching]
            while any(told != {row.id: row for row in jobs.rows(ADMIN)} for _, told in watching):  # noqa: ASYNC110 - turns
                await asyncio.sleep(0)
            for task in following:
                task.cancel()
    for subscription, _ in watching:
        jobs.unsubscribe(subscription)
    assert jobs._log.since(jobs._log.last - 1) is None, "nobody needs what has been"


async def test_a_list_is_exact_at_once(host: PlanningHost) -> None:
    jobs = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    await host.happens(*(submitted(job, cpus=8) for job in range(2, 12)))
    jobs.rows(ADMIN)
    await host.happens(submitted(12, cpus=1), placed(12, 1))
    assert {free_cpus(row) for row in jobs.rows(ADMIN) if 1 < row.id < 12} == {1}


async def test_a_held_job_is_shown_as_held_whatever_the_plan(host: PlanningHost) -> None:
    jobs = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    await host.happens(submitted(2, cpus=8), events.JobHeld(JobId(2), "ann"))
    assert jobs.rows(ADMIN)[-1].reason == Held("ann", NOON)
    await host.happens(events.JobReleased(JobId(2)))
    assert free_cpus(jobs.rows(ADMIN)[-1]) == 2


async def test_jobs_are_listed_as_they_were_submitted_however_many_came_at_once(host: PlanningHost) -> None:
    jobs = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    jobs.rows(ADMIN)
    later = [22, 23, 24, 30, 40]
    assert list(set(later)) != later
    await host.happens(*(submitted(job, cpus=1) for job in later))
    assert [row.id for row in jobs.rows(ADMIN)] == [1, *later]


@pytest.mark.req("PF-18")
async def test_the_first_page_is_as_small_as_a_screen_and_counts_all(host: PlanningHost) -> None:
    """Rows are seen before all are there."""
    await host.happens(*(submitted(number) for number in range(1, 41)))
    feed = JobFeed(host)
    first, *rest = (msgspec.msgpack.decode(page, type=JobsPage) for page in feed.pages(feed.rows(ADMIN), 5))
    assert [row.id for row in rows_of(first)] == [1, 2, 3, 4, 5]
    assert sum(first.counts.values()) == 40
    assert [row.id for page in rest for row in rows_of(page)] == list(range(6, 41))


async def test_a_subscriber_to_all_changes_is_informed_of_changes_outside_the_rows(host: PlanningHost) -> None:
    feed = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    curious, other = feed.subscribe(ADMIN, anything=True), feed.subscribe(ADMIN)
    await host.happens(events.ReservationEnded("course"))
    async with asyncio.timeout(60), aclosing(feed.changes(curious)) as changes:  # type: ignore[type-var] # a generator
        told = await anext(changes)
    assert (len(rows_of(told.new)), told.changed, told.removed) == (0, (), ())
    assert feed.is_up_to_date
    assert other.seen is None


async def test_encoded_pages_are_cached_until_a_row_changes_in_brief_and_full_form(host: PlanningHost) -> None:
    await host.happens(submitted(2, cpus=1))
    feed = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    brief, full = feed.live_pages(ADMIN, brief=True), feed.live_pages(ADMIN)
    assert brief != full
    assert feed.live_pages(ADMIN, brief=True) is brief
    assert feed.live_pages(ADMIN) is full
    await host.happens(submitted(3, cpus=1))
    (page,) = (msgspec.msgpack.decode(page, type=JobsPage) for page in feed.live_pages(ADMIN, brief=True))
    assert [row.id for row in rows_of(page)] == [1, 2, 3]


@pytest.mark.req("UI-01")
async def test_a_row_shows_the_planned_start_while_the_plan_has_it(host: PlanningHost) -> None:
    await host.happens(submitted(1), placed(1, 8), events.ReplicaStarted(JobId(1), 1, 0), submitted(2), submitted(3))
    feed = JobFeed(host)
    first, second, third = feed.rows(ADMIN)
    promised = {each.job: each.reserved_at for each in host.plan.reservations}
    assert promised.keys() == {2}
    assert (first.starts_by, second.starts_by, third.starts_by) == (None, promised[2], None)
    await host.happens(events.JobHeld(JobId(2), "ann"))
    assert [row.starts_by is not None for row in feed.rows(ADMIN)] == [False, False, True]


async def test_reasons_that_are_still_to_be_sent_outlast_a_plan_that_changes_none(host: PlanningHost) -> None:
    jobs = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    await host.happens(*(submitted(job, cpus=8) for job in range(2, 12)))
    subscription = jobs.subscribe(ADMIN)
    await host.happens(submitted(12, cpus=1), placed(12, 1))
    async with asyncio.timeout(60):
        await anext(jobs.changes(subscription))  # type: ignore[type-var] # a generator
    assert len(jobs._outdated) > 0
    await host.happens(events.ReservationEnded("course"))
    assert {free_cpus(row) for row in jobs.rows(ADMIN) if 1 < row.id < 12} == {1}


@pytest.mark.req("PF-18")
async def test_memory_is_returned_once_after_subscribers_have_left(
    host: PlanningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(feed, "QUIET_SECONDS", 0)
    monkeypatch.setattr(feed.ctypes, "CDLL", lambda _name: SimpleNamespace(malloc_trim=trimmed.append))
    jobs = JobFeed(host)  # type: ignore[arg-type] # it looks at no more of a host
    for subscription in [jobs.subscribe(ADMIN) for _ in range(3)]:
        jobs.unsubscribe(subscription)
    async with asyncio.timeout(60):
        while not trimmed:  # noqa: ASYNC110 - turns of the loop
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert trimmed == [0]
    jobs.unsubscribe(jobs.subscribe(ADMIN))
    async with asyncio.timeout(60):
        while len(trimmed) < 2:  # noqa: ASYNC110 - turns of the loop
            await asyncio.sleep(0)
