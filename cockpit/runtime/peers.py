"""Who is at the other end of a socket: the kernel's word, not the client's (TR-09)."""

from __future__ import annotations

import array
import errno
import os
import pwd
import socket
import struct
from typing import Protocol

from cockpit.engine.access import Actor
from cockpit.model.ids import UserName
from cockpit.model.job import Submitter

_SO_PEERGROUPS = 59
_LONGEST_OPTION = 1024
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
    name, home = _name_and_home(uid)
    who = Submitter(name, uid, gid, _groups(peer, name, gid), home)
    return Actor(who, admin=uid == 0 or not system)


def _groups(peer: PeerSocket, name: str, gid: int) -> tuple[int, ...]:
    """As the kernel knows them; of somebody with more than it hands out at once, as the group database does."""
    found = array.array("I")
    try:
        found.frombytes(peer.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _LONGEST_OPTION))
    except OSError as error:
        if error.errno != errno.ERANGE:
            raise
        return tuple(os.getgrouplist(name, gid))
    return tuple(found)


def _name_and_home(uid: int) -> tuple[UserName, str]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return UserName(str(uid)), "/"
    return UserName(entry.pw_name), entry.pw_dir
