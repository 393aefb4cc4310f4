"""Who is at the other end of a socket: the kernel's word, not the client's (TR-09)."""

from __future__ import annotations

import array
import os
import pwd
import socket
import struct
from typing import Protocol

from cockpit.engine.access import Actor
from cockpit.model.ids import UserName
from cockpit.model.job import Submitter

_SO_PEERGROUPS = 59
_CREDENTIALS = struct.Struct("3i")


class PeerSocket(Protocol):
    """The part of a socket that is asked."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


def peer_actor(peer: PeerSocket, *, system: bool) -> Actor | None:
    """The asker with uid, gid and groups as they were when it connected. None: this engine does not serve that user.

    An engine run by a user serves that user alone and makes them its administrator; a machine-wide one serves all, and
    its administrator is root.
    """
    _, uid, gid = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if not system and uid != os.geteuid():
        return None
    who = Submitter(*_name_and_home(uid, gid, _groups(peer)))
    return Actor(who, admin=uid == 0 or not system)


def _groups(peer: PeerSocket) -> tuple[int, ...]:
    found = array.array("I")
    found.frombytes(peer.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, 65_536 * found.itemsize))
    return tuple(found)


def _name_and_home(uid: int, gid: int, groups: tuple[int, ...]) -> tuple[UserName, int, int, tuple[int, ...], str]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return UserName(str(uid)), uid, gid, groups, "/"
    return UserName(entry.pw_name), uid, gid, groups, entry.pw_dir
