"""What an attempt's folder tells the engine, and what the engine shows in it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import msgspec
import pytest

from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.resilience import Elastic
from cockpit.model.spec import HoldCards
from cockpit.runtime.containers import attempt_records, heartbeats, spawning, watching
from cockpit.runtime.containers.heartbeats import Heartbeats, silence_ms
from cockpit.runtime.containers.shim import hold
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.identity import boot_id, identity_of
from cockpit.runtime.containers.watching import NotifyFifo
from cockpit.runtime.tasks import Tasks
from tests.runtime.containers.house import Seen

pytestmark = pytest.mark.req("TR-01")
GONE = "its container was killed from outside: the holder process is gone, and everything in it with it"
HERE = {"pid": 1, "start_time": 1, "boot_id": boot_id()}
BEFORE = HERE | {"boot_id": "another"}


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    folder = tmp_path / "state" / "containers" / "7.1.0"
    folder.mkdir(parents=True)
    return Attempt(str(folder))


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ({}, ExitStatus(lost=attempt_records.NEVER_BEGAN, unstarted=True)),
        ({"shim.json": HERE}, ExitStatus(lost=attempt_records.NEVER_BEGAN, unstarted=True)),
        ({"shim.json": HERE, "beginning.json": {}}, ExitStatus(lost=GONE)),
        ({"shim.json": HERE, "started.json": {}}, ExitStatus(lost=GONE)),
        ({"shim.json": BEFORE}, ExitStatus(lost="the machine was restarted while it ran")),
    ],
)
def test_a_replica_without_exit_record_is_lost_or_never_began(attempt, records, status):
    for name, record in records.items():
        attempt.write(name, record)
    assert attempt_records.exit_status(attempt, None) == status


def test_an_exit_record_says_how_a_replica_ended(attempt):
    for record, status in (
        ({"code": 3}, ExitStatus(code=3)),
        ({"signal": 9, "oom": True}, ExitStatus(signal=9, oom=True)),
        ({"code": 7, "hook": "before_start"}, ExitStatus(code=7, hook="before_start")),
        ({"lost": "no folder"}, ExitStatus(lost="no folder")),
        ({"lost": "killed", "unstarted": True}, ExitStatus(lost="killed", unstarted=True)),
    ):
        assert attempt_records.exit_status(attempt, record) == status


def a_plan(attempt: Attempt, **more: object) -> None:
    attempt.write("plan.json", {"kept_env": {}, "devices": [], **more})


@pytest.mark.parametrize(
    ("ended", "cards", "devices", "freed"),
    [
        (True, "free", ["/dev/card"], True),
        (True, None, ["/dev/card"], True),
        (True, "keep", ["/dev/card"], False),
        (True, "free", [], False),
        (False, None, ["/dev/card"], False),
    ],
)
def test_the_notice_says_when_the_cards_of_a_container_are_freed(attempt, ended, cards, devices, freed):
    a_plan(attempt, devices=devices)
    if ended:
        attempt.write_exit({"code": 1})
    if cards:
        attempt.write("kept.json", {"cards": cards, "until": None})
    facts = attempt_records.entry_facts(attempt)
    assert (facts.kept, facts.cards_freed) == (ended, freed)
    assert attempt.has_cards() == (cards != "free")


def test_empty_card_variables_alone_are_freed_cards_too(attempt):
    a_plan(attempt, kept_env={"CUDA_VISIBLE_DEVICES": ""})
    attempt.write_exit({"code": 1})
    assert attempt_records.entry_facts(attempt).cards_freed


@pytest.mark.parametrize(
    ("identity", "podman", "remounted", "plain"),
    [
        ({}, "", False, False),
        ({"remounted": True}, "", True, False),
        ({"remounted": True}, "id", False, False),
        ({"plain": True}, "", False, True),
    ],
)
def test_the_notice_says_what_kind_of_container_it_is(attempt, identity, podman, remounted, plain):
    a_plan(attempt, podman=podman)
    attempt.write("shim.json", HERE | identity)
    facts = attempt_records.entry_facts(attempt)
    assert (facts.remounted, facts.plain) == (remounted, plain)
    assert attempt_records.is_of_podman(attempt) == bool(podman)


def test_a_held_container_is_marked_and_has_an_exit_record(attempt):
    attempt.write("shim.json", HERE)
    attempt.write_bytes("running", b"")
    attempt_records.mark_kept(attempt, HoldCards.FREE, Millis(9))
    assert attempt.read("kept.json") == {"cards": "free", "until": 9}
    assert attempt.read("exit.json") == {"lost": GONE}
    assert not os.path.exists(attempt.file("running"))
    attempt.write_exit({"code": 3})
    attempt_records.mark_kept(attempt, HoldCards.KEEP)
    assert attempt.read("kept.json") == {"cards": "keep", "until": None}
    assert attempt.read("exit.json") == {"code": 3}


def elastic(rank: int = 0, **more: object) -> Any:
    words = {"elastic": Elastic(workers=2, min_workers=1, max_workers=3, max_wait_seconds=60), "suspends": True}
    spec = SimpleNamespace(**{**words, "first_worker": 0, **more})
    return SimpleNamespace(spec=spec, replica=ReplicaId(JobId(7), 1, rank))


@pytest.mark.req("EL-05")
@pytest.mark.parametrize(
    ("effect", "waits_ms"),
    [
        (elastic(), [60_000]),
        (elastic(1, first_worker=1), [60_000]),
        (elastic(0, first_worker=1), []),
        (elastic(elastic=None), []),
        # Its steps are of interest, and it may be silent.
        (elastic(suspends=False), [None]),
    ],
)
async def test_only_workers_of_elastic_jobs_are_followed(attempt, effect, waits_ms):
    following = Heartbeats(Tasks(), Seen())
    following.follow(effect, attempt)
    assert [worker.wait_ms for worker in following._workers.values()] == waits_ms
    assert (following._checking is not None) == bool(waits_ms)
    following.close()


@pytest.mark.req("EL-01", "EL-05")
async def test_reports_of_steps_are_passed_on_once_each_and_at_the_end(attempt):
    seen = Seen()
    following = Heartbeats(Tasks(), seen)
    following.follow(elastic(suspends=False), attempt)
    os.makedirs(attempt.file("pulse"))
    following.check()
    assert seen.stepped == []
    for step in (7, 7, 9):
        content = b'{"step": %d, "began": 0}' % step
        Path(attempt.file("pulse", "steps")).write_bytes(b"%08x %s\n" % (crc32(content), content))
        following.check()
    assert [report.step for _, report in seen.stepped] == [7, 9]
    assert seen.silent == [], "it need not send a heartbeat"
    content = b'{"step": 12, "began": 0}'
    Path(attempt.file("pulse", "steps")).write_bytes(b"%08x %s\n" % (crc32(content), content))
    following.leave(elastic().replica)
    assert [report.step for _, report in seen.stepped] == [7, 9, 12], "what it has done since the last look counts"
    following.close()


@pytest.mark.req("EL-05")
async def test_a_worker_is_checked_until_it_ends(attempt):
    seen = Seen()
    following = Heartbeats(Tasks(), seen, every=0.0)
    following.follow(elastic(), attempt)
    checking = following._checking
    following.follow(elastic(1), attempt)
    assert following._checking is checking
    async with asyncio.timeout(20):
        await seen.until(lambda: len(seen.silent) > 2)
        for rank in (0, 1, 2):
            following.leave(elastic(rank).replica)
        await checking
    assert {replica.rank for replica, _ in seen.silent} == {0, 1}
    assert following._checking is None
    following.follow(elastic(), attempt)
    assert following._checking is not None
    following.close()


@pytest.mark.req("EL-05")
def test_a_worker_is_silent_from_its_longest_time_on(attempt, monkeypatch):
    seen = Seen()
    following = Heartbeats(Tasks(), seen)
    following._workers[elastic().replica] = heartbeats.Worker(attempt, 60_000)
    heartbeats.show(attempt, {})
    attempt.write("started.json", {})
    beat = Path(attempt.file("pulse", "beat"))
    beat.touch()
    os.utime(beat, ns=(0, 10**9))
    for now_ms, reported in ((60_999, []), (61_000, [60_000])):
        for clock in ("wall_nanos", "running_nanos"):
            monkeypatch.setattr(heartbeats, clock, lambda now_ms=now_ms: now_ms * 1_000_000)
        following.check()
        assert [silent for _, silent in seen.silent] == reported
    assert silence_ms(attempt, 0) == 0, "a clock that was set back makes no worker silent"


@pytest.mark.req("EL-05")
def test_a_clock_that_is_set_makes_no_worker_silent(attempt, monkeypatch):
    seen = Seen()
    following = Heartbeats(Tasks(), seen)
    following._workers[elastic().replica] = heartbeats.Worker(attempt, 60_000)
    heartbeats.show(attempt, {})
    attempt.write("started.json", {})
    beat = Path(attempt.file("pulse", "beat"))
    beat.touch()
    os.utime(beat, ns=(0, 10**9))
    hour = 3_600_000
    steps = [
        # the wall clock, the time while the machine ran, and whether the worker gives a sign of life before
        (1_000, 5_000, False, []),
        (1_000 + hour, 6_000, False, []),
        (2_000 + hour, 7_000, True, []),
        (61_000 + 2 * hour, 66_000, False, []),
        (62_000 + 2 * hour, 67_000, False, [60_000]),
    ]
    for wall_ms, running_ms, beats, reported in steps:
        monkeypatch.setattr(heartbeats, "wall_nanos", lambda wall_ms=wall_ms: wall_ms * 1_000_000)
        monkeypatch.setattr(
            heartbeats, "running_nanos", lambda running_ms=running_ms: running_ms * 1_000_000, raising=False
        )
        if beats:
            os.utime(beat, ns=(0, wall_ms * 1_000_000))
        following.check()
        assert [silent for _, silent in seen.silent] == reported


@pytest.mark.req("EL-05")
def test_the_list_of_workers_is_readable_and_only_heartbeats_are_writable(attempt):
    before = os.umask(0o077)
    try:
        for text in (b"one", b"two"):
            heartbeats.show(attempt, {"workers.json": text})
    finally:
        os.umask(before)
    modes = {name: Path(attempt.file(name)).stat().st_mode & 0o777 for name in ("world", "pulse", "world/workers.json")}
    assert modes == {"world": 0o755, "pulse": 0o777, "world/workers.json": 0o644}
    assert os.listdir(attempt.file("world")) == ["workers.json"]
    assert Path(attempt.file("world", "workers.json")).read_bytes() == b"two"


class Shims:
    """Runs orders. `code`: the exit code of each run."""

    def __init__(self, *codes: int) -> None:
        self.orders: list[str] = []
        self._codes = iter(codes)

    def run(self, order: str) -> int:
        self.orders.append(order)
        return next(self._codes)


def spawn_run(attempt: Attempt, shims: Shims, *modes: str) -> None:
    spawning._run(attempt, shims, modes, ready=("shim.json", "exit.json"))


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("name", ["shim.json", "exit.json"])
def test_a_shim_has_done_its_work_when_its_record_is_there(attempt, code, name):
    attempt.write(name, HERE)
    shims = Shims(code)
    spawn_run(attempt, shims, "again")
    assert shims.orders == [f"{attempt.path}\nagain"]


def test_a_refused_container_is_tried_as_a_plain_process(attempt):
    attempt.write("shim.json", HERE)
    shims = Shims(4, 0)
    spawn_run(attempt, shims)
    assert shims.orders == [attempt.path, f"{attempt.path}\nplain"]


def test_a_shim_that_died_before_the_command_began_may_be_run_again(attempt):
    with pytest.raises(spawning.ShimDied, match="before the command began: signal 9, without a message"):
        spawn_run(attempt, Shims(-9))
    Path(attempt.file("shim.log")).write_text("first\nno memory\n\n")
    with pytest.raises(spawning.ShimDied, match="before the command began: no memory"):
        spawn_run(attempt, Shims(1))
    attempt.write("beginning.json", {"at": 1})
    with pytest.raises(spawning.SpawnError, match="shim failed: no memory") as error:
        spawn_run(attempt, Shims(1))
    assert not isinstance(error.value, spawning.ShimDied)


def test_a_shim_that_leaves_no_record_has_failed(attempt):
    with pytest.raises(spawning.SpawnError, match="shim failed: exit code 0, without a message"):
        spawn_run(attempt, Shims(0))


def test_a_record_is_awaited_as_long_as_a_shim_lives(attempt, monkeypatch):
    lock = attempt.take_lock()
    now = iter([0.0, 1.0, 9.0, 11.0])
    monkeypatch.setattr(spawning.time, "monotonic", lambda: next(now))
    waits: list[float] = []
    monkeypatch.setattr(spawning.time, "sleep", waits.append)
    locked = iter([True, True, True])
    monkeypatch.setattr(Attempt, "is_locked", lambda _: next(locked))
    assert not spawning._appears(attempt, ["shim.json"], 10)
    assert len(waits) == 2
    now = iter([0.0, 1.0, 3.0])
    locked = iter([True, True])
    assert not spawning._is_gone(attempt)
    os.close(lock)


class Plan(msgspec.Struct):
    stdout: str
    network: str = ""
    podman: str = ""


class BeginningShims(Shims):
    """Shims whose holders begin at once."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(0, 0)
        self._attempt = attempt
        self.plans: list[dict[str, Any]] = []

    def run(self, order: str) -> int:
        self.plans.append(self._attempt.read("plan.json") or {})
        self._attempt.write("shim.json", HERE)
        return super().run(order)


