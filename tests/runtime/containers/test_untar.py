"""The unpacking of an image: modes, links, what is left out, and its bounds."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.shim import untar
from cockpit.runtime.containers.shim.metering import DiskFull, FetchError, Meter
from tests.runtime.containers.test_treecopy import order

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.runtime.containers.shim.metering import Order

pytestmark = pytest.mark.req("JT-40")


def member(name: str, kind: bytes = tarfile.REGTYPE, *, link: str = "", content: bytes = b"", mode: int = 0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode, info.mtime = kind, link, len(content), mode, 1_000_000_000
    return info, content


ROOT = member("./usr", tarfile.DIRTYPE, mode=0o750)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


@pytest.fixture
def packed(tmp_path: Path, target: Path) -> Callable[..., Order]:
    """Pack members, and return the order to unpack them."""

    def made(*members: tuple, mode: str = "w") -> Order:
        file = tmp_path / "root.tar"
        with tarfile.open(file, mode) as archive:
            for info, content in members:
                archive.addfile(info, io.BytesIO(content))
        key = hashlib.sha256(file.read_bytes()).hexdigest()
        return {**order(file, target, key), "most_bytes": 1 << 20}

    return made


def unpacked(wanted: Order) -> int:
    return untar.copy(wanted, Meter("", 100))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_every_packing_is_unpacked(packed, target, mode):
    wanted = packed(ROOT, member("usr/a", content=b"a cat"), mode=mode)
    meter = Meter("", 100)
    assert untar.copy(wanted, meter) == len(b"a cat")
    assert (target / "usr" / "a").read_text() == "a cat"
    assert meter.done == Path(wanted["source"]).stat().st_size, "progress is counted in bytes of the packed file"


def test_files_have_their_modes_and_times_but_not_their_users_rights(packed, target):
    unpacked(
        packed(
            ROOT,
            member("usr/run", content=b"#!", mode=0o6755),
            member("usr/secret", mode=0o040),
            member("tmp", tarfile.DIRTYPE, mode=0o1777),
            member("usr/locked", tarfile.DIRTYPE, mode=0o2055),
            member("opt/deep/file"),
        )
    )
    modes = {
        str(path.relative_to(target)): path.stat().st_mode & 0o7777
        for path in target.rglob("*")
        if not path.is_symlink()
    }
    assert modes == {
        "usr": 0o750,
        "usr/run": 0o755,
        "usr/secret": 0o640,
        "tmp": 0o1777,
        "usr/locked": 0o755,
        "opt": 0o755,
        "opt/deep": 0o755,
        "opt/deep/file": 0o644,
    }
    assert (target / "usr" / "run").stat().st_mtime == 1_000_000_000


def test_links_are_made_and_devices_are_left_out(packed, target):
    unpacked(
        packed(
            ROOT,
            member("usr/a", content=b"a cat"),
            member("usr/hard", tarfile.LNKTYPE, link="./usr/a"),
            member("link", tarfile.SYMTYPE, link="/etc/shadow"),
            member("usr/to-link", tarfile.LNKTYPE, link="link"),
            member("dev/sda", tarfile.BLKTYPE),
            member("pipe", tarfile.FIFOTYPE),
            member("."),
        )
    )
    assert (target / "usr/a").stat().st_ino == (target / "usr/hard").stat().st_ino
    assert os.readlink(target / "link") == "/etc/shadow"
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*")) == [
        *("dev", "link", "usr", "usr/a", "usr/hard")
    ]


def test_a_later_member_replaces_an_earlier_one(packed, target):
    unpacked(
        packed(
            ROOT,
            member("usr/a", content=b"old"),
            member("usr/a", content=b"new"),
            member("usr/b", content=b"old"),
            member("usr/b", tarfile.SYMTYPE, link="a"),
            member("usr/c", tarfile.SYMTYPE, link="/outside"),
            member("usr/c", content=b"inside"),
            member("usr/d", content=b"old"),
            member("usr/d", tarfile.LNKTYPE, link="usr/a"),
            ROOT,
        )
    )
    assert [(target / "usr" / name).read_text() for name in "abcd"] == ["new", "new", "inside", "new"]
    assert not (target / "usr/c").is_symlink()


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ([member("usr/../../x")], "leads out of it"),
        ([member("/".join(["a"] * 200 + ["x"]))], "is deeper than 200 folders"),
        ([member("usr/a"), member("usr/a", tarfile.DIRTYPE)], "'usr/a' is a folder and something else"),
        ([member("usr/a/b"), member("usr/a")], "'usr/a' is a folder and something else"),
        ([member("usr/a"), member("usr/a/b")], "'usr/a/b' is inside 'a', which is not a folder"),
        ([member("usr/a", tarfile.LNKTYPE, link="./")], "'usr/a' is a link to nothing"),
        ([member("app/a")], "neither bin nor usr at its top"),
        ([member("manifest.json")], "written by `docker save`"),
        ([member("usr/a", content=bytes(1 << 19)), member("usr/b", content=bytes(1 << 19) + b".")], "more than 0 GiB"),
    ],
)
def test_what_is_no_root_file_system_is_refused(packed, members, error):
    with pytest.raises(FetchError, match=error):
        unpacked(packed(*members))


def test_an_archive_may_have_as_much_as_is_allowed(packed):
    assert (
        unpacked(packed(ROOT, member("/".join(["a"] * 199 + ["x"])), member("usr/a", content=bytes(1 << 20))))
        == 1 << 20
    )


def test_an_archive_has_a_largest_number_of_members(packed, monkeypatch):
    monkeypatch.setattr(untar, "_MOST_MEMBERS", 2)
    unpacked(packed(ROOT, member("usr/a")))
    with pytest.raises(FetchError, match="holds more than 2 files"):
        unpacked(packed(ROOT, member("usr/a"), member("usr/b")))


def test_a_file_that_changes_meanwhile_is_not_used(packed):
    with pytest.raises(FetchError, match="changed while it was unpacked; submit the job again"):
        unpacked({**packed(ROOT), "key": "another"})


def test_unpacking_ends_before_the_disk_is_full(packed, target):
    with pytest.raises(DiskFull):
        untar.copy(packed(ROOT), Meter(str(target), -1))


def test_a_file_is_hashed_once(packed):
    wanted = packed(ROOT)
    first = untar.measure(wanted, Meter("", 100))
    assert (first["key"], first["size"]) == (wanted["key"], Path(wanted["source"]).stat().st_size)
    meter = Meter("", 100)
    known = {str(first["seen"]): "known"}
    assert untar.measure({**wanted, "known": known}, meter)["key"] == "known"
    assert meter.done == 0
    os.utime(wanted["source"], ns=(1, 1))
    assert untar.measure({**wanted, "known": known}, Meter("", 100))["key"] == wanted["key"]


@pytest.mark.parametrize(
    ("name", "error"), [("none", "no such file or directory for user ann"), ("", "is no file; write dir:")]
)
def test_a_source_that_is_no_file_is_refused(tmp_path, target, name, error):
    with pytest.raises(FetchError, match=error):
        untar.measure(order(tmp_path / name, target), Meter("", 100))


def test_no_descriptor_stays_open_after_an_image_is_unpacked(packed, target: Path) -> None:
    wanted = packed(
        ROOT,
        member("./usr/file", content=b"text"),
        member("./usr/deep/er/hard", tarfile.LNKTYPE, link="usr/file"),
        member("./usr/soft", tarfile.SYMTYPE, link="file"),
        member("./usr/deep/folder", tarfile.DIRTYPE),
    )
    before = os.listdir("/proc/self/fd")
    unpacked(wanted)
    assert os.listdir("/proc/self/fd") == before
