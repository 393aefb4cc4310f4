"""Identify a process by its pid, start time and boot id, since a pid alone may meanwhile be another process's."""

from __future__ import annotations

import os

from cockpit.runtime.containers.shim import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Identity = dict[str, Any]


def identity_of(pid: int, proc: int | None = None) -> Identity:
    """Return what distinguishes this process from all others. `proc`: descriptor of the /proc in which it has `pid`."""
    return {"pid": pid, "start_time": _start_time(pid, proc), "boot_id": boot_id()}


def open_process(identity: Identity) -> int | None:
    """Return a pidfd of exactly this process; None if it is dead."""
    if identity["boot_id"] != boot_id():
        return None
    try:
        pidfd = os.pidfd_open(identity["pid"])
    except OSError:
        return None
    try:
        # Compared after the pidfd is open: from here on the pid cannot become another process's.
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
    """Return field 22 of /proc/PID/stat, in clock ticks since boot. The command name may contain spaces, brackets."""
    path = f"/proc/{pid}/stat" if proc is None else f"{pid}/stat"
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as stream:
        return int(stream.read().rpartition(b")")[2].split()[19])
