"""What is written where, so that the kernel keeps a container within its limits: pure tables for both cgroup versions.

Groups lie directly below each hierarchy's mount point, not below the engine's own group: that one may be a login
session's, and go away with it. Version 2's table is checked for its content; it is untested on a real host.
Source: Documentation/admin-guide/cgroup-v1/{memory,pids}.rst, scheduler/sched-bwc.rst, cgroup-v2.rst.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOUNT = "/sys/fs/cgroup"
PARENT = "cockpit-cluster"
CONTROLLERS = ("cpu", "memory", "pids")
_PERIOD_US = 100_000
_MIB = 1 << 20


class Write:
    """One value for one file, relative to the cgroup mount; `optional` where a kernel may lack the file."""

    __slots__ = ("optional", "path", "value")

    def __init__(self, path: str, value: str, *, optional: bool = False) -> None:
        self.path = path
        self.value = value
        self.optional = optional

    def __repr__(self) -> str:
        return f"{self.path} ← {self.value}"


def folders_v1(name: str) -> list[str]:
    return [f"{controller}/{PARENT}/{name}" for controller in CONTROLLERS]


def folders_v2(name: str) -> list[str]:
    return [f"{PARENT}/{name}"]


def writes_v1(name: str, *, cpus: int, memory_mib: int, pids: int) -> list[Write]:
    """In this order: memory with swap may never be below memory. Without CPUs it is not limited, and comes last."""
    cpu, memory, processes = folders_v1(name)
    if not cpus:
        return [Write(f"{cpu}/cpu.shares", "2"), Write(f"{processes}/pids.max", str(pids))]
    memory_bytes = str(memory_mib * _MIB)
    return [
        Write(f"{cpu}/cpu.cfs_period_us", str(_PERIOD_US)),
        Write(f"{cpu}/cpu.cfs_quota_us", str(cpus * _PERIOD_US)),
        Write(f"{memory}/memory.limit_in_bytes", memory_bytes),
        Write(f"{memory}/memory.memsw.limit_in_bytes", memory_bytes, optional=True),
        Write(f"{processes}/pids.max", str(pids)),
    ]


def writes_v2(name: str, *, cpus: int, memory_mib: int, pids: int) -> list[Write]:
    """The parents first offer the controllers to their children. Without CPUs it is not limited, and comes last."""
    (group,) = folders_v2(name)
    offer = " ".join(f"+{controller}" for controller in CONTROLLERS)
    offers = [Write("cgroup.subtree_control", offer), Write(f"{PARENT}/cgroup.subtree_control", offer)]
    if not cpus:
        return [*offers, Write(f"{group}/cpu.weight", "1"), Write(f"{group}/pids.max", str(pids))]
    return [
        *offers,
        Write(f"{group}/cpu.max", f"{cpus * _PERIOD_US} {_PERIOD_US}"),
        Write(f"{group}/memory.max", str(memory_mib * _MIB)),
        Write(f"{group}/memory.swap.max", "0", optional=True),
        Write(f"{group}/pids.max", str(pids)),
    ]


def oom_file_v1(name: str) -> str:
    return f"memory/{PARENT}/{name}/memory.oom_control"


def oom_file_v2(name: str) -> str:
    return f"{PARENT}/{name}/memory.events"


def oom_kills(text: str) -> int:
    """How many processes the kernel has killed for memory, from either version's file."""
    counts = (line.split() for line in text.splitlines())
    return sum(int(words[1]) for words in counts if len(words) == 2 and words[0] == "oom_kill")


def soft_text(lacks: Sequence[str]) -> str:
    """The `limits` of a replica whose limits no cgroup enforces."""
    return f"soft: memory and processes by rlimit for each program, CPUs not limited ({'; '.join(lacks)})"
