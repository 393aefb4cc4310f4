"""Shells with real pipes and pseudo terminals; the container is a plain process here."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.headless import pipes, terminal
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.asking import ShellRequest
from cockpit.model.capabilities import Ability, Capabilities
from tests.doubles.process_session import ProcessSession
from tests.headless.conftest import Desk

ROOT = Path(__file__).parents[2]

DRIVER = """
import os, subprocess, sys
sys.path.insert(0, {root!r})
from cockpit.headless.main import run
from cockpit.headless.services import Services
from cockpit.headless.streams import Streams
from tests.doubles.memory_backend import MemoryBackend
from tests.doubles.process_session import ProcessSession
from tests.doubles.samples import detail

class Backend(MemoryBackend):
    async def job(self, job):
        return detail()

    async def open_shell(self, request):
        return ProcessSession(request, {command!r})

streams = Streams.of_process(lambda: 0)
code = run(["shell", "7"] + sys.argv[1:], Services(lambda _: Backend(), *[None] * 6), streams)
sys.exit(code)
"""


def program(*command: str) -> list[str]:
    return [sys.executable, "-c", DRIVER.format(root=str(ROOT), command=list(command))]


def passed_through(*command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(program(*command), input=stdin, capture_output=True, timeout=60, check=False)


@pytest.mark.req("JT-40")
def test_bytes_pass_both_ways_unchanged_without_a_terminal() -> None:
    data = bytes(range(256)) * 4000
    done = passed_through("cat", stdin=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == data


@pytest.mark.parametrize(
    ("script", "code", "out", "err"),
    [
        ("exit 7", 7, b"", b""),
        ("printf out; printf err >&2; exit 3", 3, b"out", b"err"),
        ("kill -9 $$", 137, b"", b""),
        ("exec <&-; sleep 0.05; printf done", 0, b"done", b""),
        ("sleep 60 & printf left", 0, b"left", b""),
        ("exec 1>&- 2>&-; exit 4", 4, b"", b""),
    ],
)
@pytest.mark.req("JT-40")
def test_exit_codes_of_every_kind_of_end(script: str, code: int, out: bytes, err: bytes) -> None:
    done = passed_through("sh", "-c", script, stdin=b"x" * 200_000)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


@pytest.mark.req("JT-40")
def test_much_input_does_not_keep_the_output_of_a_command_that_reads_late() -> None:
    done = passed_through("sh", "-c", "head -c 300000 /dev/zero; wc -c >&2", stdin=b"x" * 400_000)
    assert (done.returncode, done.stdout, done.stderr.split()) == (0, bytes(300_000), [b"400000"])


@pytest.mark.req("JT-40")
def test_pipes_to_a_command_are_closed_when_it_has_ended() -> None:
    before = descriptors()
    unused, writing = os.pipe()
    keyboard, typing = os.pipe()
    session = ProcessSession(ShellRequest(job=7), ["sh", "-c", "exec >&- 2>&-; exit 5"])
    try:
        assert pipes.relay_pipes(session, keyboard, writing, writing) == 5
    finally:
        session.watcher.join()
        for descriptor in (unused, writing, keyboard, typing):
            os.close(descriptor)
    assert descriptors() == before


@pytest.mark.req("JT-40")
def test_output_that_was_left_in_the_pipe_of_an_ended_command_is_passed_on_whole(tmp_path: Path) -> None:
    """More than one read takes: the pipe is made larger before the command writes."""
    session = ProcessSession(ShellRequest(job=7), ["sh", "-c", "read x; head -c 150000 /dev/zero"])
    assert session.pipe_fds is not None
    fcntl.fcntl(session.pipe_fds[1], fcntl.F_SETPIPE_SZ, 1 << 18)
    os.write(session.pipe_fds[0], b"\n")
    session.watcher.join()
    with (tmp_path / "out").open("wb") as out, Path(os.devnull).open("rb") as nothing:
        assert pipes.relay_pipes(session, nothing.fileno(), out.fileno(), out.fileno()) == 0
    assert (tmp_path / "out").stat().st_size == 150_000


def test_the_end_of_stdin_reaches_the_command() -> None:
    done = passed_through("sh", "-c", "wc -c", stdin=b"12345")
    assert done.stdout.split() == [b"5"]


def test_a_closed_output_ends_the_command() -> None:
    with subprocess.Popen(
        program("yes"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as shell:
        assert shell.stdout.read(4) == b"y\ny\n"
        shell.stdout.close()
        assert shell.wait(timeout=60) == 128 + signal.SIGPIPE
        assert shell.stderr.read() == b""


class Screen:
    """A person's terminal with a cockpit shell in it."""

    def __init__(self, *command: str, words: tuple[str, ...] = ()) -> None:
        self.master, self._slave = pty.openpty()
        termios.tcsetwinsize(self._slave, (40, 100))
        self.before = termios.tcgetattr(self._slave)
        self.shell = subprocess.Popen(
            [*program(*command), *words],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
        )
        self.seen = b""

    def until(self, text: bytes) -> None:
        while text not in self.seen:
            assert select.select([self.master], [], [], 60)[0], self.seen
            self.seen += os.read(self.master, 4096)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    @property
    def modes(self) -> list[object]:
        return termios.tcgetattr(self._slave)

    def resize(self, rows: int, columns: int) -> None:
        termios.tcsetwinsize(self._slave, (rows, columns))
        self.shell.send_signal(signal.SIGWINCH)

    def close(self) -> None:
        self.shell.kill()
        self.shell.wait()
        os.close(self.master)
        os.close(self._slave)


