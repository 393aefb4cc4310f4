"""Bind the engine's socket, replacing one that an earlier engine has left."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from cockpit.errors import RuntimeMissing
from cockpit.runtime.socket_folder import trusted_socket_folder

if TYPE_CHECKING:
    from pathlib import Path

BACKLOG = 128
LOOK_SECONDS = 1.0


def listen(path: Path, *, system: bool) -> socket.socket:
    """Return a listening socket: for this user only (mode 0600), or for all users of a machine-wide engine.

    The caller holds the state folder's lock, so a socket file that is there already belongs to no living engine of this
    state folder. Raises `RuntimeMissing` when it cannot.
    """
    trusted_socket_folder(path, os.geteuid(), create=True, shared=system)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = path.with_name(f".{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        listener.bind(str(temporary))
        temporary.chmod(0o666 if system else 0o600)
        listener.listen(BACKLOG)
        temporary.rename(path)
    except OSError as error:
        listener.close()
        message = f"The engine cannot listen on {path}: {error.strerror}. Set XDG_RUNTIME_DIR to a folder of yours."
        raise RuntimeMissing(message) from error
    listener.setblocking(False)
    return listener


def is_listened_on(address: str) -> bool:
    """Return whether an engine accepts connections on this socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(LOOK_SECONDS)
        try:
            caller.connect(address)
        except OSError:
            return False
        return True
