"""What the jobs of a chaos run held, recounted from their events, against the accounting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.views.spending import ended_job
from cockpit.model import events
from cockpit.model.job import Job
from tests.e2e.aftermath import accounting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cockpit.model.events import EventRecord
    from tests.e2e.cockpit_user import CockpitUser


def accounting_errors(user: CockpitUser, told: Mapping[int, Sequence[EventRecord]]) -> Iterator[str]:
    stored = {job: ended_job(msgspec.convert(row, Job)) for job, row in accounting(user).items()}
    for job, records in sorted(told.items()):
        if (row := stored.get(job)) is None:
            yield f"job {job} is not in the accounting"
            continue
        attempts = _held(records)
        cpu_ms, slack = sum(each.cpu_ms for each in attempts), sum(each.elapsed for each in attempts) / 2
        # A resized attempt counts with the rounded mean of its CPUs, which is half of one off at most.
        if abs(row.cpu_held_ms - cpu_ms) > slack + 1:
            yield f"job {job} held {row.cpu_held_ms} CPU-ms by the accounting, and {cpu_ms} by its events"
        if row.attempts != len(attempts):
            yield f"job {job} had {row.attempts} attempts by the accounting, and {len(attempts)} by its events"


class Held:
    """What one attempt held."""

    def __init__(self, placed_at: int) -> None:
        self.placed_at = placed_at
        self.cpus: dict[int, int] = {}
        self.begins: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.last = placed_at
        self.resized = False

    @property
    def began(self) -> int:
        return min(self.begins.values(), default=self.placed_at)

    @property
    def elapsed(self) -> int:
        return max(0, self.last - self.began)

    @property
    def cpu_ms(self) -> int:
        if not self.resized:
            return sum(self.cpus.values()) * self.elapsed
        spans = ((rank, self.begins.get(rank, self.last), self.ends.get(rank, self.last)) for rank in self.cpus)
        return sum(self.cpus[rank] * max(0, end - begin) for rank, begin, end in spans)


def _held(records: Sequence[EventRecord]) -> list[Held]:
    attempts: list[Held] = []
    for record in records:
        match record.body:
            case events.JobPlaced() as body:
                attempts.append(Held(record.at))
                attempts[-1].cpus = {part.rank: part.cpus for part in body.placement}
            case events.WorkersAdded() as body:
                attempts[-1].cpus |= {part.rank: part.cpus for part in body.placement}
                attempts[-1].resized = True
            case events.WorkersLeft() as body:
                attempts[-1].ends |= dict.fromkeys(body.ranks, record.at)
                attempts[-1].resized = True
            case events.WorkerReplaced() as body:
                attempts[-1].ends[body.rank] = record.at
                attempts[-1].cpus[body.by] = attempts[-1].cpus[body.rank]
                attempts[-1].resized = True
            case events.ReplicaStarted() as body:
                attempts[-1].begins.setdefault(body.rank, record.at)
            case events.ReplicaEnded():
                attempts[-1].last = record.at
            case events.JobRequeued() if attempts:
                attempts[-1].last = record.at
            case _:
                pass
    return attempts
