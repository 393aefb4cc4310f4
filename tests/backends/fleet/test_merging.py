"""What a fleet makes of its members' answers: each list merged in the fleet's ids, names and times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from cockpit.backends.base import CommandPreview, Connection, JobsDelta, Phase
from cockpit.backends.demo.backend import open_demo
from cockpit.backends.fleet import backend as fleet_module
from cockpit.backends.fleet.backend import FleetBackend
from cockpit.backends.fleet.id_translation import Words, in_fleet
from cockpit.backends.fleet.member import Opened
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.opening import open_recorded
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.errors import NotRun, RequestRefused, Unreachable
from cockpit.model.accounting import EndedJob
from cockpit.model.capabilities import Ability
from cockpit.model.ids import Millis, member_id, member_of
from cockpit.model.jobrow import JobRow
from cockpit.model.view import ClusterState, Overview
from cockpit.runtime.clock import VirtualClock
from tests.backends.slurm.paper_cluster import Changeable
from tests.doubles.samples import job

NOW = Millis(1_795_300_000_000)


class Changing(SlurmBackend):
    """A recorded cluster whose later changes and connection the test gives."""

    deltas: asyncio.Queue[JobsDelta]
    rows: Sequence[JobRow] | None
    standing: Connection | None
    standings: asyncio.Queue[Connection]
    figures: asyncio.Queue[Overview]

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        return self.rows if self.rows is not None else await super().jobs(ended=ended)

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        del anything
        while True:
            yield await self.deltas.get()

    @property
    def connection(self) -> Connection:
        return self.standing or super().connection

    async def connections(self) -> AsyncIterator[Connection]:
        while True:
            yield await self.standings.get()

    async def overviews(self) -> AsyncIterator[Overview]:
        while True:
            yield await self.figures.get()


async def changing(*, still: bool = True) -> tuple[Changing, Opened]:
    backend, now = await open_recorded("24.11")
    backend.__class__ = Changing
    assert isinstance(backend, Changing)
    backend.deltas, backend.standings, backend.figures = asyncio.Queue(), asyncio.Queue(), asyncio.Queue()
    backend.rows = backend.standing = None
    return backend, Opened(backend, now, backend.close, still=still)


async def old() -> Opened:
    backend, now = await open_recorded("22.05")
    return Opened(backend, now, backend.close, still=True)


def fleet_of(*opened: Opened, now: Millis = NOW) -> FleetBackend:
    def opening(one: Opened) -> Callable[[], Awaitable[Opened]]:
        async def open_it() -> Opened:
            return one

        return open_it

    return FleetBackend("all", [(f"c{n}", "", opening(each)) for n, each in enumerate(opened, 1)], lambda: now)


@pytest.mark.req("UI-10")
async def test_a_job_that_left_its_cluster_is_not_shown_to_those_who_look_later() -> None:
    backend, opened = await changing()
    stays, leaves = (await backend.jobs())[:2]
    fleet = fleet_of(opened)
    async with asyncio.timeout(30), aclosing(fleet.watch_jobs()) as deltas:
        backend.deltas.put_nowait(JobsDelta((stays, leaves), (), 1))
        backend.deltas.put_nowait(JobsDelta((), (leaves.id,), 2))
        async for delta in deltas:
            if delta.removed:
                assert delta.removed == (member_id(1, leaves.id),)
                break
    async with asyncio.timeout(30), aclosing(fleet.watch_jobs()) as deltas:
        assert [row.id for row in (await anext(deltas)).changed] == [member_id(1, stays.id)]
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
async def test_followers_of_jobs_are_informed_that_a_cluster_fell_silent_and_answers_again() -> None:
    backend, opened = await changing(still=False)
    fleet = fleet_of(opened, now=opened.now())
    heard = Millis(opened.now() - 60_000)
    async with asyncio.timeout(30), aclosing(fleet.watch_jobs()) as deltas:
        await anext(deltas)
        for standing, state in (
            (Connection(Phase.CONNECTED, good_at=heard), ClusterState.LIVE),
            (Connection(Phase.STALE, "The controller does not answer.", heard), ClusterState.SILENT),
            (Connection(Phase.CONNECTED, good_at=opened.now()), ClusterState.LIVE),
        ):
            backend.standings.put_nowait(standing)
            assert await anext(deltas) == JobsDelta((), (), 0)
            (row,) = await fleet.clusters()
            assert (row.state, row.reason, row.heard_at) == (state, standing.reason, standing.good_at)
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_components_of_a_heterogeneous_job_keep_their_numbers_and_name_their_first_in_the_fleet() -> None:
    backend, opened = await changing()
    first, second, other = (await backend.jobs())[:3]
    backend.rows = [replace(first, component=(first.id, 0)), replace(second, component=(first.id, 1)), other]
    fleet = fleet_of(opened)
    rows = await fleet.jobs()
    assert [row.component for row in rows] == [(rows[0].id, 0), (rows[0].id, 1), None]
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_a_recorded_cluster_last_answered_at_the_time_of_its_recording() -> None:
    opened = await old()
    fleet = fleet_of(opened)
    (row,) = await fleet.clusters()
    assert (row.state, row.heard_at) == (ClusterState.STILL, opened.now())
    assert row.heard_at != NOW
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
@pytest.mark.parametrize("ahead_ms", [0, 500, -500])
async def test_the_last_answer_of_a_cluster_with_the_same_clock_keeps_its_time(ahead_ms: int) -> None:
    backend, opened = await changing(still=False)
    answered = Millis(opened.now() - 3_000)
    backend.standing = Connection(Phase.CONNECTED, good_at=answered)
    fleet = fleet_of(opened, now=Millis(opened.now() + ahead_ms))
    (row,) = await fleet.clusters()
    assert (row.state, row.heard_at) == (ClusterState.LIVE, answered)
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
@pytest.mark.parametrize("ahead_ms", [1_001, -3_600_000])
async def test_a_cluster_that_answers_with_another_clock_last_answered_now(ahead_ms: int) -> None:
    backend, opened = await changing(still=False)
    backend.standing = Connection(Phase.CONNECTED, good_at=opened.now())
    now = Millis(opened.now() + ahead_ms)
    fleet = fleet_of(opened, now=now)
    (row,) = await fleet.clusters()
    assert (row.state, row.heard_at) == (ClusterState.LIVE, now)
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_times_of_a_cluster_with_another_clock_are_moved_and_those_of_the_same_clock_are_not() -> None:
    backend, opened = await changing()
    before = {row.id: row.submitted_at for row in await backend.jobs()}
    for ahead_ms, moved in ((1_000, 0), (1_001, 1_001), (-60_000, -60_000)):
        fleet = fleet_of(opened, now=Millis(opened.now() + ahead_ms))
        found = {member_of(row.id)[1]: row.submitted_at for row in await fleet.jobs()}
        assert {job: at - before[job] for job, at in found.items()} == dict.fromkeys(before, moved)
    await opened.close()


@pytest.mark.req("UI-10")
async def test_held_containers_and_nodes_of_all_clusters_are_in_one_list(tmp_path: Path) -> None:
    demo = await open_demo("campus", 1, tmp_path / "demo", going=False)
    own_holds, own_nodes = await demo.backend.holds(), await demo.backend.nodes()
    assert own_holds
    recorded = await old()
    fleet = fleet_of(recorded, Opened(demo.backend, demo.now, demo.close), now=demo.now())
    holds = await fleet.holds()
    assert [member_of(each.job) for each in holds] == [(2, each.job) for each in own_holds]
    assert [each.nodes for each in holds] == [tuple(f"c2:{node}" for node in each.nodes) for each in own_holds]
    names = [f"c1:n{number}" for number in range(1, 5)] + [f"c2:{row.node.name}" for row in own_nodes]
    assert sorted(row.node.name for row in await fleet.nodes()) == sorted(names)
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_ended_jobs_of_all_clusters_are_listed_with_the_latest_end_first() -> None:
    first, second = await old(), await old()
    fleet = fleet_of(first, second)
    ended = await fleet.accounting()
    own: list[EndedJob] = await first.backend.accounting()
    assert {member_of(each.row.id) for each in ended} == {(n, each.row.id) for n in (1, 2) for each in own}
    assert {each.row.clusters for each in ended} == {("c1",), ("c2",)}
    assert all((one.row.ended_at or 0) >= (next_.row.ended_at or 0) for one, next_ in pairwise(ended))
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_the_figures_of_all_clusters_are_added_up() -> None:
    opened = [await old(), (await changing())[1]]
    parts = [await each.backend.overview() for each in opened]
    fleet = fleet_of(*opened)
    whole = await fleet.overview()
    for figure in ("held", "nodes", "cpus", "used_cpus", "memory_mib", "used_memory_mib", "card_milli"):
        assert getattr(whole, figure) == sum(getattr(each, figure) for each in parts), figure
    assert whole.used_card_milli == sum(each.used_card_milli for each in parts)
    states = {state for each in parts for state in each.jobs_by_state}
    assert whole.jobs_by_state == {state: sum(each.jobs_by_state.get(state, 0) for each in parts) for state in states}
    assert (whole.cluster, whole.admin) == ("all", False)
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
async def test_a_member_that_does_not_answer_is_omitted_after_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "PATIENCE_SECONDS", 0.05)
    opened = await old()

    async def never() -> Opened:
        await asyncio.Event().wait()
        raise AssertionError

    async def open_old() -> Opened:
        return opened

    fleet = FleetBackend("all", [("mute", "", never), ("old", "", open_old)], lambda: NOW)
    async with asyncio.timeout(30):
        assert {row.clusters for row in await fleet.jobs()} == {("old",)}
        assert await fleet.holds() == []
        states = {row.name: (row.state, row.reason) for row in await fleet.clusters()}
    assert states["mute"] == (ClusterState.SILENT, "It did not answer within 0.05 s.")
    assert states["old"][0] is ClusterState.STILL
    await fleet.close()
    alone = FleetBackend("all", [("mute", "", never)], lambda: NOW)
    async with asyncio.timeout(30):
        with pytest.raises(Unreachable, match="mute does not answer: It did not answer within"):
            await alone.jobs()
        assert [row.state for row in await alone.clusters()] == [ClusterState.SILENT]
    await alone.close()


@pytest.mark.req("UI-10")
async def test_commands_of_a_member_are_shown_before_they_run_and_run_only_if_confirmed() -> None:
    commands = Changeable("22.05")
    clock = VirtualClock(commands.recorded_at)
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now)
    backend = SlurmBackend("old", commands, reading, clock, "alice")
    fleet = fleet_of(Opened(backend, clock.now, backend.close))
    shown: list[str] = []

    async def look(commands: Sequence[CommandPreview]) -> bool:
        shown.extend(str(each) for each in commands)
        return False

    fleet.announce(look)
    with pytest.raises(NotRun):
        await fleet.cancel(member_id(1, 9))
    assert len(shown) == 1
    assert "scancel" in shown[0]
    await fleet.close()


@pytest.mark.req("UI-10", "SL-21")
async def test_an_engines_job_is_not_changed_where_commands_must_be_shown() -> None:
    demo = await open_demo(going=False)
    fleet = fleet_of(Opened(demo.backend, demo.now, demo.close))

    async def look(_: Sequence[CommandPreview]) -> bool:
        return False

    fleet.announce(look, required=True)
    before = [row.state for row in await fleet.jobs()]
    (first, *_) = await fleet.jobs()
    with pytest.raises(RequestRefused, match="it runs no commands"):
        await fleet.cancel(first.id)
    assert [row.state for row in await fleet.jobs()] == before
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_what_can_be_done_with_a_job_depends_on_its_cluster() -> None:
    demo, (backend, clock) = await open_demo(going=False), await open_recorded("22.05")
    fleet = fleet_of(Opened(demo.backend, demo.now, demo.close), Opened(backend, clock, backend.close, still=True))
    await fleet.jobs()
    own, recorded = (fleet.capabilities_for([member_id(number, 1)]) for number in (1, 2))
    assert not own.has(Ability.COMMANDS), "so the cockpit asks before it changes the job"
    assert (own.has("cancel"), recorded.has("cancel"), recorded.has(Ability.COMMANDS)) == (True, False, True)
    await fleet.close()


@pytest.mark.req("UI-10", "TR-04")
async def test_a_fleet_is_connected_though_a_member_does_not_answer() -> None:
    backend, opened = await changing(still=False)
    backend.standing = Connection(Phase.STALE, "The controller does not answer.")
    fleet = fleet_of(opened)
    async with asyncio.timeout(30), aclosing(fleet.connections()) as connections:
        assert await anext(connections) == fleet.connection == Connection(Phase.CONNECTED)
    await fleet.close()


@pytest.mark.req("UI-10")
def test_a_mapping_whose_values_are_times_is_moved_to_the_fleets_clock() -> None:
    moved = in_fleet(job(in_vain={"node failure": Millis(1_000), "preemption": Millis(2_000)}), Words(2, "lab", 500))
    assert moved.in_vain == {"node failure": 1_500, "preemption": 2_500}


@pytest.mark.req("UI-10")
async def test_the_sum_of_all_figures_follows_those_of_the_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "LOOK_SECONDS", 0.0)
    backend, opened = await changing(still=False)
    own = await backend.overview()
    fleet = fleet_of(opened)
    async with asyncio.timeout(30), aclosing(fleet.overviews()) as overviews:
        assert (await anext(overviews)).nodes == 0, "nothing is known of the member yet"
        for nodes in (own.nodes, own.nodes + 3):
            backend.figures.put_nowait(replace(own, nodes=nodes))
            assert (await anext(overviews)).nodes == nodes
        # Figures that stay are not sent again.
        for nodes in (own.nodes + 3, own.nodes + 9):
            backend.figures.put_nowait(replace(own, nodes=nodes))
        assert (await anext(overviews)).nodes == own.nodes + 9
    await fleet.close()


@pytest.mark.req("UI-10")
async def test_events_are_read_of_one_job_at_its_cluster_and_not_of_all_clusters(tmp_path: Path) -> None:
    demo = await open_demo("campus", 1, tmp_path / "demo", going=False)
    job = next(row.id for row in await demo.backend.jobs() if row.placed_on)
    own = await demo.backend.events(job=job)
    assert own
    fleet = fleet_of(await old(), Opened(demo.backend, demo.now, demo.close), now=demo.now())
    assert [each.at for each in await fleet.events(job=member_id(2, job))] == [each.at for each in own]
    with pytest.raises(RequestRefused, match="each cluster's own: open one of them"):
        await fleet.events()
    await fleet.close()
