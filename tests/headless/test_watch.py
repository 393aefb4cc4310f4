"""`--watch`: a line for each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.backends.base import JobsDelta
from cockpit.model.capabilities import Capabilities
from cockpit.model.cluster import Reservation
from cockpit.model.ids import JobId, NodeName, member_id
from cockpit.model.view import ClusterRow, ClusterState, HoldRow
from tests.doubles.account_tree import account_tree
from tests.doubles.hostile_cluster import queues
from tests.doubles.samples import HOUR, NOW, failed_row, five_jobs, job_row, queued_row
from tests.headless.conftest import Desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cockpit.model.events import EventRecord

LISTS = [
    *("nodes", "cards", "holds", "events", "queues", "quota", "accounts", "accounts qos", "priority", "reservations"),
    *("overview", "engine status"),
]

COURSE = Reservation(name="course", nodes=(NodeName("n1"),), start_at=NOW - HOUR, end_at=NOW + HOUR)


@pytest.fixture
def desk() -> Desk:
    somebody = Desk()
    somebody.backend.tree = account_tree()
    somebody.backend.queued = queues()
    somebody.backend.reserved = [COURSE]
    return somebody


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


@pytest.mark.req("UI-40", "UI-10")
def test_jobs_of_all_clusters_are_listed_by_their_own_ids(desk: Desk) -> None:
    desk.backend.job_rows = [
        replace(job_row(member_id(each, 7)), clusters=(name,)) for each, name in ((1, "lab"), (2, "campus"))
    ]
    inner = msgspec.json.decode(desk("jobs", "--columns", "id,clusters", "-o", "json").out)["rows"]
    assert [each["id"] for each in inner] == [member_id(1, 7), member_id(2, 7)]
    desk.backend.capabilities = Capabilities()
    rows = msgspec.json.decode(desk("jobs", "-c", "all", "--columns", "id,clusters", "-o", "json").out)["rows"]
    assert rows == [{"id": 7, "clusters": ["lab"]}, {"id": 7, "clusters": ["campus"]}]


@pytest.mark.req("UI-40", "UI-10")
def test_jobs_of_all_clusters_are_followed_by_their_own_ids(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [replace(job_row(member_id(each, 7)), clusters=(name,)) for each, name in ((1, "lab"), (2, "campus"))]
    mute = ClusterRow(name="far", way="ssh://far", state=ClusterState.SILENT, reason="far cannot be reached.\x1b[31m")
    desk.backend.deltas = [JobsDelta((), (), 0), JobsDelta(tuple(rows), (), 1), JobsDelta((), (rows[1].id,), 2)]

    async def clusters() -> list[ClusterRow]:
        return [mute]

    monkeypatch.setattr(desk.backend, "clusters", clusters, raising=False)
    desk.backend.capabilities = Capabilities()
    done = desk("jobs", "-c", "all", "--watch", "--columns", "id,clusters")
    assert [msgspec.json.decode(line) for line in done.lines] == [
        {"version": 1, "change": "row", "row": {"id": 7, "clusters": ["lab"]}},
        {"version": 1, "change": "row", "row": {"id": 7, "clusters": ["campus"]}},
        {"version": 1, "change": "gone", "id": 7, "clusters": ["campus"]},
    ]
    assert done.err.count("far does not answer: far cannot be reached.") == 1
    assert "\x1b" not in done.err


@pytest.mark.req("UI-40")
@pytest.mark.parametrize("verb", LISTS)
def test_lists_are_watched_by_row(desk: Desk, verb: str) -> None:
    """They begin with what there is and tell of nothing twice."""
    desk.backend.deltas = [JobsDelta((), (), 0, loaded=False), *[JobsDelta((), (), 1)] * 2]
    first = [msgspec.json.decode(line) for line in desk(*verb.split(), "-o", "jsonl").lines]
    assert first, "a list without rows proves nothing"
    watched = [msgspec.json.decode(line) for line in desk(*verb.split(), "--watch").lines]
    assert [change["row"] for change in watched][: len(first)] == first
    if verb != "events":
        assert len(watched) == len(first), "nothing has changed"


@pytest.mark.req("UI-40")
def test_changes_of_no_job_are_printed_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is drained, a reservation that is made: they change no row of the jobs."""
    asked = []

    async def watch_jobs(*, anything: bool = False) -> AsyncIterator[JobsDelta]:
        asked.append(anything)
        yield JobsDelta((), (), 1)
        desk.backend.reserved = [replace(COURSE, users=("ann",)), replace(COURSE, name="upkeep")]
        yield JobsDelta((), (), 2)
        desk.backend.reserved = []
        yield JobsDelta((), (), 3)

    monkeypatch.setattr(desk.backend, "watch_jobs", watch_jobs)
    told = [
        msgspec.json.decode(line) for line in desk("reservations", "--watch", "--columns", "name,users,state").lines
    ]
    assert asked == [True]
    assert [each.get("row", each.get("name")) for each in told] == [
        {"name": "course", "users": [], "state": "active"},
        {"name": "course", "users": ["ann"], "state": "active"},
        {"name": "upkeep", "users": [], "state": "active"},
        "course",
        "upkeep",
    ]


