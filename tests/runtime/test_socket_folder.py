"""The socket's folder, and which file system a folder is on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.errors import RuntimeMissing
from cockpit.runtime.filesystems import filesystem_kind, network_filesystem
from cockpit.runtime.socket_folder import trusted_socket_folder

MOUNTS = """\
23 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 23 0:40 / /home rw,relatime shared:5 - nfs4 server:/home rw,vers=4.2
41 40 0:41 / /home/alice/local\\040disk rw - xfs /dev/vdb rw
42 23 0:42 / /mnt/sftp rw - fuse.sshfs me@there:/ rw
43 23 0:43 / /tmp rw - tmpfs tmpfs rw
44 23 0:44 / /mnt/ntfs rw - fuseblk /dev/sdb1 rw
"""


def folder_of(path: Path) -> Path:
    return path / "engine.sock"


@pytest.mark.req("TR-09")
def test_a_made_folder_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        assert trusted_socket_folder(folder_of(tmp_path / "deep/run"), os.getuid(), create=True)
    finally:
        os.umask(old)
    assert (tmp_path / "deep/run").stat().st_mode & 0o777 == 0o700
    assert trusted_socket_folder(folder_of(tmp_path / "deep/run"), os.getuid(), create=True)


def test_an_absent_folder_is_no_engine(tmp_path: Path) -> None:
    assert not trusted_socket_folder(folder_of(tmp_path / "none"), os.getuid(), create=False)


@pytest.mark.req("TR-09")
def test_impostors_are_refused(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(real)
    file = tmp_path / "file"
    file.touch()
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o770)
    for path, fault in ((link, "symbolic link"), (file, "not a folder"), (shared, "open to other users")):
        with pytest.raises(RuntimeMissing, match=fault):
            trusted_socket_folder(folder_of(path), os.getuid(), create=True)
    with pytest.raises(RuntimeMissing, match="belongs to user"):
        trusted_socket_folder(folder_of(real), os.getuid() + 1, create=False)


def test_the_systems_folder_lets_everybody_in_but_nobody_write(tmp_path: Path) -> None:
    assert trusted_socket_folder(folder_of(tmp_path / "run"), os.getuid(), create=True, shared=True)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o755
    (tmp_path / "run").chmod(0o775)
    with pytest.raises(RuntimeMissing, match="mode 775"):
        trusted_socket_folder(folder_of(tmp_path / "run"), os.getuid(), create=True, shared=True)


def test_a_path_that_no_socket_can_have(tmp_path: Path) -> None:
    with pytest.raises(RuntimeMissing, match="XDG_RUNTIME_DIR"):
        trusted_socket_folder(folder_of(tmp_path / ("x" * 120)), os.getuid(), create=True)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeMissing, match="cannot be made"):
        trusted_socket_folder(folder_of(tmp_path / "file/below"), os.getuid(), create=True)


@pytest.mark.req("TR-03")
@pytest.mark.parametrize(
    ("path", "kind", "network"),
    [
        ("/var/lib", "ext4", None),
        ("/home/alice/.local/state", "nfs4", "nfs4"),
        ("/home/alice/local disk/state", "xfs", None),
        ("/homes", "ext4", None),
        ("/mnt/sftp/x", "fuse.sshfs", "fuse.sshfs"),
        ("/mnt/ntfs", "fuseblk", None),
    ],
)
def test_file_systems(path: str, kind: str, network: str | None) -> None:
    assert filesystem_kind(Path(path), MOUNTS) == kind
    assert network_filesystem(Path(path), MOUNTS) == network


def test_a_link_onto_a_network_file_system_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/home/bob")
    assert network_filesystem(tmp_path / "link", MOUNTS) == "nfs4"


def test_the_real_mount_table() -> None:
    assert filesystem_kind(Path("/proc/self")) == "proc"
