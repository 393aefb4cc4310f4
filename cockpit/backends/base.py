"""What a face may ask of any cluster.

Every method raises `RequestRefused` for a "no" and `Unreachable` when nobody answers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from cockpit.model.events import EventRecord
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import EngineStatus, HoldRow, JobDetail, JobRow, NodeRow, Overview


class LogStream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of one replica's log."""

    job: int
    rank: int = 0
    attempt: int | None = None
    """None: the last one."""
    stream: LogStream = LogStream.STDOUT
    offset: int = 0
    """In bytes from the beginning; negative: from the end."""
    limit: int = 1 << 20
    wait: bool = False
    """When nothing is there yet: answer only once there is, or the replica has ended."""


class LogChunk(msgspec.Struct, frozen=True):
    data: bytes
    offset: int
    """Of the first byte of `data`."""
    ended: bool
    """Nothing will be added after `data`."""


class ShellRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Enter a replica's container, running or kept."""

    job: int
    rank: int = 0
    command: tuple[str, ...] = ()
    """Empty: an interactive shell."""
    terminal: bool = False
    """Give it a pseudo terminal; else three pipes."""
    rows: int = 24
    columns: int = 80
    term: str = "xterm-256color"


class ShellSession(Protocol):
    """An entered container. The file descriptors belong to the caller."""

    notice: str
    """What a person should know on entry; empty for plain commands."""
    terminal_fd: int | None
    """Master side of the pseudo terminal, where one was asked for."""
    pipe_fds: tuple[int, int, int] | None
    """Else: write end of stdin, read ends of stdout and stderr."""
    control_fd: int
    """Readable when it has ended; closing it ends the shell."""

    def exit_code(self) -> int:
        """Blocks until the shell has ended; as a shell reports it."""
        ...


class JobsDelta(msgspec.Struct, frozen=True):
    """Rows that are new or changed, and ids that are gone, since the last one."""

    changed: tuple[JobRow, ...]
    removed: tuple[JobId, ...]
    version: int


class Backend(Protocol):
    """One cluster."""

    async def status(self) -> EngineStatus: ...

    async def overview(self) -> Overview: ...

    async def jobs(self, *, ended: bool = False) -> list[JobRow]:
        """Every live and held job in order of submission; with `ended` also those in accounting."""
        ...

    async def job(self, job: JobId) -> JobDetail: ...

    async def nodes(self) -> list[NodeRow]: ...

    async def holds(self) -> list[HoldRow]: ...

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        """Oldest first; `after` < 0: the last `limit`."""
        ...

    def watch_jobs(self) -> AsyncIterator[JobsDelta]:
        """First everything, then changes as they happen, at most ten a second."""
        ...

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        """All or none, durable when this returns. Refused with one line per error, each led by its path."""
        ...

    async def cancel(self, job: JobId, *, grace_seconds: int | None = None) -> None:
        """Stop: ask to end, kill after the grace period (None: the job's own)."""
        ...

    async def hold(self, job: JobId) -> None: ...

    async def release(self, job: JobId) -> None: ...

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        """The job once its command has ended (also when its container is kept); None on time-out."""
        ...

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        """Lengthen the window; the new end."""
        ...

    async def end_hold(self, job: JobId) -> None: ...

    async def logs(self, request: LogRequest) -> LogChunk: ...

    async def open_shell(self, request: ShellRequest) -> ShellSession: ...

    async def close(self) -> None: ...
