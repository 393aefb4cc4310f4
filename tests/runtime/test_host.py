"""The one loop, over a real journal: what it writes, repeats, keeps and refuses."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.effects import RemoveContainer, SignalKind, SignalReplica, StartReplica
from cockpit.errors import StoreError
from cockpit.model import events
from cockpit.model.asking import LogStream, ShellRequest
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.priority import WeightChanges
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Array, Dependency, DependencyKind, JobKind, Sweep
from cockpit.protocol import messages
from cockpit.runtime import acting, ledger, reading
from cockpit.runtime import host as host_module
from cockpit.runtime.clock import SystemClock
from cockpit.runtime.containers.entering import EnteredShell, EntryFacts
from cockpit.runtime.engine import Engine
from cockpit.runtime.logs import log_path
from cockpit.runtime.priorities import priorities
from cockpit.runtime.request_context import RequestContext
from cockpit.runtime.shells import open_shell
from tests.builders import ANN, HOUR, MINUTE, NOON, SECOND, a_spec
from tests.runtime.host_world import BY_ANN, World, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

DAY = 24 * HOUR


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.begin()
    yield world
    world.journal.refusing.clear()
    await world.stop()


@pytest.mark.req("TR-01")
async def test_events_are_on_the_disk_before_containers_start(world: World) -> None:
    job = await world.run(a_spec())
    world.executor.end(job)
    await eventually(lambda: world.executor.of(RemoveContainer))
    assert world.journal.durable == {
        "NodesChanged": True,
        "JobSubmitted": True,
        "JobPlaced": True,
        "ReplicaStarted": False,
        "ReplicaEnded": True,
        "JobEnded": True,
    }


@pytest.mark.req("SC-14")
async def test_a_host_with_a_moment_or_a_pass_to_come_is_not_idle(world: World) -> None:
    async def work() -> None:
        worked.set()

    worked = asyncio.Event()
    await eventually(lambda: world.host.resting)
    world.host.remind(NOON, work)
    assert not world.host.resting
    await worked.wait()
    await eventually(lambda: world.host.resting)
    world.host._schedule.set()
    assert not world.host.resting


@pytest.mark.req("JT-21")
async def test_a_time_limit_terminates_then_kills(world: World) -> None:
    job = await world.run(a_spec(time_limit_seconds=600, grace_seconds=30))
    await world.pass_time(600 * SECOND - 1)
    assert world.executor.of(SignalReplica) == []
    await world.pass_time(1)
    assert [each.force for each in world.executor.of(SignalReplica)] == [SignalKind.TERM]
    await world.pass_time(30 * SECOND)
    assert [each.force for each in world.executor.of(SignalReplica)] == [SignalKind.TERM, SignalKind.KILL]
    world.executor.end(job, code=137)
    await eventually(lambda: world.state(job) == "expired")


@pytest.mark.req("JT-40")
async def test_a_hold_ends_by_itself_and_the_job_is_archived_an_hour_after_its_end(world: World) -> None:
    job = await world.run(a_spec(terminal=True))
    world.executor.end(job, code=3)
    await eventually(lambda: world.state(job) == "error")
    await world.pass_time(4 * HOUR - 1)
    assert world.job(job).kept
    assert world.executor.of(RemoveContainer) == []
    await world.pass_time(1)
    assert len(world.executor.of(RemoveContainer)) == 1
    await eventually(lambda: job not in world.host.machine.state.jobs)
    assert (await world.host.ended_job(job)).held_until is None


@pytest.mark.req("PF-31", "TR-01")
async def test_all_jobs_of_a_submission_wait_for_the_disk_once(world: World) -> None:
    world.journal.tried.clear()
    await world.submit(*(a_spec(f"job-{number}", hold=True) for number in range(60)))
    assert world.journal.tried.count("append") == 1
    await world.submit(a_spec("alone", hold=True))
    assert world.journal.tried.count("append") == 2
    assert world.journal.durable["JobSubmitted"]


# ── The journal refuses ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("TR-03", "TR-01")
async def test_a_refused_submission_writes_no_event_and_the_journal_is_checked_until_it_works(world: World) -> None:
    world.journal.refusing |= {"append", "probe"}
    before = msgspec.msgpack.encode(world.host.machine.state)
    with pytest.raises(StoreError, match="full"):
        await world.submit(a_spec())
    assert msgspec.msgpack.encode(world.host.machine.state) == before
    await world.pass_time(3 * SECOND)
    assert world.host.trouble == ("The disk is full (probe).",)
    world.journal.refusing.clear()
    await world.pass_time(SECOND)
    assert world.host.trouble == ()
    await world.run(a_spec())


@pytest.mark.req("TR-01")
async def test_an_end_that_could_not_be_written_is_written_later(world: World) -> None:
    job = await world.run(a_spec())
    world.journal.refusing |= {"append", "probe"}
    world.executor.end(job, code=7)
    await eventually(lambda: world.host.trouble)
    await world.pass_time(10 * SECOND)
    assert world.state(job) == "running"
    world.journal.refusing.clear()
    await world.pass_time(SECOND)
    assert (world.state(job), world.job(job).exit.code) == ("error", 7)


@pytest.mark.req("TR-01")
async def test_accounting_that_was_refused_is_repeated(world: World) -> None:
    job = await world.run(a_spec())
    world.journal.refusing.add("record_ended")
    world.executor.end(job)
    await eventually(lambda: world.state(job) == "succeeded")
    await world.pass_time(2 * SECOND)
    assert world.host.trouble == ("The disk is full (record_ended).",)
    assert await world.host.ended_job(job) is None
    world.journal.refusing.clear()
    await world.pass_time(SECOND)
    assert (await world.host.ended_job(job)).id == job
    assert world.host.trouble == ()


@pytest.mark.req("TR-03")
async def test_requests_queued_behind_a_refused_write_are_refused_too(world: World) -> None:
    """A locked journal takes seconds to say so; one after the other, the last would wait for minutes."""
    await world.idle()
    world.journal.refusing |= {"append", "probe"}
    world.journal.slow.clear()
    asked = [asyncio.ensure_future(world.submit(a_spec(f"job-{n}"))) for n in range(20)]  # noqa: TID251 - held here
    await eventually(lambda: world.journal.tried[-1] == "append")
    world.journal.tried.clear()
    world.journal.slow.set()
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert {str(each) for each in outcomes} == {"The disk is full (append)."}
    assert world.journal.tried.count("append") == 0


@pytest.mark.req("TR-01", "TR-09")
async def test_a_cancelled_request_leaves_journal_and_state_consistent(world: World) -> None:
    await world.idle()
    for turns in range(40):
        asking = asyncio.ensure_future(world.submit(a_spec(f"job-{turns}", hold=True)))  # noqa: TID251 - held here
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
    await world.idle()
    assert await world.replayed() == world.host.machine.state
    (job,) = await world.submit(a_spec("last"))
    await eventually(lambda: world.state(job) == "running")


# ── Snapshots and replay ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("TR-01")
async def test_a_snapshot_is_written_every_ten_thousand_events_and_at_stop(tmp_path: Path) -> None:
    world = World(tmp_path, check_invariants=False)
    await world.begin()
    await world.idle()
    taken = world.journal.tried.count("snapshot")
    seq = world.host.machine.state.seq
    half = (ledger.SNAPSHOT_EVERY - seq) // 2
    await world.submit(*(a_spec(f"a-{n}", hold=True) for n in range(half)))
    await world.idle()
    assert world.journal.tried.count("snapshot") == taken
    await world.submit(*(a_spec(f"b-{n}", hold=True) for n in range(2)))
    await eventually(lambda: world.journal.tried.count("snapshot") == taken + 1)
    await world.stop()
    assert world.journal.tried.count("snapshot") == taken + 2


@pytest.mark.req("TR-01")
@pytest.mark.parametrize("seed", range(4))
async def test_snapshot_and_tail_equal_a_full_replay(tmp_path: Path, seed: int, monkeypatch) -> None:
    monkeypatch.setattr(ledger, "SNAPSHOT_EVERY", 15)
    chance = random.Random(seed)
    world = World(tmp_path)
    for life in range(4):
        await world.begin()
        for number in range(8):
            await _live_a_little(world, chance, f"job-{life}-{number}")
        state = world.host.machine.state
        assert await world.replayed() == state
        await (world.stop if chance.random() < 0.5 else world.crash)()
    await world.begin()
    assert (await world.journal.load())[0] == world.host.machine.state == await world.replayed()
    await world.stop()


async def _live_a_little(world: World, chance: random.Random, name: str) -> None:
    (job,) = await world.submit(a_spec(name, terminal=chance.random() < 0.5, hold=chance.random() < 0.2))
    running = [each.id for each in world.host.machine.state.jobs.values() if each.state == "running"]
    if running and chance.random() < 0.7:
        world.executor.end(chance.choice(running), code=chance.choice([0, 3]))
    if chance.random() < 0.3:
        await world.host.act(lambda machine, now: decide.cancel(machine.state.jobs[job], now, None), BY_ANN)
    await world.pass_time(chance.choice([1, SECOND, MINUTE, HOUR]))


@pytest.mark.req("TR-01", "TR-10")
async def test_an_end_that_is_reported_while_the_engine_stops_is_left_to_the_next_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    await world.begin()
    job = await world.run(a_spec())
    await world.idle()
    stopped, tried = world.host.machine.state.seq, world.journal.tried.count("snapshot")
    world.journal.slow.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.stop())
        await eventually(lambda: world.journal.tried.count("snapshot") > tried)
        world.executor.end(job)
        world.journal.slow.set()
    await eventually(lambda: len(world.host._tasks) == 0)
    assert capfd.readouterr().err == ""
    assert world.host.machine.state.seq == stopped
    await world.begin()
    await eventually(lambda: world.state(job) == "succeeded")
    await world.stop()


async def test_a_damaged_snapshot_loses_no_data(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.begin()
    await world.run(a_spec())
    state = world.host.machine.state
    await world.stop()
    with sqlite3.connect(tmp_path / "journal.db") as stored:
        stored.execute("UPDATE snapshots SET state = zeroblob(10)")
    await world.begin()
    assert world.host.machine.state == state
    await world.stop()


# ── The archive ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("TR-11")
async def test_events_older_than_the_history_kept_are_archived_once_a_day(tmp_path: Path) -> None:
    world = World(tmp_path, keep_history_ms=10 * DAY)
    await world.begin()
    await world.idle()
    assert world.journal.tried.count("archive") == 1
    job = await world.run(a_spec())
    world.executor.end(job)
    for day in range(1, 14):
        await world.submit(a_spec(f"day-{day}", hold=True))
        await world.pass_time(DAY)
    assert 13 <= world.journal.tried.count("archive") <= 14
    kept = await world.journal.events(job=None, after=0, limit=1000)
    assert NOON + 2 * DAY <= kept[0].at < NOON + 4 * DAY
    assert list((tmp_path / "archive").glob("events-1-*.jsonl.gz"))
    state = world.host.machine.state
    await world.stop()
    await world.begin()
    assert world.host.machine.state == state
    await world.stop()


async def test_an_archive_that_cannot_be_written_is_reported_and_the_engine_continues(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.begin()
    await world.idle()
    world.journal.refusing.add("archive")
    await world.pass_time(DAY + HOUR)
    assert world.host.trouble == ("Old events stay in the journal for now. The disk is full (archive).",)
    await world.run(a_spec())
    world.journal.refusing.clear()
    await world.pass_time(DAY + HOUR)
    assert world.host.trouble == ()
    await world.stop()


# ── Broken promises ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("TR-02")
async def test_violated_invariants_stop_all_scheduling_and_are_reported(tmp_path: Path, monkeypatch, capfd) -> None:
    world = World(tmp_path)
    await world.begin()
    running = await world.run(a_spec())
    await world.idle()
    monkeypatch.setattr(host_module, "violations", lambda _machine, _body: ["card 0 is given twice"])
    (job,) = await world.submit(a_spec("second"), request="r1")
    assert world.state(job) == "queued", "what the journal has was accepted"
    refused = await world.submit(a_spec("third"))
    assert isinstance(refused, Refusal)
    assert refused.kind is RefusalKind.UNAVAILABLE
    assert "card 0 is given twice" in refused.message
    assert "engine restart" in refused.message
    assert world.host.trouble == (refused.message,)
    world.executor.end(running)
    await world.pass_time(2 * DAY)
    assert world.state(running) == "running"
    assert len(world.executor.of(StartReplica)) == 1, "nothing more is started"
    again = msgspec.structs.replace(BY_ANN, request="r1")
    assert await world.host.act(lambda *_: [], again, lambda _: b"new") == b"[2]", "the first answer"
    snapshots = world.journal.tried.count("snapshot")
    await world.stop()
    assert world.journal.tried.count("snapshot") == snapshots, "nothing wrong is kept"
    assert "card 0 is given twice" in capfd.readouterr().err

    monkeypatch.undo()
    await world.begin()
    await eventually(lambda: world.state(job) == "running")
    assert world.state(running) == "succeeded"
    await world.stop()


async def test_an_event_that_cannot_be_applied_stops_all_scheduling_too(world: World, capfd) -> None:
    await world.host.act(lambda *_: [events.JobReleased(JobId(99))], BY_ANN)
    assert isinstance(await world.submit(a_spec("more")), Refusal)
    assert "KeyError" in capfd.readouterr().err


# ── The machine's clock jumps ────────────────────────────────────────────────────────────────────────────────────────


class MachineTime:
    """The two clocks of a machine, in nanoseconds."""

    def __init__(self) -> None:
        self.wall = NOON * 1_000_000
        self.progress = 0

    def clock(self) -> SystemClock:
        return SystemClock(wall=lambda: self.wall, progress=lambda: self.progress)

    def pass_time(self, milliseconds: int) -> None:
        self.wall += milliseconds * 1_000_000
        self.progress += milliseconds * 1_000_000

    def jump(self, milliseconds: int) -> None:
        self.wall += milliseconds * 1_000_000


@pytest.mark.req("TR-03")
@pytest.mark.parametrize(
    ("jump", "told"), [(5 * HOUR, "5 h ahead of the engine's"), (-5 * HOUR, "back to 5 h behind the engine's")]
)
async def test_a_clock_jump_is_reported_and_neither_ends_nor_extends_a_hold(
    tmp_path: Path, jump: int, told: str
) -> None:
    time = MachineTime()
    world = World(tmp_path, time.clock())
    await world.begin()
    job = await world.run(a_spec(terminal=True))
    world.executor.end(job, code=3)
    await eventually(lambda: world.state(job) == "error")
    assert world.host.trouble == ()
    time.jump(jump)
    await world.submit(a_spec("wakes-the-timers", hold=True))
    await world.idle()
    assert world.job(job).kept
    (said,) = world.host.trouble
    assert told in said
    time.pass_time(4 * HOUR + MINUTE)
    await world.submit(a_spec("wakes-them-again", hold=True))
    await eventually(lambda: job not in world.host.machine.state.jobs or not world.job(job).kept)
    await world.stop()
    moments: Callable[[], list[int]] = (
        sqlite3.connect(tmp_path / "journal.db").execute("SELECT at FROM events ORDER BY seq").fetchall
    )
    found = moments()
    assert found == sorted(found), "time never goes back in the journal"


@pytest.mark.req("JT-50")
async def test_clients_hear_of_the_progress_of_copies_although_it_is_no_event(world: World) -> None:
    job = await world.run(a_spec())
    await world.idle()
    world.host.machine.touched.clear()
    heard: list[set[JobId]] = []

    async def wait() -> None:
        async with world.host.changed:
            await world.host.changed.wait()
        heard.append(set(world.host.machine.touched))

    seq = world.host.machine.state.seq
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(wait())
        await world.idle()
        world.host.staging_moved(ReplicaId(JobId(999), 1, 0))
        await world.idle()
        assert heard == []
        world.host.staging_moved(ReplicaId(job, 1, 0))
        await eventually(lambda: heard == [{job}])
    assert world.host.machine.state.seq == seq


def served(world: World) -> Engine:
    """An engine over this world's host, whose containers are not measured."""

    async def used(_replica: ReplicaId) -> None:
        return None

    world.executor.used = used
    return Engine(host=world.host, state_folder=world.folder, socket=world.folder / "s", system=True, cluster="test")


