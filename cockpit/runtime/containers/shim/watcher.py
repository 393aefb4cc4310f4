"""Watches one entered program from inside the container's pid namespace: it ends with its program, or when nobody is
left at the other end of the control socket; then everything that the program started ends too."""

from __future__ import annotations

import contextlib
import os
import select
import signal

from cockpit.runtime.containers.shim import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

_HUNG_UP = select.POLLHUP | select.POLLERR | select.POLLRDHUP
_HANG_UP_MILLISECONDS = 500
"""For an editor to save what it can when the connection is lost."""


class Watcher:
    """Construct before the program is started. `proc_fd`: the container's own /proc, whose pids mean something here."""

    def __init__(self, control: _socket.socket, proc_fd: int) -> None:
        self._proc_fd = proc_fd
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        linux.become_subreaper()
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(control, select.POLLRDHUP)

    def wait(self, program: int) -> int:
        """The wait status of the program. What it left running goes on, unless the other end hung up."""
        while True:
            events = dict(self._poll.poll())
            status = self._reap(program)
            if status is not None:
                return status
            if any(event & _HUNG_UP for event in events.values()):
                return self._hang_up(program)

    def _reap(self, program: int) -> int | None:
        """Reap the program and the orphans it left to this process."""
        _drain(self._woken)
        found = None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return found
            if pid == 0:
                return found
            if pid == program:
                found = status

    def _hang_up(self, program: int) -> int:
        """As when a line is cut: SIGHUP, a moment, then an end to all that is left."""
        os.killpg(program, signal.SIGHUP)
        linux.has_ended(os.pidfd_open(program), within_milliseconds=_HANG_UP_MILLISECONDS)
        while children := self._children():
            for pid in children:
                os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)
        return signal.SIGHUP

    def _children(self) -> list[int]:
        """Children of this process, orphans included; those of killed ones become its own."""
        path = f"self/task/{os.getpid()}/children"
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc_fd), "rb") as stream:
            return [int(word) for word in stream.read().split()]


def _drain(pipe: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(pipe, 4096)
