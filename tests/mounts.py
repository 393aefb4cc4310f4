"""What cockpit has mounted on this machine, as far as everybody sees it."""

from __future__ import annotations

from pathlib import Path


def mounts() -> list[str]:
    """Lines of `mountinfo` that name a folder of cockpit's: other programs mount what they like meanwhile."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "cockpit-" in line]
