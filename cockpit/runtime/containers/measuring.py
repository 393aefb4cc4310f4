"""Measure what a container's processes have used: by its cgroup, or else by adding up the processes' own figures.

A cgroup counts without an engine too, and its counters stay when the last process has ended, until the group is
removed. Where no group counts, the times of those that live, with the children that they have waited for, are the times
of all; the holder reaps the orphans of all other processes of the job, and writes down what that came to when the
command ends.

Sources: kernel documentation, admin-guide/cgroup-v1/{cpuacct,memory}.rst, admin-guide/cgroup-v2.rst and
filesystems/proc.rst. Version 1's group counts CPU time where `cpu` and `cpuacct` are one hierarchy, as they are nearly
everywhere; `memory.peak` came with Linux 5.19.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.runtime.containers.shim.cgroups import MOUNT, PARENT
from cockpit.runtime.sysfiles import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.runtime.containers.shim.attempt import Attempt

NANOS_PER_MILLI, MICROS_PER_MILLI, BYTES_PER_MIB = 1_000_000, 1_000, 1 << 20
_UTIME, _STIME, _CUTIME, _CSTIME, _RSS = 11, 12, 13, 14, 21
"""Places in /proc/PID/stat behind the command's name."""


class Reading(NamedTuple):
    """The figures of one moment; None: not measured."""

    cpu_ms: int | None = None
    memory_mib: int | None = None
    """Memory in use; if a cgroup counts it, including file cache."""
    peak_memory_mib: int | None = None


NOTHING: Final = Reading()


def reading(attempt: Attempt) -> Reading:
    """Return the current figures of the attempt's container, from its cgroup or else from /proc."""
    plan = attempt.read("plan.json")
    counted = of_group(plan["cgroup"]) if plan is not None else None
    if counted is not None and counted.cpu_ms is not None:
        return counted
    added = _of_holder(attempt)
    # The group counts memory only, so the CPU time comes from the processes.
    return added if counted is None else counted._replace(cpu_ms=added.cpu_ms)


def working_mib(attempt: Attempt) -> int:
    """Return the working set of the attempt's container: its memory without inactive file cache."""
    plan = attempt.read("plan.json")
    amount = working_of_group(plan["cgroup"]) if plan is not None else None
    return (reading(attempt).memory_mib or 0) if amount is None else amount


def working_of_group(group: str, mount: Path = Path(MOUNT)) -> int | None:
    # Version 2, then version 1, whose controllers have folders of their own.
    for folder, used, files in (
        (mount / PARENT / group, "memory.current", "inactive_file"),
        (mount / "memory" / PARENT / group, "memory.usage_in_bytes", "total_inactive_file"),
    ):
        if (size := _number(folder / used)) is not None:
            idle = re.search(rf"^{files} (\d+)$", read_text(folder / "memory.stat"), re.MULTILINE)
            return max(0, size - (int(idle[1]) if idle else 0)) // BYTES_PER_MIB
    return None


def last_reading(attempt: Attempt) -> Reading:
    """Return the last figures of an ended command: from its cgroup, or else from the holder's exit record."""
    measured, record = reading(attempt), attempt.read("exit.json") or {}
    cpu = record.get("cpu_ms") if measured.cpu_ms is None else measured.cpu_ms
    peak = record.get("peak_memory_mib") if measured.peak_memory_mib is None else measured.peak_memory_mib
    return Reading(cpu, None, peak)


def of_group(group: str, mount: Path = Path(MOUNT)) -> Reading | None:
    """Return the figures of the cgroup of this name, of either version; None if there is no such group."""
    unified = mount / PARENT / group
    # Version 2: its groups are folders directly below the mount point, where version 1 has one folder per controller.
    if unified.is_dir():
        spent = re.search(r"^usage_usec (\d+)$", read_text(unified / "cpu.stat"), re.MULTILINE)
        cpu = int(spent[1]) // MICROS_PER_MILLI if spent else None
        return Reading(cpu, _mib(unified / "memory.current"), _mib(unified / "memory.peak"))
    cpus, memory = (mount / controller / PARENT / group for controller in ("cpu", "memory"))
    if not memory.is_dir():
        return None
    nanos = _number(cpus / "cpuacct.usage")
    cpu = None if nanos is None else nanos // NANOS_PER_MILLI
    return Reading(cpu, _mib(memory / "memory.usage_in_bytes"), _mib(memory / "memory.max_usage_in_bytes"))


def of_processes(holder: int, proc: Path = Path("/proc")) -> Reading:
    """Return the figures of the holder's descendants and of reaped processes. Shared memory counts several times."""
    live = [stat for pid in _descendants(proc, holder) if (stat := _stat(proc, pid))]
    waited = _stat(proc, holder)
    # The holder has ended, and the kernel's figures of it with it.
    if not waited:
        return NOTHING
    # Of the holder only the times of children that it has waited for: its own work is not the job's.
    ticks = sum(_times(each, _UTIME, _STIME, _CUTIME, _CSTIME) for each in live) + _times(waited, _CUTIME, _CSTIME)
    pages = sum(int(each[_RSS]) for each in live)
    mib = pages * os.sysconf("SC_PAGE_SIZE") // BYTES_PER_MIB
    return Reading(ticks * 1000 // os.sysconf("SC_CLK_TCK"), mib)


def _of_holder(attempt: Attempt) -> Reading:
    # After the command's end its figures are in the exit record, see `last_reading`.
    holder = attempt.holder_pid() if attempt.read("exit.json") is None else 0
    return of_processes(holder) if holder else NOTHING


def _descendants(proc: Path, pid: int) -> Iterator[int]:
    """Yield the descendants of a process; those that start or end meanwhile may be missing."""
    # Every thread has a list of the children that it has forked itself (proc(5), /proc/PID/task/TID/children).
    for task in (proc / str(pid) / "task").glob("*"):
        for child in map(int, read_text(task / "children").split()):
            yield child
            yield from _descendants(proc, child)


def _stat(proc: Path, pid: int) -> Sequence[str]:
    """Return the fields of /proc/PID/stat after the command's name; none if the process is gone."""
    return read_text(proc / str(pid) / "stat").rpartition(")")[2].split()


def _times(stat: Sequence[str], *places: int) -> int:
    return sum(int(stat[place]) for place in places)


def _mib(path: Path) -> int | None:
    count = _number(path)
    return None if count is None else count // BYTES_PER_MIB


def _number(path: Path) -> int | None:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else None
