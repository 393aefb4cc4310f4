"""The folders of this user's TensorBoards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.config.places import paths
from cockpit.runtime.tensorboard import Board

if TYPE_CHECKING:
    from collections.abc import Mapping


def board_of(name: str, env: Mapping[str, str]) -> Board:
    """The board of that name, running or not."""
    return Board(Path(paths(os.geteuid(), env).state) / "tensorboard" / name)
