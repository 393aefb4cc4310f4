"""Datasets that are copied to fast storage before a job's container is made."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import RemoveContainer, SignalKind, SignalReplica, StageReplica, StartReplica
from cockpit.model.ids import Millis
from cockpit.model.mounts import Dataset, DatasetSource
from cockpit.model.staging import Staging
from cockpit.runtime.containers.removal import remove_tree
from cockpit.runtime.containers.staging.cache_store import CacheStore
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import House, until

pytestmark = pytest.mark.real
DAY_MS = 86_400_000
LARGE = 2 << 30
SEEN = "/workspace/dataset/favorite/cats/v2"


@pytest.fixture
def cats(house) -> Path:
    folder = house.folder / "cats"
    (folder / "train" / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("a cat")
    (folder / "train" / "b.txt").write_text("another")
    (folder / "train" / "deep" / "locked").write_text("locked")
    (folder / "train" / "deep").chmod(0o555)
    os.symlink("a.txt", folder / "link")
    os.symlink("/etc/shadow", folder / "out")
    (folder / "a.txt").chmod(0o644)
    (house.folder / "fast").mkdir()
    house.rules = replace(house.rules, staging=Staging(folder=str(house.folder / "fast"), full_percent=100))
    yield folder
    (folder / "train" / "deep").chmod(0o755)
    remove_tree(house.folder / "fast")


@pytest.fixture
def large(house, cats) -> Path:
    """Two gigabytes, which take no room of their own until they are copied."""
    with (cats / "large").open("wb") as file:
        file.truncate(LARGE)
    return cats


def job(house: House, folder: Path, script: str = "true", **spec) -> StartReplica:
    given = Dataset(name="cats", path=str(folder), source=DatasetSource.FAVORITE, version="v2", read_only=True)
    return house.job(script, staging=True, datasets=(given,), **spec)


async def staged(house: House, *starts: StartReplica) -> None:
    for start in starts:
        await house.executor.stage(StageReplica(start))
    await house.seen.until(lambda: {start.replica for start in starts} <= set(house.seen.staged))


async def half_way(house: House, start: StartReplica) -> None:
    """Its copy has begun, and gets no further."""
    await house.executor.stage(StageReplica(start))
    await house.seen.until(lambda: getattr(house.executor.staging(start.replica), "done", 0) > 0)
    for pid in copying():
        os.kill(pid, signal.SIGSTOP)


def copying() -> list[int]:
    """Processes of this one that measure or copy."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            stat = (process / "stat").read_text()
            pid, name, rest = re.fullmatch(r"(\d+) \((.*)\) . (\d+) .*\n?", stat, re.DOTALL).groups()
            found += [int(pid)] if (name, int(rest)) == ("cockpit-fetch", os.getpid()) else []
    return found


def left_on_disk(house: House) -> list[str]:
    return [path.name for path in house.folder.glob("fast/*/*")]


@pytest.mark.req("JT-19", "JT-50", "JT-30")
async def test_the_job_sees_the_copy_and_cannot_change_it(house, cats):
    look = f"cd {SEEN}; cat a.txt train/b.txt train/deep/locked link; touch x; readlink out"
    start = job(house, cats, look)
    await staged(house, start)
    (cats / "a.txt").write_text("changed since")
    await house.run(start)
    assert house.out(start) == "a cat" + "another" + "locked" + "a cat" + "/etc/shadow\n"
    assert "Read-only file system" in house.err(start)
    assert house.executor.staging(start.replica) is None


@pytest.mark.req("JT-50")
async def test_one_copy_is_shared_by_all_jobs_of_the_same_version(house, cats):
    first, second = job(house, cats), job(house, cats)
    await staged(house, first, second)
    (copy,) = await house.executor.copies()
    assert (copy.what, copy.source, copy.size) == ("dataset", str(cats), len("a catanotherlocked"))
    assert copy.jobs == (first.replica.job, second.replica.job)
    assert copy.users == (first.submitter.name,)
    (cats / "a.txt").write_text("a newer version")
    await staged(house, third := job(house, cats))
    assert [each.jobs for each in await house.executor.copies() if each.key != copy.key] == [(third.replica.job,)]


