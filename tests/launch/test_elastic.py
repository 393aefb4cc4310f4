"""What `cockpit.elastic` does for a training script beside reading the workers: checkpoints, and calls at changes."""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit import elastic
from tests.launch.elastic_workers import Workers, listed

_libc = ctypes.CDLL(None, use_errno=True)
_TRACE_ME, _SYSCALL, _SET_OPTIONS = 0, 24, 0x4200
_SYSCALL_STOP = signal.SIGTRAP | 0x80
"""The signal of a stop at a system call, with the options below."""
_GOOD_AND_KILL = 0x1 | 0x100000


@pytest.fixture
def news():
    """The worlds with which the callback was called."""
    got: queue.Queue[dict] = queue.Queue()
    stop = elastic.on_change(got.put)
    yield got
    stop()


@pytest.mark.req("EL-03")
def test_a_replaced_file_is_seen_at_once_even_if_time_and_size_are_equal(workers: Workers) -> None:
    assert elastic.check_alive()
    for _ in range(20):
        for staying, gone in ((0, 1), (1, 0)):
            workers.show(listed(2, staying, leaving=(gone,)))
            os.utime(workers.file, (7, 7))
            assert elastic.check_alive() is (gone != 1)


@pytest.mark.req("EL-02", "EL-03")
def test_a_callback_gets_each_change_of_the_file_where_there_is_no_socket(workers: Workers, news) -> None:
    workers.show(listed(1, 2, leaving=(0,), version=2))
    assert news.get(timeout=20) == {"version": 2, "size": 2, "rank": 0, "hosts": ["train-worker-1", "train-worker-2"]}
    workers.show(listed(2, leaving=(0, 1), version=3))
    assert news.get(timeout=20)["rank"] is None


@pytest.mark.req("EL-02", "EL-03")
def test_a_callback_gets_the_lines_of_the_socket_and_the_file_after_its_end(workers: Workers) -> None:
    got: queue.Queue[dict] = queue.Queue()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(workers.socket))
        listener.listen()
        listener.settimeout(20)
        stop = elastic.on_change(got.put)
        server, _ = listener.accept()
        with server:
            server.sendall(listed(0, 1, 2) + b"\n" + listed(1, leaving=(0, 2), version=2) + b"\n")
            assert got.get(timeout=20)["hosts"] == ["train-worker-1"]
            # As an engine does, which writes the file first: it is read as soon as the connection has ended.
            workers.show(listed(1, leaving=(0, 2), version=2))
    workers.show(listed(1, 3, version=3))
    assert got.get(timeout=20)["hosts"] == ["train-worker-1", "train-worker-3"]
    stop()
    assert got.empty()