BY = RequestContext(Actor(ANN, admin=False))


@pytest.mark.req("JT-60")
async def test_only_an_administrator_is_told_to_be_one(world: World) -> None:
    engine = served(world)
    administrator = RequestContext(Actor(ANN, admin=True))
    assert not (await reading.overview(engine, BY, messages.NoArgs())).admin
    assert (await reading.overview(engine, administrator, messages.NoArgs())).admin


@pytest.mark.req("SC-15", "UI-07")
async def test_positions_before_are_shown_only_while_other_weights_are_tried(world: World) -> None:
    await world.run(a_spec(cpus=4))
    (waits,) = await world.submit(a_spec("second", cpus=4))
    await world.idle()
    engine = served(world)
    for weights, before in ((None, None), (WeightChanges(age=1000), 1)):
        arguments = messages.PrioritiesArgs(weights)
        (page,) = [each async for each in priorities(engine, BY, arguments)]
        assert [(row.job, row.position, row.position_before) for row in page.rows] == [(waits, 1, before)]


@pytest.mark.req("LA-63", "UI-03")
async def test_details_of_a_trial_list_all_trials_of_its_sweep_and_those_of_an_array_do_not(world: World) -> None:
    sweep = Sweep(parameters={"lr": ("0.1", "0.01")})
    trials = await world.submit(a_spec(sweep=sweep))
    tasks = await world.submit(a_spec("tasks", array=Array(indices=(0, 1))))
    await world.idle()
    engine = served(world)
    trial = await reading.job(engine, BY, messages.JobArgs(trials[0]))
    assert len(trial.tasks) == 2
    assert (await reading.job(engine, BY, messages.JobArgs(tasks[0]))).tasks == ()


