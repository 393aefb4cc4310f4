"""Reading what the kernel says about itself in /proc and /sys, and which device nodes are there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def read_text(path: Path) -> str:
    """A small file of /proc, /sys or /etc; empty when it is not there or may not be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def present_devices(root: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the device nodes `/dev/<name>` that exist below `root`, as absolute paths without `root`."""
    return tuple(f"/dev/{name}" for name in names if (root / "dev" / name).exists())
