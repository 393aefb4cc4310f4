"""Write the files that tell an elastic job's workers about each other, and that their containers mount. Blocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.runtime.containers.shim.attempt import Attempt


PULSE = "pulse"
"""The subfolder of the attempt's folder in which its worker touches its heartbeat file, see `cockpit.elastic`."""


def show(attempt: Attempt, files: Mapping[str, bytes]) -> None:
    """Write the files, each in one step, readable for every process of the container.

    The first call must come before the container is made, since it creates the folders that are mounted.
    """
    Path(attempt.path).mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = _made(Path(attempt.file("world")), 0o755)
    _made(Path(attempt.file(PULSE)), 0o777)
    for name, content in files.items():
        draft = folder / f".{name}.new"
        draft.write_bytes(content)
        draft.chmod(0o644)
        draft.replace(folder / name)


def _made(folder: Path, mode: int) -> Path:
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    return folder
