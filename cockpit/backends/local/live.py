"""The embedded engine as a backend for a face that stays open: nothing blocks the loop, and a lost engine is found
again. For one-shot commands there is `backend`, which needs no loop.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.backends.base import JobsDelta
from cockpit.backends.drive import drive
from cockpit.backends.local.backend import LocalBackend, request_id
from cockpit.backends.local.keeping import Keeper, Patience
from cockpit.backends.local.threads import beside
from cockpit.backends.local.watching import LiveRows
from cockpit.errors import CockpitError, Unreachable
from cockpit.model import asking
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.events import EventRecord
from cockpit.model.forecast import Outlook
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.view import (
    AccountsShown,
    EngineStatus,
    HoldRow,
    JobDetail,
    JobRow,
    NodeRow,
    Overview,
    Priorities,
    QueuesShown,
    WeightsSet,
)
from cockpit.protocol import messages
from cockpit.protocol.pages import JobsPage, Update, rows_of, whole_list

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
    from random import Random

    from cockpit.backends.base import Connection, ShellSession
    from cockpit.backends.local.keeping import Dialler
    from cockpit.model.accountchange import AccountChange
    from cockpit.model.asking import WantedPriority
    from cockpit.model.priority import WeightChanges
    from cockpit.model.quota import QuotaTree
    from cockpit.model.spec import JobSpec

T = TypeVar("T")

FIRST_ROWS = 200
"""As many as any screen shows at once."""

_NOTHING = messages.NoArgs()
_DONE = type(None)
_decode_update = msgspec.msgpack.Decoder(Update).decode
_decode_events = msgspec.msgpack.Decoder(list[EventRecord]).decode
_decode_priorities = msgspec.msgpack.Decoder(Priorities).decode
_decode_outlook = msgspec.msgpack.Decoder(Outlook).decode
_decode_outlooks = msgspec.msgpack.Decoder(list[Outlook]).decode
_decode_page = msgspec.msgpack.Decoder(JobsPage).decode


class LiveBackend:
    """Connects with the first question. Reading raises `Unreachable` after its time limit; `watch_jobs` never does."""

    def __init__(
        self, dialler: Dialler, now: Callable[[], Millis], random: Random, patience: Patience | None = None
    ) -> None:
        self._dialler = dialler
        self._keeper = Keeper(dialler, now, random, patience or Patience())

    @property
    def connection(self) -> Connection:
        """As of now."""
        return self._keeper.connection

    async def connections(self) -> AsyncIterator[Connection]:
        """The connection as it stands, then whenever its phase or reason changes. Never ends."""
        self._keeper.begin()
        async for connection in self._keeper.connections():
            yield connection

    async def overviews(self) -> AsyncIterator[Overview]:
        """The overview whenever it changes. Never ends."""
        self._keeper.begin()
        async for overview in self._keeper.overview.follow():
            if overview is not None:
                yield overview

    async def status(self) -> EngineStatus:
        return await self._read("status", _NOTHING, EngineStatus)

    async def overview(self) -> Overview:
        return await self._read("overview", _NOTHING, Overview)

    async def jobs(self, *, ended: bool = False) -> list[JobRow]:
        rows: list[JobRow] = []
        async with self._in_time(self._keeper.patience.read), self._keeper.own_wire() as wire:
            async for encoded in wire.stream("jobs", messages.JobsArgs(ended)):
                rows += rows_of(_decode_page(encoded))
        return rows

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        return await self._read("job", messages.JobArgs(job, task), JobDetail)

    async def nodes(self) -> list[NodeRow]:
        return await self._read("nodes", _NOTHING, list[NodeRow])

    async def holds(self) -> list[HoldRow]:
        return await self._read("holds", _NOTHING, list[HoldRow])

    async def rules(self) -> Cluster:
        return await self._read("rules", _NOTHING, Cluster)

    async def accounts(self) -> AccountsShown:
        return await self._read("accounts", _NOTHING, AccountsShown)

    async def change_accounts(self, change: AccountChange) -> None:
        await self._act("change_accounts", messages.ChangeAccountsArgs(change), _DONE)

    async def set_weights(self, weights: WeightChanges) -> WeightsSet:
        return await self._act("set_weights", messages.SetWeightsArgs(weights), WeightsSet)

    async def reservations(self) -> list[Reservation]:
        return await self._read("reservations", _NOTHING, list[Reservation])

    async def make_reservation(self, reservation: Reservation) -> None:
        await self._act("make_reservation", messages.ReservationArgs(reservation), _DONE)

    async def end_reservation(self, name: str) -> None:
        await self._act("end_reservation", messages.NameArgs(name), _DONE)

    async def drain_node(self, name: str, reason: str) -> None:
        await self._act("drain_node", messages.DrainArgs(name, reason), _DONE)

    async def resume_node(self, name: str) -> None:
        await self._act("resume_node", messages.NameArgs(name), _DONE)

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        records: list[EventRecord] = []
        async with self._in_time(self._keeper.patience.read), self._keeper.own_wire() as wire:
            async for encoded in wire.stream("events", messages.EventsArgs(job, after, limit)):
                records += _decode_events(encoded)
        return records

    async def queues(self) -> QueuesShown:
        return await self._read("queues", _NOTHING, QueuesShown)

    async def apply_quota(self, tree: QuotaTree) -> None:
        await self._act("apply_quota", messages.ApplyQuotaArgs(tree), _DONE)

    async def remove_quota(self) -> None:
        await self._act("remove_quota", _NOTHING, _DONE)

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        async with self._in_time(self._keeper.patience.read), self._keeper.own_wire() as wire:
            pages = wire.stream("priorities", messages.PrioritiesArgs(weights))
            return whole_list([_decode_priorities(encoded) async for encoded in pages])

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        return _decode_outlook(await self._own("explain", messages.JobArgs(job, task)))

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        return _decode_outlooks(await self._own("predict", messages.PredictArgs(tuple(specs))))

    async def watch_jobs(self) -> AsyncIterator[JobsDelta]:
        rows = LiveRows()
        patience = self._keeper.patience
        for attempt in count():
            with suppress(CockpitError):
                async with aclosing(self._updates()) as updates:
                    rows.begin()
                    async for update in updates:
                        for delta in rows.take(update):
                            await asyncio.sleep(0)  # others get their turn between decoding rows and showing them
                            yield delta
            await asyncio.sleep(patience.first_retry if attempt else 0)

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        answer = await self._act("submit", messages.SubmitArgs(tuple(specs)), messages.Submitted)
        return [JobId(job) for job in answer.ids]

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        await self._act("cancel", messages.CancelArgs(job, grace_seconds, task), _DONE)

    async def hold(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("hold", messages.JobArgs(job, task), _DONE)

    async def release(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("release", messages.JobArgs(job, task), _DONE)

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("suspend", messages.JobArgs(job, task), _DONE)

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("resume", messages.JobArgs(job, task), _DONE)

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("requeue", messages.JobArgs(job, task), _DONE)

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        await self._act("set_priority", messages.SetPriorityArgs(job, priority, task), _DONE)

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        await self._act("edit", messages.EditArgs(job, spec), _DONE)

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("delete", messages.JobArgs(job, task), _DONE)

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        answer = await self._own("wait", messages.WaitArgs(job, timeout_seconds))
        return msgspec.msgpack.decode(answer, type=Job | None)

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        answer = await self._act("extend_hold", messages.ExtendArgs(job, seconds), messages.HeldUntil)
        return Millis(answer.held_until)

    async def end_hold(self, job: JobId) -> None:
        await self._act("end_hold", messages.JobArgs(job), _DONE)

    async def logs(self, request: asking.LogRequest) -> asking.LogChunk:
        if request.wait:
            return msgspec.msgpack.decode(await self._own("logs", request), type=asking.LogChunk)
        return await self._read("logs", request, asking.LogChunk)

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        return await beside(lambda: self._enter(request), _close_shell)

    async def close(self) -> None:
        await self._keeper.close()

    async def _read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """However often the connection is lost, until the time is over."""
        async with self._in_time(self._keeper.patience.read):
            while True:
                wire = await self._keeper.wire()
                with suppress(Unreachable):
                    return msgspec.msgpack.decode(await wire.ask(op, args), type=answer)

    async def _act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Twice at most, with the same id: it happens once whatever became of the first try."""
        request = request_id()
        async with self._in_time(self._keeper.patience.act):
            try:
                encoded = await (await self._keeper.wire(wanted=True)).ask(op, args, request)
            except Unreachable:
                encoded = await (await self._keeper.wire(wanted=True)).ask(op, args, request)
        return msgspec.msgpack.decode(encoded, type=answer)

    async def _own(self, op: str, args: msgspec.Struct) -> msgspec.Raw:
        """A question whose answer takes as long as it takes."""
        async with self._keeper.own_wire() as wire:
            return await wire.ask(op, args)

    async def _updates(self) -> AsyncGenerator[Update, None]:
        async with self._keeper.own_wire() as wire:
            async for encoded in wire.stream("subscribe", messages.SubscribeArgs(FIRST_ROWS)):
                yield _decode_update(encoded)

    def _enter(self, request: asking.ShellRequest) -> ShellSession:
        """Blocks."""
        channel = self._dialler.reach()
        try:
            return drive(LocalBackend(lambda: channel).open_shell(request))
        finally:
            channel.close()

    @asynccontextmanager
    async def _in_time(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise Unreachable(
                self.connection.reason or f"The engine has not answered within {seconds:.0f} s."
            ) from None


def _close_shell(shell: ShellSession) -> None:
    """Nobody waits for it any more: closing its control socket ends it."""
    fds = (shell.control_fd, shell.terminal_fd, *(shell.pipe_fds or ()))
    for fd in fds:
        if fd is not None:
            os.close(fd)
