"""Suspend and resume all processes of a container. All functions block, and are called from threads.

The first way that works is used:

1. cgroup v2: write to `cgroup.freeze` of the container's group.
2. cgroup v1: move the container's processes into a group of the freezer hierarchy, and freeze that.
3. SIGSTOP to every process of the container.

The holder is not suspended, so that it still listens to the engine. The way is recorded in the attempt's folder, so
that a later engine can undo it. Source: Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst, cgroup-v2.rst.
"""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.runtime.containers.shim import cgroups, job_processes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.runtime.containers.shim.attempt import Attempt

RECORD = "frozen.json"
_ROUNDS = 1_000
_ROUND_SECONDS = 0.005
"""Interval between two looks at a group that is being frozen; with their number a limit of five seconds."""


def freeze(attempt: Attempt) -> str:
    """Suspend the container's processes; repeating it does no harm.

    Returns the way used: `cgroup v1`, `cgroup v2` or `signals`; empty if the container has no holder.
    """
    # A held container whose holder has died has no processes, and no pid to find them by.
    if not attempt.holder_pid():
        return ""
    group = attempt.plan()["cgroup"]
    # The groups come first: a process can catch neither, but its parent sees a SIGSTOP (waitpid, WUNTRACED).
    how = _by_group_v2(group) or _by_group_v1(group, attempt) or _by_signals(attempt)
    # after the freeze: an engine that dies in between repeats the effect
    attempt.write(RECORD, {"how": how}, durable=False)
    return how


def thaw(attempt: Attempt) -> None:
    """Resume the container's processes; do nothing if they are not suspended."""
    record = attempt.read(RECORD)
    if record is None:
        return
    group = attempt.plan()["cgroup"]
    # The container may have died meanwhile, and its group with it.
    with suppress(OSError):
        if record["how"] == "cgroup v2":
            _file_v2(group).write_text("0")
        elif record["how"] == "cgroup v1":
            (_folder_v1(group) / "freezer.state").write_text("THAWED")
        else:
            job_processes.signal_each(job_processes.of(attempt), signal.SIGCONT)
    attempt.forget(RECORD)


def remove_group(group: str) -> None:
    """Remove the group that `freeze` has made, once no process is in it."""
    with suppress(OSError):
        _folder_v1(group).rmdir()


def _file_v2(group: str) -> Path:
    return Path(cgroups.MOUNT, cgroups.PARENT, group, "cgroup.freeze")


def _folder_v1(group: str) -> Path:
    return Path(cgroups.MOUNT, "freezer", cgroups.PARENT, group)


def _by_group_v2(group: str) -> str:
    try:
        _file_v2(group).write_text("1")
    except OSError:
        return ""
    return "cgroup v2"


def _by_group_v1(group: str, attempt: Attempt) -> str:
    """Move the container's processes into a freezer group, until none is outside, and freeze the group.

    A child starts in its parent's group, so processes that fork meanwhile need another round.
    """
    folder = _folder_v1(group)
    try:
        # Only cgroup v1 has `tasks`, so the file proves that the freezer hierarchy is mounted (cgroups(7)).
        if not (folder.parent.parent / "tasks").exists():
            return ""
        folder.mkdir(parents=True, exist_ok=True)
        for _ in range(_ROUNDS):
            inside = set((folder / "cgroup.procs").read_text().split())
            outside = [pid for pid in job_processes.of(attempt) if str(pid) not in inside]
            _join(folder, outside)
            if not outside:
                break
        (folder / "freezer.state").write_text("FROZEN")
        return "cgroup v1" if _wait_until_frozen(folder) else ""
    except OSError:
        return ""


def _join(folder: Path, pids: Iterable[int]) -> None:
    for pid in pids:
        # It has ended since it was listed.
        with suppress(ProcessLookupError):
            (folder / "cgroup.procs").write_text(str(pid))


def _wait_until_frozen(folder: Path) -> bool:
    """Wait until all processes of the group are frozen; one inside a system call takes a moment."""
    for _ in range(_ROUNDS):
        if (folder / "freezer.state").read_text().strip() == "FROZEN":
            return True
        # the kernel tries processes that it could not freeze again only when FROZEN is written once more
        (folder / "freezer.state").write_text("FROZEN")
        time.sleep(_ROUND_SECONDS)
    # half of the processes frozen is worse than none: the next way starts from running ones
    (folder / "freezer.state").write_text("THAWED")
    return False


def _by_signals(attempt: Attempt) -> str:
    """Send SIGSTOP to the container's processes, in rounds, until no new one has been forked meanwhile."""
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        born = [pid for pid in job_processes.of(attempt) if pid not in stopped]
        if not born:
            break
        job_processes.signal_each(born, signal.SIGSTOP)
        stopped.update(born)
    return "signals"
