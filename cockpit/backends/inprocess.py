"""An engine in this process as a backend: the operations that the socket serves, called without a socket."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.backends.base import Connection, JobsDelta, Phase
from cockpit.backends.shell import OpenShell
from cockpit.model.ids import JobId, Millis
from cockpit.model.jobrow import JobRows
from cockpit.model.view import WeightsSet
from cockpit.protocol import messages
from cockpit.protocol.pages import JobsArgs, rows_of, rows_of_all, whole_list
from cockpit.runtime import acting, predicting, reading, weighing
from cockpit.runtime.allowing import allow
from cockpit.runtime.asked import Asked
from cockpit.runtime.feed import TICK_SECONDS
from cockpit.runtime.operations import name_of
from cockpit.runtime.priorities import priorities
from cockpit.runtime.shells import open_shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from cockpit.backends.base import ShellSession
    from cockpit.engine.access import Actor
    from cockpit.model.accountchange import AccountChange
    from cockpit.model.asking import LogChunk, LogRequest, ShellRequest, WantedLimit, WantedPriority
    from cockpit.model.cluster import Cluster, Reservation
    from cockpit.model.events import EventRecord
    from cockpit.model.forecast import Outlook
    from cockpit.model.job import Job
    from cockpit.model.priority import WeightChanges
    from cockpit.model.quota import QuotaTree
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import (
        AccountsShown,
        EngineStatus,
        HoldRow,
        JobDetail,
        NodeRow,
        Overview,
        Priorities,
        QueuesShown,
    )
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.feed import Subscription
    from cockpit.runtime.host import Host

A = TypeVar("A")
T = TypeVar("T")

_NOTHING = messages.NoArgs()


class InProcessBackend:
    """Implements `LiveBackend`: `engine` as `actor` may see and change it. For the engine's own event loop."""

    def __init__(self, engine: Engine, actor: Actor) -> None:
        self._engine = engine
        self._asked = Asked(actor)

    async def _do(self, function: Callable[[Engine, Asked, A], Awaitable[T]], args: A) -> T:
        """As over the socket: only what the actor may."""
        await allow(self._engine, self._asked, name_of(function), args)
        return await function(self._engine, self._asked, args)

    async def status(self) -> EngineStatus:
        return await self._do(reading.status, _NOTHING)

    async def overview(self) -> Overview:
        return await self._do(reading.overview_of, _NOTHING)

    async def jobs(self, *, ended: bool = False) -> JobRows:
        pages = reading.jobs(self._engine, self._asked, JobsArgs(ended))
        return rows_of_all([page async for page in pages])

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        return await self._do(reading.job, messages.JobArgs(job, task))

    async def nodes(self) -> list[NodeRow]:
        return await self._do(reading.nodes, _NOTHING)

    async def holds(self) -> list[HoldRow]:
        return await self._do(reading.holds, _NOTHING)

    async def rules(self) -> Cluster:
        return await self._do(reading.rules, _NOTHING)

    async def accounts(self) -> AccountsShown:
        return await self._do(reading.accounts, _NOTHING)

    async def change_accounts(self, change: AccountChange) -> None:
        await self._do(acting.change_accounts, messages.ChangeAccountsArgs(change))

    async def queues(self) -> QueuesShown:
        return await self._do(reading.queues, _NOTHING)

    async def apply_quota(self, tree: QuotaTree) -> None:
        await self._do(acting.apply_quota, messages.ApplyQuotaArgs(tree))

    async def remove_quota(self) -> None:
        await self._do(acting.remove_quota, _NOTHING)

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        pages = priorities(self._engine, self._asked, messages.PrioritiesArgs(weights))
        return whole_list([page async for page in pages])

    async def set_weights(self, weights: WeightChanges) -> WeightsSet:
        answer = await self._do(weighing.set_weights, messages.SetWeightsArgs(weights))
        return msgspec.msgpack.decode(answer, type=WeightsSet)

    async def reservations(self) -> list[Reservation]:
        return await self._do(reading.reservations, _NOTHING)

    async def make_reservation(self, reservation: Reservation) -> None:
        await self._do(acting.make_reservation, messages.ReservationArgs(reservation))

    async def end_reservation(self, name: str) -> None:
        await self._do(acting.end_reservation, messages.NameArgs(name))

    async def drain_node(self, name: str, reason: str) -> None:
        await self._do(acting.drain_node, messages.DrainArgs(name, reason))

    async def resume_node(self, name: str) -> None:
        await self._do(acting.resume_node, messages.NameArgs(name))

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        return await self._do(predicting.explain, messages.JobArgs(job, task))

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        return await self._do(predicting.predict, messages.PredictArgs(tuple(specs)))

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        return list(await self._do(reading.events_seen, messages.EventsArgs(job, after, limit)))

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        """Never ends by itself: a subscription that fell too far behind is begun anew."""
        feed, known = self._engine.feed, set[JobId]()
        while True:
            subscription = feed.subscribe(self._asked.actor, anything=anything)
            try:
                yield self._everything(subscription, known)
                async for change in feed.changes(subscription):
                    if not change.resync:
                        changed = (subscription.sent[JobId(job)] for job, _, _ in change.changed)
                        yield JobsDelta((*rows_of(change.new), *changed), _ids(change.removed), change.version)
                known = set(subscription.sent)
            finally:
                feed.unsubscribe(subscription)

    @property
    def connection(self) -> Connection:
        """Nothing lies between."""
        return Connection(Phase.CONNECTED, good_at=self._engine.host.clock.now())

    async def connections(self) -> AsyncIterator[Connection]:
        yield self.connection
        await asyncio.get_running_loop().create_future()

    async def overviews(self) -> AsyncIterator[Overview]:
        host, told = self._engine.host, None
        while True:
            seen, overview = host.machine.state.seq, await self.overview()
            if overview != told:
                yield overview
                told = overview
            async with host.changed:
                await host.changed.wait_for(partial(_has_moved_on, host, seen))
            await asyncio.sleep(TICK_SECONDS)

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        encoded = await self._do(acting.submit_jobs, messages.SubmitArgs(tuple(specs)))
        return list(_ids(_decoded(encoded, messages.Submitted).ids))

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        await self._do(acting.cancel, messages.CancelArgs(job, grace_seconds, task))

    async def hold(self, job: JobId, *, task: int | None = None) -> None:
        await self._do(acting.hold, messages.JobArgs(job, task))

    async def release(self, job: JobId, *, task: int | None = None) -> None:
        await self._do(acting.release, messages.JobArgs(job, task))

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        await self._do(acting.suspend, messages.JobArgs(job, task))

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        await self._do(acting.resume, messages.JobArgs(job, task))

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        await self._do(acting.requeue, messages.JobArgs(job, task))

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        await self._do(acting.set_priority, messages.SetPriorityArgs(job, priority, task))

    async def set_time_limit(self, job: JobId, limit: WantedLimit, *, task: int | None = None) -> None:
        await self._do(acting.set_time_limit, messages.SetTimeLimitArgs(job, limit, task))

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        await self._do(acting.edit, messages.EditArgs(job, spec))

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        await self._do(acting.delete, messages.JobArgs(job, task))

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        return await self._do(reading.wait, messages.WaitArgs(job, timeout_seconds))

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        encoded = await self._do(acting.extend_hold, messages.ExtendArgs(job, seconds))
        return Millis(_decoded(encoded, messages.HeldUntil).held_until)

    async def end_hold(self, job: JobId) -> None:
        await self._do(acting.end_hold, messages.JobArgs(job))

    async def logs(self, request: LogRequest) -> LogChunk:
        return await self._do(reading.logs, request)

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        opened = await self._do(open_shell, request)
        return OpenShell(opened.answer, opened.fds)

    async def close(self) -> None:
        """The engine is not this backend's to end."""

    def _everything(self, subscription: Subscription, known: set[JobId]) -> JobsDelta:
        gone = tuple(sorted(known - subscription.sent.keys()))
        return JobsDelta(tuple(subscription.sent.values()), gone, self._engine.host.machine.state.seq)


def _has_moved_on(host: Host, seen: int) -> bool:
    return host.machine.state.seq != seen


def _decoded(encoded: bytes | msgspec.Raw, answer: type[T]) -> T:
    return msgspec.msgpack.decode(encoded, type=answer)


def _ids(numbers: Sequence[int]) -> tuple[JobId, ...]:
    return tuple(map(JobId, numbers))
