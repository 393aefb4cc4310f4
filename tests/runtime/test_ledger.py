"""When the ledger writes accounting, snapshots and archives, and what it does while the journal refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.errors import StoreError
from cockpit.model.cluster import Priority, Weights
from cockpit.model.ids import JobId
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.ledger import DAY_MS, SNAPSHOT_EVERY, Ledger
from cockpit.runtime.priorities import _write_back
from tests.builders import NOON

pytestmark = pytest.mark.req("TR-01", "TR-03")


class Journal:
    """Notes what it is asked to do, and refuses some of it."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.refusing: dict[str, StoreError] = {}

    def __getattr__(self, name: str) -> Any:
        async def call(*words: Any, **_: Any) -> None:
            self.done.append((name, *words))
            if name in self.refusing:
                raise self.refusing[name]

        return call

    def names(self) -> list[str]:
        """Return what was done since the last call, without the check of the disk."""
        names = [each[0] for each in self.done if each[0] != "check_room"]
        self.done.clear()
        return names


class Books:
    def __init__(self) -> None:
        self.journal, self.clock = Journal(), VirtualClock(NOON)
        self.state = SimpleNamespace(seq=0, jobs={})
        self.troubled = 0
        machine: Any = SimpleNamespace(state=self.state)
        journal: Any = self.journal
        self.ledger = Ledger(journal, machine, self.clock, 7 * DAY_MS, self._trouble)

    def _trouble(self) -> None:
        self.troubled += 1

    async def refused(self, name: str, error: StoreError) -> None:
        self.journal.refusing[name] = error
        with pytest.raises(StoreError):
            async with self.ledger.turn():
                await self.ledger.append([], durable=True, answer=None)
        self.journal.names()


@pytest.fixture
async def books() -> Books:
    """Books after the first maintenance, which reserves spare space and archives."""
    made = Books()
    await made.ledger.maintain()
    assert made.journal.names() == ["keep_spare", "archive"]
    return made


async def test_ended_jobs_are_recorded_once_and_only_those_that_exist(books: Books) -> None:
    books.state.jobs[JobId(1)] = "job 1"
    for job in (1, 2, 1):
        books.ledger.ended(JobId(job))
    assert books.ledger.busy
    await books.ledger.maintain()
    assert ("record_ended", ["job 1"]) in books.journal.done
    assert books.journal.names() == ["record_ended"]
    assert not books.ledger.busy
    await books.ledger.maintain()
    assert books.journal.names() == []


async def test_ended_jobs_that_could_not_be_recorded_are_tried_again(books: Books) -> None:
    books.state.jobs[JobId(1)] = "job 1"
    books.ledger.ended(JobId(1))
    books.journal.refusing["record_ended"] = StoreError("locked", passing=True)
    with pytest.raises(StoreError):
        await books.ledger.maintain()
    assert books.ledger.troubles == ("locked", "")
    assert (books.ledger.busy, books.troubled) == (True, 1)
    books.journal.refusing.clear()
    books.journal.names()
    await books.ledger.maintain()
    assert books.journal.names() == ["record_ended", "probe"]
    assert books.ledger.troubles == ("", "")


async def test_a_snapshot_is_due_after_so_many_events_and_spare_space_with_it(books: Books) -> None:
    books.state.seq = SNAPSHOT_EVERY - 1
    await books.ledger.maintain()
    assert books.journal.names() == []
    books.state.seq = SNAPSHOT_EVERY
    await books.ledger.maintain()
    assert ("snapshot", books.state, SNAPSHOT_EVERY) in books.journal.done
    assert books.journal.names() == ["snapshot", "keep_spare"]
    books.state.seq += SNAPSHOT_EVERY - 1
    await books.ledger.maintain()
    assert books.journal.names() == []


async def test_old_events_are_archived_once_a_day_after_a_snapshot(books: Books) -> None:
    books.clock.advance(DAY_MS - 1)
    await books.ledger.maintain()
    assert books.journal.names() == []
    books.clock.advance(1)
    await books.ledger.maintain()
    assert books.journal.done[-1] == ("archive", NOON + DAY_MS - 7 * DAY_MS)
    assert books.journal.names() == ["archive"]
    books.state.seq = 1
    books.clock.advance(DAY_MS)
    await books.ledger.maintain()
    assert books.journal.names() == ["snapshot", "archive"]


