"""Keep a container's programs within its limits: by cgroups if they are writable, else by rlimits.

The holder itself never joins the cgroups, since an out-of-memory kill must not end the container's holder.
"""

from __future__ import annotations

import errno
import os
import resource

from cockpit.runtime.containers.shim import cgroups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import PlanDict

_JOB_OOM_SCORE = b"300"
"""When the machine runs out of memory, the kernel kills jobs' programs before the engine and the holders."""
_BEST_EFFORT_OOM_SCORE = b"1000"
"""Best-effort programs, which requested no CPUs, are killed before all others."""
_MIB = 1 << 20
READ_ONLY = "; read-only: "
"""Separator between the text on limits and the list of system folders that are not copy-on-write."""


class ReplicaLimits:
    """A container's limits, created by its holder, and opened again by each program that enters."""

    def __init__(self, text: str, procs: list[int], oom_fd: int | None) -> None:
        self.text = text
        """How the limits are enforced, as a job's page shows it."""
        self.procs = procs
        """Open `cgroup.procs` files; empty: rlimits are used."""
        self._oom_fd = oom_fd

    def join(self, plan: PlanDict) -> None:
        """Put the calling process, and all it will start, under the limits. Call it before privileges are dropped."""
        # 0 means the process that writes it (cgroups(7)): its pid differs between the namespaces
        for fd in self.procs:
            os.write(fd, b"0")
        if not self.procs and plan["memory_mib"]:
            _lower(resource.RLIMIT_DATA, plan["memory_mib"] * _MIB)
        _raise_oom_score(_JOB_OOM_SCORE if plan["cpus"] else _BEST_EFFORT_OOM_SCORE)

    def join_late(self, plan: PlanDict) -> None:
        """Set the limit on processes if there are no cgroups. It counts per user namespace, so set it inside of it."""
        if not self.procs and os.getuid() != 0:
            _lower(resource.RLIMIT_NPROC, plan["pids"])

    def saw_oom(self) -> bool:
        """Return whether the kernel has killed any program of the container for lack of memory."""
        if self._oom_fd is None:
            return False
        return cgroups.oom_kills(os.pread(self._oom_fd, 4096, 0).decode()) > 0


def make(plan: PlanDict) -> ReplicaLimits:
    """Create the groups and write the limits. If that fails, return rlimits, with the reason in `text`."""
    name = plan["cgroup"]
    sizes = {"cpus": plan["cpus"], "memory_mib": plan["memory_mib"], "pids": plan["pids"]}
    try:
        # Where both are mounted (hybrid), the controllers are those of version 1, and this file is missing here.
        if _is_v2():
            _create(cgroups.folders_v2(name))
            _write(cgroups.writes_v2(name, **sizes))
        else:
            _create(cgroups.folders_v1(name))
            _write(cgroups.writes_v1(name, **sizes))
    except OSError as error:
        # all or nothing: else some limits would hold that the text does not name
        remove(name)
        return ReplicaLimits(cgroups.soft_text([f"{error.filename or cgroups.MOUNT}: {error.strerror}"]), [], None)
    return find(plan)


def find(plan: PlanDict) -> ReplicaLimits:
    """Open the groups that `make` has created; rlimits if there are none."""
    name = plan["cgroup"]
    folders, oom_file = (
        (cgroups.folders_v2(name), cgroups.oom_file_v2(name))
        if _is_v2()
        else (cgroups.folders_v1(name), cgroups.oom_file_v1(name))
    )
    # One descriptor for each hierarchy: a process is in one group of each.
    try:
        procs = [_open(f"{folder}/cgroup.procs", os.O_WRONLY) for folder in folders]
        return ReplicaLimits(f"cgroup {'v2' if _is_v2() else 'v1'}", procs, _open(oom_file, os.O_RDONLY))
    except OSError as error:
        return ReplicaLimits(cgroups.soft_text([f"{error.filename}: {error.strerror}"]), [], None)


def remove(name: str) -> bool:
    """Remove the groups. Returns False if a dying process is still in one; then try again in a moment."""
    gone = [_remove(_path(folder)) for folder in (*cgroups.folders_v1(name), *cgroups.folders_v2(name))]
    return all(gone)


def _is_v2() -> bool:
    return os.path.exists(_path("cgroup.controllers"))


def _path(relative: str) -> str:
    return os.path.join(cgroups.MOUNT, relative)


def _open(relative: str, flags: int) -> int:
    return os.open(_path(relative), flags | os.O_CLOEXEC)


def _create(folders: list[str]) -> None:
    for folder in folders:
        os.makedirs(_path(folder), exist_ok=True)


def _write(writes: list[cgroups.Write]) -> None:
    for write in writes:
        try:
            fd = _open(write.path, os.O_WRONLY)
        except FileNotFoundError:
            # Such as the limits of swap, on a kernel that does not count it.
            if write.optional:
                continue
            raise
        try:
            os.write(fd, write.value.encode())
        except OSError as error:
            raise OSError(error.errno, error.strerror, _path(write.path)) from None
        finally:
            os.close(fd)


def _remove(path: str) -> bool:
    try:
        os.rmdir(path)
    # EBUSY: a process is still in it; any other error means that there is no such group here
    except OSError as error:
        return error.errno != errno.EBUSY
    return True


def _lower(which: int, value: int) -> None:
    # only root may raise a hard limit (setrlimit(2)), so the engine's own bounds the container's
    _, hard = resource.getrlimit(which)
    bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bounded, bounded))


def _raise_oom_score(score: bytes) -> None:
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, score)
    finally:
        os.close(fd)
