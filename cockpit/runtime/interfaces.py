"""Read the state of this machine's network interfaces from sysfs (sysfs-class-net)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cockpit.runtime.containers.shim.nat import CABLE
from cockpit.runtime.sysfiles import read_text

_WORKS: Final = frozenset({"up", "unknown"})
"""States that count as working. Drivers that do not know the state report `unknown`."""


def working(root: Path = Path("/")) -> frozenset[str]:
    """Return the working interfaces that have hardware or a default route. `root` replaces `/` in tests."""
    folder = root / "sys/class/net"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    routed = _with_default_route(root)
    matters = (name for name in names if name in routed or (folder / name / "device").exists())
    return frozenset(name for name in matters if not name.startswith(CABLE) and state(name, root) in _WORKS)


def state(name: str, root: Path = Path("/")) -> str:
    """Return an interface's state: `up`, `down`, `unknown`, …; `gone` if there is no such interface."""
    return read_text(root / "sys/class/net" / name / "operstate").strip() or "gone"


def _with_default_route(root: Path) -> frozenset[str]:
    """Return the interfaces with a default route, from /proc/net/route (columns: interface, destination, …)."""
    lines = read_text(root / "proc/net/route").splitlines()[1:]
    rows = (line.split() for line in lines)
    return frozenset(row[0] for row in rows if len(row) > 1 and row[1] == "00000000")
