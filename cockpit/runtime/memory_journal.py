"""A journal in memory, for the demo and replays. It forgets old events, but never a part of the current state."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.apply.events import apply
from cockpit.engine.state import ClusterState
from cockpit.engine.views.spending import divided, spans
from cockpit.model.events import JobSubmitted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from cockpit.model.accounting import Span, UsageSum
    from cockpit.model.events import EventRecord
    from cockpit.model.forecast import PromisedStart
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.requests import KeptAnswer

EVENTS_KEPT = 30_000
"""Most events in memory; it must exceed the number that a host writes between two snapshots."""
ENDED_KEPT = 5_000
ANSWERS_KEPT = 1_000


class MemoryJournal:
    """Implements `engine.ports.Journal`. The oldest events, ended jobs and answers are forgotten."""

    def __init__(
        self,
        *,
        events_kept: int = EVENTS_KEPT,
        ended_kept: int = ENDED_KEPT,
        answers_kept: int = ANSWERS_KEPT,
        past: Sequence[Span] = (),
    ) -> None:
        """`past`: resources that were allocated before this journal began, for accounting."""
        self._past = past
        self._events: deque[EventRecord] = deque()
        self._events_kept = events_kept
        self._ended_jobs: dict[JobId, Job] = {}
        self._ended_kept = ended_kept
        self._answers: dict[str, KeptAnswer] = {}
        self._answers_kept = answers_kept
        self._promised: dict[JobId, PromisedStart] = {}
        self._snapshot = msgspec.msgpack.encode(ClusterState())
        self._snapshot_seq = 0

    async def load(self) -> tuple[ClusterState, int]:
        state = msgspec.msgpack.decode(self._snapshot, type=ClusterState)
        for record in self._events_after(self._snapshot_seq):
            apply(state, record)
        return state, state.seq

    async def append(self, records: Sequence[EventRecord], *, durable: bool, answer: KeptAnswer | None = None) -> None:
        """Append the records. `durable` is ignored, since nothing in memory is durable."""
        del durable
        self._events.extend(records)
        self._forget_events()
        if answer is not None:
            self._answers[answer.request] = answer
            _forget_first(self._answers, self._answers_kept)

    async def archive(self, before: Millis) -> int:
        """Do nothing: the oldest events are forgotten as new ones come."""
        del before
        return 0

    async def check_room(self) -> None:
        """Do nothing, since there is no disk."""

    async def keep_spare(self) -> None:
        """Do nothing, since there is no disk."""

    async def probe(self) -> None:
        """Do nothing, since writes never fail."""

    async def answer(self, request: str) -> KeptAnswer | None:
        return self._answers.get(request)

    async def remember(self, answer: KeptAnswer) -> None:
        # A refusal never replaces the answer of a request that was accepted.
        if not answer.refused or answer.request not in self._answers:
            self._answers[answer.request] = answer
        _forget_first(self._answers, self._answers_kept)

    async def forget_refusal(self, request: str) -> None:
        known = self._answers.get(request)
        if known is not None and known.refused:
            del self._answers[request]

    async def submitted_by(self, request: str) -> list[JobId]:
        bodies = (each.body for each in self._events if each.request == request)
        return [body.job for body in bodies if isinstance(body, JobSubmitted)]

    async def snapshot(self, state: ClusterState, seq: int) -> None:
        self._snapshot, self._snapshot_seq = msgspec.msgpack.encode(state), seq
        self._forget_events()

    async def record_ended(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            # At the end again, so that the first entry is always the oldest.
            self._ended_jobs.pop(job.id, None)
            self._ended_jobs[job.id] = job
        _forget_first(self._ended_jobs, self._ended_kept)

    async def ended_job(self, job: JobId) -> Job | None:
        return self._ended_jobs.get(job)

    async def ended_among(self, first: JobId, last: JobId) -> list[Job]:
        return [self._ended_jobs[each] for each in sorted(self._ended_jobs) if first <= each <= last]

    async def ended_jobs(
        self, *, limit: int, user: str | None = None, since: Millis | None = None, until: Millis | None = None
    ) -> list[Job]:
        def wanted(job: Job) -> bool:
            at = job.state_since if job.ended_at is None else job.ended_at
            in_time = (since is None or at >= since) and (until is None or at < until)
            return in_time and (user is None or job.submitter.name == user)

        return list(islice(filter(wanted, reversed(self._ended_jobs.values())), limit))

    async def spent(self, edges: Sequence[Millis], besides: Collection[JobId]) -> list[list[UsageSum]]:
        held = (
            span for job in self._ended_jobs.values() if job.id not in besides for span in spans(job, job.state_since)
        )
        return divided((*self._past, *held), edges)

    async def promised_starts(self) -> list[PromisedStart]:
        return [self._promised[job] for job in sorted(self._promised)]

    async def save_promised_starts(self, changed: Sequence[PromisedStart], over: Collection[JobId]) -> None:
        self._promised.update((each.job, each) for each in changed)
        for job in over:
            self._promised.pop(job, None)

    async def events(self, *, job: JobId | None, after: int, limit: int) -> list[EventRecord]:
        if after >= 0:
            return list(islice((each for each in self._events_after(after) if _concerns(each, job)), limit))
        newest = list(islice((each for each in reversed(self._events) if _concerns(each, job)), limit))
        return newest[::-1]

    def _events_after(self, seq: int) -> Iterator[EventRecord]:
        # Numbers have no gaps, so the place of an event follows from its number.
        first = self._events[0].seq if self._events else 0
        return islice(self._events, max(0, seq + 1 - first), None)

    def _forget_events(self) -> None:
        """Forget the oldest events beyond the limit, but none that is newer than the last snapshot."""
        while len(self._events) > self._events_kept and self._events[0].seq <= self._snapshot_seq:
            self._events.popleft()


def _concerns(record: EventRecord, job: JobId | None) -> bool:
    return job is None or getattr(record.body, "job", None) == job


def _forget_first(kept: dict[str, KeptAnswer] | dict[JobId, Job], most: int) -> None:
    """Delete the oldest entries until at most `most` are left."""
    for key in list(islice(kept, max(0, len(kept) - most))):
        del kept[key]  # type: ignore[arg-type] # its own key, whichever of the two it is
