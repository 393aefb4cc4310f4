"""The copy of a folder: content, links, modes and owners, what it leaves out, and what it continues."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.shim import treecopy
from cockpit.runtime.containers.shim.metering import DiskFull, FetchError, Meter
from tests.runtime.containers.conftest import IS_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.runtime.containers.shim.metering import Order

pytestmark = pytest.mark.req("JT-50")
MODES = {"": 0o750, "a": 0o644, "run": 0o4755, "deep": 0o500, "deep/b": 0o600, "deep/empty": 0o1777}
SIZE = len("a cat") + len("#!") + len("another")


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "source"
    (folder / "deep" / "empty").mkdir(parents=True)
    for name, text in (("a", "a cat"), ("run", "#!"), ("deep/b", "another")):
        (folder / name).write_text(text)
        os.utime(folder / name, ns=(1, 1_234_567_890_123_456_789))
    os.symlink("a", folder / "link")
    os.symlink("/etc/shadow", folder / "deep" / "out")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
    for name, mode in MODES.items():
        (folder / name).chmod(mode)
    yield folder
    (folder / "deep").chmod(0o700)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "target"
    folder.mkdir()
    yield folder
    if (folder / "deep").is_dir():
        (folder / "deep").chmod(0o700)


def order(source: Path, target: Path | str = "", key: str = "") -> Order:
    return {
        "do": "copy",
        "kind": "tree",
        "what": "datasets[0]",
        "source": str(source),
        "user": "ann",
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "groups": os.getgroups(),
        "rootless": not IS_ROOT,
        "podman": False,
        "target": str(target),
        "key": key,
        "full_percent": 100,
        "most_bytes": 0,
        "known": {},
    }


def measured(source: Path) -> tuple[str, int]:
    answer = treecopy.measure(order(source), Meter("", 100))
    return str(answer["key"]), int(str(answer["size"]))


def copied(source: Path, target: Path) -> Meter:
    meter = Meter("", 100)
    assert treecopy.copy(order(source, target, measured(source)[0]), meter) == SIZE
    return meter


def test_a_copy_has_every_file_folder_and_link(source: Path, target: Path):
    assert measured(source)[1] == SIZE
    assert copied(source, target).done == SIZE
    found = sorted(str(path.relative_to(target)) for path in target.rglob("*"))
    assert found == ["a", "deep", "deep/b", "deep/empty", "deep/out", "link", "run"]
    assert [(target / name).read_text() for name in ("a", "run", "deep/b")] == ["a cat", "#!", "another"]
    assert (os.readlink(target / "link"), os.readlink(target / "deep/out")) == ("a", "/etc/shadow")
    assert (target / "a").stat().st_mtime_ns == 1_234_567_890_123_456_789


def test_a_copy_has_the_modes_of_its_original_but_never_its_users_rights(source: Path, target: Path):
    """A copy that ran with its owner's rights would do so at another place than its owner chose."""
    copied(source, target)
    modes = {name: (target / name).stat().st_mode & 0o7777 for name in MODES}
    assert modes == {**MODES, "run": 0o755}


@pytest.mark.skipif(not IS_ROOT, reason="only root copies for other users")
def test_a_copy_has_the_owners_of_its_original(source: Path, target: Path):
    owners = {"": (1, 2), "a": (3, 4), "deep": (5, 6), "link": (7, 8)}
    for name, (uid, gid) in owners.items():
        os.chown(source / name, uid, gid, follow_symlinks=False)
    copied(source, target)
    assert {name: ((target / name).lstat().st_uid, (target / name).lstat().st_gid) for name in owners} == owners


def test_a_continued_copy_keeps_complete_files_and_replaces_all_others(source: Path, target: Path):
    copied(source, target)
    kept = (target / "a").stat().st_ino
    (target / "run").write_text("xx")  # of the same size, but interrupted before its time was set
    (target / "deep").chmod(0o700)
    (target / "deep" / "b").write_text("anoth")
    (target / "link").unlink()
    (target / "link").symlink_to("elsewhere")
    assert copied(source, target).done == SIZE
    assert (target / "a").stat().st_ino == kept
    assert [(target / name).read_text() for name in ("run", "deep/b")] == ["#!", "another"]
    assert os.readlink(target / "link") == "a"
    assert (target / "deep").stat().st_mode & 0o7777 == 0o500


def test_a_link_in_place_of_a_file_is_no_copy_of_it(source: Path, target: Path):
    (target / "a").symlink_to(source / "a")
    copied(source, target)
    assert not (target / "a").is_symlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a").write_text("a dog"),
        lambda folder: (folder / "a").chmod(0o640),
        lambda folder: (folder / "deep").chmod(0o700),
        lambda folder: (folder / "deep/empty").rmdir(),
        lambda folder: (folder / "a").rename(folder / "c"),
    ],
    ids=["content", "mode", "folder's mode", "folder removed", "renamed"],
)
def test_a_changed_folder_has_another_key_and_is_not_copied(source: Path, target: Path, change):
    key = measured(source)[0]
    (source / "deep").chmod(0o700) if not IS_ROOT else None
    change(source)
    assert measured(source)[0] != key
    with pytest.raises(FetchError, match="changed while it was copied; submit the job again"):
        treecopy.copy(order(source, target, key), Meter("", 100))


def test_the_time_of_a_folder_and_what_is_not_copied_do_not_change_the_key(source: Path):
    key = measured(source)[0]
    (source / "pipe").unlink()
    os.utime(source, ns=(5, 5))
    assert measured(source)[0] == key


def test_an_equal_folder_elsewhere_has_another_key(source: Path, tmp_path: Path):
    key = measured(source)[0]
    (tmp_path / "way").symlink_to(source)
    assert measured(tmp_path / "way")[0] == key, "a link leads to the same folder"
    source.rename(tmp_path / "other")
    assert measured(tmp_path / "other")[0] != key
    (tmp_path / "other").rename(source)


def test_a_folder_that_is_missing_is_named(tmp_path: Path):
    with pytest.raises(FetchError, match=f"{tmp_path}/none: no such file or directory for user ann"):
        measured(tmp_path / "none")


def test_a_copy_ends_before_the_disk_is_full(source: Path, target: Path):
    with pytest.raises(DiskFull):
        treecopy.copy(order(source, target, measured(source)[0]), Meter(str(target), -1))


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_copies_in_the_kernel_is_read_and_written(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "copy_file_range", refuse)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, text: write(fd, text[:2]))  # a disk may take less than the whole
    assert copied(source, target).done == SIZE
    assert (target / "deep/b").read_text() == "another"


def test_an_error_of_the_disk_is_reported(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "copy_file_range", fail)
    with pytest.raises(OSError, match="Input/output error"):
        copied(source, target)
