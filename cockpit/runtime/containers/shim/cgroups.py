"""The values that enforce a container's limits, and the cgroup files that they are written to, for versions 1 and 2.

The groups are directly below each hierarchy's mount point, not below the engine's own group, which may belong to a
login session and be removed with it. Version 2's table is only tested for its content, not on a real host.
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
"""Period of CPU quotas in microseconds; the kernel's own default."""
_MIB = 1 << 20


class Write:
    """One value for one file, relative to the cgroup mount. `optional`: a kernel may lack the file."""

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
    """Return the writes for cgroup v1, in order: the limit of memory with swap may never be below that of memory.

    A best-effort replica (`cpus` = 0) gets no CPU or memory limit, but the lowest CPU weight.
    """
    cpu, memory, processes = folders_v1(name)
    # 2 is the least value that the kernel accepts
    if not cpus:
        return [Write(f"{cpu}/cpu.shares", "2"), Write(f"{processes}/pids.max", str(pids))]
    memory_bytes = str(memory_mib * _MIB)
    # memory with swap has the same limit: a job beyond its memory is killed instead of slowing the node by swapping
    return [
        Write(f"{cpu}/cpu.cfs_period_us", str(_PERIOD_US)),
        Write(f"{cpu}/cpu.cfs_quota_us", str(cpus * _PERIOD_US)),
        Write(f"{memory}/memory.limit_in_bytes", memory_bytes),
        Write(f"{memory}/memory.memsw.limit_in_bytes", memory_bytes, optional=True),
        Write(f"{processes}/pids.max", str(pids)),
    ]


def writes_v2(name: str, *, cpus: int, memory_mib: int, pids: int) -> list[Write]:
    """Return the writes for cgroup v2, in order: parents must enable the controllers for their children first.

    A best-effort replica (`cpus` = 0) gets no CPU or memory limit, but the lowest CPU weight.
    """
    (group,) = folders_v2(name)
    # a child has a controller's files only if each group above it offers the controller (cgroup-v2.rst, "Enabling and
    # Disabling")
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
    """Return how many processes the kernel has killed for lack of memory, from either version's file."""
    counts = (line.split() for line in text.splitlines())
    return sum(int(words[1]) for words in counts if len(words) == 2 and words[0] == "oom_kill")


def soft_text(lacks: Sequence[str]) -> str:
    """Return the text for a job's page if no cgroup enforces the limits. `lacks`: why not."""
    return f"soft: memory and processes by rlimit for each program, CPUs not limited ({'; '.join(lacks)})"
