from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.formats.mountinfo import filesystem_kind, is_network, network_filesystem

TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /home rw,relatime shared:9 master:2 - nfs4 server:/home rw
31 30 0:41 / /home/local rw - xfs /dev/vdb rw
32 22 0:42 / /mnt/my\\040share rw - cifs //server/share rw
33 22 0:43 / /srv rw - ext4 /dev/vdc rw
34 22 0:44 / /srv rw - fuse.sshfs user@host:/ rw
44 23 0:44 / /mnt/ntfs rw - fuseblk /dev/sdb1 rw
"""


@pytest.mark.req("TR-03")
@pytest.mark.parametrize(
    ("path", "kind", "network"),
    [
        ("/var/lib/x", "ext4", False),
        ("/home/anna", "nfs4", True),
        ("/homestead", "ext4", False),
        ("/home/local/anna", "xfs", False),
        ("/mnt/my share/x", "cifs", True),
        ("/srv/x", "fuse.sshfs", True),
        ("/mnt/ntfs", "fuseblk", False),
    ],
)
def test_the_deepest_and_latest_mount_counts(path: str, kind: str, network: bool) -> None:
    assert filesystem_kind(Path(path), TABLE) == kind
    assert network_filesystem(Path(path), TABLE) == (kind if network else None)


def test_a_link_to_a_network_file_system_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/home/bob")
    assert network_filesystem(tmp_path / "link", TABLE) == "nfs4"


def test_this_machines_mount_table_is_read() -> None:
    assert filesystem_kind(Path("/proc/self"), Path("/proc/self/mountinfo").read_text()) == "proc"
    assert network_filesystem(Path("/proc/self")) is None
    assert filesystem_kind(Path("/x"), "") == ""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "lustre", "fuse.sshfs", "fuse.glusterfs", "9p", "ceph"])
def test_network_kinds(kind: str) -> None:
    assert is_network(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "fuse.fuse-overlayfs", ""])
def test_local_kinds(kind: str) -> None:
    assert not is_network(kind)
