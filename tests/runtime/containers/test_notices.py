"""The socket over which an elastic job's programs get the list of its workers."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.engine.effects import WriteWorkersFile
from cockpit.launch import world
from cockpit.model.resilience import Elastic
from cockpit.runtime.containers.shim import job_processes, linux, notices
from cockpit.runtime.containers.shim.attempt import Attempt
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.host_world import eventually

if TYPE_CHECKING:
    from tests.runtime.containers.house import House

pytestmark = pytest.mark.req("EL-02", "EL-03")


def test_shim_and_launch_plan_use_the_same_names() -> None:
    assert f"{world.FOLDER}/{notices.SOCKET}" == world.SOCKET_PATH
    assert f"{world.FOLDER}/{notices.FILE}" == world.PATH


def show(content: bytes) -> None:
    Path("draft").write_bytes(content)
    os.rename("draft", notices.FILE)


@pytest.fixture(params=["notified", "polling"])
def served(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A server of the present folder, with and without the kernel's notices."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notices, "_LOOK_MILLISECONDS", 5)
    show(b"[1]")
    changes = linux.watch_renames(".") if request.param == "notified" else -1
    listener = linux.listen(notices.SOCKET, notices._WAITING)
    server = notices.Server(listener, changes)
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            server.step()

    serving = threading.Thread(target=serve)
    serving.start()
    yield server
    ended.set()
    client().close()  # wakes it
    serving.join(20)
    listener.close()
    if changes >= 0:
        os.close(changes)


def client() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    connection.connect(notices.SOCKET)
    return connection


def test_each_client_gets_the_list_when_it_connects_and_at_each_change(served) -> None:
    with client() as one, one.makefile("rb") as first:
        assert first.readline() == b"[1]\n"
        show(b"[2]")
        assert first.readline() == b"[2]\n"
        with client() as other, other.makefile("rb") as second:
            assert second.readline() == b"[2]\n"
            show(b"[3]")
            assert (first.readline(), second.readline()) == (b"[3]\n", b"[3]\n")


def test_a_client_that_reads_nothing_delays_no_other_and_gets_the_last_list(served) -> None:
    with client() as slow, client() as quick, quick.makefile("rb") as lines:
        assert lines.readline() == b"[1]\n"
        for number in range(20):
            content = json.dumps([number] * 40_000).encode()
            show(content)
            assert lines.readline() == content + b"\n"
        with slow.makefile("rb") as late:
            got = [json.loads(late.readline())[0]]
            while got[-1] != 19:
                got.append(json.loads(late.readline())[0])
    assert len(got) < 20


def test_clients_that_leave_or_are_too_many_are_dropped(served) -> None:
    clients = [client() for _ in range(notices._MOST_CLIENTS)]
    assert all(each.recv(9) == b"[1]\n" for each in clients)
    with client() as refused:
        assert refused.recv(9) == b""
    clients.pop().close()
    until(lambda: len(served._clients) < notices._MOST_CLIENTS)
    with client() as taken:
        taken.sendall(b"what a server of lists ignores")
        assert taken.recv(9) == b"[1]\n"
    for each in clients:
        each.close()


def until(holds) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        os.sched_yield()


SCRIPT = """
import queue, sys
import kubeai.elastic as kubeai
news = queue.Queue()
kubeai.init()
kubeai.on_change(news.put)
print(kubeai._connect().makefile().readline(), end="", flush=True)
print(news.get(timeout=60)["rank"], kubeai.check_alive(), kubeai.checkpoint_requested(), flush=True)
"""


@pytest.mark.real
@pytest.mark.skipif(not IS_ROOT, reason="an elastic job's network is made by root here")
async def test_a_script_in_a_container_gets_its_notice_over_the_socket(house: House) -> None:
    workers = {"rank": 0, "replica": 0, "host": "job-worker-0", "node": "n1", "slots": 1}
    lists = [
        {"version": 1, "workers": [workers], "leaving": []},
        {"version": 2, "workers": [], "leaving": [{"replica": 0, "kill_at": 1}]},
    ]
    shown = [{notices.FILE: json.dumps(each).encode()} for each in lists]
    house.executor._workers_of = lambda _: shown[0]
    size = Elastic(workers=1, min_workers=1, max_workers=2)
    made = house.job('/usr/bin/python3 -c "$SCRIPT"', env={"SCRIPT": SCRIPT}, elastic=size)
    await house.executor.start(made)
    await eventually(lambda: house.out(made).count("\n") == 1)
    house.executor._workers_of = lambda _: shown[1]
    await house.executor.write_workers_file(WriteWorkersFile(made.replica))
    assert (await house.ended(made.replica)).ok, house.err(made)
    assert json.loads(house.out(made).splitlines()[0]) == lists[0]
    assert house.out(made).splitlines()[1] == "None False True"


@pytest.mark.real
@pytest.mark.req("JT-31")
@pytest.mark.skipif(not IS_ROOT, reason="an elastic job's network is made by root here")
async def test_no_process_of_cockpit_beside_the_command_delays_the_end_of_the_job(house: House) -> None:
    made = house.job("sleep 100", elastic=Elastic(workers=1, min_workers=1, max_workers=2))
    await house.executor.start(made)
    await house.started(made.replica)
    serving = {"cockpit-agent", "cockpit-notices"}

    def found() -> dict[str, bool]:
        """Whether each of them reads a pipe, for whose readers the end of a job waits two seconds."""
        pids = job_processes.of(Attempt(str(house.folder_of(made.replica))))
        names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}
        return {name: job_processes._reads_pipe(pid) for pid, name in names.items() if name in serving}

    await eventually(lambda: found() == dict.fromkeys(serving, False))
