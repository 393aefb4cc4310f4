"""The demo for one-shot commands, whose awaits never suspend (see `backends.drive`): it lives while it is asked."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, TypeVar

from cockpit.backends.demo.backend import DEFAULT_FIXTURE, DEFAULT_SEED, leave_tidily, open_demo
from cockpit.backends.demo.pace import DEFAULT_SPEED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence
    from typing import Any

    from cockpit.backends.base import JobsDelta, ShellSession
    from cockpit.backends.demo.backend import DemoCluster
    from cockpit.model.accountchange import AccountChange
    from cockpit.model.asking import LogChunk, LogRequest, ShellRequest, WantedLimit, WantedPriority
    from cockpit.model.cluster import Cluster, Reservation
    from cockpit.model.events import EventRecord
    from cockpit.model.forecast import Outlook
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.jobrow import JobRow
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
        WeightsSet,
    )

T = TypeVar("T")


class BlockingDemo:
    """Implements `Backend` on an event loop of its own."""

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

    async def overview(self) -> Overview:
        return self._run(self._backend.overview())

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        return self._run(self._backend.jobs(ended=ended))

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        return self._run(self._backend.job(job, task=task))

    async def nodes(self) -> list[NodeRow]:
        return self._run(self._backend.nodes())

    async def holds(self) -> list[HoldRow]:
        return self._run(self._backend.holds())

    async def rules(self) -> Cluster:
        return self._run(self._backend.rules())

    async def accounts(self) -> AccountsShown:
        return self._run(self._backend.accounts())

    async def change_accounts(self, change: AccountChange) -> None:
        self._run(self._backend.change_accounts(change))

    async def queues(self) -> QueuesShown:
        return self._run(self._backend.queues())

    async def apply_quota(self, tree: QuotaTree) -> None:
        self._run(self._backend.apply_quota(tree))

    async def remove_quota(self) -> None:
        self._run(self._backend.remove_quota())

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        return self._run(self._backend.priorities(weights))

    async def set_weights(self, weights: WeightChanges) -> WeightsSet:
        return self._run(self._backend.set_weights(weights))

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        return self._run(self._backend.explain(job, task=task))

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        return self._run(self._backend.predict(specs))

    async def reservations(self) -> list[Reservation]:
        return self._run(self._backend.reservations())

    async def make_reservation(self, reservation: Reservation) -> None:
        self._run(self._backend.make_reservation(reservation))

    async def end_reservation(self, name: str) -> None:
        self._run(self._backend.end_reservation(name))

    async def drain_node(self, name: str, reason: str) -> None:
        self._run(self._backend.drain_node(name, reason))

    async def resume_node(self, name: str) -> None:
        self._run(self._backend.resume_node(name))

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        return self._run(self._backend.events(job=job, after=after, limit=limit))

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        deltas = self._backend.watch_jobs(anything=anything)
        while True:
            yield self._run(_next(deltas))

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        return self._run(self._backend.submit(specs))

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        self._run(self._backend.cancel(job, task=task, grace_seconds=grace_seconds))

    async def hold(self, job: JobId, *, task: int | None = None) -> None:
        self._run(self._backend.hold(job, task=task))

    async def release(self, job: JobId, *, task: int | None = None) -> None:
        self._run(self._backend.release(job, task=task))

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        self._run(self._backend.suspend(job, task=task))

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        self._run(self._backend.resume(job, task=task))

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        self._run(self._backend.requeue(job, task=task))

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        self._run(self._backend.set_priority(job, priority, task=task))

    async def set_time_limit(self, job: JobId, limit: WantedLimit, *, task: int | None = None) -> None:
        self._run(self._backend.set_time_limit(job, limit, task=task))

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        self._run(self._backend.edit(job, spec))

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        self._run(self._backend.delete(job, task=task))

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        return self._run(self._backend.wait(job, timeout_seconds=timeout_seconds))

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        return self._run(self._backend.extend_hold(job, seconds=seconds))

    async def end_hold(self, job: JobId) -> None:
        self._run(self._backend.end_hold(job))

    async def logs(self, request: LogRequest) -> LogChunk:
        return self._run(self._backend.logs(request))

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        return self._run(self._backend.open_shell(request))

    async def close(self) -> None:
        self._run(self._demo.close())
        self._runner.close()

    def _run(self, question: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(question)


async def _next(deltas: AsyncIterator[JobsDelta]) -> JobsDelta:
    return await anext(deltas)