def test_the_plan_is_written_before_the_shim_runs_and_the_first_plan_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attempt = Attempt(str(tmp_path / "state" / "containers" / "7.1.0"))
    shims = BeginningShims(attempt)
    for name in ("first", "second"):
        spawning.spawn(attempt, Plan(stdout=str(tmp_path / "logs" / name)), shims)
    assert [Path(each["stdout"]).name for each in shims.plans] == ["first", "first"]
    folders = [Path(attempt.path), tmp_path / "logs"]
    assert [each.stat().st_mode & 0o777 for each in folders] == [0o700, 0o700]
    assert sorted(os.listdir(tmp_path)) == ["logs", "state"], "a job without a network has no folder for it"


def test_the_folder_of_a_jobs_network_exists_before_its_shim_runs(tmp_path):
    attempt = Attempt(str(tmp_path / "state" / "containers" / "7.1.0"))
    plan = Plan(stdout=str(tmp_path / "out"), network=str(tmp_path / "network"))
    spawning.spawn(attempt, plan, BeginningShims(attempt))
    assert (tmp_path / "network" / "shown" / "agent").exists()


@pytest.mark.parametrize(
    ("holder", "podman", "modes", "seconds"),
    [
        (HERE | {"plain": True}, "", "again\nplain", spawning._READY_SECONDS),
        (HERE, "", "again", spawning._READY_SECONDS),
        (None, "image", "again", spawning._COMMIT_SECONDS),
    ],
)
def test_a_held_container_is_made_again_as_it_was(attempt, monkeypatch, holder, podman, modes, seconds):
    waits: list[float] = []
    monkeypatch.setattr(spawning, "_appears", lambda _attempt, _names, limit: not waits.append(limit))
    attempt.write("plan.json", {"podman": podman})
    if holder is not None:
        attempt.write("shim.json", holder)
    shims = Shims(0)
    spawning.spawn_again(attempt, shims)
    assert (shims.orders, waits) == ([f"{attempt.path}\n{modes}"], [seconds])


