"""The demo for one-shot commands, whose awaits never suspend (see `backends.drive`): it lives while it is asked."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, TypeVar

from cockpit.backends.demo.backend import DEFAULT_FIXTURE, DEFAULT_SEED, leave_tidily, open_demo
from cockpit.backends.demo.pace import DEFAULT_SPEED
from cockpit.backends.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence
    from typing import Any

    import msgspec

    from cockpit.backends.base import JobsDelta, ShellSession
    from cockpit.backends.demo.backend import DemoCluster
    from cockpit.model.accounting import EndedJob
    from cockpit.model.asking import LogChunk, LogRequest, ShellRequest
    from cockpit.model.events import EventRecord
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.view import EngineStatus, JobDetail, NodeRow, Priorities

T = TypeVar("T")


class BlockingDemo(Verbs):
    """Implements `Backend` on an event loop of its own. What a demo says in its own way is asked of the demo, all else
    of its engine."""

    def __init__(self, runner: asyncio.Runner, demo: DemoCluster) -> None:
        self._runner = runner
        self._demo = demo
        self._backend = demo.backend
        self.now = demo.now

    @classmethod
    def open(
        cls, fixture: str = DEFAULT_FIXTURE, seed: int = DEFAULT_SEED, speed: float = DEFAULT_SPEED
    ) -> BlockingDemo:
        """As `open_demo`."""
        leave_tidily()
        runner = asyncio.Runner()
        demo = runner.run(open_demo(fixture, seed, speed=speed))
        gc.enable()  # commands switch it off because they end soon; this one may follow a log for hours
        return cls(runner, demo)

    async def status(self) -> EngineStatus:
        return self._run(self._backend.status())

    async def nodes(self) -> list[NodeRow]:
        return self._run(self._backend.nodes())

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        return self._run(self._backend.job(job, task=task))

    async def logs(self, request: LogRequest) -> LogChunk:
        return self._run(self._backend.logs(request))

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        return self._run(self._backend.jobs(ended=ended))

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        return self._run(self._backend.priorities(weights))

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        return self._run(self._backend.events(job=job, after=after, limit=limit))

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        return self._run(self._backend.accounting(since=since, until=until, user=user))

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        deltas = self._backend.watch_jobs(anything=anything)
        while True:
            yield self._run(_next(deltas))

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        return self._run(self._backend.open_shell(request))

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._run(self._backend.read(op, args, answer))

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._run(self._backend.await_answer(op, args, answer))

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._run(self._backend.act(op, args, answer))

    async def close(self) -> None:
        self._run(self._demo.close())
        self._runner.close()

    def _run(self, question: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(question)


async def _next(deltas: AsyncIterator[JobsDelta]) -> JobsDelta:
    return await anext(deltas)
