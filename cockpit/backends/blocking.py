"""Wraps a backend that needs an event loop for one-shot commands, whose awaits never suspend (see `backends.drive`)."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Generic, TypeVar

from cockpit.backends.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence
    from typing import Any

    import msgspec

    from cockpit.backends.base import Announced, Backend, JobsDelta, ShellSession, Shown
    from cockpit.formats.snapshotfile import Snapshot
    from cockpit.model.accounting import EndedJob, Spending
    from cockpit.model.asking import LogChunk, LogRequest, ShellRequest
    from cockpit.model.directives import Directive
    from cockpit.model.events import EventRecord
    from cockpit.model.forecast import Expected, Outlook
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.requests import RequestIds
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import AccountsShown, ClusterRow, EngineStatus, HoldRow, NodeRow, Overview, Priorities

T = TypeVar("T")
Wrapped = TypeVar("Wrapped", bound="Backend")


class Blocking(Verbs, Generic[Wrapped]):
    """Implements `Backend` by running each operation of the wrapped backend to its end on an event loop of its own.

    Operations that backends may override are forwarded by name; all others through `read`, `act` and `await_answer`.
    """

    def __init__(self, runner: asyncio.Runner, backend: Wrapped) -> None:
        gc.enable()  # commands switch it off because they end soon; this one may follow a log for hours
        self._runner, self.backend = runner, backend

    def announce(self, look: Announced) -> bool:
        return self.backend.announce(look)

    def identify(self, ids: RequestIds) -> bool:
        return self.backend.identify(ids)

    @property
    def takes_scripts(self) -> bool:
        return self.backend.takes_scripts

    @property
    def reads_this_disk(self) -> bool:
        return self.backend.reads_this_disk

    async def written(self, spec: JobSpec) -> Shown | None:
        return self._run(self.backend.written(spec))

    async def direct(self, wanted: Directive) -> JobId | None:
        return self._run(self.backend.direct(wanted))

    async def snapshot(self) -> Snapshot:
        return self._run(self.backend.snapshot())

    async def status(self) -> EngineStatus:
        return self._run(self.backend.status())

    async def clusters(self) -> list[ClusterRow]:
        return self._run(self.backend.clusters())

    async def overview(self) -> Overview:
        return self._run(self.backend.overview())

    async def nodes(self) -> list[NodeRow]:
        return self._run(self.backend.nodes())

    async def holds(self) -> list[HoldRow]:
        return self._run(self.backend.holds())

    async def accounts(self) -> AccountsShown:
        return self._run(self.backend.accounts())

    async def spending(self, edges: Sequence[Millis]) -> Spending:
        return self._run(self.backend.spending(edges))

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        return self._run(self.backend.explain(job, task=task))

    async def starts(self, jobs: Sequence[JobId]) -> list[Expected]:
        return self._run(self.backend.starts(jobs))

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        return self._run(self.backend.predict(specs))

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        return self._run(self.backend.wait(job, timeout_seconds=timeout_seconds))

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        return self._run(self.backend.job(job, task=task))

    async def logs(self, request: LogRequest) -> LogChunk:
        return self._run(self.backend.logs(request))

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        return self._run(self.backend.jobs(ended=ended))

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        return self._run(self.backend.priorities(weights))

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        return self._run(self.backend.events(job=job, after=after, limit=limit))

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        return self._run(self.backend.accounting(since=since, until=until, user=user))

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        deltas = self.backend.watch_jobs(anything=anything)
        while True:
            yield self._run(_next(deltas))

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        return self._run(self.backend.open_shell(request))

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._run(self._verbs.read(op, args, answer))

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._run(self._verbs.await_answer(op, args, answer))

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._run(self._verbs.act(op, args, answer))

    async def close(self) -> None:
        self._run(self.backend.close())
        self._runner.close()

    @property
    def _verbs(self) -> Verbs:
        assert isinstance(self.backend, Verbs)
        return self.backend

    def _run(self, question: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(question)


async def _next(deltas: AsyncIterator[JobsDelta]) -> JobsDelta:
    return await anext(deltas)
