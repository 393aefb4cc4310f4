"""Find how many CPUs and how much memory this process may use: the machine's, reduced by affinity and cgroup limits.

Formats: kernel documentation, admin-guide/cgroup-v1/{cpusets,memory}.rst, scheduler/sched-bwc.rst (v1) and
admin-guide/cgroup-v2.rst; /proc/self/{cgroup,mountinfo} from proc(5) and cgroups(7).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cockpit.runtime.sysfiles import read_text

BYTES_PER_MIB = 1 << 20
KIB_PER_MIB = 1 << 10


def usable_cpus(root: Path = Path("/")) -> int:
    """Return the number of CPUs this process may use, at least 1; a quota of 2.5 CPUs counts as 2."""
    # The affinity already includes cpusets.
    scheduled = len(os.sched_getaffinity(0))
    quotas = [quota for folder in _limit_folders(root, "cpu") if (quota := cpu_quota(folder)) is not None]
    return max(1, int(min([scheduled, *quotas])))


def usable_memory_mib(root: Path = Path("/")) -> int:
    """Return the machine's memory in MiB, or the smallest limit of this process's cgroups."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", read_text(root / "proc/meminfo"), re.MULTILINE)
    total = int(match[1]) // KIB_PER_MIB if match else 0
    limits = [limit for folder in _limit_folders(root, "memory") if (limit := memory_limit_mib(folder)) is not None]
    return min([total, *limits])


def cpu_quota(folder: Path) -> float | None:
    """Return the CPU quota of the cgroup at `folder` (v1 or v2), in CPUs; None: no limit."""
    quota, _, period = read_text(folder / "cpu.max").strip().partition(" ")
    if not period:
        quota, period = (read_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None  # "max" in v2, "-1" in v1
    return int(quota) / int(period)


def memory_limit_mib(folder: Path) -> int | None:
    """Return the memory limit of the cgroup at `folder` (v1 or v2); None: no limit. In v1 that is a huge number."""
    limits = (read_text(folder / name).strip() for name in ("memory.max", "memory.limit_in_bytes"))
    return next((int(limit) // BYTES_PER_MIB for limit in limits if limit.isdigit()), None)


def _limit_folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield this process's cgroup under `controller` and all its parents, as far as they are mounted."""
    mounts = read_text(root / "proc/self/mountinfo")
    for line in read_text(root / "proc/self/cgroup").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy != "0" and controller not in controllers.split(","):
            continue
        # A container's mount may show only a part of the hierarchy, below which the path then begins (cgroups(7)).
        for mounted_root, mount_point in _cgroup_mounts(mounts, controller, unified=hierarchy == "0"):
            yield from _upward(root / mount_point.lstrip("/"), below(path, mounted_root))


def _cgroup_mounts(mountinfo: str, controller: str, *, unified: bool) -> Iterator[tuple[str, str]]:
    """Yield the matching cgroup mounts: root of the mount in its hierarchy, mount point."""
    for line in mountinfo.splitlines():
        fields, _, special = line.partition(" - ")
        # Behind ` - ` are the type, the source, and the options of the file system (proc(5), mountinfo).
        kind, _, options = special.partition(" ")
        wanted = kind == "cgroup2" if unified else kind == "cgroup" and controller in options.split(" ")[-1].split(",")
        if wanted:
            yield fields.split(" ")[3], fields.split(" ")[4]


def below(path: str, mounted_root: str) -> str:
    """Return a cgroup's `path` relative to a mount whose root is `mounted_root`."""
    if mounted_root != "/" and (path == mounted_root or path.startswith(f"{mounted_root}/")):
        path = path[len(mounted_root) :]
    return path.strip("/")


def _upward(mount_point: Path, path: str) -> Iterator[Path]:
    """Yield the folder of a group and those of all groups above it, whose limits hold as well."""
    folder = mount_point / path
    yield folder
    while folder != mount_point:
        folder = folder.parent
        yield folder
