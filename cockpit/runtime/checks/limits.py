"""Check which limits of a job this machine can enforce: by cgroups v1 or v2, or none if this user may not write them.

A job's groups are at the top of each hierarchy, see `shim.cgroups`.
"""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.containers.shim.cgroups import CONTROLLERS
from cockpit.runtime.findings import Finding, note, ok
from cockpit.runtime.sysfiles import read_text

CGROUPS = "sys/fs/cgroup"
ADVICE = "A job can use more than it requested. Let root start the engine: `cockpit engine start --system`."


def limits(around: Surroundings) -> list[Finding]:
    """Check what enforces a job's limits on CPUs, memory and processes."""
    mounted = around.root / CGROUPS
    controllers = read_text(mounted / "cgroup.controllers").split()
    return [_unified(mounted, controllers) if controllers else _hierarchies(mounted)]


def _unified(mounted: Path, controllers: list[str]) -> Finding:
    if not _writable(mounted) or not _writable(mounted / "cgroup.subtree_control"):
        return note("limits", f"cgroup v2, but {mounted} may not be written: limits are soft (rlimits)", ADVICE)
    lacking = [name for name in CONTROLLERS if name not in controllers]
    if lacking:
        advice = "Boot the machine with these controllers, or enable them for the container that this system runs in."
        return note("limits", f"cgroup v2 without {', '.join(lacking)}: limits are soft (rlimits)", advice)
    return ok("limits", "cgroup v2: CPUs, memory and processes are enforced")


def _hierarchies(mounted: Path) -> Finding:
    usable = [name for name in CONTROLLERS if _writable(mounted / name)]
    if len(usable) == len(CONTROLLERS):
        return ok("limits", "cgroup v1: CPUs, memory and processes are enforced")
    found = "cgroup v1" if any((mounted / name).is_dir() for name in CONTROLLERS) else "no cgroups"
    lacking = ", ".join(name for name in CONTROLLERS if name not in usable)
    return note("limits", f"{found}, {lacking} may not be written: limits are soft (rlimits)", ADVICE)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK)
