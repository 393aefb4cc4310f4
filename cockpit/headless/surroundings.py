"""What commands need of the machine that they run on: the engine as a process, what doctor finds, a cluster's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cockpit.model.node import Node
    from cockpit.model.view import EngineStatus, HoldRow


def own_name() -> str:
    """The name of this process's user; its number where the machine knows none."""
    import os
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


class EngineControl(Protocol):
    """The embedded engine as a process. Methods block and raise `CockpitError`."""

    def status(self) -> EngineStatus:
        """Also when it does not run (`running` False); never starts it."""
        ...

    def start(self, *, system: bool) -> EngineStatus:
        """Start it unless it runs; `system`: one for the whole machine."""
        ...

    def holds(self) -> Sequence[HoldRow]:
        """The held containers, where it runs and answers; never starts it."""
        ...

    def stop(self, *, jobs: bool, holds: bool) -> None:
        """Stop it; `jobs`, `holds`: end the running jobs, the held containers first, else they stay."""
        ...

    def restart(self) -> EngineStatus:
        """Stop and start it without ending a job."""
        ...

    def unit(self) -> str:
        """The machine-wide engine's unit for systemd."""
        ...

    def install_unit(self) -> Path:
        """Write it for systemd; nothing is started."""
        ...


class Finding(Protocol):
    """One thing that `doctor` looked at."""

    @property
    def level(self) -> str:
        """`ok`, `note` or `missing`."""
        ...

    @property
    def subject(self) -> str: ...

    @property
    def found(self) -> str: ...

    @property
    def advice(self) -> str:
        """What to do; empty when nothing."""
        ...


class Site(Protocol):
    """Where a cluster's cluster.toml is. Methods raise `CockpitError`."""

    @property
    def cluster_file(self) -> Path: ...

    def machine(self) -> Node:
        """This machine as a node."""
        ...

    def cluster_text(self) -> str | None:
        """cluster.toml as it stands; None where there is none."""
        ...

    def write_cluster(self, text: str) -> Path | None:
        """Write it whole or not at all; gives where the one before is kept, if there was one."""
        ...
