"""Several clusters as one: merged jobs, acts at the right one, and a silent one that holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from cockpit.backends.base import JobsDelta
from cockpit.backends.fleet import backend as fleet_module
from cockpit.backends.fleet import member as member_module
from cockpit.backends.fleet.backend import FleetBackend
from cockpit.backends.fleet.member import Opened
from cockpit.backends.slurm.backend import CAPABILITIES, SlurmBackend
from cockpit.backends.slurm.opening import open_recorded
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.capabilities import Capabilities
from cockpit.model.directives import MoveToTop, SendSignal
from cockpit.model.ids import JobId, Millis, member_id, member_of, task_id
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import WaitsForJob
from cockpit.model.view import ClusterState
from cockpit.present.folding import fold, id_text, own_ids

TOP = MoveToTop(("9",))
NOW = Millis(1_795_300_000_000)
Opening = Callable[[], Awaitable[Opened]]


class Acting(SlurmBackend):
    """A recorded cluster at which acts are written down."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.done: list[tuple[str, msgspec.Struct]] = []

    @property
    def capabilities(self) -> Capabilities:
        # Unlike a recording it takes changes.
        return CAPABILITIES

    async def direct(self, wanted: Any) -> None:
        self.done.append(("direct", wanted))

    async def act(self, op: str, args: msgspec.Struct, answer: Any) -> Any:
        self.done.append((op, args))
        return answer() if answer is not type(None) else None


async def recorded(version: str) -> Opened:
    backend, now = await open_recorded(version)
    backend.__class__ = Acting
    backend.done = []
    return Opened(backend, now, backend.close, still=True)


async def refused() -> Opened:
    raise Unreachable("lab cannot be reached over SSH.")


async def never() -> Opened:
    await asyncio.Event().wait()
    raise AssertionError


def a_fleet(**more: Opening) -> FleetBackend:
    openings = {"old": lambda: recorded("22.05"), "new": lambda: recorded("24.11"), **more}
    return FleetBackend("all", [(name, f"way to {name}", each) for name, each in openings.items()], lambda: NOW)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(member_module, "RETRY_SECONDS", 0.0)


