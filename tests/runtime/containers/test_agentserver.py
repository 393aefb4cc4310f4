"""The way by which a replica's launcher reaches the others."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.shim import agentserver, program
from cockpit.runtime.containers.shim.limits import ReplicaLimits

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.req("LA-10")
def test_a_client_that_finds_the_socket_is_never_refused(tmp_path, monkeypatch):
    """MPICH's launcher waits for ever for a process whose agent gave up."""
    shown = tmp_path / agentserver.SHOWN
    shown.mkdir()
    monkeypatch.chdir(tmp_path)
    done, refused = threading.Event(), []

    def knock():
        while not done.is_set():
            try:
                with socket.socket(socket.AF_UNIX) as client:
                    client.setblocking(False)  # no process accepts
                    client.connect(str(shown / "job-1.sock"))
            except (FileNotFoundError, BlockingIOError):
                continue
            except ConnectionRefusedError as error:
                refused.append(error)

    knocks = threading.Thread(target=knock)
    knocks.start()
    listeners = []
    for _ in range(400):
        listeners.append(agentserver._listen({"network": str(tmp_path), "hostname": "job-1"}))
        (shown / "job-1.sock").unlink()
    done.set()
    knocks.join()
    for listener in listeners:
        listener.close()
    assert refused == []
    assert os.listdir(shown) == []


def asked(head: bytes, fds: list[int], text: bytes = b"") -> tuple[str, tuple[int, ...]]:
    """The request that the server reads of these bytes with these descriptors attached."""
    client, server = socket.socketpair()
    with client, server:
        socket.send_fds(client, [head], fds)
        client.sendall(text)
        client.shutdown(socket.SHUT_WR)
        return agentserver._request(server)


@pytest.mark.req("LA-10")
def test_a_request_is_its_text_and_three_streams():
    text, streams = asked(struct.pack("!I", 4), [0, 1, 2], b"true; and more")
    for fd in streams:
        os.close(fd)
    assert (text, len(streams)) == ("true", 3)


@pytest.mark.req("LA-10")
@pytest.mark.parametrize(("head", "streams"), [(b"\0\0\0", 3), (b"\0\0\0\4", 0), (b"\0\0\0\4", 2), (b"\0", 0)])
def test_an_invalid_request_is_refused(head: bytes, streams: int):
    with pytest.raises(ValueError, match="no request"):
        asked(head, list(range(streams)))


@pytest.mark.req("LA-10")
@pytest.mark.parametrize(
    ("sent", "number"),
    [
        (struct.pack("!I", signal.SIGTERM), signal.SIGTERM),
        (struct.pack("!I", signal.NSIG - 1), signal.NSIG - 1),
        (struct.pack("!I", 0), signal.SIGKILL),
        (struct.pack("!I", signal.NSIG), signal.SIGKILL),
        (b"\0\0\0", signal.SIGKILL),
        (b"", signal.SIGKILL),
    ],
)
def test_a_signal_is_its_number_and_a_closed_connection_kills(sent: bytes, number: int):
    client, server = socket.socketpair()
    with server:
        with client:
            client.sendall(sent)
        assert agentserver._signal_of(server) == number


class Asked:
    """A request to run a script as a plain process. `out`: what the script has written up to a newline."""

    def __init__(self, folder: str, script: str) -> None:
        plan = {"workdir": folder, "memory_mib": 0, "cpus": 1, "pids": 1 << 20, "filtered": False, "rootless": False}
        entry = program.Entry(
            plan=plan, limits=ReplicaLimits("", [], None), view=program.PLAIN, env={"PATH": os.environ["PATH"]}
        )
        self.client, server = socket.socketpair()
        read, write = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        text = script.encode()
        socket.send_fds(self.client, [struct.pack("!I", len(text))], [nothing, write, nothing])
        self.client.sendall(text)
        os.close(write)
        os.close(nothing)
        self.stdout = os.fdopen(read)
        self._answers = threading.Thread(target=self._answer, args=(server, entry))
        self._answers.start()

    @staticmethod
    def _answer(server: socket.socket, entry: program.Entry) -> None:
        with server:
            agentserver._answer(server, entry)

    def code(self) -> int | None:
        """Return the exit code that was answered; None without an answer."""
        answer = self.client.recv(4, socket.MSG_WAITALL)
        return struct.unpack("!i", answer)[0] if answer else None

    def close(self) -> None:
        self.client.close()
        self._answers.join()
        self.stdout.close()


@pytest.fixture
def ask(tmp_path):
    made = []

    def asked_to_run(script: str) -> Asked:
        made.append(Asked(str(tmp_path), script))
        return made[-1]

    yield asked_to_run
    for each in made:
        each.close()


@pytest.mark.req("LA-10")
@pytest.mark.parametrize(("script", "code"), [("true", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -9 $$", 137)])
def test_the_answer_is_the_exit_code_as_a_shell_reports_it(ask: Callable[[str], Asked], script: str, code: int):
    assert ask(script).code() == code


@pytest.mark.req("LA-10")
def test_a_program_runs_in_the_working_folder_with_the_streams_of_its_request(ask, tmp_path):
    asked_to_run = ask("pwd; cat; echo gone >&2")
    assert asked_to_run.stdout.read() == f"{tmp_path}\n"
    assert asked_to_run.code() == 0


@pytest.mark.req("LA-10")
def test_each_signal_that_is_sent_reaches_the_program(ask):
    asked_to_run = ask("trap 'echo usr' USR1; trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done")
    assert asked_to_run.stdout.readline() == "up\n"
    asked_to_run.client.sendall(struct.pack("!I", signal.SIGUSR1))
    assert asked_to_run.stdout.readline() == "usr\n"
    asked_to_run.client.sendall(struct.pack("!I", signal.SIGTERM))
    assert asked_to_run.code() == 9


@pytest.mark.req("LA-10")
def test_a_closed_connection_kills_all_processes_of_the_program(ask):
    asked_to_run = ask("trap '' TERM HUP; sleep 1000 & echo up; wait")
    assert asked_to_run.stdout.readline() == "up\n"
    asked_to_run.client.shutdown(socket.SHUT_WR)
    assert asked_to_run.stdout.read() == "", "no process has the output open any more"
    assert asked_to_run.code() == 137


@pytest.mark.req("LA-10")
def test_a_malformed_request_gets_no_answer():
    client, server = socket.socketpair()
    with client:
        with server:
            client.sendall(b"\0\0\0\4")
            agentserver._answer(server, None)
        assert client.recv(4) == b""
