"""Find the user at the other end of a socket. The kernel names the user, so a client cannot lie (TR-09)."""

from __future__ import annotations

import array
import errno
import grp
import os
import pwd
import socket
import struct
from typing import TYPE_CHECKING, Protocol

import msgspec

from cockpit.engine.access import Actor
from cockpit.engine.sharing import projects_of
from cockpit.model.cluster import Cluster, Project
from cockpit.model.ids import UserName
from cockpit.model.job import Submitter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SO_PEERGROUPS = 59
"""The socket option of the peer's groups (unix(7)), which Python does not name."""
_LONGEST_OPTION = 1024
"""Size of the buffer in bytes: 256 groups."""
_CREDENTIALS = struct.Struct("3i")


class PeerSocket(Protocol):
    """The one method that is needed of a socket."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


class Site(msgspec.Struct, frozen=True):
    """The settings of an engine from which a user's rights and projects follow."""

    system: bool
    """Whether the engine serves all users; if not, it serves the user who runs it, as an administrator."""
    cluster: Cluster
    admin_group: str = ""
    """The Unix group whose members are administrators; empty: only root is."""
    catalogued: tuple[Project, ...] = ()
    """The projects that the catalogue defines, in addition to those of the cluster's rules."""

    @property
    def projects(self) -> tuple[Project, ...]:
        return (*self.cluster.projects, *self.catalogued)


def peer_actor(peer: PeerSocket, site: Site) -> Actor | None:
    """Return the user of a socket's peer, with the groups at the time of connecting; None if the engine does not serve
    that user."""
    # As the kernel noted it when the peer connected (unix(7)): pid, uid and gid.
    _, uid, gid = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if not site.system and uid != os.geteuid():
        return None
    name, home = _name_and_home(uid)
    who = Submitter(name, uid, gid, _groups(peer, name, gid), home)
    cluster = site.cluster
    named = {*(group for each in site.projects for group in each.groups), *filter(None, [site.admin_group])}
    groups = set(_in_groups(who, named))
    # The only user of an engine that is not the machine's may do everything with it.
    admin = uid == 0 or not site.system or site.admin_group in groups
    return Actor(who, admin, projects_of(site.projects, name, groups), cluster.sharing)


def _in_groups(who: Submitter, named: Iterable[str]) -> Iterator[str]:
    """Return those of the named groups that exist and that the user is in."""
    for group in named:
        try:
            gid = grp.getgrnam(group).gr_gid
        except KeyError:
            continue
        if gid in {who.gid, *who.groups}:
            yield group


def _groups(peer: PeerSocket, name: str, gid: int) -> tuple[int, ...]:
    """Return the peer's groups from the kernel, or from the group database if there are more than the buffer holds."""
    gids = array.array("I")
    try:
        gids.frombytes(peer.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _LONGEST_OPTION))
    except OSError as error:
        # ERANGE: the peer has more groups than the buffer can hold.
        if error.errno != errno.ERANGE:
            raise
        return tuple(os.getgrouplist(name, gid))
    return tuple(gids)


def _name_and_home(uid: int) -> tuple[UserName, str]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return UserName(str(uid)), "/"
    return UserName(entry.pw_name), entry.pw_dir
