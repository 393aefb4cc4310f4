"""The file by which an elastic job's workers know of each other, where their containers show it. Blocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.launch.world import FILE

if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import Attempt


def show(attempt: Attempt, content: bytes) -> None:
    """Replace it in one step; before the container is made, so that it is shown. Everybody in there may read it."""
    folder = Path(attempt.file("world"))
    Path(attempt.path).mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    draft = folder / f".{FILE}.new"
    draft.write_bytes(content)
    draft.chmod(0o644)
    draft.replace(folder / FILE)
