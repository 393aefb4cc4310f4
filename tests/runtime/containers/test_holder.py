"""What the holder of a container does with signals of the engine and with the ends of the job's programs."""

from __future__ import annotations

import os
import signal
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.runtime.containers.shim import holder as holder_module
from cockpit.runtime.containers.shim import program, programs
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.holder import EARLY, KILL, LEAVE, TERMINATE, Holder
from cockpit.runtime.containers.shim.programs import AFTER, BEFORE, COMMAND

pytestmark = pytest.mark.req("JT-40")


class Left(Exception):
    """The holder has left."""


class World:
    """What a holder sees. `done` is what it has done, in order; `oom`: the kernel killed a program for its memory."""

    def __init__(self, attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
        self.attempt, self.done = attempt, list[str]()
        self.oom = self.inside = self.reads_pipes = False
        self.seconds_after = 0
        self.first = COMMAND
        self.fails = False
        self.mirrors = SimpleNamespace(step=lambda: self.done.append("mirrored"))
        monkeypatch.setattr(holder_module.os, "killpg", lambda pid, number: self.done.append(f"{pid} gets {number}"))
        monkeypatch.setattr(holder_module.os, "_exit", self._exit)
        monkeypatch.setattr(holder_module.linux, "ended_children", list)

    def _exit(self, code: int) -> None:
        raise Left(code)

    # As `JobProcesses`:
    def kill(self) -> None:
        self.done.append("killed")

    def are_left(self) -> bool:
        return False

    def read_pipes(self) -> bool:
        return self.reads_pipes

    def sent(self, received: Any) -> bool:
        return self.inside

    def leave(self) -> None:
        self.done.append("left")

    # As `ReplicaLimits`:
    def saw_oom(self) -> bool:
        return self.oom

    # As `Programs`:
    def log_bounds(self) -> None:
        return None

    def start(self, which: str, variables: dict[str, str] | None = None) -> Any:
        self.done.append(f"start {which} {variables or ''}".strip())

        def let_in() -> int:
            if self.fails:
                raise program.StartError("no folder")
            return 77

        return SimpleNamespace(let_in=let_in)

    def send_early_signal(self, pid: int) -> None:
        self.done.append(f"early {pid}")

    def complain(self, sentence: str) -> None:
        self.done.append(f"says {sentence}")

    def holder(self, running: int | None = 5) -> Holder:
        return Holder(self.attempt, self, self, self, running)

    def outcome(self) -> dict[str, Any]:
        record = self.attempt.read("exit.json") or {}
        assert record.pop("ended_at") > 0
        assert record.pop("cpu_ms") >= 0
        assert record.pop("peak_memory_mib") > 0
        return record


@pytest.fixture
def world(tmp_path, monkeypatch) -> World:
    folder = tmp_path / "state" / "containers" / "7.1.0"
    folder.mkdir(parents=True)
    return World(Attempt(str(folder)), monkeypatch)


def received(number: int) -> Any:
    return SimpleNamespace(si_signo=number, si_pid=0)


@pytest.mark.parametrize(
    ("code", "oom", "record"),
    [
        (0, True, {"code": 0, "oom": False}),
        (3, False, {"code": 3, "oom": False}),
        (3, True, {"code": 3, "oom": True}),
        (-9, True, {"signal": 9, "oom": True}),
        (-15, False, {"signal": 15, "oom": False}),
    ],
)
def test_the_end_of_the_command_is_recorded_after_everything_was_killed(world, code, oom, record):
    world.attempt.write_bytes("running", b"")
    world.oom = oom
    world.holder()._continue_after(code)
    assert world.outcome() == record
    assert world.done == ["killed", "mirrored"]
    assert not os.path.exists(world.attempt.file("running"))


def test_the_command_follows_the_script_before_it(world):
    world.first = BEFORE
    held = world.holder()
    held._continue_after(0)
    assert (world.done, held._running, held._which) == (["start command"], 77, COMMAND)
    assert world.attempt.read("exit.json") is None


@pytest.mark.parametrize(
    ("code", "asked", "record", "words"),
    [
        (7, False, {"code": 7, "hook": BEFORE, "oom": False}, "before_start ended with 7; the command is not run"),
        (-9, False, {"signal": 9, "hook": BEFORE, "oom": False}, "before_start was ended by SIGKILL; the command is"),
        (0, True, {"signal": 15, "hook": BEFORE, "oom": False}, "before_start was ended by SIGTERM; the command is"),
    ],
)
def test_the_command_does_not_follow_a_failed_script_or_a_request_to_end(world, code, asked, record, words):
    world.first = BEFORE
    held = world.holder()
    if asked:
        held._take(received(TERMINATE))
        world.done.clear()
    held._continue_after(code)
    assert world.outcome() == record
    assert world.done[0].startswith(f"says {words}")


@pytest.mark.parametrize(("code", "exit_code"), [(3, "3"), (-15, "143"), (0, "0")])
def test_the_script_after_the_command_knows_its_exit_code(world, code, exit_code):
    world.seconds_after = 9
    held = world.holder()
    held._continue_after(code)
    assert world.done == [f"start after_end { ({'COCKPIT_EXIT_CODE': exit_code}) }"]
    assert (held._which, held._is_after) == (AFTER, True)
    held._continue_after(-9)
    assert "says after_end was ended by SIGKILL" in world.done
    assert world.outcome()["oom"] is False


def test_a_command_that_cannot_be_started_is_lost(world):
    world.first, world.fails = BEFORE, True
    world.holder()._continue_after(0)
    assert world.outcome() == {"lost": "no folder"}
    assert "says command: no folder" in world.done


def test_a_script_after_the_command_that_cannot_be_started_changes_nothing(world):
    world.fails, world.seconds_after = True, 9
    world.holder()._continue_after(3)
    assert world.outcome() == {"code": 3, "oom": False}


def test_a_request_to_end_reaches_the_programs_group_and_a_kill_everything(world):
    held = world.holder()
    held._take(received(TERMINATE))
    assert (world.done, held._asked_to_end, held._killed) == (["5 gets 15"], True, False)
    held._take(received(KILL))
    assert (world.done[1:], held._killed) == (["killed"], True)
    world.seconds_after = 9
    held._continue_after(-9)
    assert not [each for each in world.done if each.startswith("start")], "no script runs after a kill"


def test_a_request_to_end_does_not_end_the_script_after_the_command(world):
    world.seconds_after = 9
    held = world.holder()
    held._continue_after(0)
    world.done.clear()
    held._take(received(TERMINATE))
    assert world.done == []


@pytest.mark.parametrize("number", [TERMINATE, KILL, EARLY, LEAVE])
def test_signals_of_the_job_itself_command_nothing(world, number):
    world.inside = True
    world.holder()._take(received(number))
    assert world.done == []


def test_the_early_signal_is_for_the_running_command_only(world):
    held = world.holder()
    held._take(received(EARLY))
    assert (world.done, held._asked_to_end) == (["early 5"], False)
    world.first = BEFORE
    for each in (world.holder(), world.holder(running=None)):
        each._take(received(EARLY))
    assert world.done == ["early 5"]


def test_the_holder_ends_on_the_leave_signal(world):
    with pytest.raises(Left):
        world.holder()._take(received(LEAVE))
    assert world.done == ["left"]


@pytest.mark.parametrize(
    ("until", "served", "leaves"), [(1, False, True), (1, True, False), (1 << 60, False, False), (None, False, False)]
)
def test_a_holder_ends_an_expired_hold_where_no_engine_runs(world, monkeypatch, until, served, leaves):
    world.attempt.write("kept.json", {"cards": "free", "until": until})
    monkeypatch.setattr(Attempt, "is_served", lambda _: served)
    held = world.holder(running=None)
    if leaves:
        with pytest.raises(Left):
            held._take(None)
    else:
        held._take(None)
    world.holder()._take(None)  # the command still runs
    assert world.done == (["left"] if leaves else [])


def test_the_script_after_the_command_is_killed_once_its_time_is_over(world, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(holder_module.time, "monotonic", lambda: now[0])
    world.seconds_after = 9
    held = world.holder()
    held._continue_after(0)
    world.done.clear()
    now[0] = 108.9
    held._take(None)
    assert world.done == []
    now[0] = 109.0
    held._take(None)
    held._take(None)
    assert world.done == ["killed"]


def test_a_full_disk_delays_the_exit_record(world, monkeypatch):
    write_exit = Attempt.write_exit

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Attempt, "write_exit", full)
    held = world.holder()
    held._running = None
    held._continue_after(3)
    assert world.attempt.read("exit.json") is None
    monkeypatch.setattr(Attempt, "write_exit", write_exit)
    notified = iter([False, True])
    monkeypatch.setattr(Attempt, "notify", lambda _: next(notified))
    held._report()
    before = os.stat(world.attempt.file("exit.json")).st_ino
    held._report()
    assert os.stat(world.attempt.file("exit.json")).st_ino == before
    held._report()
    assert world.outcome() == {"code": 3, "oom": False}


@pytest.mark.parametrize(
    ("state", "seconds"), [("unreported", 0.5), ("ended", 5.0), ("running", None), ("logs", 0.3), ("mirrored", 0.05)]
)
def test_the_holder_waits_as_long_as_its_state_allows(world, monkeypatch, state, seconds):
    waits: list[float | None] = []
    monkeypatch.setattr(holder_module.signal, "sigtimedwait", lambda _, timeout: waits.append(timeout))
    monkeypatch.setattr(holder_module.signal, "sigwaitinfo", lambda _: waits.append(None))
    held = world.holder(running=None if state in {"unreported", "ended"} else 5)
    held._unreported = {"code": 1} if state == "unreported" else None
    if state in {"logs", "mirrored"}:
        held._logs = SimpleNamespace(look=lambda: 0.3)
        world.mirrors = SimpleNamespace(seconds=0.05) if state == "mirrored" else None
    held._wait()
    assert waits == [seconds]


def test_the_wait_ends_when_the_script_after_the_command_must(world, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(holder_module.signal, "sigtimedwait", lambda _, timeout: waits.append(timeout))
    monkeypatch.setattr(holder_module.time, "monotonic", lambda: 100.0)
    world.mirrors = None
    held = world.holder()
    held._logs, held._which = SimpleNamespace(look=lambda: 1.0), AFTER
    for until in (100.25, 99.0, 900.0):
        held._after_until = until
        held._wait()
    held._killed, held._after_until = True, 100.25
    held._wait()
    assert waits == [0.25, 0.0, 1.0, 1.0]


def test_only_the_programs_own_end_ends_the_attempt(world, monkeypatch):
    monkeypatch.setattr(holder_module.linux, "ended_children", lambda: [(4, 0), (5, 3 << 8), (6, 0)])
    world.holder()._reap()
    assert world.outcome() == {"code": 3, "oom": False}


def test_readers_of_the_commands_output_have_a_moment_to_write_it(world, monkeypatch):
    world.reads_pipes = True
    now = iter([100.0, 100.0, 101.0, 102.0])
    waits: list[float] = []
    signals = iter([None, received(signal.SIGCHLD)])
    monkeypatch.setattr(holder_module.time, "monotonic", lambda: next(now))

    def wait(_: object, left: float) -> Any:
        waits.append(left)
        return next(signals)

    monkeypatch.setattr(holder_module.signal, "sigtimedwait", wait)
    world.holder()._let_pipes_drain()
    assert waits == [2.0, 1.0]
    monkeypatch.setattr(holder_module.time, "monotonic", lambda: 100.0)
    monkeypatch.setattr(holder_module.signal, "sigtimedwait", lambda *_: received(KILL))
    held = world.holder()
    held._let_pipes_drain()
    assert held._killed
    monkeypatch.setattr(holder_module.signal, "sigtimedwait", lambda *_: received(LEAVE))
    with pytest.raises(Left):
        world.holder()._let_pipes_drain()


def test_the_use_of_reaped_processes_is_recorded():
    subprocess.run(["true"], check=True)
    used = holder_module._children_usage()
    assert used["cpu_ms"] >= 0
    assert 0 < used["peak_memory_mib"] < 1 << 20


def made(tmp_path, **plan: object) -> programs.Programs:
    own = {"argv": ["run", "it"], "env": {}, "grace_seconds": 30, "hooks": {}, "rootless": True}
    logs = {name: str(tmp_path / name) for name in ("stdout", "stderr")}
    return programs.Programs({**own, **logs, **plan}, None, program.PLAIN)


def test_the_first_program_is_the_script_before_the_command_if_there_is_one(tmp_path):
    assert made(tmp_path).first == COMMAND
    assert made(tmp_path, hooks=None).first == COMMAND
    with_hooks = made(tmp_path, hooks={BEFORE: "echo before", AFTER: "echo after"})
    assert (with_hooks.first, with_hooks.seconds_after) == (BEFORE, 30)
    assert made(tmp_path, hooks={BEFORE: "x"}).seconds_after == 0
    assert with_hooks._arguments(COMMAND) == ["run", "it"]
    assert with_hooks._arguments(AFTER) == [program.shell(), "-c", "echo after", AFTER]


def test_a_message_is_appended_to_the_log_of_errors_and_no_link_is_followed(tmp_path):
    own = made(tmp_path)
    (tmp_path / "stderr").write_text("job\n")
    own.complain("it is so")
    assert (tmp_path / "stderr").read_text() == "job\ncockpit: it is so\n"
    (tmp_path / "stderr").rename(tmp_path / "other")
    (tmp_path / "stderr").symlink_to("other")
    with pytest.raises(OSError, match="symbolic link"):
        own.complain("it is so")


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(("shell", "script", "steps"), [(True, 1, 0), (False, 0, 1)])
def test_the_early_signal_goes_to_the_script_or_to_its_steps(tmp_path, monkeypatch, shell, script, steps):
    name = tmp_path / "srun"
    name.write_text("#!/bin/sh\necho up; read x; echo ended\n")
    name.chmod(0o755)
    with subprocess.Popen(
        ["sh", "-c", f"trap : USR1; {name} x; exit 3"],
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"up\n"
        sent: list[int] = []
        monkeypatch.setattr(programs.os, "kill", lambda pid, number: sent.append(pid) if number == 10 else None)
        made(tmp_path, early_signal={"name": "USR1", "shell": shell}).send_early_signal(command.pid)
        made(tmp_path, early_signal=None).send_early_signal(command.pid)
        assert (sent.count(command.pid), len(sent) - sent.count(command.pid)) == (script, steps)
        command.communicate(b"\n")
