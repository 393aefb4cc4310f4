"""Makes everything in a container stand still and go on. Blocks; called from a thread.

By the kernel's freezer where its files are writable, else by SIGSTOP and SIGCONT to every process in the container
but its holder, which goes on listening to the engine. How it was done stands in the attempt's folder, so
that a later engine undoes the same. Source: Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst, cgroup-v2.rst.
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


def freeze(attempt: Attempt) -> str:
    """Returns how: `cgroup v1`, `cgroup v2` or `signals`; empty where nothing lives there. Twice is like once."""
    if not attempt.holder_pid():
        return ""
    group = attempt.plan()["cgroup"]
    how = _by_group_v2(group) or _by_group_v1(group, attempt) or _by_signals(attempt)
    attempt.write(RECORD, {"how": how}, durable=False)
    return how


def thaw(attempt: Attempt) -> None:
    """Everything goes on; nothing happens where nothing stands still."""
    record = attempt.read(RECORD)
    if record is None:
        return
    group = attempt.plan()["cgroup"]
    with suppress(OSError):
        if record["how"] == "cgroup v2":
            _file_v2(group).write_text("0")
        elif record["how"] == "cgroup v1":
            (_folder_v1(group) / "freezer.state").write_text("THAWED")
        else:
            job_processes.signal_each(job_processes.of(attempt), signal.SIGCONT)
    attempt.forget(RECORD)


def remove_group(group: str) -> None:
    """The group that freezing has made, once nobody is in it."""
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
    """A group of its own, which every process of the container joins: one that is born meanwhile is its parent's."""
    folder = _folder_v1(group)
    try:
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
        return "cgroup v1" if _settled(folder) else ""
    except OSError:
        return ""


def _join(folder: Path, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            (folder / "cgroup.procs").write_text(str(pid))


def _settled(folder: Path) -> bool:
    """Whether all in it stand still; one within a system call takes a moment."""
    for _ in range(_ROUNDS):
        if (folder / "freezer.state").read_text().strip() == "FROZEN":
            return True
        (folder / "freezer.state").write_text("FROZEN")
        time.sleep(_ROUND_SECONDS)
    (folder / "freezer.state").write_text("THAWED")
    return False


def _by_signals(attempt: Attempt) -> str:
    """Again and again, until nobody was born meanwhile."""
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        born = [pid for pid in job_processes.of(attempt) if pid not in stopped]
        if not born:
            break
        job_processes.signal_each(born, signal.SIGSTOP)
        stopped.update(born)
    return "signals"
