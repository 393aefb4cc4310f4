"""Interfaces of the machine that verbs use: the engine's process, the findings of doctor, the configuration files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cockpit.model.node import Node
    from cockpit.model.view import EngineStatus, HoldRow


def own_name() -> str:
    """Return the name of this process's user; the user id if it has no name."""
    import os
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


class EngineControl(Protocol):
    """Controls the process of the embedded engine. Methods block and raise `CockpitError`."""

    def status(self) -> EngineStatus:
        """Return its state, also when it does not run (`running` False); never starts it."""
        ...

    def start(self, *, system: bool) -> EngineStatus:
        """Start it unless it runs; `system`: the machine-wide engine."""
        ...

    def holds(self) -> Sequence[HoldRow]:
        """Return the held containers if it runs and answers; never starts it."""
        ...

    def stop(self, *, jobs: bool, holds: bool) -> None:
        """Stop it; with `jobs` and `holds` first end the running jobs and the held containers, which else stay."""
        ...

    def restart(self) -> EngineStatus:
        """Restart it without ending a job."""
        ...

    def unit(self) -> str:
        """Return the text of the machine-wide engine's systemd unit."""
        ...

    def install_unit(self) -> Path:
        """Write the systemd unit; nothing is started."""
        ...


class Finding(Protocol):
    """One finding of `doctor`."""

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
        """What the user can do; empty if nothing needs to be done."""
        ...


class Site(Protocol):
    """The configuration files of an engine. Methods raise `CockpitError`."""

    @property
    def cluster_file(self) -> Path: ...

    def machine(self) -> Node:
        """Return this machine as a node."""
        ...

    def cluster_text(self) -> str | None:
        """Return the content of cluster.toml; None if it does not exist."""
        ...

    def write_cluster(self, text: str) -> Path | None:
        """Write cluster.toml atomically; return the path of the copy of the previous file, if there was one."""
        ...