@pytest.mark.req("UI-10")
async def test_jobs_of_all_clusters_are_in_one_list_with_distinct_ids() -> None:
    fleet = a_fleet()
    rows = await fleet.jobs()
    assert {row.clusters for row in rows} == {("old",), ("new",)}
    assert len({row.id for row in rows}) == len(rows)
    own = [(row.clusters, member_of(row.id)[1]) for row in rows]
    assert (("old",), JobId(9)) in own
    assert (("new",), JobId(9)) in own
    folded = {(row.clusters, id_text(row)) for row in fold(rows)}
    assert {(("old",), "46_[2-9%2]"), (("new",), "46_[0-9%2]")} <= folded or len(folded) < len(rows)
    assert {row.id for row in own_ids(rows)} <= {member_of(row.id)[1] for row in rows}
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_job_details_use_the_ids_of_the_fleet() -> None:
    fleet = a_fleet()
    rows = await fleet.jobs()
    waits = next(row for row in rows if isinstance(row.reason, WaitsForJob) and row.clusters == ("new",))
    assert isinstance(waits.reason, WaitsForJob)
    assert waits.reason.job == member_id(2, 47)
    detail = await fleet.job(waits.id)
    assert (detail.row.id, detail.row.clusters, detail.job.id) == (waits.id, ("new",), waits.id)
    ahead = next(row for row in rows if row.name == "p1-bob" and row.clusters == ("new",))
    outlook = await fleet.explain(ahead.id)
    assert outlook.job == ahead.id
    assert outlook.explanation is not None
    assert {member_of(job)[0] for job in outlook.explanation.ahead} == {2}
    assert set(outlook.explanation.ahead) <= {row.id for row in rows}
    running = next(row for row in rows if row.placed_on and row.clusters == ("old",))
    assert {node.partition(":")[0] for node in running.placed_on} == {"old"}
    assert running.started_at is not None
    assert 0 <= NOW - running.started_at < 3_600_000, "moments are told on one clock"
    assert {row.node.name for row in await fleet.nodes()} >= set(running.placed_on)
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_an_action_is_sent_to_the_cluster_of_the_job() -> None:
    fleet = a_fleet()
    old, new = [await member.backend() for member in fleet.members]
    assert isinstance(old, Acting)
    assert isinstance(new, Acting)
    await fleet.cancel(member_id(2, 9))
    await fleet.hold(member_id(1, task_id(46, 3)))
    await fleet.drain_node("old:n1", "disk")
    await fleet.direct(SendSignal(member_id(2, 9), "USR1"))
    assert [(op, getattr(args, "job", None)) for op, args in new.done] == [("cancel", 9), ("direct", 9)]
    assert [(op, getattr(args, "job", getattr(args, "name", None))) for op, args in old.done] == [
        ("hold", task_id(46, 3)),
        ("drain_node", "n1"),
    ]
    for ask in (fleet.queues, fleet.priorities, fleet.accounts, lambda: fleet.submit([]), lambda: fleet.direct(TOP)):
        with pytest.raises(RequestRefused, match="each cluster's own: open one of them"):
            await ask()
    with pytest.raises(RequestRefused, match="Name the cluster, too"):
        await fleet.cancel(JobId(9))
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
@pytest.mark.usefixtures("impatient")
async def test_a_silent_cluster_delays_no_other() -> None:
    fleet = a_fleet(lab=refused, mute=never)
    rows = {row.name: row for row in await fleet.clusters()}
    assert {name: row.state for name, row in rows.items()} == {
        "old": ClusterState.STILL,
        "new": ClusterState.STILL,
        "lab": ClusterState.SILENT,
        "mute": ClusterState.SILENT,
    }
    assert rows["mute"].reason.startswith("It did not answer within")
    assert rows["lab"].reason == "lab cannot be reached over SSH."
    assert (rows["lab"].heard_at, rows["lab"].overview) == (None, None)
    assert rows["old"].heard_at is not None
    assert rows["old"].overview is not None
    assert rows["old"].overview.jobs_by_state["running"] == 9
    assert {row.clusters for row in await fleet.jobs()} == {("old",), ("new",)}
    whole = await fleet.overview()
    assert (whole.nodes, whole.card_milli) == (8, 32_000)
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
@pytest.mark.usefixtures("impatient")
async def test_followers_of_jobs_are_informed_of_a_silent_cluster() -> None:
    fleet = a_fleet(lab=refused)
    async with asyncio.timeout(30), aclosing(fleet.watch_jobs()) as deltas:
        async for _ in deltas:
            if "lab" in {row.name for row in await fleet.clusters() if row.state is ClusterState.SILENT}:
                break
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
@pytest.mark.usefixtures("impatient")
async def test_a_cluster_that_answers_again_reappears_by_itself() -> None:
    tries = 0

    async def flapping() -> Opened:
        nonlocal tries
        tries += 1
        return await (refused() if tries < 3 else recorded("24.11"))

    fleet = FleetBackend("all", [("old", "", lambda: recorded("22.05")), ("late", "", flapping)], lambda: NOW)
    seen: dict[JobId, JobRow] = {}
    async with asyncio.timeout(30):
        async for delta in fleet.watch_jobs():
            assert isinstance(delta, JobsDelta)
            seen.update((row.id, row) for row in delta.changed)
            if {row.clusters for row in seen.values()} == {("old",), ("late",)}:
                break
    assert tries == 3
    assert {row.state for row in await fleet.clusters()} == {ClusterState.STILL}
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
async def test_a_watched_fleet_asks_only_the_clusters_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_module, "RETRY_SECONDS", 3600.0)
    tries = 0

    async def counted() -> Opened:
        nonlocal tries
        tries += 1
        return await refused()

    fleet = a_fleet(lab=counted)
    async with asyncio.timeout(30), aclosing(fleet.watch_jobs()) as deltas:
        async for _ in deltas:
            if [row.state for row in await fleet.clusters()].count(ClusterState.CONNECTING) == 0:
                break
        nodes = await fleet.nodes()
        assert {row.node.name.partition(":")[0] for row in nodes} == {"old", "new"}
        assert tries == 1, "the user would wait for a cluster that is known not to answer"
    await fleet.close()


async def test_changes_are_not_stored_for_a_view_that_is_closed() -> None:
    fleet = a_fleet()
    async with asyncio.timeout(30), aclosing(fleet.watch_jobs()) as one, aclosing(fleet.watch_jobs()) as other:
        await anext(one)
        await anext(other)
        await one.aclose()
        assert len(fleet._listeners) == 1
    assert not fleet._listeners
    await fleet.close()


async def test_an_unused_fleet_opens_no_connection() -> None:
    fleet = a_fleet(lab=never)
    await fleet.close()


@pytest.mark.req("UI-10", "SC-12")
async def test_start_estimates_come_from_each_jobs_own_cluster(impatient: None) -> None:
    fleet = a_fleet(away=refused)
    queued = [row for row in await fleet.jobs() if row.queued]
    promised = {row.id: row.starts_by for row in queued if row.starts_by is not None}
    assert {number for number, _ in map(member_of, promised)} == {1, 2}
    told = await fleet.starts([*(row.id for row in queued), member_id(3, 9)])
    assert {each.job: each.at for each in told} == promised
    await fleet.close()
