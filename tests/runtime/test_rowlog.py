"""Rows and pages that all readers of a list share."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cockpit.model.ids import JobId
from cockpit.runtime import rowlog
from cockpit.runtime.latest import Latest
from cockpit.runtime.rowlog import RowLog, SharedPages

pytestmark = pytest.mark.req("PF-10")


def batch(**rows: Any) -> Any:
    """Rows by `job7`; the log never looks into them."""
    return {JobId(int(name[3:])): row for name, row in rows.items()}


def a_log(*batches: Any) -> RowLog:
    log = RowLog()
    for each in batches:
        log.add(each)
    return log


def test_a_reader_gets_each_row_as_it_was_at_its_last_batch() -> None:
    log = a_log(batch(job1="a", job2=None), batch(job1="b"), batch(job3="c", job2="d"))
    assert log.last == 3
    assert log.since(0) == batch(job1="a", job2=None, job3="c")
    assert log.since(1) == batch(job1="b", job2="d", job3="c")
    assert log.since(2) == batch(job2="d", job3="c")
    assert log.since(3) == {}


def test_forgotten_batches_are_too_old_for_a_reader() -> None:
    log = a_log(batch(job1="a"), batch(job2="b"), batch(job3="c"))
    log.forget(0)
    assert log.since(0) == batch(job1="a", job2="b", job3="c")
    log.forget(2)
    assert log.since(1) is log.since(0) is None
    assert log.since(2) == batch(job3="c")
    log.forget(9)
    assert log.since(3) == {}
    log.add(batch(job4="d"))
    assert (log.last, log.since(3)) == (4, batch(job4="d"))


def test_no_more_rows_are_kept_than_the_limit_but_always_the_newest_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowlog, "MOST_ROWS", 3)
    log = a_log(batch(job1="a"), batch(job2="b", job3="c"))
    assert log.since(0) is not None
    log.add(batch(job4="d"))
    assert log.since(0) is None
    assert log.since(1) == batch(job2="b", job3="c", job4="d")
    log.add(batch(job1="", job2="", job3="", job4=""))
    assert log.since(2) is None
    assert len(log.since(3) or {}) == 4
    log.forget(4)
    log.add(batch(job1="e", job2="f", job3="g"))
    assert len(log.since(4) or {}) == 3, "forgotten rows are not counted"


def test_pages_are_made_once_when_the_first_reader_reaches_them() -> None:
    made: list[int] = []

    def pages() -> Any:
        for number in range(3):
            made.append(number)
            yield msgspec.Raw(str(number).encode())

    shared = SharedPages(pages())
    first, second = iter(shared), iter(shared)
    assert bytes(next(first)) == b"0"
    assert made == [0]
    assert [bytes(each) for each in second] == [b"0", b"1", b"2"]
    assert [bytes(each) for each in first] == [b"1", b"2"]
    assert [bytes(each) for each in shared] == [b"0", b"1", b"2"]
    assert made == [0, 1, 2]


async def test_followers_of_a_value_get_the_present_one_and_then_the_latest() -> None:
    value = Latest("old")
    follower = value.follow()
    assert await anext(follower) == "old"
    value.put("newer")
    value.put("newest")
    assert await anext(follower) == "newest"
    assert value.value == "newest"
    await follower.aclose()
