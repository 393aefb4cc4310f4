"""Members over links that break between order and answer: nothing is started twice, and nothing is lost."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.inprocess import InProcessBackend
from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.effects import StartReplica
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.fleetorder import order_of
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.spec import Suspension
from cockpit.runtime.engine import Engine
from tests.builders import ANN, a_spec
from tests.runtime.remote_world import ANSWER, BY_TEST, LATE, REQUEST, Cluster, Fleet, a_fleet, stopped

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.model.job import Job

pytestmark = pytest.mark.req("FL-04", "FL-08")


def once(fleet: Fleet) -> None:
    """No part of an attempt has begun as two jobs of its member."""
    begun: dict[tuple[int, int, str], set[int]] = {}
    for cluster in fleet.clusters.values():
        for job, attempt, own in cluster.starts():
            begun.setdefault((job, attempt, cluster.name), set()).add(own)
    assert all(len(each) == 1 for each in begun.values()), begun
    for job, attempt, name in begun:
        known = fleet.host.machine.state.jobs.get(job)
        mine = [each for each in (*known.earlier, known.attempt) if each is not None] if known is not None else []
        assert all(name in each.members for each in mine if each.number == attempt), "it began where it was bound"


async def test_a_job_runs_and_ends_on_a_member_over_a_link(tmp_path: Path) -> None:
    fleet = await a_fleet(tmp_path, ("west", 2, 8))
    job = await fleet.submit(a_spec("bert", nodes=2, card_milli=8000))
    await fleet.pass_time(10_000)
    west = fleet.clusters["west"]
    (part,) = west.parts()
    assert part.spec.name == f"bert-f0a1b2c-{job}-1"
    assert (fleet.job(job).state, part.state) == (JobState.RUNNING, JobState.RUNNING)
    for rank in range(2):
        west.executor.end(part.id, rank=rank)
    await fleet.pass_time(10_000)
    assert fleet.job(job).state is JobState.SUCCEEDED
    once(fleet)
    await stopped(fleet)


@pytest.mark.parametrize("loss", [REQUEST, ANSWER, LATE])
async def test_a_link_that_breaks_at_any_call_starts_nothing_twice_and_loses_nothing(tmp_path: Path, loss: str) -> None:
    """The whole life of a job has some thirty calls; each of them is cut in a run of its own."""
    at, calls = 1, 2
    while at <= calls:
        fleet = await a_fleet(tmp_path, ("west", 1, 8))
        west = fleet.clusters["west"]
        before = west.link.calls
        west.link.cut = lambda number, _, first=before + at: loss if number == first else ""
        job = await fleet.submit(a_spec("bert", card_milli=8000))
        await fleet.pass_time(20_000)
        assert fleet.job(job).state is JobState.RUNNING, at
        (own,) = {own for _, _, own in west.starts()}
        west.executor.end(own)
        await fleet.pass_time(20_000)
        assert fleet.job(job).state is JobState.SUCCEEDED, at
        once(fleet)
        live = [each for each in west.parts() if not each.ended]
        assert live == [], "a second job of a repeated order is cancelled"
        at, calls = at + 1, min(west.link.calls - before, 30)
        await stopped(fleet)
    assert at > 15


async def test_a_member_gives_a_part_back_that_it_cannot_start_before_the_job_starts_elsewhere(
    tmp_path: Path,
) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), ("east", 1, 8))
    west = fleet.clusters["west"]
    await _fill(west, 5)
    await fleet.pass_time(100)
    # the fleet has not looked again, and takes west's cards to be free
    job = await fleet.submit(a_spec("bert", card_milli=8000))
    await fleet.pass_time(1_000)
    assert fleet.job(job).attempt.members == ("west",)
    await fleet.pass_time(40_000)
    assert fleet.job(job).attempt.members == ("east",)
    assert fleet.job(job).state is JobState.RUNNING
    assert [each.state for each in west.parts()] == [JobState.STOPPED]
    once(fleet)
    await stopped(fleet)


async def _fill(cluster: Cluster, cards: int) -> None:
    own = a_spec("own", card_milli=1000 * cards)
    await cluster.host.act(lambda machine, now: submit(machine, [own], Actor(ANN, admin=True), now=now), BY_TEST)


@pytest.mark.parametrize("suspended", [False, True])
async def test_a_silent_member_keeps_what_it_may_have_started_until_it_answers(tmp_path: Path, suspended: bool) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), ("east", 1, 8))
    west = fleet.clusters["west"]
    west.link.cut = lambda _, operation: REQUEST if operation == "release" else ""
    leaf = QuotaNode(name="leaf", namespaces=("ann",))
    tree = QuotaTree("quota", QuotaNode(name="root", children=(leaf,)))
    await fleet.host.act(lambda _machine, _now: [events.QuotaApplied(tree)], BY_TEST)
    fields = {"suspension": Suspension(scheduling=True)} if suspended else {}
    job = await fleet.submit(a_spec("bert", card_milli=8000, **fields))
    await fleet.pass_time(4_000)
    west.link.cut = lambda *_: ANSWER
    await fleet.pass_time(120_000)
    (part,) = fleet.job(job).attempt.remote
    assert (part.member, part.is_released, part.is_recalled) == ("west", True, True)
    assert fleet.job(job).attempt.members == ("west",), "it may run there"
    assert fleet.members.remote["west"].is_silent
    assert fleet.host.machine.state.nodes["west/n0"].state is NodeState.DRAINED
    other = await fleet.submit(a_spec("other", card_milli=4000))
    await fleet.pass_time(10_000)
    assert fleet.job(other).attempt.members == ("east",), "the rest goes on"
    west.link.cut = lambda *_: ""
    await fleet.pass_time(60_000)
    kinds = [record.body for record in await fleet.journal.events(job=job, after=-1, limit=1000)]
    given_up = [each for each in kinds if isinstance(each, events.BindingGivenUp)]
    assert [each.revoked for each in given_up] == [suspended]
    once(fleet)
    await stopped(fleet)


async def test_a_part_that_runs_behind_a_broken_link_is_ended_before_the_job_starts_elsewhere(tmp_path: Path) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), ("east", 1, 8))
    west, released = fleet.clusters["west"], []

    def lost_from_the_release_on(_: int, operation: str) -> str:
        released.extend([operation] if operation == "release" else [])
        return REQUEST if released and operation != "release" else ANSWER if operation == "release" else ""

    west.link.cut = lost_from_the_release_on
    job = await fleet.submit(a_spec("bert", card_milli=8000))
    await fleet.pass_time(60_000)
    (part,) = west.parts()
    assert part.state is JobState.RUNNING
    assert fleet.job(job).attempt.remote[0].is_recalled
    west.link.cut = lambda *_: ""
    await fleet.pass_time(20_000)
    check_now(fleet)
    assert west.job_of(part.id).ending is not None
    assert fleet.job(job).attempt.members == ("west",), "it is being ended, and still runs"
    west.executor.end(part.id, code=143)
    await fleet.pass_time(20_000)
    assert fleet.job(job).attempt.members == ("east",)
    assert fleet.job(job).state is JobState.RUNNING
    once(fleet)
    await stopped(fleet)


async def test_no_part_is_released_before_the_other_members_have_placed_theirs(tmp_path: Path) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), hub=2)
    (hub,) = fleet.members.hosts
    own = [a_spec(f"own-{number}", card_milli=5000) for number in range(2)]
    await hub.act(lambda machine, now: submit(machine, own, Actor(ANN, admin=True), now=now), BY_TEST)
    await fleet.pass_time(5_000)
    # six cards are free there in all, but three on each node
    job = await fleet.submit(a_spec("gang", nodes=2, card_milli=6000, divide_over_clusters=True))
    await fleet.pass_time(10_000)
    assert sorted(fleet.job(job).attempt.members) == ["hub", "west"]
    assert [each.state for each in fleet.clusters["west"].parts()] == [JobState.QUEUED]
    await fleet.pass_time(40_000)
    assert fleet.clusters["west"].starts() == []
    await stopped(fleet)


async def test_a_part_that_was_never_released_is_given_up_without_its_member(tmp_path: Path) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), ("east", 1, 8))
    west = fleet.clusters["west"]
    west.link.cut = lambda *_: LATE
    job = await fleet.submit(a_spec("bert", card_milli=8000))
    await fleet.pass_time(60_000)
    assert fleet.job(job).attempt.members == ("east",)
    assert fleet.job(job).state is JobState.RUNNING
    west.link.cut = lambda *_: ""
    await fleet.pass_time(20_000)
    assert [each.state for each in west.parts() if not each.ended] == []
    once(fleet)
    await stopped(fleet)


async def test_a_member_that_never_answered_an_order_is_tried_again_although_nothing_was_released_there(
    tmp_path: Path,
) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8))
    west = fleet.clusters["west"]
    west.link.cut = lambda _, operation: REQUEST if operation == "submit" else ""
    job = await fleet.submit(a_spec("bert", card_milli=8000))
    await fleet.pass_time(70_000)
    west.link.cut = lambda *_: ""
    await fleet.pass_time(70_000)
    assert fleet.job(job).state is JobState.RUNNING
    once(fleet)
    await stopped(fleet)


async def test_a_cancelled_job_ends_at_once_where_it_was_not_released_and_else_when_the_member_says_so(
    tmp_path: Path,
) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8))
    west = fleet.clusters["west"]
    job = await fleet.submit(a_spec("bert", card_milli=8000))
    await fleet.pass_time(10_000)
    west.link.cut = lambda *_: REQUEST
    await fleet.host.act(lambda _machine, now: decide.cancel(fleet.job(job), now, 0), BY_TEST)
    await fleet.pass_time(30_000)
    assert not fleet.job(job).ended, "it runs there as far as the fleet knows"
    west.link.cut = lambda *_: ""
    await fleet.pass_time(10_000)
    (part,) = west.parts()
    west.executor.end(part.id, code=143)
    await fleet.pass_time(10_000)
    assert fleet.job(job).state is JobState.STOPPED
    await stopped(fleet)


@pytest.mark.req("FL-05")
async def test_a_gang_over_a_member_here_and_one_over_a_link_starts_together(tmp_path: Path) -> None:
    fleet = await a_fleet(tmp_path, ("west", 2, 8), ("east", 2, 8), hub=2)
    west, east = fleet.clusters["west"], fleet.clusters["east"]
    west.link.cut = lambda _, operation: REQUEST if operation == "release" else ""
    job = await fleet.submit(a_spec("gang", nodes=3, card_milli=8000, divide_over_clusters=True))
    await fleet.pass_time(5_000)
    assert sorted(fleet.job(job).attempt.members) == ["hub", "hub", "west"]
    assert fleet.hub_executor.of(StartReplica) == [], "no container begins before all parts are placed"
    assert fleet.job(job).attempt.awaits == ("west",)
    west.link.cut = lambda *_: ""
    await fleet.pass_time(5_000)
    assert len(fleet.hub_executor.of(StartReplica)) == 2
    assert all(each.started_at is not None for each in fleet.job(job).attempt.replicas)
    too_big = await fleet.submit(a_spec("too-big", nodes=5, card_milli=8000, divide_over_clusters=True))
    await fleet.pass_time(5_000)
    assert fleet.job(too_big).attempt is None, "a cluster over a link has one part of a job at most"
    assert east.starts() == []
    once(fleet)
    await stopped(fleet)


@pytest.mark.req("FL-05")
async def test_a_gang_over_several_links_counts_as_begun_when_all_its_parts_run(tmp_path: Path) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), ("east", 1, 8), ("south", 1, 8), hub=1)
    west, south = fleet.clusters["west"], fleet.clusters["south"]
    south.link.cut = lambda _, operation: REQUEST if operation == "submit" else ""
    job = await fleet.submit(a_spec("gang", nodes=4, card_milli=8000, divide_over_clusters=True))
    await fleet.pass_time(8_000)
    assert sorted(fleet.job(job).attempt.members) == ["east", "hub", "south", "west"]
    assert not any(part.is_released for part in fleet.job(job).attempt.remote), "south has not accepted its part"
    south.link.cut = lambda _, operation: REQUEST if operation == "release" else ""
    await fleet.pass_time(8_000)
    assert len(west.starts()) == 1
    assert fleet.job(job).attempt.awaits == ("south",)
    assert not any(each.started_at for each in fleet.job(job).attempt.replicas)
    assert fleet.hub_executor.of(StartReplica) == []
    south.link.cut = lambda *_: ""
    await fleet.pass_time(6_000)
    assert fleet.job(job).state is JobState.RUNNING
    assert all(each.started_at is not None for each in fleet.job(job).attempt.replicas)
    for cluster in fleet.clusters.values():
        cluster.end()
    end_of_hub(fleet)
    await fleet.pass_time(10_000)
    assert fleet.job(job).state is JobState.SUCCEEDED
    once(fleet)
    await stopped(fleet)


@pytest.mark.req("FL-05")
async def test_a_gang_of_which_one_part_cannot_begin_runs_nowhere_before_all_parts_are_given_back(
    tmp_path: Path,
) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), ("east", 1, 8), ("south", 1, 8))
    west, east = fleet.clusters["west"], fleet.clusters["east"]
    await _fill(east, 5)
    await fleet.pass_time(100)
    # The fleet has not looked again, and takes east's cards to be free.
    job = await fleet.submit(a_spec("gang", nodes=2, card_milli=8000, divide_over_clusters=True))
    await fleet.pass_time(8_000)
    assert fleet.job(job).attempt.members == ("west", "east")
    (part,) = west.parts()
    assert part.state is JobState.RUNNING
    await fleet.pass_time(26_000)
    assert all(each.is_recalled for each in fleet.job(job).attempt.remote)
    assert west.job_of(part.id).ending is not None
    assert fleet.job(job).attempt.members == ("west", "east"), "west has not said yet that it runs nothing"
    assert [each.state for each in east.parts()] == [JobState.STOPPED]
    west.executor.end(part.id, code=143)
    await fleet.pass_time(20_000)
    assert fleet.job(job).state is JobState.RUNNING
    assert sorted(fleet.job(job).attempt.members) == ["south", "west"]
    assert fleet.job(job).attempt.number == 2
    once(fleet)
    check_now(fleet)
    await stopped(fleet)


@pytest.mark.req("FL-05")
async def test_a_cancelled_gang_of_which_a_part_runs_ends_when_that_has_ended(tmp_path: Path) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), ("east", 1, 8))
    west, east = fleet.clusters["west"], fleet.clusters["east"]
    await _fill(east, 5)
    await fleet.pass_time(100)
    job = await fleet.submit(a_spec("gang", nodes=2, card_milli=8000, divide_over_clusters=True))
    await fleet.pass_time(8_000)
    (part,) = west.parts()
    await fleet.host.act(lambda _machine, now: decide.cancel(fleet.job(job), now, 0), BY_TEST)
    await fleet.pass_time(8_000)
    assert not fleet.job(job).ended
    assert west.job_of(part.id).ending is not None
    west.executor.end(part.id, code=143)
    await fleet.pass_time(8_000)
    assert fleet.job(job).state is JobState.STOPPED
    assert all(each.ended for each in east.parts())
    await stopped(fleet)


@pytest.mark.req("FL-05")
@pytest.mark.parametrize("loss", [REQUEST, ANSWER, LATE])
async def test_a_gang_over_two_links_of_which_one_breaks_at_any_call_starts_nothing_twice(
    tmp_path: Path, loss: str
) -> None:
    at, calls = 1, 2
    while at <= calls:
        fleet = await a_fleet(tmp_path, ("west", 1, 8), ("east", 1, 8))
        west = fleet.clusters["west"]
        before = west.link.calls
        west.link.cut = lambda number, _, first=before + at: loss if number == first else ""
        job = await fleet.submit(a_spec("gang", nodes=2, card_milli=8000, divide_over_clusters=True))
        await fleet.pass_time(25_000)
        assert fleet.job(job).state is JobState.RUNNING, at
        for cluster in fleet.clusters.values():
            cluster.end()
        await fleet.pass_time(20_000)
        assert fleet.job(job).state is JobState.SUCCEEDED, at
        once(fleet)
        assert [each for cluster in fleet.clusters.values() for each in cluster.parts() if not each.ended] == []
        at, calls = at + 1, min(west.link.calls - before, 30)
        await stopped(fleet)
    assert at > 15


def check_now(fleet: Fleet) -> None:
    """No two attempts of a job run at the same moment, on whatever clusters."""
    running: dict[int, set[tuple[str, int]]] = {}
    for cluster in fleet.clusters.values():
        for part in cluster.parts():
            order = order_of(part.spec.name)
            if part.state is JobState.RUNNING and order is not None:
                running.setdefault(order.job, set()).add((cluster.name, order.attempt))
    assert all(len({attempt for _, attempt in each}) == 1 for each in running.values()), running


class Story:
    """Gangs come and members fail as the seed says."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.fleet, self.chance = fleet, Random(seed)
        self.clusters, self.jobs = list(fleet.clusters.values()), list[JobId]()
        self.losses = dict.fromkeys(fleet.clusters, 0.0)
        for cluster in self.clusters:
            cluster.link.cut = partial(self._loss, cluster.name)

    def _loss(self, cluster: str, _number: int, _operation: str) -> str:
        lost = self.chance.random() < self.losses[cluster]
        return self.chance.choice((REQUEST, ANSWER, LATE)) if lost else ""

    async def goes_on(self) -> None:
        chance = self.chance
        for _ in range(chance.randint(1, 5)):
            fields = {"divide_over_clusters": True} if chance.random() < 0.3 else {}
            cards = chance.choice((1, 2, 4, 8))
            name = f"gang-{len(self.jobs)}"
            spec = a_spec(name, nodes=chance.choice((1, 1, 1, 2, 3)), card_milli=1000 * cards, **fields)
            self.jobs.append(await self.fleet.submit(spec))
        await self._something_happens(chance.choice(self.clusters))
        await self.fleet.pass_time(chance.choice((500, 3_000, 20_000, 50_000)))

    async def _something_happens(self, cluster: Cluster) -> None:
        act = self.chance.randrange(5)
        if act == 0 and cluster.is_up:
            await cluster.kill()
        elif act == 1 and not cluster.is_up:
            await cluster.come_back()
        elif act == 2:
            self.losses[cluster.name] = self.chance.choice((0.0, 0.3, 1.0))
        elif cluster.is_up:
            cluster.end(self.chance.choice((0, 0, 1)))

    async def all_is_well(self) -> None:
        for cluster in self.clusters:
            self.losses[cluster.name] = 0.0
            if not cluster.is_up:
                await cluster.come_back()

    def unfinished(self) -> list[Job]:
        live = self.fleet.host.machine.state.jobs
        return [live[job] for job in self.jobs if job in live and not live[job].ended]