def test_only_containers_of_podman_are_forgotten_by_podman(attempt, monkeypatch):
    commands: list[list[str]] = []
    monkeypatch.setattr(spawning.subprocess, "run", lambda command, **_: commands.append(command))
    spawning.forget(attempt, "py")
    attempt.write("plan.json", {"podman": ""})
    spawning.forget(attempt, "py")
    assert commands == []
    attempt.write("plan.json", {"podman": "image"})
    spawning.forget(attempt, "py")
    assert [each[-2:] for each in commands] == [["forget", attempt.path]]


def test_a_shim_inherits_only_what_podman_needs(monkeypatch):
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    found = spawning.shim_environment()
    assert found["HOME"] == "/h"
    assert not {"SECRET", "XDG_DATA_HOME"} & set(found)
    assert spawning.shim_command("py", "enter", "a")[:3] == ["py", "-I", "-S"]


def test_an_idle_shim_ends_with_the_engine():
    shims = spawning.Shims(sys.executable)
    shims.prepare()
    waiting = shims._ready
    shims.prepare()
    assert waiting is not None
    assert shims._ready is waiting
    shims.close()
    assert waiting.returncode == hold.NOTHING_TO_DO
    assert shims._ready is None
    shims.close()


async def test_names_in_the_fifo_may_come_in_parts(tmp_path):
    names: list[str] = []
    fifo = NotifyFifo(tmp_path / "notify", names.append)
    fifo.close()
    for _ in range(2):  # a second engine finds the file of the first
        fifo.open()
        fifo.close()
    fifo.open()
    assert (tmp_path / "notify").stat().st_mode & 0o777 == 0o600
    with open(tmp_path / "notify", "wb", buffering=0) as writer:
        for piece, seen in ((b"7.1.0\n7.1", ["7.1.0"]), (b".1\n", ["7.1.0", "7.1.1"])):
            writer.write(piece)
            fifo._read()
            assert names == seen
    fifo.close()