@pytest.mark.req("JT-50")
async def test_a_copy_that_was_finished_just_now_is_not_made_again(house, cats, monkeypatch):
    """Who looked for it before, and begins only after."""
    await staged(house, job(house, cats))
    looks = iter([False, False])
    seen = CacheStore.has
    monkeypatch.setattr(CacheStore, "has", lambda shelf, key: next(looks, None) is None and seen(shelf, key))
    await staged(house, job(house, cats))
    assert [len(each.jobs) for each in await house.executor.copies()] == [2]


@pytest.mark.req("JT-50")
async def test_two_gigabytes_cancelled_half_way_leave_no_file(house, large):
    start = job(house, large)
    await half_way(house, start)
    progress = house.executor.staging(start.replica)
    assert (0 < progress.done < progress.total, progress.total > LARGE) == (True, True)
    (copy,) = await house.executor.copies()
    assert copy.progress is not None
    assert not await house.executor.remove_copy(copy.key), "it is being made"
    await house.executor.signal(SignalReplica(start.replica, SignalKind.TERM))
    assert "while its files were copied" in (await house.ended(start.replica)).lost
    assert left_on_disk(house) == []
    assert await house.executor.copies() == []


@pytest.mark.req("JT-50")
async def test_a_job_that_waits_for_a_copy_keeps_it_when_the_job_that_started_it_ends(house, large):
    first, second = job(house, large), job(house, large)
    await half_way(house, first)
    await half_way(house, second)
    await house.executor.signal(SignalReplica(first.replica, SignalKind.KILL))
    await house.ended(first.replica)
    assert len(left_on_disk(house)) == 1
    await house.executor.signal(SignalReplica(second.replica, SignalKind.KILL))
    await house.ended(second.replica)
    assert left_on_disk(house) == []


@pytest.mark.req("JT-50")
async def test_a_job_with_its_copies_that_waits_for_other_nodes_ends_at_once(house, cats):
    await staged(house, start := job(house, cats))
    await house.executor.signal(SignalReplica(start.replica, SignalKind.TERM))
    assert "while its files were copied" in (await house.ended(start.replica)).lost


@pytest.mark.req("JT-50", "JT-36")
async def test_a_job_terminated_as_it_starts_ends_as_any_other(house, cats):
    start = job(house, cats, "sleep 100")
    await house.executor.start(start)
    await house.started(start.replica)
    await house.executor.signal(SignalReplica(start.replica, SignalKind.TERM))
    assert (await house.ended(start.replica)).signal == 15


@pytest.mark.req("JT-50")
async def test_a_job_that_needs_a_copy_being_cancelled_has_it_copied_again(house, cats, monkeypatch):
    (cats / "large").write_bytes(b"")
    os.truncate(cats / "large", LARGE)
    await half_way(house, first := job(house, cats))
    giving_up, goes_on = threading.Event(), threading.Event()
    give_up = CacheStore.give_up

    def slowly(shelf: CacheStore, key: str) -> None:
        giving_up.set()
        goes_on.wait(20)
        give_up(shelf, key)

    monkeypatch.setattr(CacheStore, "give_up", slowly)
    async with asyncio.TaskGroup() as group:
        group.create_task(house.executor.signal(SignalReplica(first.replica, SignalKind.KILL)))
        await until(giving_up.is_set)
        await house.executor.stage(StageReplica(second := job(house, cats)))
        await until(lambda: any(each.waiting for each in house.cache._making.values()))
        goes_on.set()
    await house.seen.until(lambda: getattr(house.executor.staging(second.replica), "done", 0) > 0)
    await house.executor.signal(SignalReplica(second.replica, SignalKind.KILL))
    assert left_on_disk(house) == []


