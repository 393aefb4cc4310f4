"""Read small files of /proc and /sys, and find existing device nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def read_text(path: Path) -> str:
    """Read a small file of /proc, /sys or /etc; return an empty text if it is missing or not readable."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def present_devices(root: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return those device nodes `/dev/<name>` that exist below `root`, as absolute paths without `root`."""
    return tuple(f"/dev/{name}" for name in names if (root / "dev" / name).exists())
