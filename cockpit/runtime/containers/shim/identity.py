"""Which process exactly: by pid, start time and boot, since a pid alone may be somebody else's by now."""

from __future__ import annotations

import os

from cockpit.runtime.containers.shim import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Identity = dict[str, Any]


def identity_of(pid: int, proc: int | None = None) -> Identity:
    """What tells this process from every other there was or will be. `proc`: the /proc in which it has this pid."""
    return {"pid": pid, "start_time": _start_time(pid, proc), "boot_id": boot_id()}


def open_process(identity: Identity) -> int | None:
    """A pidfd of exactly that process; None where it is gone."""
    if identity["boot_id"] != boot_id():
        return None
    try:
        pidfd = os.pidfd_open(identity["pid"])
    except OSError:
        return None
    try:
        same = _start_time(identity["pid"]) == identity["start_time"]
    except OSError:
        same = False
    if same and not linux.has_ended(pidfd):
        return pidfd
    os.close(pidfd)
    return None


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()


def _start_time(pid: int, proc: int | None = None) -> int:
    """Field 22 of /proc/PID/stat, in clock ticks since boot; the command name may hold spaces and brackets."""
    path = f"/proc/{pid}/stat" if proc is None else f"{pid}/stat"
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as stream:
        return int(stream.read().rpartition(b")")[2].split()[19])
