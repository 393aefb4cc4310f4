"""The embedded engine as a backend, over its socket. Every method blocks and none suspends: see `backends.drive`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.backends.base import JobsDelta
from cockpit.backends.local.channel import ConnectionLost
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
from cockpit.protocol.pages import AllLoaded, JobsChange, JobsPage, Update, rows_of, whole_list, with_changes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from cockpit.backends.base import ShellSession
    from cockpit.backends.local.channel import Channel
    from cockpit.model.accountchange import AccountChange
    from cockpit.model.asking import WantedPriority
    from cockpit.model.priority import WeightChanges
    from cockpit.model.quota import QuotaTree
    from cockpit.model.spec import JobSpec

T = TypeVar("T")

_NOTHING = messages.NoArgs()
_DONE = type(None)


class LocalBackend:
    """Asks through a channel that `connect` makes. A question whose connection breaks is asked once more, through a new
    one; an acting request with the same id, so that it happens once whatever became of the first try.
    """

    def __init__(self, connect: Callable[[], Channel]) -> None:
        self._connect = connect
        self._channel: Channel | None = None

    async def status(self) -> EngineStatus:
        return self._ask("status", _NOTHING, EngineStatus)

    async def overview(self) -> Overview:
        return self._ask("overview", _NOTHING, Overview)

    async def jobs(self, *, ended: bool = False) -> list[JobRow]:
        pages = self._open().stream("jobs", messages.JobsArgs(ended))
        return [row for page in pages for row in rows_of(msgspec.msgpack.decode(page, type=JobsPage))]

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        return self._ask("job", messages.JobArgs(job, task), JobDetail)

    async def nodes(self) -> list[NodeRow]:
        return self._ask("nodes", _NOTHING, list[NodeRow])

    async def holds(self) -> list[HoldRow]:
        return self._ask("holds", _NOTHING, list[HoldRow])

    async def rules(self) -> Cluster:
        return self._ask("rules", _NOTHING, Cluster)

    async def accounts(self) -> AccountsShown:
        return self._ask("accounts", _NOTHING, AccountsShown)

    async def change_accounts(self, change: AccountChange) -> None:
        self._act("change_accounts", messages.ChangeAccountsArgs(change), _DONE)

    async def queues(self) -> QueuesShown:
        return self._ask("queues", _NOTHING, QueuesShown)

    async def apply_quota(self, tree: QuotaTree) -> None:
        self._act("apply_quota", messages.ApplyQuotaArgs(tree), _DONE)

    async def remove_quota(self) -> None:
        self._act("remove_quota", _NOTHING, _DONE)

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        pages = self._open().stream("priorities", messages.PrioritiesArgs(weights))
        return whole_list(msgspec.msgpack.decode(page, type=Priorities) for page in pages)

    async def set_weights(self, weights: WeightChanges) -> WeightsSet:
        return self._act("set_weights", messages.SetWeightsArgs(weights), WeightsSet)

    async def reservations(self) -> list[Reservation]:
        return self._ask("reservations", _NOTHING, list[Reservation])

    async def make_reservation(self, reservation: Reservation) -> None:
        self._act("make_reservation", messages.ReservationArgs(reservation), _DONE)

    async def end_reservation(self, name: str) -> None:
        self._act("end_reservation", messages.NameArgs(name), _DONE)

    async def drain_node(self, name: str, reason: str) -> None:
        self._act("drain_node", messages.DrainArgs(name, reason), _DONE)

    async def resume_node(self, name: str) -> None:
        self._act("resume_node", messages.NameArgs(name), _DONE)

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        return self._ask("explain", messages.JobArgs(job, task), Outlook)

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        return self._ask("predict", messages.PredictArgs(tuple(specs)), list[Outlook])

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        pieces = self._open().stream("events", messages.EventsArgs(job, after, limit))
        return [record for piece in pieces for record in msgspec.msgpack.decode(piece, type=list[EventRecord])]

    async def watch_jobs(self) -> AsyncIterator[JobsDelta]:
        watched = WatchedJobs()
        while True:  # until the engine is gone; told to start over, it does
            for encoded in self._open().stream("subscribe", messages.SubscribeArgs()):
                delta = watched.take(msgspec.msgpack.decode(encoded, type=Update))
                if delta is not None:
                    yield delta

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        answer = self._act("submit", messages.SubmitArgs(tuple(specs)), messages.Submitted)
        return [JobId(job) for job in answer.ids]

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        self._act("cancel", messages.CancelArgs(job, grace_seconds, task), _DONE)

    async def hold(self, job: JobId, *, task: int | None = None) -> None:
        self._act("hold", messages.JobArgs(job, task), _DONE)

    async def release(self, job: JobId, *, task: int | None = None) -> None:
        self._act("release", messages.JobArgs(job, task), _DONE)

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        self._act("suspend", messages.JobArgs(job, task), _DONE)

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        self._act("resume", messages.JobArgs(job, task), _DONE)

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        self._act("requeue", messages.JobArgs(job, task), _DONE)

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        self._act("set_priority", messages.SetPriorityArgs(job, priority, task), _DONE)

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        self._act("edit", messages.EditArgs(job, spec), _DONE)

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        self._act("delete", messages.JobArgs(job, task), _DONE)

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        args = messages.WaitArgs(job, timeout_seconds)
        return self._ask("wait", args, Job | None, patient=True)  # type: ignore[arg-type] # a union is a type to msgspec

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        return Millis(self._act("extend_hold", messages.ExtendArgs(job, seconds), messages.HeldUntil).held_until)

    async def end_hold(self, job: JobId) -> None:
        self._act("end_hold", messages.JobArgs(job), _DONE)

    async def logs(self, request: asking.LogRequest) -> asking.LogChunk:
        return self._ask("logs", request, asking.LogChunk, patient=request.wait)

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        from cockpit.backends.shell import OpenShell

        opened, fds = self._open().ask_for_fds("shell", request, messages.ShellOpened, request_id())
        return OpenShell(opened, fds)

    async def stop(self, *, jobs: bool) -> None:
        """End the engine; with `jobs`, once all of them have been stopped."""
        self._open().ask("stop", messages.StopArgs(jobs), type(None), patient=jobs)

    async def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _open(self) -> Channel:
        if self._channel is None:
            self._channel = self._connect()
        return self._channel

    def _act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._ask(op, args, answer, request=request_id())

    def _ask(self, op: str, args: msgspec.Struct, answer: type[T], *, request: str = "", patient: bool = False) -> T:
        try:
            return self._open().ask(op, args, answer, request=request, patient=patient)
        except ConnectionLost:
            self._channel = None
            return self._open().ask(op, args, answer, request=request, patient=patient)


class WatchedJobs:
    """Rows of subscriptions, brought up to date by what they are told."""

    def __init__(self) -> None:
        self._rows: dict[JobId, JobRow] = {}
        self._before: set[JobId] = set()
        """What was known when the engine asked to start over."""

    def take(self, update: Update) -> JobsDelta | None:
        """What changed by this update. A subscription's first delta has everything and comes when all pages have."""
        match update:
            case JobsPage():
                self._rows |= {row.id: row for row in rows_of(update)}
                return None
            case AllLoaded():
                return JobsDelta(tuple(self._rows.values()), tuple(self._before - self._rows.keys()), 0)
            case JobsChange(resync=True):
                self._before, self._rows = set(self._rows), {}
                return None
            case JobsChange():
                changed = tuple(self._changed(update))
                for gone in update.removed:
                    del self._rows[JobId(gone)]
                return JobsDelta(changed, tuple(map(JobId, update.removed)), update.version)

    def _changed(self, change: JobsChange) -> Iterator[JobRow]:
        for row in rows_of(change.new):
            self._rows[row.id] = row
            yield row
        for job, _, columns in change.changed:
            row = with_changes(self._rows[JobId(job)], columns)
            self._rows[row.id] = row
            yield row


def request_id() -> str:
    """Unlike any other; sixteen random bytes."""
    return os.urandom(16).hex()