@pytest.mark.req("JT-03")
async def test_the_address_in_a_log_is_shown_of_running_interactive_jobs_alone(world: World) -> None:
    engine = served(world)
    shown: dict[JobKind, str] = {}
    for kind in (JobKind.INTERACTIVE, JobKind.REGULAR):
        job = await world.run(a_spec(str(kind), kind=kind))
        path = log_path(engine.logs, ReplicaId(job, 1, 0), LogStream.STDOUT)
        path.parent.mkdir(parents=True)
        path.write_text("Serving at http://127.0.0.1:8888/lab?token=abc\n")
        shown[kind] = (await reading.job(engine, BY, messages.JobArgs(job))).address
    assert shown == {JobKind.INTERACTIVE: "http://127.0.0.1:8888/lab?token=abc", JobKind.REGULAR: ""}


@pytest.mark.req("SC-10")
async def test_a_job_may_wait_for_jobs_and_arrays_that_only_accounting_has(world: World) -> None:
    first = await world.run(a_spec())
    array = await world.submit(a_spec("array", array=Array(indices=(0, 1))))
    await eventually(lambda: [world.state(each) for each in array] == ["running"] * 2)
    for job, code in ((first, 0), (array[0], 0), (array[1], 3)):
        world.executor.end(job, code=code)
    await eventually(lambda: world.state(array[1]) == "error")
    await world.pass_time(DAY)
    assert not {first, *array} & world.host.machine.state.jobs.keys()
    engine = served(world)
    outcomes: dict[JobId, bool] = {}
    for named in (first, array[0]):
        waits = a_spec(f"after-{named}", dependencies=(Dependency(DependencyKind.AFTER_OK, named),))
        await acting.submit(engine, BY, messages.SubmitArgs((waits,)))
        job = max(world.host.machine.state.jobs)
        await world.idle()
        outcomes[named] = world.state(job) == "running"
    assert outcomes == {first: True, array[0]: False}


@pytest.mark.req("JT-40")
async def test_a_shell_waits_until_a_container_that_is_about_to_be_held_is_held(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await world.run(a_spec())
    done: list[str] = []

    async def settled(replica: ReplicaId, seconds: float) -> None:
        done.append(f"settled {replica.job}")

    async def enter(replica: ReplicaId, *_: object, **_options: object) -> EnteredShell:
        done.append(f"entered {replica.job}")
        return EnteredShell(terminal_fd=None, pipe_fds=None, control_fd=0, facts=EntryFacts(kept=True))

    monkeypatch.setattr(world.host, "settled", settled)
    monkeypatch.setattr(world.executor, "enter", enter, raising=False)
    opened = await open_shell(served(world), BY, ShellRequest(job=job, command=("id",)))
    assert done == [f"settled {job}", f"entered {job}"]
    assert opened.answer.kept


def test_without_settings_failed_containers_are_held_four_hours_and_events_kept_ninety_days() -> None:
    """And the invariants, whose test of a large state takes long, are left to the tests."""
    settings = host_module.Settings()
    assert (settings.hold_seconds, settings.keep_history_ms, settings.check_invariants) == (
        4 * HOUR // SECOND,
        90 * DAY,
        False,
    )
