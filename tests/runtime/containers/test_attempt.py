from __future__ import annotations

import contextlib
import os
import resource
import subprocess

import pytest

from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.identity import identity_of, open_process


@pytest.fixture
def attempt(tmp_path):
    folder = tmp_path / "state" / "containers" / "7.1.0"
    folder.mkdir(parents=True)
    return Attempt(str(folder))


def test_a_record_is_read_as_it_was_written(attempt):
    attempt.write("kept.json", {"cards": "free"})
    assert attempt.read("kept.json") == {"cards": "free"}
    assert attempt.read("exit.json") is None


def test_an_incomplete_record_is_read_as_none(attempt):
    with open(attempt.file("exit.json"), "w") as stream:
        stream.write('{"co')
    assert attempt.read("exit.json") is None


def test_the_exit_record_uses_the_space_reserved_for_it(attempt):
    attempt.reserve_exit()
    reserved = os.stat(attempt.file(".exit.json.new"))
    attempt.write_exit({"code": 3})
    written = os.stat(attempt.file("exit.json"))
    assert (written.st_ino, written.st_size) == (reserved.st_ino, reserved.st_size)
    assert attempt.read("exit.json") == {"code": 3}


def test_only_one_process_gets_the_lock_and_a_check_does_not(attempt):
    assert not attempt.is_locked()
    held = attempt.take_lock()
    assert attempt.is_locked()
    assert attempt.take_lock() is None
    os.close(held)
    assert not attempt.is_locked()
    again = attempt.take_lock()
    assert again is not None
    os.close(again)


def test_looking_for_the_holder_leaves_no_descriptor_open(attempt):
    """The engine looks for the holders of all its containers, again and again."""
    attempt.write("shim.json", identity_of(os.getpid()))
    before = set(os.listdir("/proc/self/fd"))
    assert attempt.holder_pid() == os.getpid()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_process_is_identified_by_more_than_its_pid():
    sleeper = subprocess.Popen(["sleep", "60"])
    identity = identity_of(sleeper.pid)
    os.close(open_process(identity))
    assert open_process({**identity, "start_time": identity["start_time"] + 1}) is None
    assert open_process({**identity, "boot_id": "another"}) is None
    sleeper.kill()
    sleeper.wait()
    assert open_process(identity) is None


def test_a_zombie_counts_as_ended():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert open_process(identity_of(child.pid)) is None
    child.wait()


def test_notifying_without_an_engine_is_no_error(attempt):
    assert attempt.notify()
    os.mkfifo(os.path.join(attempt.state, "notify"))
    assert attempt.notify()


def test_notifying_a_busy_engine_reports_that_a_retry_is_needed(attempt):
    fifo = os.path.join(attempt.state, "notify")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    assert attempt.notify()
    assert os.read(reader, 100) == b"7.1.0\n"
    for piece in (b"x" * 4096, b"x"):
        with contextlib.suppress(BlockingIOError):
            while os.write(reader, piece):
                pass
    assert not attempt.notify()
    os.close(reader)


@pytest.mark.req("JT-40")
def test_an_engine_is_assumed_to_listen_where_that_is_unknown(attempt):
    """A holder that runs out of file descriptors does not end a held container on its own."""
    assert not attempt.is_served()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        served = attempt.is_served()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert served