@pytest.fixture
def screen() -> Iterator[Screen]:
    opened = Screen("sh", "-c", "echo ready; stty size; read a; stty size; read b; exit 9")
    yield opened
    opened.close()


@pytest.mark.req("JT-40")
def test_a_terminal_is_raw_during_the_shell_follows_its_size_and_is_restored(screen: Screen) -> None:
    screen.until(b"ready\r\n40 100\r\n")
    assert not screen.modes[3] & termios.ICANON
    screen.resize(24, 80)
    screen.type(b"\r")
    screen.until(b"24 80\r\n")
    screen.type(b"\r")
    assert screen.shell.wait(timeout=60) == 9
    assert screen.modes == screen.before


@pytest.mark.parametrize("deadly", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.req("JT-40")
def test_a_killed_command_restores_the_terminal(screen: Screen, deadly: signal.Signals) -> None:
    screen.until(b"40 100\r\n")
    screen.shell.send_signal(deadly)
    assert screen.shell.wait(timeout=60) == 128 + deadly
    assert screen.modes == screen.before


@pytest.mark.req("JT-40")
def test_a_terminal_closed_without_a_signal_ends_the_shell(screen: Screen) -> None:
    screen.until(b"40 100\r\n")
    os.close(screen.master)
    screen.master = os.open(os.devnull, os.O_RDONLY)
    assert screen.shell.wait(timeout=60) in {9, 128 + signal.SIGHUP}


@pytest.mark.req("JT-40")
def test_a_signal_that_comes_before_the_wait_ends_it() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with terminal.signalled() as came:
            assert not select.select([came], [], [], 0)[0]
            os.kill(os.getpid(), signal.SIGUSR1)
            assert select.select([came], [], [], 60)[0]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_the_last_output_is_printed() -> None:
    opened = Screen("sh", "-c", "seq 1 20000; printf '<last>'")
    try:
        opened.until(b"<last>")
        assert b"\r\n20000\r\n<last>" in opened.seen
        assert opened.shell.wait(timeout=60) == 0
    finally:
        opened.close()


def test_a_large_paste_during_much_output_does_not_deadlock() -> None:
    answer = "dd bs=1 count=1 2>/dev/null >&2; head -c 300000 /dev/zero | tr '\\0' y"
    opened = Screen("sh", "-c", f"stty raw -echo; printf ready; {answer}; head -c 49999 >/dev/null; printf '<last>'")
    try:
        opened.until(b"ready")
        os.set_blocking(opened.master, False)
        left = b"p" * 50_000
        while b"<last>" not in opened.seen:
            readable, writable, _ = select.select([opened.master], [opened.master] if left else [], [], 10)
            assert readable or writable
            if readable:
                opened.seen += os.read(opened.master, 1 << 16)
            if writable:
                left = left[os.write(opened.master, left[:4096]) :]
        assert opened.seen.count(b"y") == 300_001
        assert opened.shell.wait(timeout=60) == 0
    finally:
        opened.close()


def test_the_request_names_replica_and_command(desk: Desk) -> None:
    async def open_shell(request: ShellRequest) -> None:
        desk.backend.asked.append((request,))
        raise KeyboardInterrupt

    desk.backend.open_shell = open_shell
    desk("shell", "4715/2")
    desk("shell", "4715", "--replica", "1", "--", "ls", "-l")
    desk("shell", "4715")
    first, second, third = (request for (request,) in desk.backend.asked)
    assert (first.job, first.rank, first.command, first.terminal) == (4715, 2, (), False)
    assert (second.rank, second.command) == (1, ("ls", "-l"))
    assert third.rank == 0
    assert (third.columns, third.rows) == (80, 24), "the size of a terminal that is not there"


@pytest.mark.req("KU-09")
def test_a_shell_of_another_image_opens_where_the_cluster_can_run_one(desk: Desk) -> None:
    refused = desk("shell", "4715", "--image", "busybox")
    assert (refused.code, desk.backend.asked) == (ExitCode.USAGE, [])
    assert "Only Kubernetes runs a container of another image" in refused.err
    can = {name: why for name, why in desk.backend.capabilities.absent.items() if name != Ability.DEBUG_IMAGE}
    desk.backend.capabilities = Capabilities(can)

    async def open_shell(request: ShellRequest) -> None:
        desk.backend.asked.append((request,))
        raise KeyboardInterrupt

    desk.backend.open_shell = open_shell
    desk("shell", "4715/1", "--image", "busybox")
    ((request,),) = desk.backend.asked
    assert (request.rank, request.image) == (1, "busybox")


@pytest.mark.req("JT-40")
@pytest.mark.parametrize(("variable", "term"), [("xterm-256color", "xterm-256color"), ("", "dumb"), (None, "dumb")])
def test_the_shell_has_the_kind_of_the_users_terminal(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, variable: str | None, term: str
) -> None:
    async def open_shell(request: ShellRequest) -> None:
        assert request.term == term
        raise KeyboardInterrupt

    if variable is None:
        monkeypatch.delenv("TERM", raising=False)
    else:
        monkeypatch.setenv("TERM", variable)
    desk.backend.open_shell = open_shell
    assert desk("shell", "4715").code == ExitCode.INTERRUPTED


@pytest.mark.req("JT-40")
def test_a_person_reads_whose_container_it_is_before_the_first_prompt(screen: Screen) -> None:
    screen.until(b"ready")
    above, _, _ = screen.seen.partition(b"ready")
    assert b"4715 bert-eval" in above
    assert b"replica 0 on n03" in above


@pytest.mark.req("JT-40")
def test_a_command_gets_no_words_above_its_output() -> None:
    opened = Screen("sh", "-c", "echo ready", words=("--", "true"))
    try:
        opened.until(b"ready\r\n")
        assert opened.seen == b"ready\r\n"
    finally:
        opened.close()


class SlowlyEnding(ProcessSession):
    """A shell during whose end other parts of the cockpit open files, which get the lowest free numbers."""

    def exit_code(self) -> int:
        self.opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]
        assert self.terminal_fd in self.opened
        return super().exit_code()


