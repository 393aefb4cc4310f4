"""The removal of a container's files, which a job may have left in any state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers import removal
from cockpit.runtime.containers.shim.attempt import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.req("JT-40")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("kept")
    return folder


@pytest.fixture
def left(tmp_path: Path, outside: Path) -> Callable[[str], Path]:
    """Make the folder of an attempt with what makes a removal hard."""

    def made(name: str) -> Path:
        folder = tmp_path / "state" / name
        (folder / "locked" / "deeper").mkdir(parents=True)
        (folder / "locked" / "deeper" / "file").touch()
        (folder / "-rf").touch()
        (folder / "link").symlink_to(outside)
        (folder / "locked" / "deeper").chmod(0)
        (folder / "locked").chmod(0)
        return folder

    return made


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the cgroups that are removed; one is busy at the first two tries."""
    tries: list[str] = []

    def remove(group: str) -> bool:
        tries.append(group)
        return len(tries) > 2

    monkeypatch.setattr(removal.limits, "remove", remove)
    monkeypatch.setattr(removal.freezing, "remove_group", lambda group: tries.append(f"freezer of {group}"))
    monkeypatch.setattr(removal.time, "sleep", lambda _: None)
    return tries


def test_a_container_is_removed_with_its_groups_and_links_are_not_followed(left, groups, outside, tmp_path):
    folder = left("containers/7.1.0")
    removal.delete(Attempt(str(folder)), "g")
    assert groups == ["freezer of g", "g", "freezer of g", "g"]
    state = tmp_path / "state"
    assert (list((state / "containers").iterdir()), list((state / "trash").iterdir())) == ([], [])
    assert (state / "trash").stat().st_mode & 0o777 == 0o700
    assert (outside / "precious").read_text() == "kept"
    removal.delete(Attempt(str(folder)), "g")


def test_what_an_interrupted_engine_left_in_the_trash_is_removed(left, tmp_path):
    for name in ("trash/7.1.0", "trash/8.1.0"):
        left(name)
    removal.empty_trash(tmp_path / "state")
    assert list((tmp_path / "state" / "trash").iterdir()) == []
    removal.empty_trash(tmp_path / "none")


def test_a_trash_of_the_same_name_does_not_hinder_a_removal(left, groups, tmp_path):
    left("trash/7.1.0")
    removal.delete(Attempt(str(left("containers/7.1.0"))), "g")
    assert os.listdir(tmp_path / "state" / "trash") == os.listdir(tmp_path / "state" / "containers") == []


def test_a_group_that_stays_busy_ends_the_tries(monkeypatch):
    tries = []
    monkeypatch.setattr(removal.limits, "remove", tries.append)
    monkeypatch.setattr(removal.freezing, "remove_group", lambda _: None)
    monkeypatch.setattr(removal.time, "sleep", lambda _: None)
    removal.remove_groups("g")
    assert 10 <= len(tries) <= 1000


def test_what_does_not_exist_needs_no_removal(tmp_path):
    removal.remove_tree(tmp_path / "none")