@pytest.mark.parametrize("seed", range(2))
async def test_a_hundred_gangs_while_members_are_killed_and_cut_off(tmp_path: Path, seed: int) -> None:
    fleet = await a_fleet(tmp_path, ("west", 3, 8), ("east", 2, 8), ("south", 2, 4), hub=2)
    story = Story(fleet, seed)
    while len(story.jobs) < 100:
        await story.goes_on()
        check_now(fleet)
    await story.all_is_well()
    for _ in range(200):
        for cluster in story.clusters:
            cluster.end()
        end_of_hub(fleet)
        await fleet.pass_time(5_000)
        check_now(fleet)
        if not story.unfinished():
            break
    assert story.unfinished() == [], "nothing is lost"
    once(fleet)
    history = [record.body for record in await fleet.journal.events(job=None, after=0, limit=100_000)]
    placed = [each for each in history if isinstance(each, events.JobPlaced)]
    assert {each.job for each in placed} == set(story.jobs)
    assert all(each.members for each in placed), "every placement names its clusters"
    assert [job for each in story.clusters for job in each.parts() if not job.ended] == []
    await stopped(fleet)


def end_of_hub(fleet: Fleet) -> None:
    for job in fleet.members.machines["hub"].state.jobs.values():
        for rank in range(len(job.attempt.replicas) if job.attempt is not None and not job.ended else 0):
            if job.state is JobState.RUNNING and ReplicaId(job.id, 1, rank) not in fleet.hub_executor.ended:
                fleet.hub_executor.end(job.id, rank=rank)


