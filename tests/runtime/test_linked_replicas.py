"""Logs, events and shells of replicas that run on members over links, asked of the fleet's own job."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.inprocess import InProcessBackend
from cockpit.backends.shell_ends import exit_bytes
from cockpit.engine.access import Actor
from cockpit.engine.submission.submit import submit
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.asking import LogRequest, LogSearch, ShellRequest
from cockpit.model.events import ReplicaStarted
from cockpit.model.ids import ReplicaId
from cockpit.model.job import JobState
from cockpit.runtime.containers.entering import EnteredShell, EntryFacts
from cockpit.runtime.engine import Engine
from cockpit.runtime.logs import log_path
from cockpit.runtime.tasks import Tasks
from tests.builders import ANN, a_spec
from tests.runtime.remote_world import BY_TEST, REQUEST, Fleet, a_fleet, stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cockpit.model.ids import JobId

pytestmark = pytest.mark.req("FL-04", "FL-09")
LONGEST = 60.0


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    fleet = await a_fleet(tmp_path, ("west", 2, 8))
    yield fleet
    await stopped(fleet)


@pytest.fixture
def backend(fleet: Fleet, tmp_path: Path) -> InProcessBackend:
    engine = Engine(host=fleet.host, state_folder=tmp_path / "fleet", socket=tmp_path, system=True, cluster="fleet")
    engine.members = fleet.members
    return InProcessBackend(engine, Actor(ANN, admin=True))


@pytest.fixture
async def job(fleet: Fleet) -> JobId:
    # A job of the member's own, so that the member's numbers differ from the fleet's.
    own, actor = a_spec("own", card_milli=1000), Actor(ANN, admin=True)
    await fleet.clusters["west"].host.act(lambda machine, now: submit(machine, [own], actor, now=now), BY_TEST)
    job = await fleet.submit(a_spec("bert", nodes=2, card_milli=4000))
    await fleet.pass_time(10_000)
    assert fleet.job(job).state is JobState.RUNNING
    return job


def write_log(fleet: Fleet, folder: Path, rank: int, text: str) -> None:
    (part,) = [each for each in fleet.clusters["west"].parts() if each.spec.name.startswith("bert")]
    path = log_path(folder / "logs", ReplicaId(part.id, 1, rank), LogRequest(job=0).stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_a_log_is_read_where_the_replica_runs(
    fleet: Fleet, backend: InProcessBackend, job: JobId, tmp_path: Path
) -> None:
    write_log(fleet, tmp_path, 0, "rank zero\n")
    write_log(fleet, tmp_path, 1, "rank one\nloss 0.3\n")
    chunk = await backend.logs(LogRequest(job=job, rank=1))
    assert (chunk.data, chunk.ended) == (b"rank one\nloss 0.3\n", False)
    assert (await backend.logs(LogRequest(job=job))).data == b"rank zero\n"
    async with asyncio.timeout(LONGEST):
        assert (await backend.logs(LogRequest(job=job, wait=True))).data == b"rank zero\n"
    found = await backend.search_log(LogSearch(job=job, rank=1, text="loss"))
    assert found.found == ((9, 4),)
    with pytest.raises(RequestRefused, match="has replicas 0 to 1"):
        await backend.logs(LogRequest(job=job, rank=2))


async def test_a_reader_who_waits_gets_the_log_as_soon_as_the_member_has_the_part(
    fleet: Fleet, backend: InProcessBackend, tmp_path: Path
) -> None:
    west = fleet.clusters["west"]
    west.link.cut = lambda _, operation: REQUEST if operation == "submit" else ""
    job = await fleet.submit(a_spec("bert", card_milli=8000))
    await fleet.pass_time(3_000)
    assert (await backend.logs(LogRequest(job=job))).data == b""
    reading = Tasks().start(backend.logs(LogRequest(job=job, wait=True)), "a reader")
    await fleet.calm()
    assert not reading.done()
    west.link.cut = lambda *_: ""
    await fleet.pass_time(10_000)
    write_log(fleet, tmp_path, 0, "at last\n")
    async with asyncio.timeout(LONGEST):
        assert (await reading).data == b"at last\n"


async def test_the_member_s_own_events_of_a_replica_have_the_fleet_s_numbers(
    backend: InProcessBackend, job: JobId
) -> None:
    records = await backend.events(job=job, rank=1)
    assert {each.body.job for each in records} == {job}  # type: ignore[union-attr] # all are about the job
    assert [each.body.rank for each in records if isinstance(each.body, ReplicaStarted)] == [0, 1]
    last = records[-1].seq
    assert await backend.events(job=job, rank=1, after=last) == []
    assert await backend.events(job=job, rank=1, limit=2) == records[-2:]
    own = await backend.events(job=job)
    assert {type(each.body).__name__ for each in own} >= {"RemotePartChanged"}
    assert not {type(each.body).__name__ for each in records} & {"RemotePartChanged"}


async def test_a_link_that_is_cut_is_said_with_the_member_s_name(
    fleet: Fleet, backend: InProcessBackend, job: JobId
) -> None:
    fleet.clusters["west"].link.cut = lambda *_: REQUEST
    for ask in (backend.logs(LogRequest(job=job)), backend.events(job=job, rank=0)):
        with pytest.raises(CockpitError, match="west does not answer: The link broke"):
            await ask


class Containers:
    """What the member opens: three pipes, whose program ends when the test says so."""

    def __init__(self) -> None:
        self.entered: list[tuple[Any, ...]] = []
        self.control = -1
        self.output = -1

    async def enter(self, replica: ReplicaId, command: Any, *, terminal: Any, label: str) -> EnteredShell:
        self.entered.append((replica.rank, tuple(command), terminal))
        ours, theirs = socket.socketpair()
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        for fd in (stdin[0], stderr[1]):
            os.close(fd)
        self.control, self.output = ours.detach(), stdout[1]
        return EnteredShell(
            terminal_fd=None,
            pipe_fds=(stdin[1], stdout[0], stderr[0]),
            control_fd=theirs.detach(),
            facts=EntryFacts(kept=False),
        )


@pytest.fixture
def containers(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Containers:
    containers = Containers()
    monkeypatch.setattr(fleet.clusters["west"].executor, "enter", containers.enter, raising=False)
    return containers


async def test_a_shell_of_the_fleet_s_job_is_opened_at_the_member(
    backend: InProcessBackend, job: JobId, containers: Containers
) -> None:
    session = await backend.open_shell(ShellRequest(job=job, rank=1, command=("nvidia-smi",)))
    assert containers.entered == [(1, ("nvidia-smi",), None)]
    assert session.pipe_fds is not None
    os.write(containers.output, b"GPU 0")
    assert os.read(session.pipe_fds[1], 100) == b"GPU 0"
    os.write(containers.control, exit_bytes(7))
    async with asyncio.timeout(LONGEST):
        assert await asyncio.to_thread(session.exit_code) == 7
    for fd in (*session.pipe_fds, session.control_fd, containers.output, containers.control):
        os.close(fd)


async def test_who_leaves_the_shell_ends_it_at_the_member(
    backend: InProcessBackend, job: JobId, containers: Containers
) -> None:
    session = await backend.open_shell(ShellRequest(job=job))
    os.close(session.control_fd)
    async with asyncio.timeout(LONGEST):
        assert await asyncio.to_thread(os.read, containers.control, 4) == b"", "the member's program is ended"
    for fd in (*(session.pipe_fds or ()), containers.output, containers.control):
        os.close(fd)


async def test_a_shell_is_refused_where_the_member_has_not_accepted_the_part(
    fleet: Fleet, backend: InProcessBackend
) -> None:
    fleet.clusters["west"].link.cut = lambda _, operation: REQUEST if operation == "submit" else ""
    job = await fleet.submit(a_spec("bert", card_milli=8000))
    await fleet.pass_time(3_000)
    with pytest.raises(RequestRefused, match="has not"):
        await backend.open_shell(ShellRequest(job=job))
