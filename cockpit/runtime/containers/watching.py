"""Wake the driver when a holder dies, and when a shim writes into the notify FIFO."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cockpit.runtime.containers.shim.attempt import Attempt

_READ_BYTES = 65536
"""A pipe's capacity in Linux (pipe(7)), so that one read empties it."""


class WatchedAttempt:
    """One attempt and its living holder, if there is one. `on_gone` is called once, when the holder dies."""

    def __init__(self, attempt: Attempt, on_gone: Callable[[], None]) -> None:
        self.attempt = attempt
        self.started = False
        """Whether the command's start has been reported."""
        self.ended = False
        """Whether the command's end has been reported, or must not be reported any more."""
        self._on_gone = on_gone
        self._holder_gone = asyncio.Event()
        self._pidfd = attempt.open_holder()
        if self._pidfd is None:
            # Dead before it was watched: `on_gone` is not called, and the caller reads the records itself.
            self._holder_gone.set()
        else:
            # A pidfd becomes readable when its process ends (pidfd_open(2)).
            asyncio.get_running_loop().add_reader(self._pidfd, self._on_death)

    @property
    def alive(self) -> bool:
        return not self._holder_gone.is_set()

    def send(self, number: int) -> None:
        """Send the signal to exactly this holder, whose pid cannot be another process's; do nothing if it is dead."""
        if self._pidfd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    async def leave(self, leave_signal: int, seconds: float) -> None:
        """Ask the holder to end, kill it after `seconds`, and return when it is dead, and its container with it."""
        self.send(leave_signal)
        try:
            async with asyncio.timeout(seconds):
                await self._holder_gone.wait()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self._holder_gone.wait()

    def close(self) -> None:
        """Stop watching. The holder keeps running."""
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _on_death(self) -> None:
        # First: the pidfd of a dead process stays readable, and the loop would call this again and again.
        self.close()
        self._holder_gone.set()
        self._on_gone()


class NotifyFifo:
    """A FIFO into which shims write the names of attempts whose records have changed."""

    def __init__(self, path: Path, on_name: Callable[[str], None]) -> None:
        self._path = path
        self._on_name = on_name
        self._fd = -1
        self._unread = b""

    def open(self) -> None:
        """Create and open the FIFO, for writing too: otherwise reading would end when the last shim closes it."""
        with suppress(FileExistsError):
            os.mkfifo(self._path, 0o600)
        self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def close(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> None:
        # a name is written in one piece (pipe(7), PIPE_BUF), but the end of a full read may be in the middle of one
        *lines, self._unread = (self._unread + os.read(self._fd, _READ_BYTES)).split(b"\n")
        for line in lines:
            self._on_name(line.decode(errors="replace"))