async def test_a_holder_that_does_not_end_is_killed(attempt):
    with subprocess.Popen(["sh", "-c", "trap '' TERM; echo up; read x"], stdin=-1, stdout=-1) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        attempt.write("shim.json", identity_of(holder.pid))
        gone: list[str] = []
        watched = watching.WatchedAttempt(attempt, lambda: gone.append("gone"))
        assert watched.alive
        async with asyncio.timeout(20):
            await watched.leave(signal.SIGTERM, 0.01)
        assert (watched.alive, gone, holder.wait()) == (False, ["gone"], -signal.SIGKILL)
        watched.send(signal.SIGTERM)
        await watched.leave(signal.SIGTERM, 0.01)
    dead = watching.WatchedAttempt(attempt, lambda: gone.append("again"))
    assert (dead.alive, gone) == (False, ["gone"])


@pytest.mark.parametrize(
    ("plan", "read_only", "text"),
    [
        ({}, [], "cgroup v2"),
        ({"podman": "id", "card_limits": "cards by MPS"}, [], "cgroup v2; Podman container; cards by MPS"),
        ({}, ["/usr", "/opt"], "cgroup v2; read-only: /usr, /opt"),
        ({"filtered": False}, [], "cgroup v2"),
    ],
)
def test_a_jobs_page_says_how_its_limits_are_enforced(monkeypatch, plan, read_only, text):
    monkeypatch.setattr(hold.syscalls, "is_known", lambda: True)
    bounds: Any = SimpleNamespace(text="cgroup v2")
    unfiltered = f"; {hold.syscalls.UNFILTERED}" if plan.get("filtered") is False else ""
    assert hold._limits_text(plan, bounds, read_only) == text + unfiltered


