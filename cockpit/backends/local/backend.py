"""The embedded engine as a backend, over its socket. Every method blocks and none suspends: see `backends.drive`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.backends.base import JobsDelta
from cockpit.backends.local.channel import ConnectionLost
from cockpit.backends.local.verbs import Verbs
from cockpit.model import asking
from cockpit.model.events import EventRecord
from cockpit.model.forecast import Outlook
from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.view import JobRow, Priorities
from cockpit.protocol import messages
from cockpit.protocol.pages import AllLoaded, JobsChange, JobsPage, Update, rows_of, whole_list, with_changes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from cockpit.backends.base import ShellSession
    from cockpit.backends.local.channel import Channel
    from cockpit.model.priority import WeightChanges
    from cockpit.model.spec import JobSpec

T = TypeVar("T")


class LocalBackend(Verbs):
    """Asks through a channel that `connect` makes. A question whose connection breaks is asked once more, through a new
    one; an acting request with the same id, so that it happens once whatever became of the first try.
    """

    def __init__(self, connect: Callable[[], Channel]) -> None:
        self._connect = connect
        self._channel: Channel | None = None

    async def jobs(self, *, ended: bool = False) -> list[JobRow]:
        pages = self._open().stream("jobs", messages.JobsArgs(ended))
        return [row for page in pages for row in rows_of(msgspec.msgpack.decode(page, type=JobsPage))]

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        pages = self._open().stream("priorities", messages.PrioritiesArgs(weights))
        return whole_list(msgspec.msgpack.decode(page, type=Priorities) for page in pages)

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

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        args = messages.WaitArgs(job, timeout_seconds)
        return self._ask("wait", args, Job | None, patient=True)  # type: ignore[arg-type] # a union is a type to msgspec

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

    async def _read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return self._ask(op, args, answer)

    async def _act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
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