@pytest.mark.req("JT-50", "TR-01")
async def test_a_restarted_engine_continues_the_copy_of_a_killed_one(house, cats):
    (cats / "b.bin").write_bytes(bytes(1 << 20))
    with (cats / "c.bin").open("wb") as file:
        file.truncate(LARGE)
    await house.executor.stage(StageReplica(start := job(house, cats)))
    await until(lambda: [*house.folder.glob("fast/*/*/content/c.bin")])
    house.executor.close()
    await until(lambda: not copying())
    (part,) = house.folder.glob("fast/*/*/content")
    inode = (part / "a.txt").stat().st_ino
    (cats / "c.bin").touch()
    os.truncate(cats / "c.bin", 0)
    assert part.parent.name.endswith(".part")
    shutil.move(part.parent, part.parent.with_name(f"{await key_of(house, start)}.part"))
    house.move_in()
    await house.executor.adopt([], [])
    await staged(house, start)
    (whole,) = house.folder.glob("fast/*/*/content")
    assert (whole / "a.txt").stat().st_ino == inode
    assert (whole / "b.bin").stat().st_size == 1 << 20


async def key_of(house: House, start: StartReplica) -> str:
    from cockpit.runtime.containers.staging.fetching import FetchKind, StagingSource

    wanted = StagingSource("datasets[0]", FetchKind.TREE, start.spec.datasets[0].folder)
    return (await house.cache.measured(wanted, start.submitter))[0].key


@pytest.mark.req("JT-50")
async def test_a_copy_is_kept_for_a_week_after_its_last_use(house, cats):
    start = job(house, cats)
    await staged(house, start)
    house.clock.at += 30 * DAY_MS
    await house.cache.tidy()
    assert len(await house.executor.copies()) == 1
    await house.executor.remove(RemoveContainer(start.replica))
    house.clock.at += 7 * DAY_MS - 1
    await house.cache.tidy()
    (copy,) = await house.executor.copies()
    assert (copy.used_at, copy.jobs) == (Millis(1_000_000 + 30 * DAY_MS), ())
    house.clock.at += 1
    await house.cache.tidy()
    assert await house.executor.copies() == []
    assert left_on_disk(house) == []


@pytest.mark.req("JT-50")
async def test_a_copy_in_use_is_not_removed(house, cats):
    start = job(house, cats)
    await staged(house, start)
    (copy,) = await house.executor.copies()
    assert not await house.executor.remove_copy(copy.key)
    await house.executor.remove(RemoveContainer(start.replica))
    assert await house.executor.remove_copy(copy.key)
    assert left_on_disk(house) == []


@pytest.mark.req("JT-50", "TR-01")
async def test_a_new_engine_releases_the_copies_of_jobs_that_are_gone(house, cats):
    lives, gone = job(house, cats), job(house, cats)
    await staged(house, lives, gone)
    house.executor.close()
    house.move_in()
    await house.executor.adopt([lives], [])
    assert (await house.ended(lives.replica)).ok
    (copy,) = await house.executor.copies()
    assert copy.jobs == (lives.replica.job,)


@pytest.mark.skipif(not IS_ROOT, reason="needs a second user")
@pytest.mark.req("TR-14")
async def test_a_copy_is_used_only_by_users_who_may_read_the_original(house, cats, ann):
    (cats / "a.txt").chmod(0o600)
    refused = job(house, cats, user=ann)
    await house.executor.stage(StageReplica(refused))
    assert (await house.ended(refused.replica)).lost == f"datasets[0]: {cats}/a.txt: permission denied for user {ann}"
    await staged(house, job(house, cats))
    await staged(house, theirs := job(house, cats, f"cat {SEEN}/a.txt {SEEN}/train/b.txt", user=ann))
    await house.run(theirs)
    assert house.out(theirs) == "another"
    assert "Permission denied" in house.err(theirs)
    cats.chmod(0o700)
    shut = job(house, cats, user=ann)
    await house.executor.stage(StageReplica(shut))
    assert (await house.ended(shut.replica)).lost == f"datasets[0]: {cats}: permission denied for user {ann}"
    assert len(await house.executor.copies()) == 1


@pytest.mark.req("JT-50")
async def test_a_missing_staging_folder_is_reported_to_the_job(house, cats):
    (house.folder / "fast").rmdir()
    start = job(house, cats)
    await house.executor.stage(StageReplica(start))
    lost = (await house.ended(start.replica)).lost
    assert lost.startswith(f"datasets[0]: no copy can be made in {house.folder}/fast")
    assert "No such file or directory" in lost
    assert await house.cache.trouble() == ""
