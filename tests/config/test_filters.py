from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cockpit.config.filters import FilterFileError, SavedFilters

ODD = 'name~"a \\" b" why~\'x\' 前処理 \x7f [x] # no comment'


@pytest.mark.req("UI-22")
def test_filters_are_stored_separately_for_each_cluster_and_list(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "filters.toml"
    here, there = SavedFilters(path, "local"), SavedFilters(path, "system")
    here.save("jobs", "failed-mine", "user:me state:failed")
    here.save("jobs", "odd", ODD)
    here.save("nodes", "free", "status:idle")
    there.save("jobs", "failed-mine", "state:failed")
    assert SavedFilters(path, "local").of("jobs") == {"failed-mine": "user:me state:failed", "odd": ODD}
    assert here.of("nodes") == {"free": "status:idle"}
    assert there.of("jobs") == {"failed-mine": "state:failed"}
    assert '[local.jobs]\nfailed-mine = "user:me state:failed"\n' in path.read_text()
    assert "前処理" in path.read_text()
    here.delete("jobs", "odd")
    here.delete("jobs", "never-there")
    assert here.of("jobs") == {"failed-mine": "user:me state:failed"}
    assert there.of("jobs") == {"failed-mine": "state:failed"}
    assert [each.name for each in path.parent.iterdir()] == ["filters.toml"]


def test_the_file_may_be_a_symbolic_link(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.toml"
    kept.write_text('[local.jobs]\nold = "bert"\n')
    link = tmp_path / "filters.toml"
    link.symlink_to(kept)
    SavedFilters(link, "local").save("jobs", "new", "vit")
    assert link.is_symlink()
    assert SavedFilters(kept, "local").of("jobs") == {"old": "bert", "new": "vit"}


def test_without_a_file_they_last_as_long_as_the_cockpit() -> None:
    filters = SavedFilters()
    filters.save("jobs", "a", "state:failed")
    assert filters.of("jobs") == {"a": "state:failed"}
    assert SavedFilters().of("jobs") == {}


@pytest.mark.parametrize("name", ["", "two words", "a/b", "-a", "x" * 65, "\x1b[31m", "größe"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(FilterFileError, match="name"):
        SavedFilters().save("jobs", name, "bert")


@pytest.mark.parametrize("text", ["[local", 'local = "jobs"', "[local.jobs]\na = 3", '[local]\njobs = "x"'])
def test_an_invalid_file_is_named_and_not_changed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "filters.toml"
    path.write_text(text)
    for act in (lambda each: each.of("jobs"), lambda each: each.save("jobs", "a", "b")):
        with pytest.raises(FilterFileError, match=r"filters\.toml"):
            act(SavedFilters(path, "local"))
    assert path.read_text() == text


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(FilterFileError, match="cannot be written"):
        SavedFilters(blocked / "filters.toml", "local").save("jobs", "a", "b")


@pytest.mark.req("UI-22")
def test_a_name_that_a_filter_cannot_have_is_refused_with_what_it_may_have() -> None:
    with pytest.raises(FilterFileError, match="a b is none"):
        SavedFilters().save("jobs", "a b", "state:failed")
    with pytest.raises(FilterFileError, match="It needs a name"):
        SavedFilters().save("jobs", "", "state:failed")


@contextmanager
def full_disk() -> Iterator[None]:
    """Let a file of this process have only ten bytes, as if the disk were full.

    No fixture: the tests' own output may be a file, and has to be written before and after the test.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(FilterFileError, match="cannot be written: File too large"):
        SavedFilters(tmp_path / "filters.toml", "local").save("jobs", "a", "state:failed")
    assert list(tmp_path.iterdir()) == []
