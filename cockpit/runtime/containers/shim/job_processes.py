"""The processes of one job: whom to kill, and whom to make stand still.

In a container that is everybody in its pid namespace. Plain processes are told from the rest of the machine in two ways
at once: they descend from their holder, who adopts orphans, and what was entered carries their mark in its environment.
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
        """As their holder sees them."""

        def kill(self) -> None:
            """SIGKILL to all of them but the holder."""

        def are_left(self) -> bool:
            """Whether one is alive."""

        def read_pipes(self) -> bool:
            """Whether one of them reads a pipe, such as the `tee` that writes down what the command says."""

        def sent(self, received: signal.struct_siginfo) -> bool:
            """Whether a signal comes from one of them, and not from the engine."""

        def leave(self) -> None:
            """See that none outlives the holder."""


MARK = "COCKPIT_PLAIN"
"""In the environment of plain processes: the name of their job's group, which no other attempt has."""
_MOMENT = 0.001
_DEAD = (b"Z", b"X")
"""A zombie whose parent is elsewhere (someone who entered) is dead, though not yet reaped."""


class ContainedProcesses:
    """Seen from the first process of a container, whose end ends them."""

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)

    def are_left(self) -> bool:
        return any(pid != 1 and _stat(pid)[0] not in _DEAD for pid in _everybody())

    def read_pipes(self) -> bool:
        return any(pid != 1 and _reads_pipe(pid) for pid in _everybody())

    def sent(self, received: signal.struct_siginfo) -> bool:
        """A sender outside of this pid namespace has, seen from here, no pid."""
        return received.si_pid != 0

    def leave(self) -> None:
        pass


class UncontainedProcesses:
    """Seen from the machine. `holder`: 0 where it is gone."""

    def __init__(self, mark: str, holder: int) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self._holder = holder

    def pids(self) -> list[int]:
        """Of those that are alive, without the holder."""
        stats = {pid: _stat(pid) for pid in _everybody()}
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
        while self._holder and pid > 1:
            pid = parents.get(pid, 0)
            if pid == self._holder:
                return True
        return False


def of(attempt: Attempt) -> list[int]:
    """Seen from the engine: all that are alive of an attempt, but its holder."""
    holder, identity = attempt.holder_pid(), attempt.read("shim.json")
    if identity is not None and identity.get("plain"):
        return UncontainedProcesses(attempt.plan()["cgroup"], holder).pids()
    own = _namespace(holder) if holder else ""
    return [pid for pid in _everybody() if pid != holder and _namespace(pid) == own] if own else []


def end_plain(attempt: Attempt) -> None:
    """Kill the plain processes whose holder did not: it was killed itself. Returns when none is left."""
    if (attempt.read("shim.json") or {}).get("plain"):
        UncontainedProcesses(attempt.plan()["cgroup"], attempt.holder_pid()).leave()


def signal_each(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _everybody() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> tuple[bytes, int]:
    """State and parent; the command name before them may hold spaces and brackets."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stream:
        state, parent = stream.read().rpartition(b")")[2].split()[:2]
        return state, int(parent)
    return b"X", 0


def _reads_pipe(pid: int) -> bool:
    """By any descriptor: a shell's child has not made it its standard input yet. What a descriptor is open for is in
    the mode of its link."""
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
