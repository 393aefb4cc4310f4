from __future__ import annotations

import pytest

from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.events import EventRecord
from cockpit.model.ids import JobId
from cockpit.model.job import Job, JobState
from cockpit.model.requests import KeptAnswer
from cockpit.runtime.memory_journal import MemoryJournal
from tests.builders import ANN, BOB, NOON, a_node, a_spec


def submitted(seq: int) -> EventRecord:
    body = events.JobSubmitted(JobId(seq), a_spec(f"job-{seq}"), ANN, "ann")
    return EventRecord(seq=seq, at=NOON, actor="ann", origin="test", body=body)


def an_ended_job(job: int, who: object = ANN) -> Job:
    return Job(
        id=JobId(job),
        spec=a_spec(),
        submitter=who,
        project="p",
        submitted_at=NOON,
        state=JobState.STOPPED,
        state_since=NOON,
        end_cause=EndCause.STOP,
        ended_at=NOON,
    )


async def filled(journal: MemoryJournal, count: int) -> Machine:
    """The journal with so many events, and the machine that they add up to."""
    machine = Machine(ClusterState())
    for seq in range(1, count + 1):
        await journal.append([submitted(seq)], durable=True)
        machine.handle(submitted(seq))
    return machine


async def test_loads_what_the_events_add_up_to() -> None:
    journal = MemoryJournal()
    machine = await filled(journal, 5)
    await journal.snapshot(machine.state, 5)
    nodes = EventRecord(seq=6, at=NOON, actor="engine", origin="test", body=events.NodesChanged((a_node(),)))
    await journal.append([nodes], durable=False)
    machine.handle(nodes)
    assert await journal.load() == (machine.state, 6)


async def test_drops_old_events_but_none_missing_from_the_snapshots() -> None:
    journal = MemoryJournal(events_kept=3)
    machine = await filled(journal, 10)
    assert len(await journal.events(job=None, after=-1, limit=99)) == 10
    await journal.snapshot(machine.state, 10)
    assert [each.seq for each in await journal.events(job=None, after=-1, limit=99)] == [8, 9, 10]
    assert await journal.load() == (machine.state, 10)


@pytest.mark.parametrize(
    ("job", "after", "limit", "found"),
    [
        (None, -1, 2, [9, 10]),
        (None, 0, 3, [1, 2, 3]),
        (None, 7, 99, [8, 9, 10]),
        (None, 99, 5, []),
        (4, -1, 5, [4]),
        (4, 3, 5, [4]),
        (4, 4, 5, []),
    ],
)
async def test_finds_events_from_either_end(job: int | None, after: int, limit: int, found: list[int]) -> None:
    journal = MemoryJournal()
    await filled(journal, 10)
    assert [each.seq for each in await journal.events(job=job, after=after, limit=limit)] == found


async def test_stores_ended_jobs_newest_first_and_by_user_up_to_its_bound() -> None:
    journal = MemoryJournal(ended_kept=3)
    await journal.record_ended([an_ended_job(1), an_ended_job(2, BOB), an_ended_job(3), an_ended_job(4)])
    assert await journal.ended_job(JobId(1)) is None
    assert [job.id for job in await journal.ended_jobs(limit=9)] == [4, 3, 2]
    assert [job.id for job in await journal.ended_jobs(limit=1, user="bob")] == [2]


async def test_a_request_gets_its_first_answer_until_too_many_followed() -> None:
    journal = MemoryJournal(answers_kept=2)
    for number in (1, 2, 3):
        await journal.append([], durable=True, answer=KeptAnswer(f"r{number}", b"%d" % number))
    kept = [await journal.answer(f"r{number}") for number in (1, 2, 3)]
    assert [each and each.answer for each in kept] == [None, b"2", b"3"]
