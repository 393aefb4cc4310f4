from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.model import events
from cockpit.model.accounting import Span, UsageSum
from cockpit.model.attempt import Attempt, EndCause, Replica
from cockpit.model.events import EventRecord
from cockpit.model.forecast import PromisedStart
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job, JobState
from cockpit.model.node import Allocation
from cockpit.model.requests import KeptAnswer
from cockpit.runtime.memory_journal import MemoryJournal
from tests.builders import ANN, BOB, NOON, a_node, a_spec

A_PLACE = Allocation(rank=0, node=NodeName("n1"), cpus=3, memory_mib=1024, slices=())


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


async def test_a_refusal_is_remembered_but_never_instead_of_an_answer() -> None:
    journal = MemoryJournal(answers_kept=2)
    refused, accepted = KeptAnswer("r1", b"no", refused=True), KeptAnswer("r1", b"yes")
    await journal.remember(refused)
    await journal.remember(KeptAnswer("r1", b"no again", refused=True))
    assert await journal.answer("r1") == refused
    await journal.remember(accepted)
    await journal.remember(refused)
    assert await journal.answer("r1") == accepted
    await journal.forget_refusal("r1")
    assert await journal.answer("r1") == accepted
    await journal.remember(KeptAnswer("r2", b"no", refused=True))
    await journal.forget_refusal("r2")
    await journal.forget_refusal("r9")
    assert await journal.answer("r2") is None
    for name in ("r3", "r4", "r5"):
        await journal.remember(KeptAnswer(name, b"no", refused=True))
    assert [await journal.answer(name) is not None for name in ("r1", "r3", "r4", "r5")] == [False, False, True, True]


async def test_the_jobs_of_a_request_and_those_between_two_ids_are_found() -> None:
    journal = MemoryJournal()
    for seq, request in enumerate(("a", "a", "b"), 1):
        await journal.append([replace(submitted(seq), request=request)], durable=True)
    held = EventRecord(seq=4, at=NOON, actor="ann", origin="test", request="a", body=events.JobHeld(JobId(1), "ann"))
    await journal.append([held], durable=True)
    assert [await journal.submitted_by(request) for request in ("a", "b", "c")] == [[1, 2], [3], []]
    await journal.record_ended([an_ended_job(each) for each in (5, 2, 9, 7)])
    assert [job.id for job in await journal.ended_among(JobId(5), JobId(7))] == [5, 7]
    await journal.record_ended([an_ended_job(5)])
    assert [job.id for job in await journal.ended_jobs(limit=9)] == [5, 7, 9, 2], "as it ended last"


async def test_jobs_are_found_by_the_time_of_their_end() -> None:
    journal = MemoryJournal()
    ended = [replace(an_ended_job(each), ended_at=Millis(NOON + each)) for each in (1, 2, 3)]
    await journal.record_ended([*ended, replace(an_ended_job(4), ended_at=None, state_since=Millis(NOON + 4))])

    async def found(**bounds: int) -> list[int]:
        limits = {name: Millis(NOON + at) for name, at in bounds.items()}
        return [job.id for job in await journal.ended_jobs(limit=9, **limits)]  # type: ignore[arg-type] # by name

    assert await found(since=2) == [4, 3, 2]
    assert await found(until=3) == [2, 1]
    assert await found(since=2, until=4) == [3, 2]


async def test_what_jobs_used_is_summed_up_with_what_was_used_before() -> None:
    past = Span(JobId(1), 1, "ann", "", "p", "", NOON, Millis(NOON + 10), 2, 1000)
    journal = MemoryJournal(past=(past,))
    attempt = Attempt(number=1, spec_index=0, placement=(A_PLACE,), placed_at=NOON, replicas=(Replica(rank=0),))
    job = replace(an_ended_job(2), attempt=attempt, ended_at=Millis(NOON + 5))
    await journal.record_ended([job])
    edges = [NOON, Millis(NOON + 100)]
    assert await journal.spent(edges, besides=[JobId(2)]) == [[UsageSum("ann", "", "p", "", 10_000, 20)]]
    assert await journal.spent(edges, besides=[]) == [[UsageSum("ann", "", "p", "", 10_000, 20 + 3 * 5)]]


async def test_promised_starts_are_kept_until_they_are_over() -> None:
    journal = MemoryJournal()
    first, second, third = (PromisedStart(JobId(each), NOON) for each in (1, 2, 3))
    await journal.save_promised_starts([third, first], over=[])
    moved = PromisedStart(JobId(1), Millis(NOON + 1))
    await journal.save_promised_starts([second, moved], over=[JobId(3), JobId(9)])
    assert await journal.promised_starts() == [moved, second]


async def test_a_journal_in_memory_always_has_room() -> None:
    journal = MemoryJournal()
    await journal.check_room()
    await journal.keep_spare()
    await journal.probe()
    assert await journal.archive(Millis(NOON)) == 0
