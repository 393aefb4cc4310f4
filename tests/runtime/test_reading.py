"""What the engine answers about its jobs, nodes, holds and accounting."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.engine.access import Actor
from cockpit.errors import RequestRefused
from cockpit.formats.snapshotfile import Snapshot
from cockpit.model import events
from cockpit.model.accounting import EndedJob
from cockpit.model.asking import LogRequest, LogStream
from cockpit.model.cluster import Cluster, Project, Reservation
from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
from cockpit.model.refusal import RefusalKind
from cockpit.model.resilience import Elastic, NoGrowth
from cockpit.model.spec import Access, Sweep
from cockpit.protocol import messages
from cockpit.protocol.pages import AllLoaded, JobsArgs, JobsChange, JobsPage, SubscribeArgs, rows_of
from cockpit.runtime import reading
from cockpit.runtime.engine import Engine
from cockpit.runtime.host import Act
from cockpit.runtime.logs import log_path
from cockpit.runtime.request_context import RequestContext
from tests.builders import ANN, BOB, HOUR, NOON, SECOND, a_batch, a_node, a_spec
from tests.runtime.host_world import World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cockpit.model.job import Submitter

pytestmark = pytest.mark.req("TR-13")
DAY = 24 * HOUR
ADMIN, BY_USER, BY_BOB = (
    RequestContext(each) for each in (Actor(ANN, admin=True), Actor(ANN, admin=False), Actor(BOB, admin=False))
)
BY_MEMBER = RequestContext(Actor(ANN, admin=False, projects=frozenset({"nlp"})))
NOTHING = messages.NoArgs()
FRAME: Any = JobsPage | JobsChange | AllLoaded


class Measured:
    """The usage of every replica: none."""

    async def __call__(self, _replica: ReplicaId) -> None:
        return None


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.begin()
    world.executor.used = Measured()  # type: ignore[attr-defined] # the double has none
    yield world
    await world.stop()


@pytest.fixture
def engine(world: World) -> Engine:
    return Engine(host=world.host, state_folder=world.folder, socket=world.folder / "s", system=True, cluster="lab")


async def happens(world: World, *bodies: Any) -> None:
    await world.host.act(lambda _machine, _now: bodies, Act(actor="test", origin="socket"))


async def submitted(world: World, who: Submitter, project: str = "own", job: int = 0, **fields: Any) -> JobId:
    """Submit a job with this id, or with the one that follows the last live job's."""
    job = JobId(job or max(world.host.machine.state.jobs, default=0) + 1)
    await happens(world, events.JobSubmitted(job, a_spec(f"job-{job}", **fields), who, project))
    return job


def decoded(frames: list[Any]) -> list[Any]:
    return [msgspec.msgpack.decode(each, type=FRAME) for each in frames]


async def listed(engine: Engine, by: RequestContext, **args: Any) -> list[int]:
    pages = [page async for page in reading.jobs(engine, by, JobsArgs(**args))]
    return [row.id for page in decoded(pages) for row in rows_of(page)]


async def test_users_count_and_see_their_own_jobs_and_administrators_all(world: World, engine: Engine) -> None:
    for who in (ANN, BOB, BOB):
        await submitted(world, who, cpus=4)
    assert [(await reading.status(engine, by, NOTHING)).jobs for by in (ADMIN, BY_USER, BY_BOB)] == [3, 1, 2]
    status = await reading.status(engine, BY_BOB, NOTHING)
    assert (status.running, status.system, status.user, status.trouble) == (True, True, "bob", ())
    assert [await listed(engine, by) for by in (ADMIN, BY_USER, BY_BOB)] == [[1, 2, 3], [1], [2, 3]]
    assert await listed(engine, BY_BOB, brief=True) == [2, 3]
    counts = [(await reading.overview(engine, by, NOTHING)).jobs_by_state for by in (ADMIN, BY_USER, BY_BOB)]
    assert [sum(each.values()) for each in counts] == [3, 1, 2]


