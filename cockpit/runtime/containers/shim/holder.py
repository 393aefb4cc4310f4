"""The first process of a container, or the ancestor of plain ones: reaps, listens to the engine, tells how the command
ended, stays.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cockpit.runtime.containers.shim.attempt import Attempt, Record
    from cockpit.runtime.containers.shim.inmates import Inmates
    from cockpit.runtime.containers.shim.limits import Limits

TERMINATE = signal.SIGRTMIN + 1
"""From the engine: ask the command to end."""
KILL = signal.SIGRTMIN + 2
"""From the engine: kill everything in the container, now."""
LEAVE = signal.SIGRTMIN + 3
"""From the engine: kill everything and end, the container is no longer kept.

Real-time signals are queued: one that a job sends cannot swallow the engine's."""

_RETRY_SECONDS = 0.5
_KIB_PER_MIB = 1024


class Holder:
    """`command` is the pid of the running command; None where it ended before this holder."""

    SIGNALS = frozenset({signal.SIGCHLD, TERMINATE, KILL, LEAVE})
    """Blocked since before the holder was forked, so that none is missed."""

    def __init__(self, attempt: Attempt, limits: Limits, command: int | None, inmates: Inmates) -> None:
        self._attempt = attempt
        self._inmates = inmates
        self._limits = limits
        self._command = command
        self._untold: Record | None = None
        """The exit record, until it is written and the engine told."""

    def run(self) -> NoReturn:
        while True:
            self._take(self._wait())
            self._reap()
            self._tell()

    def _wait(self) -> signal.struct_siginfo | None:
        if self._untold is None:
            return signal.sigwaitinfo(self.SIGNALS)
        return signal.sigtimedwait(self.SIGNALS, _RETRY_SECONDS)

    def _take(self, received: signal.struct_siginfo | None) -> None:
        if received is None or received.si_signo == signal.SIGCHLD or self._inmates.sent(received):
            return
        if received.si_signo == LEAVE:
            self._inmates.leave()
            os._exit(0)
        if received.si_signo == KILL:
            self._inmates.kill()
        elif self._command is not None:
            _signal_group(self._command)

    def _reap(self) -> None:
        for pid, status in _ended_children():
            if pid == self._command:
                self._command = None
                self._end(status)

    def _end(self, status: int) -> None:
        """The record says that everything is dead, so first everything is. Who enters looks for `running` once inside:
        either they see that it is gone, or they are killed here."""
        self._attempt.forget("running")
        self._kill_everything()
        code = os.waitstatus_to_exitcode(status)
        how: Record = {"code": code} if code >= 0 else {"signal": -code}
        ended_at = time.time_ns() // 1_000_000  # noqa: TID251 - outlives the engine and its clock
        self._untold = {**how, "oom": code != 0 and self._limits.saw_oom(), "ended_at": ended_at, **_used()}
        self._tell()

    def _kill_everything(self) -> None:
        """Returns when none of them lives. One that the kernel cannot end yet keeps its devices: wait for it."""
        while True:
            self._inmates.kill()
            _ended_children()
            if not self._inmates.are_left():
                return
            time.sleep(0.001)

    def _tell(self) -> None:
        """Write the exit record and tell the engine; what fails (disk full, the engine busy) is tried again."""
        if self._untold is None:
            return
        try:
            if self._attempt.read("exit.json") is None:
                self._attempt.write_exit(self._untold)
        except OSError:
            return
        if self._attempt.notify():
            self._untold = None


def _used() -> Record:
    """By all that have been waited for: CPU time, and the memory of the largest. For where no cgroup counts."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_ms": int((used.ru_utime + used.ru_stime) * 1000), "peak_memory_mib": used.ru_maxrss // _KIB_PER_MIB}


def _ended_children() -> list[tuple[int, int]]:
    """Reap every dead child: (pid, wait status)."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def _signal_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGTERM)
