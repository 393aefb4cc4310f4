"""The embedded engine as a backend, over its socket. Every method blocks and none suspends: see `backends.drive`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit.backends.local.channel import ConnectionLost
from cockpit.backends.local.verbs import Verbs
from cockpit.late import Late

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from cockpit.backends.base import JobsDelta, ShellSession
    from cockpit.backends.local.channel import Channel
    from cockpit.model import asking, forecast, view
    from cockpit.model.events import EventRecord
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.model.jobrow import JobRows
    from cockpit.model.priority import WeightChanges
    from cockpit.model.spec import JobSpec
    from cockpit.protocol import messages, pages
else:
    asking, forecast, view = map(Late, ("cockpit.model.asking", "cockpit.model.forecast", "cockpit.model.view"))
    messages, pages = Late("cockpit.protocol.messages"), Late("cockpit.protocol.pages")

T = TypeVar("T")


class LocalBackend(Verbs):
    """Asks through a channel that `connect` makes. A question whose connection breaks is asked once more, through a new
    one; an acting request with the same id, so that it happens once whatever became of the first try.
    """

    def __init__(self, connect: Callable[[], Channel]) -> None:
        self._connect = connect
        self._channel: Channel | None = None

    async def jobs(self, *, ended: bool = False) -> JobRows:
        return pages.rows_of_all(self._open().stream("jobs", pages.JobsArgs(ended, brief=True)))

    async def priorities(self, weights: WeightChanges | None = None) -> view.Priorities:
        lists = self._open().stream("priorities", messages.PrioritiesArgs(weights))
        return pages.whole_list(msgspec.msgpack.decode(each, type=view.Priorities) for each in lists)

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        return self._ask("explain", messages.JobArgs(job, task), forecast.Outlook)

    async def predict(self, specs: Sequence[JobSpec]) -> list[forecast.Outlook]:
        return self._ask("predict", messages.PredictArgs(tuple(specs)), list[forecast.Outlook])

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        from cockpit.model.events import EventRecord

        pieces = self._open().stream("events", messages.EventsArgs(job, after, limit))
        return [record for piece in pieces for record in msgspec.msgpack.decode(piece, type=list[EventRecord])]

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        from cockpit.backends.local.watching import LiveRows

        rows = LiveRows()
        while True:  # until the engine is gone; told to start over, it does
            rows.begin()
            for encoded in self._open().stream("subscribe", pages.SubscribeArgs(brief=True, anything=anything)):
                for delta in rows.take(msgspec.msgpack.decode(encoded, type=pages.Update)):
                    yield delta

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        from cockpit.model.job import Job

        args = messages.WaitArgs(job, timeout_seconds)
        return self._ask("wait", args, Job | None, patient=True)  # type: ignore[arg-type] # a union is a type to msgspec

    async def logs(self, request: asking.LogRequest) -> asking.LogChunk:
        return self._ask("logs", request, asking.LogChunk, patient=request.wait)

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        from cockpit.backends.shell import OpenShell

        opened, fds = self._open().ask_for_fds("shell", request, asking.ShellOpened, request_id())
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


def request_id() -> str:
    """Unlike any other; sixteen random bytes."""
    return os.urandom(16).hex()