@pytest.mark.req("FL-09")
async def test_the_fleet_s_table_shows_a_member_that_does_not_answer_with_its_age(tmp_path: Path) -> None:
    fleet = await a_fleet(tmp_path, ("west", 1, 8), hub=1)
    engine = Engine(host=fleet.host, state_folder=tmp_path, socket=tmp_path, system=True, cluster="fleet")
    engine.members = fleet.members
    backend = InProcessBackend(engine, Actor(ANN, admin=True))
    here = await fleet.submit(a_spec("here", card_milli=8000, partitions=("hub",)))
    there = await fleet.submit(a_spec("there", card_milli=8000, partitions=("west",)))
    await fleet.pass_time(10_000)
    for row, cluster in zip((await backend.fleet()).jobs, ("hub", "west"), strict=True):
        assert (row.cluster, row.state, row.fleet_state, row.adopted) == (cluster, "running", "running", True)
        assert (row.ready, row.silence) == (1, "")
    (_, row) = (await backend.fleet()).jobs
    assert row.order == f"f0a1b2c-{there}-1"
    assert row.own in (await backend.own_object(there)).text
    (pod,) = (await backend.fleet(job=there, pods=True)).pods
    assert (pod.cluster, pod.status, pod.node) == ("west", "Running", "n0")
    fleet.clusters["west"].link.cut = lambda *_: REQUEST
    await fleet.pass_time(30_000)
    (first, row) = (await backend.fleet()).jobs
    assert (first.job, first.silence) == (here, "")
    assert "The link broke" in row.silence
    assert fleet.clock.now() - row.heard_at >= 28_000
    assert (row.state, row.fleet_state) == ("running", "running"), "the last that is known"
    await stopped(fleet)
