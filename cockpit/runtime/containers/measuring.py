"""What a container's processes have used, as its cgroup has counted; nothing where it has none.

Sources: kernel documentation, admin-guide/cgroup-v1/{cpuacct,memory}.rst and admin-guide/cgroup-v2.rst. Version 1's CPU
time is found where `cpu` and `cpuacct` are one hierarchy, as they are nearly everywhere; `memory.peak` came with Linux
5.19.
"""

from __future__ import annotations

import re
from pathlib import Path

from cockpit.model.view import ReplicaUse
from cockpit.runtime.containers.shim.cgroups import MOUNT, PARENT
from cockpit.runtime.sysfiles import read_text

NANOS_PER_MILLI, MICROS_PER_MILLI, BYTES_PER_MIB = 1_000_000, 1_000, 1 << 20


def used(group: str, rank: int, mount: Path = Path(MOUNT)) -> ReplicaUse | None:
    """Of the cgroup of this name, by whichever version it is kept; None where there is no such group."""
    unified = mount / PARENT / group
    if unified.is_dir():
        spent = re.search(r"^usage_usec (\d+)$", read_text(unified / "cpu.stat"), re.MULTILINE)
        cpu = int(spent[1]) // MICROS_PER_MILLI if spent else None
        return ReplicaUse(rank, cpu, _mib(unified / "memory.current"), _mib(unified / "memory.peak"))
    cpus, memory = (mount / controller / PARENT / group for controller in ("cpu", "memory"))
    if not memory.is_dir():
        return None
    nanos = _number(cpus / "cpuacct.usage")
    cpu = None if nanos is None else nanos // NANOS_PER_MILLI
    return ReplicaUse(rank, cpu, _mib(memory / "memory.usage_in_bytes"), _mib(memory / "memory.max_usage_in_bytes"))


def _mib(path: Path) -> int | None:
    count = _number(path)
    return None if count is None else count // BYTES_PER_MIB


def _number(path: Path) -> int | None:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else None
