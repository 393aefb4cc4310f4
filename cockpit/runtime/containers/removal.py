"""Deletes what a container leaves behind. Blocks; called from a thread.

The files were a job's to make: any depth, any name, folders without permissions, links to anywhere. coreutils' `rm`
walks such trees by descriptors, follows no link and needs no stack.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.runtime import faults
from cockpit.runtime.containers import freezing
from cockpit.runtime.containers.shim import limits

if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import Attempt

_GROUP_TRIES = 100
_GROUP_WAIT_SECONDS = 0.01


def delete(attempt: Attempt, cgroup: str) -> None:
    """Remove the groups and the folder. Its holder must be gone. What remains is removed at the next engine start."""
    remove_groups(cgroup)
    doomed = Path(attempt.state, "trash", attempt.name)
    doomed.parent.mkdir(mode=0o700, exist_ok=True)
    empty_trash(Path(attempt.state))
    try:
        Path(attempt.path).rename(doomed)
    except FileNotFoundError:
        return
    faults.point("trashed", attempt.name)
    remove_tree(doomed)


def empty_trash(state: Path) -> None:
    """Finish what an earlier engine began to delete."""
    for left in (state / "trash").glob("*"):
        remove_tree(left)


def remove_groups(cgroup: str) -> None:
    """A group is busy until the last of its dead processes is reaped."""
    for _ in range(_GROUP_TRIES):
        freezing.remove_group(cgroup)
        if limits.remove(cgroup):
            return
        time.sleep(_GROUP_WAIT_SECONDS)


def remove_tree(folder: Path) -> None:
    """As far as it can be; that it is not there is fine."""
    if not _rm(folder):
        subprocess.run(["chmod", "-R", "u+rwx", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)
        _rm(folder)


def _rm(folder: Path) -> bool:
    command = ["rm", "-rf", "--one-file-system", "--", str(folder)]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0
