"""What verbs use of the machine: its time zone and files, and interfaces of the engine's process, of doctor's
findings and of the configuration files."""

from __future__ import annotations

import os
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cockpit.launch.batchscript import output_folders
from cockpit.model.image import ImageKind, image_of
from cockpit.model.spec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.node import Node
    from cockpit.model.view import EngineStatus, HoldRow


class EngineControl(Protocol):
    """Controls the process of the embedded engine. Methods block and raise `CockpitError`."""

    def status(self) -> EngineStatus:
        """Return its state, also when it does not run (`running` False); never starts it."""
        ...

    def start(self, *, system: bool) -> EngineStatus:
        """Start it unless it runs; `system`: the machine-wide engine."""
        ...

    def take_over(self) -> None:
        """Start it if it was stopped and its containers, of running or failed jobs, are still there."""
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


_SYSTEM_ZONE = Path("/etc/localtime")


def local_zone() -> tzinfo:
    """Return the local time zone: that of `TZ`, else the machine's, else the present offset from UTC."""
    from zoneinfo import ZoneInfo  # costs a command more than all of this module

    try:
        # A colon in front of the zone's name is allowed (tzset(3)).
        if name := os.environ.get("TZ", "").lstrip(":"):
            return ZoneInfo(name)
        with _SYSTEM_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        # Without the rules of the zone, times on the other side of a change to summer time are an hour off.
        zone = datetime.now().astimezone().tzinfo  # noqa: TID251 - made aware here
        assert zone is not None
        return zone


def missing_paths(spec: JobSpec) -> tuple[str, ...]:
    """Return a sentence for each file or folder that the job names and that does not exist, led by its field's path.

    It is a warning and no error: the path may appear before the job starts."""
    # Catalogue entries have no path here: the cluster knows where they are.
    named = [(field, each.path) for field, each in spec.references() if each.path]
    image = image_of(spec.image)
    if image.kind in {ImageKind.DIR, ImageKind.TAR}:
        named.append(("image", image.where))
    if spec.script is not None:
        named += [("script.work_dir", spec.script.work_dir), *output_folders(spec.script)]
    return tuple(
        f"{field}: {path} is not there now; the job fails if it is not when it starts"
        for field, path in named
        if not _is_there(path)
    )


def _is_there(path: str) -> bool:
    """Return whether the path exists. A path that the submitter may not read counts as missing."""
    try:
        return Path(path).exists()
    except OSError:
        return False
