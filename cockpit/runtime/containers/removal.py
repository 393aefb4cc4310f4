"""Delete the folder and the cgroups of a container. All functions block, and are called from threads.

A job may have made folders of any depth, with any names, without permissions, and links to any place. coreutils' `rm`
handles such trees: it walks them by descriptors, follows no links, and does not recurse.
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
"""Interval between two tries to remove a group, and with their number a limit of one second."""


def delete(attempt: Attempt, cgroup: str) -> None:
    """Remove the cgroups and the folder of an attempt whose holder is dead.

    The folder is first renamed into the trash, so that the next engine start removes it if this one is interrupted.
    """
    # First: as long as the folder exists, an interrupted removal is repeated, and its name leads to the groups.
    remove_groups(cgroup)
    doomed = Path(attempt.state, "trash", attempt.name)
    doomed.parent.mkdir(mode=0o700, exist_ok=True)
    # A leftover of the same name would make the rename fail: it replaces no folder that has content (rename(2)).
    empty_trash(Path(attempt.state))
    try:
        Path(attempt.path).rename(doomed)
    except FileNotFoundError:
        return
    faults.point("trashed", attempt.name)
    remove_tree(doomed)


def empty_trash(state: Path) -> None:
    """Delete what an earlier engine moved into the trash."""
    for left in (state / "trash").glob("*"):
        remove_tree(left)


def remove_groups(cgroup: str) -> None:
    """Remove the cgroups, in several tries: a group is busy until the last of its dead processes is reaped."""
    for _ in range(_GROUP_TRIES):
        freezing.remove_group(cgroup)
        if limits.remove(cgroup):
            return
        time.sleep(_GROUP_WAIT_SECONDS)


def remove_tree(folder: Path) -> None:
    """Remove a folder as far as possible, if it exists; make its folders writable if necessary."""
    if not _rm(folder):
        # an ordinary user's engine cannot empty a folder that the job has made unwritable
        subprocess.run(["chmod", "-R", "u+rwx", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)
        _rm(folder)


def _rm(folder: Path) -> bool:
    # other file systems are not entered: what is mounted there is not the container's own
    command = ["rm", "-rf", "--one-file-system", "--", str(folder)]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0