async def test_an_archive_that_fails_is_reported_until_the_next_day(books: Books) -> None:
    books.journal.refusing["archive"] = StoreError("no folder")
    books.clock.advance(DAY_MS)
    await books.ledger.maintain()
    assert books.ledger.troubles == ("", "Old events stay in the journal for now. no folder")
    assert (books.ledger.busy, books.troubled) == (False, 0)
    books.journal.names()
    await books.ledger.maintain()
    assert books.journal.names() == []
    books.journal.refusing.clear()
    books.clock.advance(DAY_MS)
    await books.ledger.maintain()
    assert books.ledger.troubles == ("", "")


async def test_a_full_disk_stays_a_trouble_although_a_small_write_succeeds(books: Books) -> None:
    books.journal.refusing["check_room"] = StoreError("full", passing=True)
    await books.ledger.maintain()
    assert books.ledger.troubles == ("full", "")
    assert books.ledger.busy
    assert books.journal.names() == []
    await books.ledger.maintain()
    assert books.journal.names() == [], "nothing is written for a test while the disk is full"
    books.journal.refusing.clear()
    await books.ledger.maintain()
    assert books.journal.names() == ["probe"]
    assert books.ledger.troubles == ("", "")


async def test_the_first_refusal_alone_wakes_the_host(books: Books) -> None:
    for _ in range(2):
        await books.refused("append", StoreError("locked", passing=True))
    assert books.troubled == 1
    assert books.ledger.troubles == ("locked", "")


async def test_requests_that_waited_for_a_refused_one_are_refused_by_its_error(books: Books) -> None:
    first = books.ledger.turn()
    await first.__aenter__()
    waiting = books.ledger.turn()
    async with asyncio.TaskGroup() as group:
        entering = group.create_task(_entered(waiting))
        await asyncio.sleep(0)
        error = StoreError("locked", passing=True)
        assert not await first.__aexit__(StoreError, error, None)
    refused = entering.result()
    assert (str(refused), refused.passing) == ("locked", True)
    async with books.ledger.turn():
        pass


async def _entered(turn: Any) -> Any:
    try:
        await turn.__aenter__()
    except StoreError as error:
        return error
    return None


async def test_closing_leaves_nothing_to_repeat(books: Books) -> None:
    books.state.jobs[JobId(1)] = "job 1"
    books.ledger.ended(JobId(1))
    books.state.seq = 3
    await books.ledger.close()
    assert books.journal.names() == ["record_ended", "snapshot"]


async def test_a_request_without_an_id_has_no_stored_answer(books: Books) -> None:
    await books.ledger.answer("")
    assert books.journal.names() == []
    await books.ledger.answer("ann:1")
    assert books.journal.done == [("answer", "ann:1")]


PRIORITY = Priority(weights=Weights(age=77))


def test_new_weights_are_written_into_the_file_whose_mode_stays(tmp_path: Path) -> None:
    file = tmp_path / "new" / "cluster.toml"
    assert _write_back(None, PRIORITY) == ""
    assert _write_back(file, PRIORITY) == ""
    assert "77" in file.read_text()
    file.chmod(0o640)
    file.write_text("# my cluster\n")
    assert _write_back(file, PRIORITY) == ""
    assert file.read_text().startswith("# my cluster\n")
    assert "77" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in file.parent.iterdir()] == ["cluster.toml"]


@pytest.mark.parametrize("content", [b"\xff", b"not = [toml"])
def test_a_file_that_cannot_be_changed_stays_and_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "cluster.toml"
    file.write_bytes(content)
    said = _write_back(file, PRIORITY)
    assert said.startswith(f"{file} could not be written (")
    assert "the new weights are in force until the engine starts again" in said
    assert file.read_bytes() == content
    assert _write_back(file / "below", PRIORITY).startswith(f"{file}/below could not be written (")
