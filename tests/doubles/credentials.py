"""Connections that the kernel knows to be another user's: made by a process that has become that user for good."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BECOME_AND_CONNECT = """
import os, socket, sys
channel, path, uid, gid, *groups = sys.argv[1:]
channel = socket.socket(fileno=int(channel))
os.setgroups([int(each) for each in groups])
os.setresgid(int(gid), int(gid), int(gid))
os.setresuid(int(uid), int(uid), int(uid))
here = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
here.connect(path)
socket.send_fds(channel, [b"F"], [here.fileno()])
"""


def connected_as(user: str, path: Path) -> socket.socket:
    """A connection to a Unix socket, with the user's uid, gid and groups. For root."""
    entry = pwd.getpwnam(user)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        who = [entry.pw_uid, entry.pw_gid, *os.getgrouplist(user, entry.pw_gid)]
        words = [sys.executable, "-IS", "-c", _BECOME_AND_CONNECT, theirs.fileno(), path, *who]
        subprocess.run(list(map(str, words)), pass_fds=[theirs.fileno()], check=True, timeout=30)
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=fds[0])
