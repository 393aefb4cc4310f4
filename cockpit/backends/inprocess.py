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
from cockpit.runtime.asked import Asked
from cockpit.runtime.feed import TICK_SECONDS
from cockpit.runtime.priorities import priorities
from cockpit.runtime.shells import open_shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

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

T = TypeVar("T")

_NOTHING = messages.NoArgs()


class InProcessBackend:
    """Implements `LiveBackend`: `engine` as `actor` may see and change it. For the engine's own event loop."""

    def __init__(self, engine: Engine, actor: Actor) -> None:
        self._engine = engine
        self._asked = Asked(actor)

    async def status(self) -> EngineStatus:
        return await reading.status(self._engine, self._asked, _NOTHING)

    async def overview(self) -> Overview:
        return await reading.overview_of(self._engine, self._asked, _NOTHING)

    async def jobs(self, *, ended: bool = False) -> JobRows:
        pages = reading.jobs(self._engine, self._asked, JobsArgs(ended))
        return rows_of_all([page async for page in pages])

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        return await reading.job(self._engine, self._asked, messages.JobArgs(job, task))

    async def nodes(self) -> list[NodeRow]:
        return await reading.nodes(self._engine, self._asked, _NOTHING)

    async def holds(self) -> list[HoldRow]:
        return await reading.holds(self._engine, self._asked, _NOTHING)

    async def rules(self) -> Cluster:
        return await reading.rules(self._engine, self._asked, _NOTHING)

    async def accounts(self) -> AccountsShown:
        return await reading.accounts(self._engine, self._asked, _NOTHING)

    async def change_accounts(self, change: AccountChange) -> None:
        await acting.change_accounts(self._engine, self._asked, messages.ChangeAccountsArgs(change))

    async def queues(self) -> QueuesShown:
        return await reading.queues(self._engine, self._asked, _NOTHING)

    async def apply_quota(self, tree: QuotaTree) -> None:
        await acting.apply_quota(self._engine, self._asked, messages.ApplyQuotaArgs(tree))

    async def remove_quota(self) -> None:
        await acting.remove_quota(self._engine, self._asked, _NOTHING)

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        pages = priorities(self._engine, self._asked, messages.PrioritiesArgs(weights))
        return whole_list([page async for page in pages])

    async def set_weights(self, weights: WeightChanges) -> WeightsSet:
        answer = await weighing.set_weights(self._engine, self._asked, messages.SetWeightsArgs(weights))
        return msgspec.msgpack.decode(answer, type=WeightsSet)

    async def reservations(self) -> list[Reservation]:
        return await reading.reservations(self._engine, self._asked, _NOTHING)

    async def make_reservation(self, reservation: Reservation) -> None:
        await acting.make_reservation(self._engine, self._asked, messages.ReservationArgs(reservation))

    async def end_reservation(self, name: str) -> None:
        await acting.end_reservation(self._engine, self._asked, messages.NameArgs(name))

    async def drain_node(self, name: str, reason: str) -> None:
        await acting.drain_node(self._engine, self._asked, messages.DrainArgs(name, reason))

    async def resume_node(self, name: str) -> None:
        await acting.resume_node(self._engine, self._asked, messages.NameArgs(name))

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        return await predicting.explain(self._engine, self._asked, messages.JobArgs(job, task))

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        return await predicting.predict(self._engine, self._asked, messages.PredictArgs(tuple(specs)))

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        return list(await reading.events_seen(self._engine, self._asked, messages.EventsArgs(job, after, limit)))

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
        encoded = await acting.submit_jobs(self._engine, self._asked, messages.SubmitArgs(tuple(specs)))
        return list(_ids(_decoded(encoded, messages.Submitted).ids))

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        await acting.cancel(self._engine, self._asked, messages.CancelArgs(job, grace_seconds, task))

    async def hold(self, job: JobId, *, task: int | None = None) -> None:
        await acting.hold(self._engine, self._asked, messages.JobArgs(job, task))

    async def release(self, job: JobId, *, task: int | None = None) -> None:
        await acting.release(self._engine, self._asked, messages.JobArgs(job, task))

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        await acting.suspend(self._engine, self._asked, messages.JobArgs(job, task))

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        await acting.resume(self._engine, self._asked, messages.JobArgs(job, task))

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        await acting.requeue(self._engine, self._asked, messages.JobArgs(job, task))

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        await acting.set_priority(self._engine, self._asked, messages.SetPriorityArgs(job, priority, task))

    async def set_time_limit(self, job: JobId, limit: WantedLimit, *, task: int | None = None) -> None:
        await acting.set_time_limit(self._engine, self._asked, messages.SetTimeLimitArgs(job, limit, task))

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        await acting.edit(self._engine, self._asked, messages.EditArgs(job, spec))

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        await acting.delete(self._engine, self._asked, messages.JobArgs(job, task))

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        return await reading.wait(self._engine, self._asked, messages.WaitArgs(job, timeout_seconds))

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        encoded = await acting.extend_hold(self._engine, self._asked, messages.ExtendArgs(job, seconds))
        return Millis(_decoded(encoded, messages.HeldUntil).held_until)

    async def end_hold(self, job: JobId) -> None:
        await acting.end_hold(self._engine, self._asked, messages.JobArgs(job))

    async def logs(self, request: LogRequest) -> LogChunk:
        return await reading.logs(self._engine, self._asked, request)

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        opened = await open_shell(self._engine, self._asked, request)
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