def descriptors() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


@pytest.mark.req("JT-40")
def test_a_cockpit_that_opens_many_shells_keeps_none_of_their_descriptors_and_closes_no_others() -> None:
    person, keyboard = pty.openpty()
    before = descriptors()
    try:
        session = SlowlyEnding(ShellRequest(job=7, terminal=True), ["sh", "-c", "exit 3"])
        assert terminal.relay_terminal(session, keyboard, keyboard) == 3
        session.watcher.join()
        for descriptor in session.opened:
            os.close(descriptor)
        assert descriptors() == before
    finally:
        os.close(person)
        os.close(keyboard)


class EndedWithOutput(ProcessSession):
    """A shell that has ended before the relay begins, with more output in its terminal than one read gives, and not
    so much that it would wait for a reader."""

    SIZE = 6000

    def __init__(self) -> None:
        super().__init__(
            ShellRequest(job=7, terminal=True), ["sh", "-c", f"stty raw; head -c {self.SIZE} /dev/zero | tr '\\0' y"]
        )
        self.watcher.join()


@pytest.mark.req("JT-40")
def test_output_that_was_left_when_the_shell_ended_is_printed_whole() -> None:
    person, keyboard = pty.openpty()
    tty.setraw(keyboard)
    shown = bytearray()

    def read_screen() -> None:
        with suppress(OSError):  # the keyboard's end is closed
            while data := os.read(person, 4096):
                shown.extend(data)

    reader = threading.Thread(target=read_screen)
    reader.start()
    try:
        assert terminal.relay_terminal(EndedWithOutput(), keyboard, keyboard) == 0
    finally:
        os.close(keyboard)
        reader.join()
        os.close(person)
    assert shown == b"y" * EndedWithOutput.SIZE


@pytest.mark.req("JT-40")
def test_a_shell_begins_with_the_size_that_the_terminal_has_by_then() -> None:
    person, keyboard = pty.openpty()
    try:
        session = ProcessSession(
            ShellRequest(job=7, terminal=True), ["sh", "-c", "read x; exit $(stty size | cut -d' ' -f2)"]
        )
        termios.tcsetwinsize(keyboard, (40, 77))
        os.write(person, b"\r")
        assert terminal.relay_terminal(session, keyboard, keyboard) == 77
    finally:
        os.close(person)
        os.close(keyboard)


@pytest.mark.req("JT-40")
def test_after_a_shell_the_program_handles_signals_as_before() -> None:
    """The cockpit on the screen continues after a shell, and has to notice the next resize."""
    person, keyboard = pty.openpty()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    waking, resized = signal.set_wakeup_fd(writing), signal.signal(signal.SIGWINCH, lambda *_: None)
    before = signal.getsignal(signal.SIGWINCH)
    try:
        session = ProcessSession(ShellRequest(job=7, terminal=True), ["true"])
        assert terminal.relay_terminal(session, keyboard, keyboard) == 0
        assert signal.getsignal(signal.SIGWINCH) is before
        assert signal.set_wakeup_fd(writing) == writing
    finally:
        signal.set_wakeup_fd(waking)
        signal.signal(signal.SIGWINCH, resized)
        for descriptor in (person, keyboard, reading, writing):
            os.close(descriptor)
