"""Find the processes of one replica, to kill or suspend them.

In a container these are all processes of its pid namespace. Plain processes are recognised in two ways: they descend
from their holder, which adopts orphans, or they have the attempt's mark in their environment (entered programs).
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from cockpit.runtime.containers.shim.attempt import Attempt

    class JobProcesses(Protocol):
        """A replica's processes, from the view of their holder."""

        def kill(self) -> None:
            """Send SIGKILL to all of them except the holder."""

        def are_left(self) -> bool:
            """Return whether at least one is alive."""

        def read_pipes(self) -> bool:
            """Return whether one of them reads a pipe, such as a `tee` that writes the command's output to a file."""

        def sent(self, received: signal.struct_siginfo) -> bool:
            """Return whether one of them, and not the engine, has sent the signal."""

        def leave(self) -> None:
            """Make sure that none of them outlives the holder."""


MARK = "COCKPIT_PLAIN"
"""Environment variable of plain processes: the name of their attempt's cgroup, which is unique on the machine."""
_MOMENT = 0.001
"""Interval in seconds between two tries to kill what is left."""
_DEAD = (b"Z", b"X")
"""States of dead processes. A zombie whose parent is outside of the container (an entering program) counts as dead."""


class ContainedProcesses:
    """The processes of a container, seen from its first process. The kernel kills them when that ends."""

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            # To every process of the pid namespace but its first, which this is (kill(2), pid -1).
            os.kill(-1, signal.SIGKILL)

    def are_left(self) -> bool:
        return any(pid != 1 and _stat(pid)[0] not in _DEAD for pid in _all_pids())

    def read_pipes(self) -> bool:
        return any(pid != 1 and _reads_pipe(pid) for pid in _all_pids())

    def sent(self, received: signal.struct_siginfo) -> bool:
        """Return whether the sender is in this pid namespace; one outside of it has pid 0 here."""
        return received.si_pid != 0

    def leave(self) -> None:
        pass


class UncontainedProcesses:
    """Plain processes, seen from the machine. `holder`: the pid of their holder; 0 if it is dead."""

    def __init__(self, mark: str, holder: int) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self._holder = holder

    def pids(self) -> list[int]:
        """Return the pids of the living processes, without the holder's."""
        # All of them first: by one listing each process has one parent, though processes start and end meanwhile.
        stats = {pid: _stat(pid) for pid in _all_pids()}
        alive = [pid for pid, (state, _) in stats.items() if state not in _DEAD and pid != self._holder]
        parents = {pid: parent for pid, (_, parent) in stats.items()}
        return [pid for pid in alive if self._is_marked(pid) or self._descends(pid, parents)]

    def kill(self) -> None:
        signal_each(self.pids(), signal.SIGKILL)

    def are_left(self) -> bool:
        return bool(self.pids())

    def read_pipes(self) -> bool:
        return any(_reads_pipe(pid) for pid in self.pids())

    def sent(self, received: signal.struct_siginfo) -> bool:
        return received.si_pid in self.pids()

    def leave(self) -> None:
        while self.are_left():
            self.kill()
            time.sleep(_MOMENT)

    def _is_marked(self, pid: int) -> bool:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as stream:
            return self._mark in stream.read().split(b"\0")
        return False

    def _descends(self, pid: int, parents: dict[int, int]) -> bool:
        # Up to pid 1, which has no parent here, or to a process that is not in the listing any more.
        while self._holder and pid > 1:
            pid = parents.get(pid, 0)
            if pid == self._holder:
                return True
        return False


def of(attempt: Attempt) -> list[int]:
    """Return the pids of an attempt's living processes without its holder's, as the engine sees them."""
    holder, identity = attempt.holder_pid(), attempt.read("shim.json")
    if identity is not None and identity.get("plain"):
        return UncontainedProcesses(attempt.plan()["cgroup"], holder).pids()
    # The text is the same for equal namespaces (namespaces(7)), so that none has to be entered for comparing them.
    own = _namespace(holder) if holder else ""
    return [pid for pid in _all_pids() if pid != holder and _namespace(pid) == own] if own else []


def end_plain(attempt: Attempt) -> None:
    """Kill plain processes whose holder was killed before it could do so, and return when none is left."""
    if (attempt.read("shim.json") or {}).get("plain"):
        UncontainedProcesses(attempt.plan()["cgroup"], attempt.holder_pid()).leave()


def signal_each(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> tuple[bytes, int]:
    """Return a process's state and parent. They follow the command name, which may contain spaces and brackets."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stream:
        state, parent = stream.read().rpartition(b")")[2].split()[:2]
        return state, int(parent)
    return b"X", 0


def _reads_pipe(pid: int) -> bool:
    """Return whether any descriptor of the process is the read end of a pipe.

    Not only standard input: a shell's child may not have duplicated it yet. The mode of the descriptor's link in /proc
    says whether it is open for reading or writing.
    """
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        return any(_is_read_end(f"{folder}/{number}") for number in os.listdir(folder))
    return False


def _is_read_end(link: str) -> bool:
    with contextlib.suppress(OSError):
        return os.readlink(link).startswith("pipe:") and not os.lstat(link).st_mode & stat.S_IWUSR
    return False


def _namespace(pid: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/pid")
    return ""