async def test_figures_are_computed_again_only_after_a_change_and_name_troubles(world: World, engine: Engine) -> None:
    first = await reading.overview(engine, ADMIN, NOTHING)
    assert await reading.overview(engine, ADMIN, NOTHING) is first
    await submitted(world, ANN)
    second = await reading.overview(engine, ADMIN, NOTHING)
    assert (first.jobs_by_state, sum(second.jobs_by_state.values())) == ({}, 1)
    engine.troubles = ("The disk is nearly full.",)
    told = await reading.overview(engine, ADMIN, NOTHING)
    assert (told.trouble, told.plain) == (("The disk is nearly full.",), False)
    assert (await reading.status(engine, ADMIN, NOTHING)).trouble == engine.troubles
    engine.troubles, engine.plain = (), True
    assert ((await reading.overview(engine, ADMIN, NOTHING)).plain, second.plain) == (True, False)
    assert [row.plain for row in await reading.nodes(engine, ADMIN, NOTHING)] == [True]
    engine.plain = False
    assert [row.plain for row in await reading.nodes(engine, ADMIN, NOTHING)] == [False]


@pytest.mark.req("JT-60")
async def test_ended_jobs_are_listed_with_the_live_ones_and_in_accounting(world: World, engine: Engine) -> None:
    shared = Cluster(projects=(Project(name="nlp", users=("ann", "bob")),))
    await happens(world, events.ClusterConfigured(shared))
    for who, project, access in ((ANN, "own", None), (BOB, "own", None), (BOB, "nlp", Access.RO), (ANN, "own", None)):
        job = await submitted(world, who, project, access=access or Access.NONE)
        await eventually(lambda job=job: world.state(job) == "running")
        world.executor.end(job)
        await eventually(lambda job=job: world.state(job) == "succeeded")
        await world.pass_time(SECOND)
    assert await listed(engine, ADMIN, ended=True) == [1, 2, 3, 4], "once each, while accounting has them too"
    await world.pass_time(DAY)
    assert not world.host.machine.state.jobs
    last = await submitted(world, ANN, job=5)
    assert [await listed(engine, by, ended=True) for by in (ADMIN, BY_USER, BY_MEMBER)] == [
        [1, 2, 3, 4, last],
        [1, 4, last],
        [1, 3, 4, last],
    ]
    assert await listed(engine, ADMIN) == [last]

    async def accounted(by: RequestContext, **args: Any) -> list[int]:
        found = reading.accounting(engine, by, messages.AccountingArgs(**args))
        return [msgspec.msgpack.decode(each, type=EndedJob).row.id async for piece in found for each in piece]

    assert [await accounted(by) for by in (ADMIN, BY_USER, BY_MEMBER)] == [[4, 3, 2, 1], [4, 1], [4, 3, 1]]
    assert await accounted(ADMIN, user="bob") == [3, 2]
    assert await accounted(BY_USER, user="bob") == []
    ends = [(await world.host.ended_job(JobId(each))).ended_at for each in (1, 2, 3)]  # type: ignore[union-attr] # they ended
    assert await accounted(ADMIN, since=ends[1], until=ends[2]) == [2]
    edges = (NOON + DAY, NOON, NOON + HOUR)
    spending = await reading.spending(engine, ADMIN, messages.SpendingArgs(edges))
    assert [len(each) > 0 for each in spending.stretches] == [True, False], "by time, however the edges are given"


async def test_a_subscriber_gets_all_rows_and_then_the_changes(world: World, engine: Engine) -> None:
    for _ in range(3):
        await submitted(world, ANN, cpus=4)
    async with asyncio.timeout(60), aclosing(reading.subscribe(engine, ADMIN, SubscribeArgs(first=0))) as frames:  # type: ignore[type-var] # a generator
        first = []
        while not first or not isinstance(first[-1], AllLoaded):
            first += decoded([await anext(frames)])
        assert [[row.id for row in rows_of(page)] for page in first[:-1]] == [[1], [2, 3]]
        await happens(world, events.JobHeld(JobId(3), "ann"))
        (change,) = decoded([await anext(frames)])
        assert 3 in {job for job, *_ in change.changed}
    assert engine.feed._subscribers == [], "who has left is not waited for"


