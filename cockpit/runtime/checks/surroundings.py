"""What a check may look at. Everything comes in from here, so that a test can build any machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from cockpit.runtime.findings import Finding
from cockpit.runtime.probe_command import Probe


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    env: Mapping[str, str]
    uid: int
    socket: Path
    """Of the engine that this user would talk to."""
    state_folder: Path
    system: bool = False
    """That engine is the machine's, and its places are root's."""
    slurm: str = ""
    """What configures a Slurm cluster on this machine; empty: nothing does."""
    probe: Probe
    root: Path = Path("/")
    """Stands for `/` where the kernel's files and device nodes are read."""


Check = Callable[[Surroundings], list[Finding]]