def test_watching_with_applied_weights_is_refused(desk: Desk) -> None:
    done = desk("priority", "--watch", "--weights", "age=1000", "--apply")
    assert done.code == 64
    assert desk.backend.asked == []


def test_a_watch_does_not_wait_for_an_engine_that_does_not_run(desk: Desk) -> None:
    desk.engine.running = False
    done = desk("engine", "status", "--watch", "--columns", "status")
    assert (done.code, done.lines) == (69, ["STATUS", "stopped"])


@pytest.mark.req("UI-40")
def test_an_ended_hold_is_printed_by_its_id(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.backend.deltas = [JobsDelta((), (), 1)] * 2
    kept, seen = desk.backend.hold_rows, iter([desk.backend.hold_rows, []])

    async def holds() -> list[HoldRow]:
        return next(seen)

    monkeypatch.setattr(desk.backend, "holds", holds)
    *_, last = [msgspec.json.decode(line) for line in desk("holds", "--watch").lines]
    assert last == {"version": 1, "change": "gone", "id": kept[-1].job}


@pytest.mark.req("UI-40", "TR-04")
@pytest.mark.parametrize("words", [("jobs",), ("nodes",), ("events",)])
def test_a_watch_says_that_the_cluster_fell_silent_and_that_it_answers_again(
    desk: Desk, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = "Slurm does not answer squeue."
    silences = iter(["", away, away, "", away, ""])
    monkeypatch.setattr(type(desk.backend), "silence", property(lambda _: next(silences)))
    desk.backend.deltas = [JobsDelta(tuple(five_jobs()) if not number else (), (), number) for number in range(6)]
    done = desk(*words, "--watch")
    assert done.err.splitlines() == 2 * [
        f"The cluster does not answer; the lines above are older: {away}",
        "The cluster answers again.",
    ]
    assert b"gone" not in done.out


@pytest.mark.req("UI-40")
def test_events_are_watched_from_the_last_ones_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request asks for what came after the last event that it had."""
    records = desk.backend.event_records
    asked: list[tuple[int, int]] = []
    everything: list[bool] = []

    async def events(*, job: object, after: int, limit: int, rank: int | None) -> list[EventRecord]:
        asked.append((after, limit))
        return records if after < 0 else []

    async def watch_jobs(*, anything: bool = False) -> AsyncIterator[JobsDelta]:
        everything.append(anything)
        for loaded in (False, True, True):
            yield JobsDelta((), (), 1, loaded=loaded)

    monkeypatch.setattr(desk.backend, "events", events)
    monkeypatch.setattr(desk.backend, "watch_jobs", watch_jobs)
    assert len(desk("events", "--watch").lines) == len(records)
    assert asked == [(-1, 1000), (records[-1].seq, 1000)]
    assert everything == [True]