async def test_a_subscriber_starts_over_where_a_change_is_too_large(
    world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submitted(world, ANN)
    async with asyncio.timeout(60), aclosing(reading.subscribe(engine, BY_USER, SubscribeArgs())) as frames:  # type: ignore[type-var] # a generator
        await anext(frames)
        await anext(frames)
        monkeypatch.setattr(reading, "fits", lambda _encoded: False)
        await submitted(world, ANN)
        (change,) = decoded([await anext(frames)])
        assert change.resync
        with pytest.raises(StopAsyncIteration):
            await anext(frames)


@pytest.mark.req("JT-40")
async def test_held_containers_are_listed_by_their_end(world: World, engine: Engine) -> None:
    for who, seconds in ((ANN, 900), (ANN, 300), (BOB, 600)):
        job = await submitted(world, who, terminal=True)
        await eventually(lambda job=job: world.state(job) == "running")
        world.executor.end(job, code=3)
        await eventually(lambda job=job: world.job(job).kept)
        until = Millis(world.clock.now() + seconds * SECOND)
        await happens(world, events.HoldExtended(job, until))
    assert [[row.job for row in await reading.holds(engine, by, NOTHING)] for by in (ADMIN, BY_USER)] == [
        [2, 3, 1],
        [2, 1],
    ]


async def test_reservations_are_listed_by_start_to_everybody(world: World, engine: Engine) -> None:
    for name, start in (("late", 2), ("early", 1), ("earlier", 1)):
        made = Reservation(name=name, nodes=(NodeName("n1"),), start_at=NOON + start * DAY, end_at=NOON + 3 * DAY)
        await happens(world, events.ReservationMade(made))
    shown = await reading.reservations(engine, BY_BOB, NOTHING)
    assert [each.name for each in shown] == ["earlier", "early", "late"]


@pytest.mark.req("JT-60")
async def test_a_wait_ends_with_the_command_or_its_time(world: World, engine: Engine) -> None:
    job = await world.run(a_spec(terminal=True))
    assert await reading.wait(engine, BY_USER, messages.WaitArgs(job, timeout_seconds=0.01)) is None
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(reading.wait(engine, BY_USER, messages.WaitArgs(job, timeout_seconds=60)))
        await world.idle()
        world.executor.end(job, code=3)
    ended = waiting.result()
    assert ended is not None
    assert (ended.id, ended.exit.code if ended.exit else None) == (job, 3)


def written(engine: Engine, job: JobId, stream: LogStream, text: str, *, attempt: int = 1, rank: int = 0) -> None:
    path = log_path(engine.logs, ReplicaId(job, attempt, rank), stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_a_log_is_read_of_each_replica_and_attempt(world: World, engine: Engine) -> None:
    running = await world.run(a_spec(cpus=4))
    (waiting,) = await world.submit(a_spec("waiting", cpus=4))

    async def log(job: JobId, **which: Any) -> Any:
        return await reading.logs(engine, BY_USER, LogRequest(job=job, **which))

    written(engine, running, LogStream.STDOUT, "hello\n")
    chunk = await log(running)
    assert (chunk.data, chunk.ended) == (b"hello\n", False)
    assert (await log(running, rank=0, attempt=1)).data == b"hello\n"
    queued = await log(waiting)
    assert (queued.data, queued.ended) == (b"", False)
    for which in ({"rank": 1}, {"rank": -1}, {"attempt": 2}, {"attempt": -1}):
        with pytest.raises(RequestRefused, match=f"Job {running} has replicas 0 to 0 and attempts 1 to 1") as refused:
            await log(running, **which)
        assert refused.value.refusal.kind is RefusalKind.NOT_FOUND
    async with asyncio.TaskGroup() as group:
        follows = group.create_task(log(waiting, wait=True))
        await world.idle()
        assert not follows.done()
        world.executor.end(running)
        await eventually(lambda: world.state(waiting) == "running")
        written(engine, waiting, LogStream.STDOUT, "begun\n")
    assert follows.result().data == b"begun\n"
    over = await log(running)
    assert (over.data, over.ended) == (b"hello\n", True)


async def test_details_have_the_last_lines_that_say_why_a_job_failed(world: World, engine: Engine) -> None:
    job = await world.run(a_spec())
    detail = await reading.job(engine, BY_USER, messages.JobArgs(job))
    assert (detail.log_tail, detail.log_left_out_mib, detail.use, detail.tasks) == ("", 0, (), ())
    written(engine, job, LogStream.STDOUT, "step 1\nstep 2\n")
    assert (await reading.job(engine, BY_USER, messages.JobArgs(job))).log_tail.split() == ["step", "1", "step", "2"]
    written(engine, job, LogStream.STDOUT, "".join(f"line {number}\n" for number in range(20)))
    tail = (await reading.job(engine, BY_USER, messages.JobArgs(job))).log_tail
    assert tail.split("\n")[:1] == ["line 8"], "the last twelve"
    written(engine, job, LogStream.STDERR, "out of memory\n")
    assert "out of memory" in (await reading.job(engine, BY_USER, messages.JobArgs(job))).log_tail
    (waiting,) = await world.submit(a_spec("waiting", cpus=4))
    await eventually(lambda: world.host.plan is not None and waiting in world.host.machine.queue)
    await world.idle()
    detail = await reading.job(engine, BY_USER, messages.JobArgs(waiting))
    assert detail.explanation is not None
    assert detail.explanation.reason == detail.row.reason
    assert [each.reason for each in detail.waited] == [detail.row.reason]
    assert detail.log_tail == ""


async def test_details_of_a_batchs_task_list_all_its_tasks_with_their_files(world: World, engine: Engine) -> None:
    tasks = await world.submit(a_batch("train a", "train b", "train c"))
    assert isinstance(tasks, list)
    await eventually(lambda: world.state(tasks[0]) == "running")
    detail = await reading.job(engine, BY_USER, messages.JobArgs(tasks[1]))
    assert [row.id for row in detail.tasks] == tasks
    assert detail.batch is not None
    assert [task.command for task in detail.batch.tasks] == ["train a", "train b", "train c"]
    sweep = await world.submit(a_spec("sweep", sweep=Sweep(parameters={"lr": ("0.1", "0.01")})))
    assert isinstance(sweep, list)
    detail = await reading.job(engine, BY_USER, messages.JobArgs(sweep[0]))
    assert ([row.id for row in detail.tasks], detail.batch) == (sweep, None)


async def test_a_snapshot_comes_in_pieces_that_fit_a_frame(
    world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submitted(world, ANN)
    monkeypatch.setattr(reading, "PIECE_BYTES", 100)
    pieces = [piece async for piece in reading.snapshot(engine, ADMIN, NOTHING)]
    assert {len(each) for each in pieces[:-1]} == {100}
    snapshot = msgspec.msgpack.decode(b"".join(pieces), type=Snapshot)
    assert (snapshot.cluster, snapshot.at, [*snapshot.state.jobs]) == ("lab", NOON, [1])


async def test_an_elastic_job_is_shown_with_the_jobs_in_its_way_once_a_pass_has_looked(
    world: World, engine: Engine
) -> None:
    await happens(world, events.NodesChanged((a_node("n1", cpus=4), a_node("n2", cpus=8))))
    other = await submitted(world, BOB, cpus=8)
    await eventually(lambda: world.state(other) == "running")
    job = await submitted(world, ANN, elastic=Elastic(workers=1, max_workers=2))
    await eventually(lambda: world.state(job) == "running")
    await eventually(lambda: world.host.plan is not None and job in world.host.plan.scheduling_pass.no_growth)
    known = await reading.job(engine, ADMIN, messages.JobArgs(job))
    assert known.growth is NoGrowth.NO_FREE_NODE
    assert known.obstacle is not None
    assert known.obstacle.held_by == (other,)
    engine.host.plan = None  # as after a restart
    unknown = await reading.job(engine, BY_USER, messages.JobArgs(job))
    assert (unknown.row.id, unknown.growth, unknown.obstacle) == (job, None, None)
