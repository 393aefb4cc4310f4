"""Who is at the other end of a socket, and what the administrator says of them."""

from __future__ import annotations

import array
import grp
import os
import socket
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cockpit.engine.access import Actor
from cockpit.model.cluster import Cluster, Project
from cockpit.runtime.peers import Site, peer_actor
from tests.runtime.served import RawClient, ServedEngine

UNKNOWN_UID = 54_321
"""Of no user of this machine."""
GROUP, OTHER = (each.gr_name for each in grp.getgrall()[1:3])
SYSTEM = Site(
    system=True,
    cluster=Cluster(projects=(Project(name="vision", groups=(GROUP,)), Project(name="nlp", users=(str(UNKNOWN_UID),)))),
)


class Peer:
    """A socket whose other end is what the kernel would say."""

    def __init__(self, uid: int, *groups: str) -> None:
        self._uid = uid
        self._gids = array.array("I", [grp.getgrnam(each).gr_gid for each in groups])

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
        assert level == socket.SOL_SOCKET
        if optname == socket.SO_PEERCRED:
            return struct.pack("3i", 1, self._uid, UNKNOWN_UID)
        return self._gids.tobytes()


def known(site: Site, uid: int, *groups: str) -> Actor:
    actor = peer_actor(Peer(uid, *groups), site)
    assert actor is not None
    return actor


@pytest.mark.req("JT-60", "TR-09")
def test_projects_are_those_of_the_name_and_of_the_kernels_groups() -> None:
    assert known(SYSTEM, UNKNOWN_UID, GROUP).projects == {"vision", "nlp"}
    assert known(SYSTEM, UNKNOWN_UID + 1, OTHER).projects == frozenset()


@pytest.mark.req("JT-60", "TR-14")
def test_administrators_are_root_and_one_group_if_it_is_named() -> None:
    named = Site(system=True, cluster=Cluster(), admin_group=OTHER)
    assert known(SYSTEM, 0).admin
    assert known(named, UNKNOWN_UID, OTHER).admin
    assert not known(named, UNKNOWN_UID, GROUP).admin
    assert not known(SYSTEM, UNKNOWN_UID, OTHER).admin
    assert not known(Site(system=True, cluster=Cluster(), admin_group="no-such-group"), UNKNOWN_UID).admin


@pytest.mark.req("TR-14")
def test_a_users_engine_serves_that_user_alone() -> None:
    own = Site(system=False, cluster=Cluster())
    assert peer_actor(Peer(UNKNOWN_UID), own) is None


@pytest.mark.req("JT-02")
def test_where_sharing_is_off_nothing_is_shared() -> None:
    assert not known(Site(system=True, cluster=Cluster(sharing=False)), UNKNOWN_UID).shared


def open_to_all(folder: str) -> Path:
    path = Path(folder)
    path.chmod(0o755)
    return path


@pytest.mark.req("TR-02")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root connects as another user")
def test_a_user_who_is_added_to_a_project_is_in_it_on_a_connection_that_is_open_already() -> None:
    with (
        TemporaryDirectory(prefix="cockpit-rights-") as folder,  # pytest's own folders are closed to other users
        ServedEngine(open_to_all(folder), cluster=Cluster()) as engine,
        RawClient(engine.path, user="daemon") as member,
        engine.client() as root,
    ):

        def is_in_it() -> bool:
            """Members, and no other users, see a project that has no other users."""
            return b"vision" in bytes(member.ask("catalogue").ok)

        def change(before: dict[str, object] | None, after: dict[str, object] | None) -> None:
            assert root.ask("change_catalogue", {"changes": [{"before": before, "after": after}]}).no is None

        vision = {"kind": "project", "name": "vision", "users": ["daemon"]}
        assert not is_in_it()
        change(None, vision)
        assert is_in_it()
        change(vision, {**vision, "users": []})
        assert not is_in_it()
