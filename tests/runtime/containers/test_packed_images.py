"""Containers that begin with a root file system packed into one file."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import KeepContainer, RemoveContainer
from cockpit.model.spec import HoldCards
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import House, finish
from tests.runtime.containers.roots import make_root, packed

pytestmark = pytest.mark.real


@pytest.fixture
def file(house) -> Path:
    root = make_root(house.folder / "packing")
    (root / "etc" / "secret").write_text("for root")
    (root / "etc" / "secret").chmod(0o4640)
    os.link(root / "opt" / "app" / "data", root / "opt" / "linked")
    made = packed(root, house.folder / "root.tar.gz", "w:gz")
    made.chmod(0o644)
    return made


def job(house: House, image: object, script: str, **spec):
    made = house.job(script, image=f"tar:{image}", **spec)
    return replace(made, spec=replace(made.spec, command=made.spec.command.replace("bash", "sh", 1)))


async def lost(house: House, image: Path) -> str:
    return (await house.run(job(house, image, "true"))).lost


def unpacked(house: House) -> list[Path]:
    return [path.parent for path in house.state.glob("cockpit-*/*/content")]


async def test_a_packed_image_is_unpacked_once_per_content_for_all_jobs(house, file):
    first = job(house, file, "cat /etc/release /opt/linked; id -u")
    again = job(house, file.rename(file.with_name("other.tgz")), "echo x >/opt/mine; ls /opt")
    await asyncio.gather(house.run(again), house.run(again))
    file.with_name("other.tgz").rename(file)
    await house.run(first)
    assert house.out(first) == f"a root of its own\nas it came\n{os.geteuid()}\n"
    assert house.out(again).split() == ["app", "linked", "mine"]
    (copy,) = await house.cache.copies()
    assert (copy.what, copy.source, copy.jobs) == ("image", str(file.with_name("other.tgz")), (1, 2))
    assert len(unpacked(house)) == 1


@pytest.mark.req("JT-40")
async def test_a_shell_opens_in_a_held_packed_image_after_a_restart_and_the_image_is_kept_until_then(house, file):
    made = job(house, file, "echo left >/opt/note; exit 3")
    await house.kept(made)
    file.unlink()
    house.executor.close()
    house.move_in()
    await house.executor.adopt([], [KeepContainer(made.replica, HoldCards.FREE)])
    code, seen = finish(await house.enter(made.replica, "sh", "-c", "cat /opt/note /etc/release"))
    assert (code, seen) == (0, "left\na root of its own\n")
    assert [each.jobs for each in await house.cache.copies()] == [(made.replica.job,)]
    await house.executor.remove(RemoveContainer(made.replica))
    assert [each.jobs for each in await house.cache.copies()] == [()]


@pytest.mark.skipif(not IS_ROOT, reason="needs a second user")
@pytest.mark.req("TR-14")
async def test_an_archive_that_a_user_may_not_read_is_not_unpacked_for_that_user(house, file, ann):
    await house.run(job(house, file, "true"))
    file.chmod(0o600)
    status = await house.run(job(house, file, "true", user=ann))
    assert status.lost == f"image: {file}: permission denied for user {ann}"


async def test_files_of_an_image_that_are_private_to_root_stay_private(house, file, ann):
    made = job(house, file, "ls -l /etc/secret; cat /etc/secret", user=ann)
    await house.run(made)
    assert house.out(made).startswith("-rw-r-----")
    assert ("for root" in house.out(made)) is not IS_ROOT


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is damaged, or no tar file"),
        (b"PK" * 500, "is damaged, or no tar file"),
        (None, "no such file or directory"),
    ],
)
async def test_a_file_that_is_no_archive_is_refused(house, content, sentence):
    file = house.folder / "x.tar"
    if content is not None:
        file.write_bytes(content)
    assert (await lost(house, file)).startswith(f"image: {file}")
    assert sentence in await lost(house, file)
    assert unpacked(house) == []


async def test_a_cut_archive_and_a_folder_are_refused(house, file):
    file.write_bytes(file.read_bytes()[:-5000])
    assert "is damaged" in await lost(house, file)
    assert "is no file; write dir:" in await lost(house, house.folder)
    assert unpacked(house) == []


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", content: bytes = b"") -> tuple:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, link, len(content), 0o644
    return info, io.BytesIO(content)


HOSTILE = {
    "out by dots": [member("../../../../../../tmp/cockpit-evil", content=b"x")],
    "out by a link": [member("usr", tarfile.SYMTYPE, "/tmp"), member("usr/cockpit-evil", content=b"x")],
    "out by a link to a folder above": [member("bin", tarfile.SYMTYPE, "../../.."), member("bin/cockpit-evil")],
    "hard link out": [member("bin/x", tarfile.LNKTYPE, "../../../../etc/passwd")],
    "hard link behind a link": [
        member("etc", tarfile.SYMTYPE, "/etc"),
        member("bin/x", tarfile.LNKTYPE, "etc/passwd"),
    ],
    "a folder that is a file": [member("bin/x"), member("bin/x/y")],
    "no root": [member("app/x")],
    "docker save": [member("manifest.json"), member("layer.tar")],
    "too deep": [member("a/" * 300 + "x")],
}
SAID = {
    "out by dots": "leads out of it",
    "hard link out": "leads out of it",
    "no root": "neither bin nor usr at its top",
    "docker save": "docker export",
    "too deep": "deeper than",
}


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_writes_no_file_outside_and_leaves_none(house, name):
    file = house.folder / "x.tar"
    with tarfile.open(file, "w") as archive:
        for info, content in HOSTILE[name]:
            archive.addfile(info, content)
    said = await lost(house, file)
    assert SAID.get(name, "which is not a folder") in said
    assert said.isprintable()
    assert not Path("/tmp/cockpit-evil").exists()
    assert unpacked(house) == []


async def test_an_absolute_name_and_odd_files_stay_inside_or_away(house, file):
    hostile = house.folder / "x.tar"
    with tarfile.open(file) as source, tarfile.open(hostile, "w") as archive:
        for info in source:
            archive.addfile(info, source.extractfile(info) if info.isreg() else None)
        for info, content in (member("/opt/absolute", content=b"inside"), member("opt/disk", tarfile.BLKTYPE)):
            archive.addfile(info, content)
        archive.addfile(*member("opt/pipe", tarfile.FIFOTYPE))
    made = job(house, hostile, "ls /opt")
    await house.run(made)
    assert house.out(made).split() == ["absolute", "app", "linked"]