def test_a_failed_remount_keeps_the_exit_record(attempt, capsys):
    attempt.write_exit({"code": 3})
    hold._report_lost(attempt, "no folder", again=True)
    assert attempt.read("exit.json") == {"code": 3}
    assert capsys.readouterr().err == "no folder\n"
    hold._report_lost(attempt, "no folder", again=False)
    assert attempt.read("exit.json") == {"lost": "no folder"}


@pytest.mark.parametrize(("again", "recorded", "code"), [(False, True, 3), (False, False, 0), (True, True, 0)])
def test_a_command_is_never_started_a_second_time(attempt, monkeypatch, again, recorded, code):
    attempt.write("plan.json", {"network": ""})
    if recorded:
        attempt.write("shim.json", HERE)
    monkeypatch.setattr(hold, "_redirect_stderr", lambda _: None)
    monkeypatch.setattr(hold, "_launch", lambda *_, **__: 0)
    monkeypatch.setattr(hold, "leave_machine", lambda *_: None)
    monkeypatch.setattr(hold.signal, "pthread_sigmask", lambda *_: None)
    monkeypatch.setattr(hold.os, "umask", lambda _: None)
    assert hold._shim(attempt, again=again, plain=False) == code
    assert hold._shim(attempt, again=again, plain=False) == hold.NOTHING_TO_DO, "the first one holds the lock"