@pytest.mark.req("EL-03")
def test_a_callback_that_raises_is_called_again(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: queue.Queue[BaseException] = queue.Queue()
    monkeypatch.setattr(sys, "excepthook", lambda _, error, __: raised.put(error))
    stop = elastic.on_change(lambda world: {}[world["version"]])
    for version in (2, 3):
        workers.show(listed(0, 1, version=version))
        assert raised.get(timeout=20).args == (version,)
    stop()


@pytest.mark.req("EL-03")
def test_a_socket_with_a_long_path_is_reached(workers: Workers, tmp_path: Path, monkeypatch) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(long)
        listener.bind("workers.sock")
        listener.listen()
        monkeypatch.setenv("COCKPIT_WORKERS_SOCKET", str(long / "workers.sock"))
        elastic._connect().close()


@pytest.mark.req("EL-03")
def test_a_step_makes_two_system_calls_that_do_not_wait(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_PULSE_FILE", str(workers.file.with_name("beat")))
    script = "import sys, cockpit.elastic as e\nfor _ in range(int(sys.argv[1])): assert e.check_alive()"
    few, many = (system_calls([sys.executable, "-S", "-c", script, str(calls)]) for calls in (100, 1100))
    assert round((many - few) / 1000, 1) == 2.0


def system_calls(command: list[str]) -> int:
    """How many system calls a program with one thread makes."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            _libc.ptrace(_TRACE_ME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.execve(command[0], command, {**os.environ, "PYTHONPATH": str(Path(elastic.__file__).parents[1])})
        os._exit(1)
    os.waitpid(pid, 0)
    assert _libc.ptrace(_SET_OPTIONS, pid, None, ctypes.c_void_p(_GOOD_AND_KILL)) == 0
    stops, passed_on = 0, 0
    while True:
        _libc.ptrace(_SYSCALL, pid, None, ctypes.c_void_p(passed_on))
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            assert status == 0
            return stops // 2  # one at the entry, one at the exit
        number = os.WSTOPSIG(status)
        stops += number == _SYSCALL_STOP
        passed_on = 0 if number in {_SYSCALL_STOP, signal.SIGTRAP, signal.SIGSTOP} else number


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is the first attempt of a job."""
    for name, value in {"JOB_ID": "7", "ATTEMPT": "1", "REPLICA": "0"}.items():
        monkeypatch.setenv(f"COCKPIT_{name}", value)


@pytest.mark.req("EL-03", "EL-04")
def test_a_checkpoint_gets_its_name_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "step-9.pt"
    path.write_text("old")
    with elastic.save(path) as draft:
        Path(draft).write_text("new")
        assert Path(draft).parent == tmp_path
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names_in(tmp_path) == ["step-9.pt"]


@pytest.mark.req("EL-03")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_checkpoint_whose_writing_fails_leaves_the_old_one(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "step-9.pt"
    path.write_text("old")
    with suppress(error), elastic.save(path) as draft:
        Path(draft).write_text("ne")
        raise error
    assert (path.read_text(), names_in(tmp_path)) == ("old", ["step-9.pt"])


@pytest.mark.req("EL-03")
def test_a_folder_can_be_a_checkpoint_and_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "step-9"
    for _ in range(2):
        with suppress(OSError), elastic.save(path) as draft:
            Path(draft, "optimizer").mkdir(parents=True)
            Path(draft, "optimizer", "state").write_text("state")
            Path(draft, "latest").symlink_to("nowhere")
    assert (path / "optimizer/state").read_text() == "state"
    assert names_in(tmp_path) == ["step-9"]


HALF = """
import os, sys, cockpit.elastic as elastic
with elastic.save(sys.argv[1]) as draft:
    open(draft, "w").write("hal")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.req("EL-03", "EL-04")
def test_a_checkpoint_half_written_by_a_killed_worker_is_never_chosen_and_removed_later(
    tmp_path: Path, first: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_CHECKPOINTS", str(tmp_path))
    assert elastic.latest_checkpoint() is None
    (tmp_path / "step-9.pt").write_text("whole")
    env = {**os.environ, "PYTHONPATH": str(Path(elastic.__file__).parents[1])}
    killed = subprocess.run([sys.executable, "-c", HALF, str(tmp_path / "step-10.pt")], env=env, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(names_in(tmp_path)) == 2
    assert elastic.latest_checkpoint() == str(tmp_path / "step-9.pt")
    # This attempt's other workers may be writing, so that only the next one removes it.
    for attempt, left in (("1", 1), ("2", 0)):
        monkeypatch.setenv("COCKPIT_ATTEMPT", attempt)
        with elastic.save(tmp_path / "step-11.pt") as draft:
            Path(draft).write_text("whole")
        assert len(list(tmp_path.glob(".*"))) == left
    assert elastic.latest_checkpoint("step-*.pt") == str(tmp_path / "step-11.pt")


@pytest.mark.req("EL-03")
def test_the_latest_checkpoint_has_the_highest_number_and_matches_the_pattern(tmp_path: Path) -> None:
    for name in ("step-9.pt", "step-10.pt", "step-11.log", "best.pt"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "step-10.pt", (1, 1))
    assert elastic.latest_checkpoint("step-*.pt", str(tmp_path)) == str(tmp_path / "step-10.pt")
    assert elastic.latest_checkpoint("epoch-*", str(tmp_path)) is None
    assert elastic.latest_checkpoint("*", str(tmp_path / "nowhere")) is None
