"""Which folders of the machine a container may mount, and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.shim import sources as sources_module
from cockpit.runtime.containers.shim.sources import SourceError, Sources, is_inside, is_shown_at_its_path, real_folder
from tests.runtime.containers.conftest import IS_ROOT

if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import MountDict

pytestmark = pytest.mark.req("TR-14")


def plan(folder: Path, **more: object) -> dict[str, object]:
    own = {"state": str(folder / "state"), "socket": str(folder / "socket"), "rootless": True, "user": "ann"}
    return {**own, "home": str(folder / "home"), "home_access": "none", **more}


def mount(source: Path | str, target: str, *, create: bool = False, writable: bool = True) -> MountDict:
    words = {"what": "volumes[0]", "source": str(source), "target": target}
    return {**words, "create": create, "writable": writable, "copied": False}


@pytest.fixture(autouse=True)
def no_mounts(monkeypatch):
    """Note the mounts instead of making them, which needs a mount namespace."""
    monkeypatch.setattr(sources_module.linux, "bind", lambda *_: None)


@pytest.fixture
def sources(tmp_path) -> Sources:
    for name in ("stage", "state", "home", "data"):
        (tmp_path / name).mkdir()
    return Sources(plan(tmp_path), str(tmp_path / "stage"))


@pytest.mark.parametrize("target", ["/etc", "/workspace", "/workspace/../etc", "/workspace/a/", "/workspacex"])
def test_a_folder_is_mounted_only_below_workspace_or_at_its_own_path(sources, tmp_path, target):
    with pytest.raises(SourceError, match="is not a place in the container"):
        sources.add_mount(mount(tmp_path / "data", target))
    assert sources.binds == []


def test_a_mount_is_writable_or_read_only_as_the_job_says(sources, tmp_path):
    sources.add_mount(mount(tmp_path / "data", "/workspace/a", writable=False))
    sources.add_mount(mount(tmp_path / "made", "/workspace/b", create=True))
    stage = tmp_path / "stage"
    assert sources.binds == [(f"{stage}/1", "/workspace/a", False), (f"{stage}/2", "/workspace/b", True)]
    assert (tmp_path / "made").is_dir()
    assert sources.masked == []


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/data/x", True),
        ("/var/tmp/x", True),
        ("/srv", True),
        ("/run/user/1000", True),
        ("/var", False),
        ("/run", False),
        ("/var/lib", False),
        ("/run/cockpit-slurm", False),
        ("/usr/share", False),
        ("/opt/x", False),
        ("/boot", False),
        ("/dev/shm", False),
        ("/workspace/x", False),
        ("/", False),
    ],
)
def test_system_folders_are_not_mounted_at_their_own_path(path, shown):
    assert is_shown_at_its_path(path) == shown


def test_a_folder_in_a_writable_home_is_not_mounted_a_second_time(tmp_path, sources):
    """The user could put a link at the mount point."""
    (tmp_path / "home" / "data").mkdir()
    held = Sources(plan(tmp_path, home_access="rw"), str(tmp_path / "stage"))
    held.add_home()
    held.add_mount(mount(tmp_path / "home" / "data", str(tmp_path / "home" / "data")))
    assert [target for _, target, _ in held.binds] == [str(tmp_path / "home")]
    held.add_mount(mount(tmp_path / "data", str(tmp_path / "data")))
    assert [target for _, target, _ in held.binds][1:] == [str(tmp_path / "data")]


def test_a_folder_in_a_read_only_home_is_mounted_so_that_it_can_be_writable(tmp_path, sources):
    (tmp_path / "home" / "data").mkdir()
    held = Sources(plan(tmp_path, home_access="ro"), str(tmp_path / "stage"))
    held.add_home()
    held.add_mount(mount(tmp_path / "home" / "data", str(tmp_path / "home" / "data")))
    assert [(target, writable) for _, target, writable in held.binds] == [
        (str(tmp_path / "home"), False),
        (str(tmp_path / "home" / "data"), True),
    ]


@pytest.mark.parametrize(
    ("access", "shared", "mounted"),
    [
        ("none", "", []),
        ("ro", "", [("{home}", False)]),
        ("rw", "", [("{home}", True)]),
        ("none", "{data}", []),
        ("rw", "{data}", [("/home", True), ("{home}", True)]),
        ("ro", "{data}", [("/home", False), ("{home}", False)]),
    ],
)
def test_the_home_is_mounted_as_the_job_says(tmp_path, sources, access, shared, mounted):
    names = {"home": str(tmp_path / "home"), "data": str(tmp_path / "data")}
    given = plan(tmp_path, home_access=access, shared_home=shared.format(**names))
    held = Sources(given, str(tmp_path / "stage"))
    held.add_home()
    assert [(target, writable) for _, target, writable in held.binds] == [
        (place.format(**names), writable) for place, writable in mounted
    ]


def test_a_home_inside_of_the_shared_one_or_a_missing_home_is_no_mount_of_its_own(tmp_path, sources):
    for given in (
        plan(tmp_path, home_access="rw", shared_home=str(tmp_path / "data"), home="/home/ann"),
        plan(tmp_path, home_access="rw", home=str(tmp_path / "none")),
        plan(tmp_path, home_access="rw", home="/usr"),
    ):
        held = Sources(given, str(tmp_path / "stage"))
        held.add_home()
        assert [target for _, target, _ in held.binds] == (["/home"] if given.get("shared_home") else [])


@pytest.mark.parametrize("name", ["state", "state/inner"])
def test_the_engines_own_folder_is_refused(sources, tmp_path, name):
    (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / "way").symlink_to(tmp_path / name)
    for path in (tmp_path / name, tmp_path / "way"):
        with pytest.raises(SourceError, match=r"is in the engine's own folder .*state; choose another one"):
            sources.add_mount(mount(path, "/workspace/a"))


def test_the_engines_folders_are_hidden_in_a_folder_that_contains_them(sources, tmp_path):
    sources.add_mount(mount(tmp_path, "/workspace/a"))
    assert sources.masked == ["/workspace/a/state", "/workspace/a/socket"]


def test_a_plain_process_gets_the_real_path_of_its_folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "data")
    given = plan(tmp_path)
    assert real_folder(given, mount(tmp_path / "way", "/workspace/a")) == str(tmp_path / "data")
    assert real_folder(given, mount(tmp_path / "made", "/workspace/a", create=True)) == str(tmp_path / "made")
    with pytest.raises(SourceError, match=r"volumes\[0\]: .*/none: no such file or directory for user ann"):
        real_folder(given, mount(tmp_path / "none", "/workspace/a"))


def test_a_path_is_inside_of_a_folder_by_whole_names():
    assert [is_inside(path, "/a/b") for path in ("/a/b", "/a/b/c", "/a/bc", "/a")] == [True, True, False, False]


@pytest.mark.skipif(not IS_ROOT, reason="only root takes another user's rights")
def test_the_submitters_rights_are_taken_and_returned():
    before = os.getgroups()
    with sources_module.credentials({"rootless": False, "uid": 12, "gid": 34, "groups": [34, 56]}):
        inside = (os.geteuid(), os.getegid(), sorted(os.getgroups()))
    assert inside == (12, 34, [34, 56])
    assert (os.geteuid(), os.getegid(), os.getgroups()) == (0, 0, before)
    with sources_module.credentials({"rootless": True}):
        assert os.geteuid() == 0
