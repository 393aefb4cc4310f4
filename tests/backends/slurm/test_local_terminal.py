"""Programs of this machine at a terminal of their own or between pipes, as a shell in a job is opened."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Sequence

import pytest

from cockpit.backends.shell import OpenShell
from cockpit.backends.shell_ends import exit_bytes
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.backends.slurm.wire.terminal import at_terminal
from cockpit.errors import Unreachable
from cockpit.model.asking import ShellRequest

pytestmark = pytest.mark.req("SL-22")


def opened(argv: Sequence[str], **request: object) -> OpenShell:
    return at_terminal(argv, {"PATH": os.environ["PATH"], "OWN": "x"}, ShellRequest(job=7, **request))


def fds_of(shell: OpenShell) -> tuple[int, ...]:
    """Return the control socket, then the terminal or the three pipes."""
    streams = (shell.terminal_fd,) if shell.terminal_fd is not None else shell.pipe_fds or ()
    return (shell.control_fd, *streams)


def read(fd: int, until: bytes = b"") -> bytes:
    """Read until these bytes have come, or to the end."""
    text = b""
    while select.select([fd], [], [], 30)[0]:
        try:
            piece = os.read(fd, 4096)
        except OSError:  # the terminal's program has ended
            break
        text += piece
        if not piece or (until and until in text):
            break
    return text


def exit_code(control: int) -> bytes:
    with socket.socket(fileno=control) as end:
        end.settimeout(30)
        return end.recv(16)


def test_a_program_between_pipes_has_its_input_output_and_errors_apart() -> None:
    shell = opened(("sh", "-c", "cat; echo wrong >&2; echo $TERM $OWN; exit 7"), term="vt100")
    control, stdin, stdout, stderr = fds_of(shell)
    os.write(stdin, b"typed\n")
    os.close(stdin)
    assert read(stdout) == b"typed\nvt100 x\n"
    assert read(stderr) == b"wrong\n"
    assert exit_code(control) == exit_bytes(7)
    assert shell.terminal_fd is None
    for fd in (stdout, stderr):
        os.close(fd)


def test_a_program_at_a_terminal_knows_its_size_and_is_in_front() -> None:
    shell = opened(
        ("sh", "-c", "stty size; tty >/dev/null && echo terminal; kill -TERM $$"), terminal=True, rows=30, columns=90
    )
    control, terminal = fds_of(shell)
    assert b"30 90\r\nterminal" in read(terminal)
    assert exit_code(control) == exit_bytes(-15) == exit_bytes(143)
    os.close(terminal)


@pytest.mark.parametrize("terminal", [False, True])
def test_closing_the_control_socket_hangs_the_program_up(terminal: bool) -> None:
    shell = opened(
        ("sh", "-c", "trap 'echo hung up; exit' HUP; echo ready; while :; do sleep 0.05; done"), terminal=terminal
    )
    control, *streams = fds_of(shell)
    output = streams[0] if terminal else streams[1]
    assert b"ready" in read(output, b"ready")
    os.close(control)
    assert b"hung up" in read(output, b"hung up")
    for fd in streams:
        os.close(fd)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_program_ignores_no_signal_that_cockpit_ignores(terminal: bool) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup(1)
    try:
        shell = opened(("grep", "SigIgn", "/proc/self/status"), terminal=terminal)
    finally:
        signal.signal(signal.SIGHUP, before)
    control, *streams = fds_of(shell)
    # The C library keeps two signals for itself, which no program can restore.
    ours = sum(1 << number - 1 for number in signal.valid_signals())
    assert int(read(streams[0] if terminal else streams[1]).split()[1], 16) & ours == 0
    assert exit_code(control) == exit_bytes(0)
    for fd in streams:
        os.close(fd)


def test_a_missing_program_leaves_no_descriptor_open() -> None:
    first = os.dup(0)
    os.close(first)
    for terminal in (False, True):
        with pytest.raises(Unreachable, match="/none cannot be run on this machine: No such file"):
            opened(("/none",), terminal=terminal)
    after = os.dup(0)
    os.close(after)
    assert after == first, "the next descriptor is the same as before"


def test_no_thread_of_a_shell_keeps_cockpit_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    make = threading.Thread.__init__

    def made(thread: threading.Thread, *words: object, **options: object) -> None:
        make(thread, *words, **options)  # type: ignore[arg-type]  # whatever the caller gives
        threads.append(thread)

    monkeypatch.setattr(threading.Thread, "__init__", made)
    shell = opened(("true",))
    control, *streams = fds_of(shell)
    assert read(streams[1]) == b""
    assert exit_code(control) == exit_bytes(0)
    assert [each.daemon for each in threads] == [True, True]
    for fd in streams:
        os.close(fd)


async def test_a_shell_on_this_machine_has_the_users_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    here = LocalCommands({"PATH": os.environ["PATH"], "OWN": "mine", "SQUEUE_FORMAT": "%i"})
    shell = await here.open_shell(("sh", "-c", "echo $OWN-$SQUEUE_FORMAT-"), ShellRequest(job=7))
    control, stdin, stdout, stderr = fds_of(shell)
    assert read(stdout) == b"mine--\n"
    assert exit_code(control) == exit_bytes(0)
    for fd in (stdin, stdout, stderr):
        os.close(fd)
