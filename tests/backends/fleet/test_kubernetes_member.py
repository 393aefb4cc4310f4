"""A merged view of a Kubernetes cluster beside Slurm and cockpit's own engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.backends.base import JobsDelta
from cockpit.backends.demo.backend import open_demo
from cockpit.backends.fleet.backend import FleetBackend
from cockpit.backends.fleet.member import Opened
from cockpit.backends.kubernetes import session
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.slurm.opening import open_recorded
from cockpit.errors import RequestRefused
from cockpit.model.asking import LogRequest, WantedLimit
from cockpit.model.ids import JobId, member_of
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held
from cockpit.runtime.clock import SystemClock
from tests.backends.kubernetes.conftest import open_fake
from tests.backends.kubernetes.objects import a_template
from tests.doubles.kubernetes_api import FakeApi, Reply

JOBS = "/apis/batch/v1/namespaces/team-a/jobs"
LONGEST = 60.0
LAB, OLD, PROD = 1, 2, 3


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    async with FakeApi() as server:
        yield server


@pytest.fixture
async def prod(server: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KubernetesBackend:
    monkeypatch.setattr(session, "COALESCE_SECONDS", 0.0)
    monkeypatch.setattr(session, "CHECK_SECONDS", 0.01)
    server.create(JOBS, {"kind": "Job", "metadata": {"name": "train"}, "spec": {"template": a_template()}})
    return open_fake(server, tmp_path)


@pytest.fixture
async def fleet(prod: KubernetesBackend, young_campus: str, tmp_path: Path) -> AsyncIterator[FleetBackend]:
    now = SystemClock().now

    async def lab() -> Opened:
        demo = await open_demo(young_campus, folder=tmp_path / "demo", going=False)
        return Opened(demo.backend, demo.now, demo.close)

    async def old() -> Opened:
        backend, recorded_now = await open_recorded("24.11")
        return Opened(backend, recorded_now, backend.close, still=True)

    async def kubernetes() -> Opened:
        return Opened(prod, now, prod.close)

    fleet = FleetBackend("all", [("lab", "demo", lab), ("old", "slurm", old), ("prod", "kube:prod", kubernetes)], now)
    yield fleet
    await fleet.close()


async def the_job(fleet: FleetBackend) -> JobRow:
    (row,) = [each for each in await fleet.jobs() if each.name == "train" and member_of(each.id)[0] == PROD]
    return row


async def every_member(watch: AsyncIterator[JobsDelta]) -> None:
    """Wait until rows of all members have come."""
    seen: set[int] = set()
    while seen != {LAB, OLD, PROD}:
        seen |= {member_of(row.id)[0] for row in (await anext(watch)).changed}


@pytest.mark.req("KU-01", "UI-10")
async def test_jobs_of_all_kinds_of_clusters_are_in_one_table(fleet: FleetBackend) -> None:
    rows = await fleet.jobs()
    assert {member_of(row.id)[0] for row in rows} == {LAB, OLD, PROD}
    assert len({row.id for row in rows}) == len(rows)
    assert [(each.name, each.state) for each in await fleet.clusters()][2][0] == "prod"
    shown = await fleet.overview()
    assert sum(shown.jobs_by_state.values()) >= len(rows)
    job = (await the_job(fleet)).id
    detail = await fleet.job(job)
    assert (detail.row.id, detail.job.id, detail.job.spec.name) == (job, job, "train")
    assert (await fleet.explain(job)).job == job


@pytest.mark.req("KU-07", "UI-10")
async def test_each_change_goes_to_the_cluster_of_its_job(fleet: FleetBackend, server: FakeApi) -> None:
    job = (await the_job(fleet)).id
    async with asyncio.timeout(LONGEST), aclosing(fleet.watch_jobs()) as watch:
        await every_member(watch)
        await fleet.hold(job)
        assert server.object(f"{JOBS}/train")["spec"]["suspend"] is True
        async for delta in watch:
            if any(row.id == job and isinstance(row.reason, Held) for row in delta.changed):
                break
    await fleet.set_time_limit(job, WantedLimit(600))
    spec = (await fleet.job(job)).job.spec
    await fleet.edit(job, replace(spec, time_limit_seconds=900))
    assert server.object(f"{JOBS}/train")["spec"]["activeDeadlineSeconds"] == 900
    assert (await fleet.events(job=job))[-1].body is not None
    await fleet.release(job)
    await fleet.cancel(job)
    ended = await fleet.wait(job, timeout_seconds=LONGEST)
    assert ended is not None
    assert (ended.id, ended.state) == (job, JobState.STOPPED)
    assert job in {each.row.id for each in await fleet.accounting()}
    assert (await fleet.logs(LogRequest(job=job, wait=True))).ended
    await fleet.delete(job)
    assert job not in {row.id for row in await fleet.jobs(ended=True)}


@pytest.mark.req("KU-01", "UI-10")
async def test_what_one_kind_of_cluster_lacks_is_said_of_its_jobs_alone(fleet: FleetBackend) -> None:
    job = (await the_job(fleet)).id
    others = [row.id for row in await fleet.jobs() if member_of(row.id)[0] == LAB]
    assert "have no block lists" in fleet.capabilities_for([job]).why_not("unblock")
    assert fleet.capabilities_for(others[:1]).why_not("unblock") == ""
    with pytest.raises(RequestRefused, match="have no block lists"):
        await fleet.unblock(JobId(job), "n1")  # type: ignore[arg-type] # any name


@pytest.mark.req("KU-01", "TR-04")
async def test_a_kubernetes_cluster_that_goes_away_takes_no_other_with_it(fleet: FleetBackend, server: FakeApi) -> None:
    async with asyncio.timeout(LONGEST), aclosing(fleet.watch_jobs()) as watch:
        await every_member(watch)
        server.answer_next("GET /apis ", Reply.failure(500, "InternalError", "etcdserver: no leader"))
        while not fleet.silent_members:
            await anext(watch)
        assert [name for name, _ in fleet.silent_members] == ["prod"]
        assert {member_of(row.id)[0] for row in await fleet.jobs()} >= {LAB, OLD}
        while fleet.silent_members:
            await anext(watch)
        assert {member_of(row.id)[0] for row in await fleet.jobs()} == {LAB, OLD, PROD}
