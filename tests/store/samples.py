"""Events and jobs to keep, a clock that stands still, and a machine that is simple enough to check by eye."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from cockpit.model.attempt import Attempt, EndCause, ExitStatus, Replica
from cockpit.model.events import EventBody, EventRecord, JobArchived, JobEnded, JobSubmitted, ShellOpened
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.store.journal import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cockpit.engine.state import ClusterState

T0 = Millis(1_700_000_000_000)
SECOND = 1000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

ANNA = Submitter(UserName("anna"), 1000, 1000, (1000, 2000), "/home/anna")
SPEC = JobSpec(
    name="held-[bold]one",
    command="printf '%s' \"$HOME\"; exit 3",
    output="/home/anna/out",
    nodes=2,
    specs=(NodeSpec(cpus=4, memory_mib=2048, card_milli=500),),
    env={"LR": "3e-4", "名": "é"},
)


class StillClock:
    """Shows the time it was last set to."""

    def __init__(self, now: Millis = T0) -> None:
        self.time = now

    def now(self) -> Millis:
        return self.time


def event(seq: int, body: EventBody, *, at: int | None = None, request: str = "") -> EventRecord:
    moment = Millis(T0 + seq * SECOND if at is None else at)
    return EventRecord(seq=seq, at=moment, actor="anna", origin="socket", request=request, body=body)


def submitted(seq: int, job: int | None = None, *, at: int | None = None, request: str = "") -> EventRecord:
    return event(seq, JobSubmitted(JobId(job or seq), SPEC, ANNA, "anna"), at=at, request=request)


def shells(first: int, last: int, *, job: int = 1) -> list[EventRecord]:
    """Small events `first`..`last` of one job."""
    return [event(seq, ShellOpened(JobId(job), rank=0)) for seq in range(first, last + 1)]


def queued_job(job: int) -> Job:
    return Job(id=JobId(job), spec=SPEC, submitter=ANNA, project="anna", submitted_at=T0, state_since=T0)


def ended_job(job: int, *, ended_at: int = T0 + HOUR, user: str = "anna", code: int = 3) -> Job:
    """A job that ran on two nodes, half a card on each."""
    placement = tuple(Allocation(rank, NodeName(f"n{rank}"), 4, 2048, (CardSlice(0, 1, 500),)) for rank in range(2))
    replicas = tuple(Replica(rank=rank, started_at=Millis(T0 + 10 + rank)) for rank in range(2))
    return msgspec.structs.replace(
        queued_job(job),
        submitter=msgspec.structs.replace(ANNA, name=UserName(user)),
        state=JobState.ERROR,
        state_since=Millis(ended_at),
        attempt=Attempt(number=1, spec_index=0, placement=placement, placed_at=T0, replicas=replicas),
        exit=ExitStatus(code=code),
        end_cause=EndCause.EXIT,
        ended_at=Millis(ended_at),
    )


def toy_apply(state: ClusterState, record: EventRecord) -> None:
    """Jobs come, end and go; everything else only counts."""
    state.seq = record.seq
    match record.body:
        case JobSubmitted(job=job):
            state.last_job_id = max(state.last_job_id, job)
            state.jobs[job] = msgspec.structs.replace(queued_job(job), submitted_at=record.at)
        case JobEnded(job=job, state=ended) if job in state.jobs:
            state.jobs[job] = msgspec.structs.replace(state.jobs[job], state=ended, version=record.seq)
        case JobArchived(job=job):
            state.jobs.pop(job, None)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteJournal]:
    """A journal that is closed whatever happens: an open one's thread would keep a failed run alive."""
    journal = await open_journal(folder)
    try:
        yield journal
    finally:
        await journal.close()


async def open_journal(folder: Path, clock: StillClock | None = None, *, busy_seconds: float = 0.1) -> SqliteJournal:
    return await SqliteJournal.open(
        folder / "journal.db",
        folder / "archive",
        clock=clock or StillClock(),
        apply=toy_apply,
        busy_seconds=busy_seconds,
    )


async def answered(journal: SqliteJournal, request: str) -> bytes:
    """What the request was first answered."""
    known = await journal.answer(request)
    assert known is not None
    return known.answer
