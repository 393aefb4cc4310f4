"""The backend of an engine in this process: it calls the operations directly that the engine's socket serves."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.backends.base import Asking, Connection, JobsDelta, LiveBackend, Phase
from cockpit.backends.shell import OpenShell
from cockpit.model.capabilities import EMBEDDED, Capabilities
from cockpit.model.ids import JobId
from cockpit.protocol.frames import raw
from cockpit.protocol.operations import SHELL
from cockpit.protocol.pages import rows_of
from cockpit.runtime.feed import TICK_SECONDS
from cockpit.runtime.operations import OPERATIONS
from cockpit.runtime.request_context import RequestContext, allow
from cockpit.runtime.shells import open_shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Any

    from cockpit.backends.base import ShellSession
    from cockpit.engine.access import Actor
    from cockpit.model.asking import ShellRequest
    from cockpit.model.view import Overview
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.host import Host

T = TypeVar("T")


class InProcessBackend(Asking, LiveBackend):
    """Runs the operations on `engine` with the rights of `actor`; used in the engine's own event loop."""

    def __init__(self, engine: Engine, actor: Actor) -> None:
        self._engine = engine
        self._context = RequestContext(actor)

    @property
    def capabilities(self) -> Capabilities:
        return EMBEDDED

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        """Yield the job list and its changes; a subscription that falls too far behind starts again. Never ends."""
        feed, known = self._engine.feed, set[JobId]()
        while True:
            subscription = feed.subscribe(self._context.actor, anything=anything)
            try:
                # After the subscription, and without an await between the two: each change is either in these rows or
                # sent.
                everything = self._everything(known)
                known = {row.id for row in everything.changed}
                yield everything
                async for change in feed.changes(subscription):
                    # resync: the feed has dropped this subscription; the iteration ends, and the loop subscribes again.
                    if not change.resync:
                        new = rows_of(change.new)
                        changed = [feed.row_sent(subscription, JobId(job)) for job, _, _ in change.changed]
                        known.update([row.id for row in new])
                        # `known` is needed when the subscription is renewed: jobs that left meanwhile are in no row, so
                        # only this tells that they are gone.
                        known.difference_update(_ids(change.removed))
                        yield JobsDelta((*new, *changed), _ids(change.removed), change.version)
            finally:
                feed.unsubscribe(subscription)

    @property
    def connection(self) -> Connection:
        """Always connected."""
        return Connection(Phase.CONNECTED, good_at=self._engine.host.clock.now())

    async def connections(self) -> AsyncIterator[Connection]:
        yield self.connection
        # Never done: the iteration goes on until the caller cancels it.
        await asyncio.get_running_loop().create_future()

    async def overviews(self) -> AsyncIterator[Overview]:
        host, last = self._engine.host, None
        while True:
            # The number first: a change while the overview is computed must cause another look.
            seen, overview = host.machine.state.seq, await self.overview()
            if overview != last:
                yield overview
                last = overview
            async with host.changed:
                await host.changed.wait_for(partial(_has_moved_on, host, seen))
            # At most ten a second, as over the socket.
            await asyncio.sleep(TICK_SECONDS)

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        await allow(self._engine, self._context, SHELL, request)
        opened = await open_shell(self._engine, self._context, request)
        return OpenShell(opened.answer, opened.fds)

    async def read(self, op: str, args: msgspec.Struct, _answer: type[T]) -> T:
        answer: T = await (await self._begun(op, args))
        return answer

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return await self.read(op, args, answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        return [raw(piece) async for piece in await self._begun(op, args)]

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Run a changing operation; its answer is encoded, since the engine stores it for repeated requests."""
        return msgspec.msgpack.decode(await (await self._begun(op, args)), type=answer)

    async def _begun(self, op: str, args: msgspec.Struct) -> Any:  # noqa: ANN401 - a coroutine or an iterator
        """Check the actor's rights, as the socket does, and begin the operation."""
        await allow(self._engine, self._context, op, args)
        _, function = OPERATIONS[op]
        return function(self._engine, self._context, args)

    async def close(self) -> None:
        """Do nothing: the engine is stopped by the code that started it."""

    def _everything(self, known: set[JobId]) -> JobsDelta:
        """Return all rows as of the start of a subscription, and the ids in `known` that are gone."""
        rows = self._engine.feed.rows(self._context.actor)
        gone = tuple(sorted(known - {row.id for row in rows}))
        return JobsDelta(tuple(rows), gone, self._engine.host.machine.state.seq)


def _has_moved_on(host: Host, seen: int) -> bool:
    return host.machine.state.seq != seen


def _ids(numbers: Sequence[int]) -> tuple[JobId, ...]:
    return tuple(map(JobId, numbers))
