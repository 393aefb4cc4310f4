"""Watch one entered program from inside the container's pid namespace.

The watcher ends with the program. If the other end of the control socket is closed first, it kills the program and
everything that the program has started.
"""

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
"""Time between SIGHUP and SIGKILL after a lost connection, in which an editor can save its files."""


class Watcher:
    """The watcher of one program; construct it before the program is started.

    `proc_fd`: the container's own /proc, which has the pids of this namespace.
    """

    def __init__(self, control: _socket.socket, proc_fd: int) -> None:
        self._proc_fd = proc_fd
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake)
        # with a handler of its own, however empty: only such signals are written to the wake-up descriptor
        signal.signal(signal.SIGCHLD, lambda *_: None)
        linux.become_subreaper()
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        # the engine sends nothing here: only the end of the connection counts
        self._poll.register(control, select.POLLRDHUP)

    def wait(self, program: int) -> int:
        """Return the program's wait status. Its background processes keep running, unless the connection was lost."""
        while True:
            events = dict(self._poll.poll())
            # the end of the program comes first: where both happen at once, its own exit code is reported
            status = self._reap(program)
            if status is not None:
                return status
            if any(event & _HUNG_UP for event in events.values()):
                return self._hang_up(program)

    def _reap(self, program: int) -> int | None:
        """Reap all dead children, orphans included; return the program's wait status if it was among them."""
        _drain(self._woken)
        return dict(linux.ended_children()).get(program)

    def _hang_up(self, program: int) -> int:
        """End the program as a closed terminal does: SIGHUP, then after a moment SIGKILL to all that is left."""
        os.killpg(program, signal.SIGHUP)
        linux.has_ended(os.pidfd_open(program), within_milliseconds=_HANG_UP_MILLISECONDS)
        while children := self._children():
            for pid in children:
                os.kill(pid, signal.SIGKILL)
            linux.wait_for_end(-1)
        return signal.SIGHUP

    def _children(self) -> list[int]:
        """Return this process's children. Orphans are among them, since it is a subreaper."""
        path = f"self/task/{os.getpid()}/children"
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc_fd), "rb") as stream:
            return [int(word) for word in stream.read().split()]


def _drain(pipe: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(pipe, 4096)
