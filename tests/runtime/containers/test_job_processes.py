"""Which processes belong to a replica, in a container and without one."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.runtime.containers.shim import job_processes
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.identity import identity_of
from cockpit.runtime.containers.shim.job_processes import MARK, ContainedProcesses, UncontainedProcesses

pytestmark = pytest.mark.req("TR-01")


class Tree:
    """A holder, a child that has a child, and a program with the attempt's mark outside of it."""

    def __init__(self, folder: Path) -> None:
        script = f"sleep 100 & echo $! >{folder}/inner; echo $$ >{folder}/outer; wait"
        self.mark = f"mark{os.getpid()}"
        self.holder = subprocess.Popen(
            ["sh", "-c", f"sh -c '{script}' & wait"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.marked = subprocess.Popen(
            ["sleep", "100"], stdin=subprocess.DEVNULL, env={MARK: self.mark}, start_new_session=True
        )
        self.other = subprocess.Popen(["sleep", "100"], env={MARK: f"{self.mark}x"}, start_new_session=True)
        while not (folder / "outer").exists() or not (folder / "outer").read_text().strip():
            select.select([], [], [], 0.005)
        self.inner, self.outer = (int((folder / name).read_text()) for name in ("inner", "outer"))

    def end(self) -> None:
        for each in (self.holder, self.marked, self.other):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait(30)
            if each.stdout is not None:
                each.stdout.close()


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = Tree(tmp_path)
    yield made
    made.end()


def gone(pid: int) -> bool:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], 30)[0])
    finally:
        os.close(pidfd)


def test_plain_processes_descend_from_their_holder_or_have_its_mark(tree: Tree) -> None:
    found = UncontainedProcesses(tree.mark, tree.holder.pid)
    assert set(found.pids()) == {tree.inner, tree.outer, tree.marked.pid}
    assert UncontainedProcesses(tree.mark, 0).pids() == [tree.marked.pid]
    sent: Any = SimpleNamespace(si_pid=tree.inner)
    assert found.sent(sent)
    sent.si_pid = tree.other.pid
    assert not found.sent(sent)


def test_plain_processes_that_read_a_pipe_are_found_among_those_of_the_job(tree: Tree) -> None:
    found = UncontainedProcesses(tree.mark, tree.holder.pid)
    with subprocess.Popen(["sleep", "100"], stdin=subprocess.PIPE, start_new_session=True) as other:
        assert not found.read_pipes()
        other.kill()
    marked = {MARK: tree.mark}
    with subprocess.Popen(["sleep", "100"], stdin=subprocess.PIPE, env=marked, start_new_session=True) as reader:
        assert found.read_pipes()
        reader.kill()


def test_plain_processes_are_killed_and_nothing_else(tree: Tree) -> None:
    found = UncontainedProcesses(tree.mark, tree.holder.pid)
    assert found.are_left()
    found.leave()
    assert not found.are_left()
    assert all(map(gone, (tree.inner, tree.outer)))
    assert tree.marked.wait(30) == -signal.SIGKILL
    assert tree.other.poll() is None


def test_an_engine_ends_plain_processes_whose_holder_was_killed(tree: Tree, tmp_path: Path) -> None:
    attempt = Attempt(str(tmp_path))
    job_processes.end_plain(attempt)
    attempt.write("plan.json", {"cgroup": tree.mark})
    attempt.write("shim.json", identity_of(tree.holder.pid))
    job_processes.end_plain(attempt)
    assert tree.marked.poll() is None, "processes of a container die with their holder"
    attempt.write("shim.json", {**identity_of(tree.holder.pid), "plain": True})
    assert set(job_processes.of(attempt)) == {tree.inner, tree.outer, tree.marked.pid}
    job_processes.end_plain(attempt)
    assert tree.marked.wait(30) == -signal.SIGKILL


def test_the_processes_of_a_container_are_those_of_its_holders_namespace(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = Attempt(str(tmp_path))
    assert job_processes.of(attempt) == []
    attempt.write("shim.json", identity_of(tree.holder.pid))
    inside = {tree.holder.pid, tree.inner}
    monkeypatch.setattr(job_processes, "_namespace", lambda pid: "pid:[1]" if pid in inside else "pid:[2]")
    assert job_processes.of(attempt) == [tree.inner]
    monkeypatch.setattr(job_processes, "_namespace", lambda _: "")
    assert job_processes.of(attempt) == []


def test_a_process_that_is_gone_has_no_parent_and_no_namespace() -> None:
    gone_already = 2**22 + 1
    assert job_processes._stat(gone_already) == (b"X", 0)
    assert job_processes._namespace(gone_already) == ""
    assert not job_processes._reads_pipe(gone_already)
    state, parent = job_processes._stat(os.getpid())
    assert (state, parent) == (b"R", os.getppid())
    job_processes.signal_each([gone_already], signal.SIGTERM)


@pytest.mark.parametrize(("reads", "words"), [(True, {"stdin": subprocess.PIPE}), (False, {"stdout": subprocess.PIPE})])
def test_a_process_that_reads_a_pipe_is_recognised(reads: bool, words: dict[str, int]) -> None:
    usual = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(["sleep", "100"], **(usual | words)) as process:
        assert job_processes._reads_pipe(process.pid) is reads
        process.kill()


def test_a_container_is_seen_from_its_first_process(monkeypatch: pytest.MonkeyPatch) -> None:
    states = {1: b"S", 7: b"Z", 8: b"X"}
    reads = {1}
    monkeypatch.setattr(job_processes, "_all_pids", lambda: list(states))
    monkeypatch.setattr(job_processes, "_stat", lambda pid: (states[pid], 1))
    monkeypatch.setattr(job_processes, "_reads_pipe", lambda pid: pid in reads)
    inside = ContainedProcesses()
    assert not inside.are_left()
    assert not inside.read_pipes()
    states[9] = b"S"
    reads.add(9)
    assert inside.are_left()
    assert inside.read_pipes()
    received: Any = SimpleNamespace(si_pid=0)
    assert not inside.sent(received)
    received.si_pid = 9
    assert inside.sent(received)
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(job_processes.os, "kill", lambda pid, number: killed.append((pid, number)))
    inside.kill()
    assert killed == [(-1, signal.SIGKILL)]
