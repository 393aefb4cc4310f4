"""Which limits of a job this machine can enforce: cgroups v1, v2, or none that this user may write."""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.findings import Finding, note, ok
from cockpit.runtime.sysfiles import read_text

CONTROLLERS = ("cpu", "memory", "pids")
CGROUPS = "sys/fs/cgroup"


def limits(around: Surroundings) -> list[Finding]:
    """One finding: what holds a job to its CPUs, memory and processes."""
    mounted = around.root / CGROUPS
    controllers = read_text(mounted / "cgroup.controllers").split()
    return [_unified(around, mounted) if controllers else _hierarchies(mounted)]


def _unified(around: Surroundings, mounted: Path) -> Finding:
    own = mounted / _own_unified(read_text(around.root / "proc/self/cgroup")).lstrip("/")
    here = read_text(own / "cgroup.controllers").split()
    lacking = [name for name in CONTROLLERS if name not in here]
    if not _writable(own) or not _writable(own / "cgroup.subtree_control"):
        return note(
            "limits",
            f"cgroup v2, but {own} may not be written: limits are soft (rlimits)",
            "A job can take more CPU than it asked for. Start the engine as root, or have systemd delegate: "
            "`systemd-run --user --scope -p Delegate=yes cockpit engine start`.",
        )
    if lacking:
        return note(
            "limits",
            f"cgroup v2 without {', '.join(lacking)}: those limits are soft",
            "Let root delegate them: `systemctl edit user@.service` with `[Service] Delegate=cpu memory pids`.",
        )
    return ok("limits", "cgroup v2: CPUs, memory and processes are enforced")


def _own_unified(cgroups: str) -> str:
    return next((line[3:] for line in cgroups.splitlines() if line.startswith("0::")), "/")


def _hierarchies(mounted: Path) -> Finding:
    usable = [name for name in CONTROLLERS if _writable(mounted / name)]
    if len(usable) == len(CONTROLLERS):
        return ok("limits", "cgroup v1: CPUs, memory and processes are enforced")
    found = "cgroup v1" if any((mounted / name).is_dir() for name in CONTROLLERS) else "no cgroups"
    lacking = ", ".join(name for name in CONTROLLERS if name not in usable)
    return note(
        "limits",
        f"{found}, {lacking} may not be written: those limits are soft (rlimits)",
        "A job can take more than it asked for. Let root start the engine: `cockpit engine start --system`.",
    )


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK)
