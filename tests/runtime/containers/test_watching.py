"""Watching a holder, and the FIFO in which shims leave the names of their attempts."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.identity import identity_of
from cockpit.runtime.containers.watching import NotifyFifo, WatchedAttempt
from tests.runtime.containers.house import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.req("TR-01")
LEAVE = signal.SIGUSR1
READY = "print('up', flush=True)\nwhile True: signal.pause()\n"
OBEYS = f"import signal, sys\nsignal.signal({LEAVE.value}, lambda *_: sys.exit())\n{READY}"
IGNORES = f"import signal\nsignal.signal({LEAVE.value}, signal.SIG_IGN)\n{READY}"


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for each in started:
        each.kill()
        each.communicate()


def held_by(folder: Path, program: str, processes: list[subprocess.Popen[bytes]]) -> Attempt:
    """An attempt whose holder is this program."""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    attempt = Attempt(str(folder))
    attempt.write("shim.json", identity_of(process.pid))
    return attempt


@pytest.mark.parametrize(("program", "ends_by"), [(OBEYS, 0), (IGNORES, -signal.SIGKILL)])
async def test_a_holder_is_asked_to_leave_and_killed_only_if_it_does_not(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]], program: str, ends_by: int
) -> None:
    gone: list[str] = []
    watched = WatchedAttempt(held_by(tmp_path, program, processes), lambda: gone.append("gone"))
    assert watched.alive
    await watched.leave(LEAVE, 60 if ends_by == 0 else 0.1)
    assert not watched.alive
    assert processes[0].wait() == ends_by
    assert gone == ["gone"]
    watched.send(signal.SIGKILL)
    await watched.leave(LEAVE, 60)
    watched.close()
    assert gone == ["gone"], "its death is reported once"


async def test_a_holder_that_is_no_longer_watched_runs_on(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    watched = WatchedAttempt(held_by(tmp_path, OBEYS, processes), lambda: pytest.fail("it is not watched"))
    watched.close()
    watched.close()
    watched.send(signal.SIGKILL)
    assert watched.alive
    assert processes[0].poll() is None
    assert len(os.listdir("/proc/self/fd")) == before + 1, "the program's output"


async def test_a_holder_that_died_before_is_not_alive(tmp_path: Path) -> None:
    watched = WatchedAttempt(Attempt(str(tmp_path)), lambda: pytest.fail("the caller reads the records itself"))
    assert not watched.alive
    await watched.leave(LEAVE, 60)


async def test_every_name_that_is_written_is_read_whole(tmp_path: Path) -> None:
    names: list[str] = []
    path = tmp_path / "notify"
    fifo = NotifyFifo(path, names.append)
    fifo.open()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_ISFIFO(path.stat().st_mode)
    writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.write(writer, b"7.1.0\n7.1.")
    await until(lambda: names == ["7.1.0"])
    os.write(writer, b"1\n\xff\n")
    await until(lambda: len(names) == 3)
    assert names == ["7.1.0", "7.1.1", "\N{REPLACEMENT CHARACTER}"]
    os.close(writer)
    fifo.close()
    fifo.close()
    again = NotifyFifo(path, names.append)
    again.open()
    again.close()
