"""What cockpit has mounted on this machine, as far as everybody sees it."""

from __future__ import annotations

from pathlib import Path


def mounts() -> list[str]:
    """Lines of `mountinfo` that name a folder of cockpit's: other programs mount what they like meanwhile, and podman
    in its own store for a test that runs beside this one."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if "cockpit-" in line and "cockpit-store-" not in line]
