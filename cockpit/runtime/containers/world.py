"""The files by which an elastic job's workers know of each other, where their containers show them. Blocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.runtime.containers.shim.attempt import Attempt


PULSE = "pulse"
"""Of the attempt's folder: where its worker says that it is there, see `cockpit.elastic`."""


def show(attempt: Attempt, files: Mapping[str, bytes]) -> None:
    """Replace each in one step; before the container is made, so that they are shown. Everybody in there may read."""
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
