"""What the engine hears of a program that enters a container, and what it asks that program for."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from cockpit.runtime.containers import entering
from cockpit.runtime.containers.entering import EnterError, Terminal, _greeting, _Pipes, _request

pytestmark = pytest.mark.req("JT-40")


@pytest.fixture
def ends() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    return ours, theirs


async def test_a_greeting_brings_the_terminal_and_leaves_the_exit_code_unread(ends, tmp_path: Path) -> None:
    ours, theirs = ends
    (tmp_path / "terminal").write_text("the terminal")
    terminal = os.open(tmp_path / "terminal", os.O_RDONLY)
    socket.send_fds(theirs, [entering._WELCOME], [terminal])
    theirs.sendall(b"code")
    received = await _greeting(ours)
    assert received is not None
    assert os.read(received, 99) == b"the terminal"
    assert ours.recv(99) == b"code"
    for fd in (terminal, received):
        os.close(fd)


async def test_a_greeting_without_a_terminal_brings_none(ends) -> None:
    ours, theirs = ends
    theirs.sendall(entering._WELCOME)
    assert await _greeting(ours) is None


@pytest.mark.parametrize(
    ("said", "sentence"),
    [(b"!no such container\nmore", "no such container"), (b"", "the container ended while it was being entered")],
)
async def test_a_refusal_is_the_first_line_that_the_program_says(ends, said: bytes, sentence: str) -> None:
    ours, theirs = ends
    theirs.sendall(said)
    theirs.close()
    with pytest.raises(EnterError, match=f"^{sentence}$"):
        await _greeting(ours)


async def test_a_container_that_does_not_answer_is_not_waited_for(ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entering, "_ENTER_SECONDS", 0.01)
    with pytest.raises(EnterError, match=r"did not answer within 0\.01 seconds; try again"):
        await _greeting(ends[0])


def test_the_program_is_told_command_size_and_label() -> None:
    assert json.loads(_request(("top",), Terminal(24, 80, "xterm"), "job-0")) == {
        "command": ["top"],
        "terminal": [24, 80],
        "term": "xterm",
        "label": "job-0",
    }
    assert json.loads(_request((), None, "job-0")) == {"command": [], "terminal": [], "term": "", "label": "job-0"}


def test_pipes_connect_both_sides() -> None:
    pipes = _Pipes()
    os.write(pipes.outer[0], b"in")
    assert os.read(pipes.inner[0], 9) == b"in"
    for number in (1, 2):
        os.write(pipes.inner[number], b"out")
        assert os.read(pipes.outer[number], 9) == b"out"
    pipes.close_inner()
    assert os.read(pipes.outer[1], 9) == b""
    pipes.close_outer()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pipes.outer[0])
