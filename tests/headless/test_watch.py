"""`--watch`: a line for each change."""

from __future__ import annotations

import msgspec
import pytest

from cockpit.backends.base import JobsDelta
from cockpit.model.ids import JobId
from cockpit.model.view import HoldRow
from tests.doubles.samples import failed_row, five_jobs, job_row, queued_row
from tests.headless.conftest import Desk


@pytest.mark.req("UI-40")
def test_watch_writes_a_line_for_each_change_that_passes(desk: Desk) -> None:
    rows = five_jobs()
    desk.backend.deltas = [
        JobsDelta(tuple(rows), (), 1),
        JobsDelta((failed_row(4711), job_row(4720)), (JobId(4699), JobId(4715)), 2),
        JobsDelta((queued_row(1),), (), 3),
    ]
    done = desk("jobs", "--watch", "--filter", "state:running", "--columns", "id,state")
    changes = [msgspec.json.decode(line) for line in done.lines]
    assert {change["version"] for change in changes} == {1}
    assert [change.get("row", change.get("id")) for change in changes] == [
        {"id": 4711, "state": "running"},
        {"id": 4699, "state": "running"},
        {"id": 4720, "state": "running"},
        4711,
        4699,
    ]


@pytest.mark.req("UI-40")
@pytest.mark.parametrize("verb", ["nodes", "holds", "events"])
def test_lists_that_follow_the_jobs_are_watched_by_row(desk: Desk, verb: str) -> None:
    """They begin with what there is and tell of nothing twice; a row that has gone is named."""
    nothing = JobsDelta((), (), 1)
    desk.backend.deltas = [nothing, nothing]
    first = [msgspec.json.decode(line) for line in desk(verb, "-o", "jsonl").lines]
    watched = [msgspec.json.decode(line) for line in desk(verb, "--watch").lines]
    assert [change["row"] for change in watched][: len(first)] == first
    if verb != "events":
        assert len(watched) == len(first), "nothing has changed"


@pytest.mark.req("UI-40")
def test_a_hold_that_has_ended_is_told_by_its_id(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.backend.deltas = [JobsDelta((), (), 1)] * 2
    kept, seen = desk.backend.hold_rows, iter([desk.backend.hold_rows, []])

    async def holds() -> list[HoldRow]:
        return next(seen)

    monkeypatch.setattr(desk.backend, "holds", holds)
    *_, last = [msgspec.json.decode(line) for line in desk("holds", "--watch").lines]
    assert last == {"version": 1, "change": "gone", "id": kept[-1].job}
