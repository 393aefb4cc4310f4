from __future__ import annotations

import pytest

from cockpit.runtime.containers.shim import sources, system


def test_mounts_inside_system_folders_are_found_again():
    points = ["/", "/proc", "/usr", "/opt/shared", "/etc/resolv.conf", "/data/usr", "/usr/local/big"]
    assert system.inner_mounts(points, without=[]) == ["/opt/shared", "/etc/resolv.conf", "/usr/local/big"]
    assert system.inner_mounts(points, without=["/opt"]) == ["/etc/resolv.conf", "/usr/local/big"]


def test_mount_points_are_read_with_their_odd_names():
    assert system._unescape(rb"/opt/a\040b\134c") == "/opt/a b\\c"


@pytest.mark.parametrize("home", ["/home/ann", "/root", "/data/homes/ann", "/tmp/ann", "/var/lib/postgres"])
def test_an_ordinary_home_may_be_shown(home):
    assert sources._may_be_shown(home)


@pytest.mark.parametrize(
    "home", ["/", "", "/home", "/usr/games", "/var/tmp", "relative", "/home/../etc", "/dev/shm", "/bin"]
)
def test_a_system_folder_is_not_accepted_as_a_home(home):
    assert not sources._may_be_shown(home)
