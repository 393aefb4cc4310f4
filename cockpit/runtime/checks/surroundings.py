"""The input of all checks. They read nothing else of the machine, so that a test can simulate any machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from cockpit.runtime.findings import Finding
from cockpit.runtime.probe_command import Probe


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a check knows about the user and the machine."""

    env: Mapping[str, str]
    """The user's environment."""
    uid: int
    socket: Path
    """The socket of the engine that this user would connect to."""
    state_folder: Path
    """The state folder of that engine."""
    system: bool = False
    """Whether that engine is the machine's, whose folders belong to root."""
    slurm: str = ""
    """The file or variable that configures a Slurm cluster on this machine; empty: there is none."""
    probe: Probe
    """Runs a program for its output."""
    root: Path = Path("/")
    """The folder below which the kernel's files and device nodes are read, instead of `/`."""


Check = Callable[[Surroundings], list[Finding]]
"""A check: it returns its findings, which may be none."""
