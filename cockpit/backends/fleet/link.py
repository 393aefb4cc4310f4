"""The link of a fleet to one of its members: a cluster of any kind, by the operations that every backend has.

The order of a part is in its name, which Slurm, Kubernetes and cockpit's own engine all keep and list. It is submitted
held: on Slurm by `--hold`, on Kubernetes suspended. Kubernetes refuses a second object of the same name; the others may
hold two, of which the fleet releases one and cancels the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.attempt import ExitStatus
from cockpit.model.fleetorder import Order, PartSeen, PartState, order_of
from cockpit.model.ids import JobId
from cockpit.model.job import ENDED, OCCUPYING, JobState
from cockpit.model.reasons import Held
from cockpit.model.refusal import RefusalKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cockpit.backends.base import LiveBackend, ShellSession
    from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch, ShellRequest
    from cockpit.model.events import EventRecord
    from cockpit.model.fleetrow import MemberObject
    from cockpit.model.job import Job
    from cockpit.model.jobrow import JobRow
    from cockpit.model.reasons import Reason
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import NodeRow

ANSWER_SECONDS = 20.0
"""Longest time that the fleet waits for one answer of a member."""
QUESTION_SECONDS = 10.0
"""Longest time that a user waits for one, who has asked about a replica there."""


class BackendLink:
    """A `runtime.fleet.remote.MemberLink` over a backend. Orders are carried out with the rights of its user."""

    def __init__(
        self, open_backend: Callable[[], Awaitable[LiveBackend]], words: Callable[[Reason], str] = lambda _: ""
    ) -> None:
        """`words`: makes the sentence of a reason."""
        self._open, self._words = open_backend, words
        self._backend: LiveBackend | None = None

    async def parts(self, fleet: str) -> Sequence[PartSeen]:
        async with self._answering() as backend:
            # Not those that ended, of which a cluster may have a hundred thousand: each is found by its own id.
            rows = await backend.jobs()
        ordered = ((row, order_of(row.name)) for row in rows)
        return [self._seen(row, order) for row, order in ordered if order is not None and order.fleet == fleet]

    async def find(self, own: str) -> PartSeen | None:
        try:
            async with self._answering() as backend:
                detail = await backend.job(JobId(int(own)))
        except RequestRefused as refused:
            if refused.refusal.kind is RefusalKind.NOT_FOUND:
                return None
            raise
        order = order_of(detail.row.name)
        return None if order is None else self._seen(detail.row, order, detail.job)

    async def submit(self, spec: JobSpec) -> None:
        async with self._answering() as backend:
            await backend.submit([spec])

    async def release(self, own: str) -> None:
        async with self._answering() as backend:
            await backend.release(JobId(int(own)))

    async def cancel(self, own: str) -> None:
        async with self._answering() as backend:
            await backend.cancel(JobId(int(own)))

    async def nodes(self) -> Sequence[NodeRow]:
        async with self._answering() as backend:
            return await backend.nodes()

    async def own_object(self, own: str) -> MemberObject:
        async with self._answering() as backend:
            return await backend.own_object(JobId(int(own)))

    async def logs(self, own: str, request: LogRequest) -> LogChunk:
        async with self._answering(QUESTION_SECONDS, patient=request.wait) as backend:
            return await backend.logs(replace(request, job=int(own)))

    async def search_log(self, own: str, request: LogSearch) -> LogMatches:
        async with self._answering(QUESTION_SECONDS) as backend:
            return await backend.search_log(replace(request, job=int(own)))

    async def events(self, own: str, after: int, limit: int) -> Sequence[EventRecord]:
        async with self._answering(QUESTION_SECONDS) as backend:
            return await backend.events(job=JobId(int(own)), after=after, limit=limit)

    async def open_shell(self, own: str, request: ShellRequest) -> ShellSession:
        async with self._answering(QUESTION_SECONDS) as backend:
            return await backend.open_shell(replace(request, job=int(own)))

    async def close(self) -> None:
        if self._backend is not None:
            await self._backend.close()

    @asynccontextmanager
    async def _answering(self, seconds: float = ANSWER_SECONDS, *, patient: bool = False) -> AsyncIterator[LiveBackend]:
        """Yield the backend for one request. Raises `Unreachable` if the answer takes too long.

        `patient`: the answer may take any time, as that of a reader who waits for more output; opening may not.
        """
        try:
            async with asyncio.timeout(seconds) as limit:
                if self._backend is None:
                    self._backend = await self._open()
                if patient:
                    limit.reschedule(None)
                yield self._backend
        except TimeoutError:
            raise Unreachable(f"It did not answer within {seconds:g} s.") from None

    def _seen(self, row: JobRow, order: Order, record: Job | None = None) -> PartSeen:
        return PartSeen(
            order=order,
            own=str(row.id),
            state=_state(row),
            nodes=row.placed_on,
            exit=_exit(row, record) if row.state in ENDED else None,
            word=str(row.state),
            reason=self._words(row.reason) if row.reason is not None and row.queued else "",
        )


def _state(row: JobRow) -> PartState:
    if row.state in ENDED:
        return PartState.ENDED
    if row.state is JobState.QUEUED:
        return PartState.HELD if isinstance(row.reason, Held) else PartState.WAITING
    return PartState.RUNNING if row.state in OCCUPYING and row.started_at is not None else PartState.WAITING


def _exit(row: JobRow, record: Job | None) -> ExitStatus:
    if record is not None and record.exit is not None:
        return record.exit
    if row.exit_code is not None:
        code = row.exit_code
        # As a shell reports it: above 128 it is a signal.
        return ExitStatus(signal=code - 128) if 128 < code < 193 else ExitStatus(code=code)
    if row.state is JobState.SUCCEEDED:
        return ExitStatus(code=0)
    return ExitStatus(lost=row.lost or f"it ended as {row.state} there")
