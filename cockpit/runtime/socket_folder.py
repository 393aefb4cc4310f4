"""Check the folder of the engine's socket before it is used: in /tmp, another user may have made it first."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from cockpit.errors import RuntimeMissing

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_SOCKET_PATH = 107
"""Longest path in bytes: sun_path without its final zero, unix(7)."""


def trusted_socket_folder(socket: str | Path, owner: int, *, create: bool, shared: bool = False) -> bool:
    """Return whether `socket`'s folder exists, and check that only `owner` can write to it; with `create`, make it.

    The folder of a user's engine is private (0700); all users may enter that of the system's engine (`shared`, 0755).
    Raises `RuntimeMissing` if it is a symbolic link, belongs to another user, or is writable for others: a fake engine
    could listen there.
    """
    folder, mode = os.path.dirname(socket), 0o755 if shared else 0o700
    if len(os.fsencode(socket)) > LONGEST_SOCKET_PATH:
        raise RuntimeMissing(f"{socket} is too long for a socket. Set XDG_RUNTIME_DIR to a shorter path.")
    if create:
        _make(folder, mode)
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RuntimeMissing(f"{folder} cannot be read: {error.strerror}.") from None
    if fault := _fault(status, owner, mode):
        raise RuntimeMissing(f"{folder} {fault}, so it is not safe for the engine's socket. Remove it and try again.")
    return True


def _make(folder: str, mode: int) -> None:
    try:
        os.makedirs(folder, mode)
        os.chmod(folder, mode)  # whatever the umask left of it
    # It may belong to another user: the caller checks it.
    except FileExistsError:
        return
    except OSError as error:
        raise RuntimeMissing(
            f"{folder} cannot be made: {error.strerror}. Set XDG_RUNTIME_DIR to a folder of yours."
        ) from None


def _fault(status: os.stat_result, owner: int, mode: int) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not stat.S_ISDIR(status.st_mode):
        return "is not a folder"
    if status.st_uid != owner:
        return f"belongs to user {status.st_uid}"
    # Fewer rights than wanted are fine.
    if stat.S_IMODE(status.st_mode) & 0o777 & ~mode:
        return f"is open to other users (mode {stat.S_IMODE(status.st_mode):o}, wanted {mode:o})"
    return ""
