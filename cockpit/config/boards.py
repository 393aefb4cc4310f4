"""TensorBoards of this user's jobs: the folder of each, and the folders of metrics that it shows."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.config.places import paths
from cockpit.runtime.tensorboard import Board

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.model.jobdetail import JobDetail


def board_of(name: str, env: Mapping[str, str]) -> Board:
    """Return the board of this name, running or not."""
    return Board(Path(paths(os.geteuid(), env).state) / "tensorboard" / name)


def runs_of(detail: JobDetail) -> dict[str, str]:
    """Return the folders by the name of the run: for a task of a batch those of all its tasks (`tune-0`, `tune-1` …),
    for any other job its own."""
    if detail.tasks:
        return {posixpath.basename(row.output): row.output for row in detail.tasks}
    return {detail.job.spec.name: detail.job.spec.output}


def board_name(detail: JobDetail) -> str:
    """Return the folder name of the job's board, unique among the user's boards; all tasks of a batch share one."""
    # A hash, since names and paths may have characters that no folder name can have.
    from hashlib import sha256

    whole, array = detail.batch or detail.job.spec, detail.job.array
    job = array.array if detail.batch is not None and array is not None else detail.job.id
    return f"{job}-{sha256(f'{whole.output}/{whole.name}'.encode()).hexdigest()[:12]}"
