"""The records of staged copies: by whom each is used, since when, and which may be removed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cockpit.model.ids import JobId, Millis
from cockpit.runtime.containers.staging.cache_store import CacheStore, new_record
from cockpit.runtime.containers.staging.fetching import MeasuredSource
from tests.runtime.containers.conftest import IS_ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.req("JT-50")


@pytest.fixture
def store(tmp_path: Path) -> CacheStore:
    made = CacheStore(tmp_path, tmp_path / "state")
    made.open()
    return made


def put(store: CacheStore, key: str, at: int = 10) -> None:
    (store.begin(key) / "file").write_text(key)
    store.publish(key, new_record("dataset", f"/data/{key}", MeasuredSource(key=key, size=7), Millis(at)))


def keys(store: CacheStore) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir())


def test_a_copy_is_available_once_it_is_published(store):
    store.begin("k")
    (store.begin("k") / "file").write_text("half")
    assert (store.has("k"), keys(store), list(store.copies(Millis(1)))) == (False, ["k.part"], [])
    put(store, "k")
    assert (store.has("k"), keys(store)) == (True, ["k"])
    (copy,) = store.copies(Millis(99))
    assert (copy.key, copy.what, copy.source, copy.size) == ("k", "dataset", "/data/k", 7)
    assert (copy.users, copy.made_at, copy.used_at, copy.jobs) == ((), 10, 10, ())


def test_an_abandoned_copy_leaves_no_file(store):
    store.begin("k")
    store.give_up("k")
    assert keys(store) == []


def test_a_copy_names_its_jobs_and_its_users_the_latest_first(store):
    put(store, "k")
    for replica, user, at in (("3.1.0", "ann", 11), ("2.1.0", "bob", 12), ("2.1.1", "bob", 13), ("2.1.1", "bob", 14)):
        store.use("k", replica, user, Millis(at))
    (copy,) = store.copies(Millis(50))
    assert (copy.jobs, copy.users, copy.used_at) == ((JobId(2), JobId(3)), ("bob", "ann"), 50)
    assert store.users_besides({"3.1.0", "9.1.0"}) == {"2.1.0", "2.1.1"}
    for at, replica in enumerate(("2.1.0", "2.1.1", "3.1.0", "8.1.0"), 60):
        store.leave(replica, Millis(at))
    (copy,) = store.copies(Millis(90))
    assert (copy.jobs, copy.users, copy.used_at) == ((), ("bob", "ann"), 62)


def test_a_hundred_users_of_a_copy_are_remembered(store):
    put(store, "k")
    for number in range(103):
        store.use("k", f"{number}.1.0", f"u{number}", Millis(number))
    (copy,) = store.copies(Millis(500))
    assert copy.users == tuple(f"u{number}" for number in range(102, 2, -1))


def test_copies_are_sorted_and_one_without_content_is_none(store):
    for key in ("b", "a", "c"):
        put(store, key)
    (store.content("c") / "file").unlink()
    store.content("c").rmdir()
    assert [copy.key for copy in store.copies(Millis(1))] == ["a", "b"]


def test_only_an_unused_copy_is_removed(store):
    put(store, "k")
    store.use("k", "1.1.0", "ann", Millis(11))
    assert (store.remove("k"), store.has("k")) == (False, True)
    store.leave("1.1.0", Millis(12))
    assert (store.remove("k"), keys(store)) == (True, [])
    assert store.remove("k")


def test_tidying_removes_old_unused_copies_and_forgotten_parts(store):
    for key, at in (("old", 10), ("new", 12), ("used", 1)):
        put(store, key, at)
    store.use("used", "1.1.0", "ann", Millis(2))
    for key in ("making", "forgotten"):
        store.begin(key)
    store.tidy({"making"}, before=Millis(10), now=Millis(99))
    assert keys(store) == ["making.part", "new", "used"]


def test_two_engines_on_one_disk_have_folders_of_their_own(store, tmp_path):
    other = CacheStore(tmp_path, tmp_path / "other")
    other.open()
    assert other.folder != store.folder
    assert {each.folder.stat().st_mode & 0o777 for each in (store, other)} == {0o700}
    store.open()


def test_a_link_in_place_of_the_folder_is_refused(store, tmp_path):
    store.folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    store.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="belongs to another user"):
        store.open()


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(store):
    os.chown(store.folder, 1, 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        store.open()


def test_the_disk_is_measured_before_the_folder_exists(tmp_path):
    store = CacheStore(tmp_path, tmp_path / "state")
    empty = store.percent_used()
    assert 0 <= empty <= 100
    store.open()
    assert store.percent_used(1 << 60) > 100
