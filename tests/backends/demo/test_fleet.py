"""A fleet in the demo: several embedded clusters under one queue, on one clock."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cockpit.backends.demo.backend import DemoCluster
from cockpit.backends.demo.fixture import read_fixture
from cockpit.errors import SpecErrors
from cockpit.formats.bindingevent import bindings_of, read_binding
from cockpit.model import events
from cockpit.model.asking import LogRequest, ShellRequest
from cockpit.model.attempt import EndCause
from cockpit.model.fleet import BindingMode, member_of
from cockpit.model.ids import JobId
from cockpit.model.job import ENDED, OCCUPYING, JobState
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.model.view import ClusterState as Standing
from cockpit.present.events.sentences import event_sentence
from tests.backends.demo.conftest import Open, history, pass_hours, until
from tests.backends.demo.test_demo import finished
from tests.programs import needs_bubblewrap

PAIR = str(Path(__file__).with_name("pair.toml"))


def a_job(name: str, command: str, nodes: int = 1, cards: int = 1, **fields: object) -> JobSpec:
    specs = (NodeSpec(card_milli=1000 * cards),)
    return JobSpec(name=name, command=command, output="/home/ann/out", nodes=nodes, specs=specs, **fields)


async def emptied(demo: DemoCluster) -> None:
    """Nobody else's jobs."""
    for row in await demo.backend.jobs():
        if row.state not in ENDED:
            await demo.backend.cancel(row.id, grace_seconds=0)
    await demo.pace.reach(demo.now())


@pytest.mark.req("FL-04", "FL-06", "UI-50")
async def test_jobs_show_their_cluster_and_nodes_show_its_binding_mode(opened: Open) -> None:
    demo = await opened(PAIR)
    running = [row for row in await demo.backend.jobs() if row.state is JobState.RUNNING]
    assert {name for row in running for name in row.clusters} == {"new", "old"}
    assert all({member_of(node) for node in row.placed_on} == set(row.clusters) for row in running)
    bindings = {(member_of(row.node.name), row.binding) for row in await demo.backend.nodes()}
    assert bindings == {("new", BindingMode.RESERVATION), ("old", BindingMode.TOTALS)}


@pytest.mark.req("FL-04", "FL-08")
async def test_days_of_the_demo_fleet_violate_no_invariant(opened: Open) -> None:
    """Invariants are checked after every event, of the fleet and of both clusters."""
    demo = await opened(PAIR, seed=3)
    for _ in range(8):
        await pass_hours(demo, 3)
        for job in demo.host.machine.state.jobs.values():
            begun = (
                [] if job.attempt is None else [each for each in job.attempt.replicas if each.started_at is not None]
            )
            assert job.state not in OCCUPYING or len(begun) in (0, job.spec.nodes)
    told = await history(demo)
    kinds = {type(record.body) for record in told}
    assert {events.JobPlaced, events.MemberPlaced, events.BindingGivenUp, events.JobEnded} <= kinds
    placed = [record for record in told if isinstance(record.body, events.JobPlaced)]
    assert any(len(set(record.body.members)) == 2 for record in placed)
    for record in placed:
        (sentence, _, _) = event_sentence(record, None).partition(" (attempt")
        assert read_binding(sentence) == bindings_of(record.body.members)


@pytest.mark.req("FL-04", "FL-05")
async def test_a_divided_job_runs_in_both_clusters_and_is_stopped_in_both(opened: Open) -> None:
    demo = await opened(PAIR)
    await emptied(demo)
    (job,) = await demo.backend.submit([a_job("mine", "sleep 7000", nodes=5, cards=4, divide_over_clusters=True)])
    found = await until(demo, job, lambda each: each.state is JobState.RUNNING)
    assert found.attempt is not None
    assert sorted(found.attempt.members) == ["new", "new", "old", "old", "old"]
    await demo.backend.cancel(job)
    found = await until(demo, job, lambda each: each.ended)
    assert (found.state, found.end_cause) == (JobState.STOPPED, EndCause.STOP)
    await demo.pace.reach(demo.now())
    assert [found.state for found in parts(demo, job)] == [JobState.STOPPED, JobState.STOPPED]


@pytest.mark.req("FL-04")
async def test_a_job_is_suspended_and_resumes_in_its_cluster(opened: Open) -> None:
    demo = await opened(PAIR)
    await emptied(demo)
    (job,) = await demo.backend.submit([a_job("mine", "sleep 600")])
    await until(demo, job, lambda each: each.state is JobState.RUNNING)
    await demo.backend.suspend(job)
    await demo.pace.reach(demo.now())
    assert [found.state for found in parts(demo, job)] == [JobState.SUSPENDED]
    await demo.backend.resume(job)
    await demo.pace.reach(demo.now())
    assert [found.state for found in parts(demo, job)] == [JobState.RUNNING]


@pytest.mark.real
@pytest.mark.req("FL-04")
@needs_bubblewrap
async def test_logs_and_a_held_container_are_accessible_through_the_fleet(opened: Open) -> None:
    demo = await opened(PAIR)
    (job,) = await demo.backend.submit([a_job("größe-1", "bash -c 'exit 3'", terminal=True)])
    found = await until(demo, job, lambda each: each.ended)
    assert (found.state, found.kept) == (JobState.ERROR, True)
    assert (await demo.backend.logs(LogRequest(job=job))).data
    session = await demo.backend.open_shell(ShellRequest(job=job, command=("ls",)))
    out, code = await asyncio.to_thread(finished, session)
    assert (b"config.json" in out, code) == (True, 0)
    await demo.backend.end_hold(job)
    await demo.pace.reach(demo.now())
    assert not any(found.kept for found in parts(demo, job))


def test_a_fixture_is_a_cluster_or_a_fleet(tmp_path: Path) -> None:
    neither = tmp_path / "neither.toml"
    text = Path(PAIR).read_text()
    neither.write_text(
        text.replace("[[members]]", "[[nodes]]").partition("[[nodes]]")[0]
        + "[arrivals]"
        + text.partition("[arrivals]")[2]
    )
    with pytest.raises(SpecErrors, match="give one of the two"):
        read_fixture(str(neither))


def parts(demo: DemoCluster, job: JobId) -> list[object]:
    """What the clusters have of it."""
    every = (each for host in demo.members for each in host.machine.state.jobs.values())
    return [each for each in every if each.part is not None and each.part.job == job]


@pytest.mark.req("UI-10", "UI-50")
async def test_the_view_of_clusters_lists_the_demo_and_its_members_and_no_real_cluster(opened: Open) -> None:
    demo = await opened(PAIR)
    fleet, *members = await demo.clusters()
    assert (fleet.name, fleet.fleet, fleet.state) == ("pair", "", Standing.LIVE)
    assert [(row.name, row.fleet) for row in members] == [("new", "pair"), ("old", "pair")]
    seen = [row.overview for row in (fleet, *members)]
    assert seen[0].nodes == seen[1].nodes + seen[2].nodes
    assert all(each.used_card_milli > 0 for each in seen)
    assert {row.heard_at for row in members} == {demo.now()}
