"""How events are read from the journal for an administrator and for a user who may see only some of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.state import ClusterState
from cockpit.model.events import EventRecord, JobHeld, NodeResumed
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.protocol.messages import EventsArgs
from cockpit.runtime import timeline as module
from cockpit.runtime.timeline import timeline
from tests.builders import ANN, BOB, NOON, a_spec

pytestmark = pytest.mark.req("TR-11")


def of(owner: Any, number: int) -> Job:
    return Job(
        id=JobId(number), spec=a_spec(), submitter=owner, project=owner.name, submitted_at=NOON, state_since=NOON
    )


class Journal:
    """Has event n about Bob's job 2 for each n, but for those of `others`."""

    def __init__(self, count: int, **others: Any) -> None:
        bodies = {int(name[1:]): body for name, body in others.items()}
        self.records = [
            EventRecord(seq=n, at=Millis(n), actor="x", origin="y", body=bodies.get(n, JobHeld(JobId(2), "bob")))
            for n in range(1, count + 1)
        ]
        self.asked: list[tuple[Any, ...]] = []

    async def events(self, *, job: JobId | None, after: int, limit: int) -> list[EventRecord]:
        self.asked.append((job, after, limit))
        found = [each for each in self.records if job is None or getattr(each.body, "job", None) == job]
        return found[-limit:] if after < 0 else [each for each in found if each.seq > after][:limit]


async def seen(journal: Journal, actor: Actor, *, live: bool = True, **args: Any) -> list[int]:
    state = ClusterState()
    jobs = {job.id: job for job in (of(ANN, 1), of(BOB, 2))}
    if live:
        state.jobs.update(jobs)

    async def ended_job(job: JobId) -> Job | None:
        return jobs.get(job)

    host: Any = SimpleNamespace(journal=journal, machine=SimpleNamespace(state=state), ended_job=ended_job)
    return [each.seq for each in await timeline(host, actor, EventsArgs(**args))]


USER, ADMIN = Actor(ANN, admin=False), Actor(BOB, admin=True)
MINE = JobHeld(JobId(1), "ann")


async def test_an_administrator_sees_every_event_within_the_limit() -> None:
    journal = Journal(5, e3=MINE)
    assert await seen(journal, ADMIN, after=-1, limit=2) == [4, 5]
    assert await seen(journal, ADMIN, after=1, limit=2) == [2, 3]
    assert await seen(journal, ADMIN, job=1, after=-1, limit=9) == [3]
    await seen(journal, ADMIN, after=0, limit=10**9)
    assert journal.asked[-1] == (None, 0, module.MOST)
    assert await seen(journal, ADMIN, after=0, limit=-3) == []


@pytest.mark.parametrize("live", [True, False])
async def test_a_user_sees_events_of_their_own_jobs_and_of_the_cluster(live: bool) -> None:
    journal = Journal(9, e2=MINE, e5=NodeResumed(NodeName("n1"), "root"), e7=MINE, e9=MINE)
    assert await seen(journal, USER, live=live, after=-1, limit=9) == [2, 5, 7, 9]
    assert await seen(journal, USER, live=live, after=-1, limit=2) == [7, 9]
    assert await seen(journal, USER, live=live, after=-1, limit=0) == []
    assert await seen(journal, USER, live=live, after=2, limit=2) == [5, 7]


async def test_a_follower_gets_past_a_long_run_of_others_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    journal = Journal(8, e8=MINE)
    assert await seen(journal, USER, after=0, limit=2) == [8]
    assert [after for _, after, _ in journal.asked] == [0, 3, 6]
    journal.asked.clear()
    assert await seen(journal, USER, after=-1, limit=2) == [8]
    assert len(journal.asked) == 1
    assert await seen(Journal(3), USER, after=0, limit=2) == []


async def test_the_events_of_one_job_are_read_once() -> None:
    journal = Journal(4, e2=MINE)
    assert await seen(journal, USER, job=1, after=-1, limit=3) == [2]
    assert journal.asked == [(JobId(1), -1, 3)]
