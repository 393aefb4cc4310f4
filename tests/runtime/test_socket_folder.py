"""The socket's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.errors import RuntimeMissing
from cockpit.runtime.socket_folder import trusted_socket_folder


def folder_of(path: Path) -> Path:
    return path / "engine.sock"


@pytest.mark.req("TR-09")
def test_a_created_folder_is_private_whatever_the_umask(tmp_path: Path) -> None:
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
def test_untrusted_socket_folders_are_refused(tmp_path: Path) -> None:
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


def test_the_system_folder_is_readable_by_all_and_writable_by_none(tmp_path: Path) -> None:
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
