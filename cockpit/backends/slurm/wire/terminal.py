"""A program at a pseudo terminal of its own, or between pipes, as whoever entered a job holds it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from cockpit.backends.shell import OpenShell
from cockpit.errors import Unreachable
from cockpit.model.asking import ShellOpened, ShellRequest

_EXIT = struct.Struct(">i")


def at_terminal(argv: Sequence[str], env: Mapping[str, str], request: ShellRequest) -> OpenShell:
    """The program ends when its control socket is closed. Raises `Unreachable` where it cannot be run."""
    ours, theirs = socket.socketpair()
    ends = pseudo_terminal(request) if request.terminal else pipes()
    env = {**env, "TERM": request.term}
    try:
        process = subprocess.Popen(
            argv,
            stdin=ends.stdin,
            stdout=ends.stdout,
            stderr=ends.stderr,
            env=env,
            start_new_session=not request.terminal,
            preexec_fn=(lambda: os.login_tty(ends.stdin)) if request.terminal else None,  # noqa: PLW1509 - one system call, no lock
        )
    except OSError as error:
        for fd in (*ends.inner, *ends.outer, ours.detach(), theirs.detach()):
            os.close(fd)
        raise Unreachable(f"{argv[0]} cannot be run on this machine: {error.strerror or error}.") from None
    for fd in ends.inner:
        os.close(fd)
    threading.Thread(target=_attend, args=(process, theirs), daemon=True).start()
    opened = ShellOpened(request.terminal, kept=False, remounted=False, cards_freed=False)
    return OpenShell(opened, (ours.detach(), *ends.outer))


def exit_bytes(code: int) -> bytes:
    """As the control socket says it at the end."""
    return _EXIT.pack(code if code >= 0 else 128 - code)


class Ends:
    """What the program gets, and what the person gets."""

    def __init__(self, inner: tuple[int, ...], outer: tuple[int, ...]) -> None:
        self.stdin, self.stdout, self.stderr = inner if len(inner) == 3 else inner * 3
        self.inner, self.outer = inner, outer


def pseudo_terminal(request: ShellRequest) -> Ends:
    """Of the size of the person's screen."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", request.rows, request.columns, 0, 0))
    os.set_inheritable(slave, True)
    return Ends((slave,), (master,))


def pipes() -> Ends:
    """Standard input, output and error."""
    stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
    return Ends((stdin[0], stdout[1], stderr[1]), (stdin[1], stdout[0], stderr[0]))


def _attend(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    """Say how it ended; end it when nobody listens any more."""
    watcher = threading.Thread(target=_until_left, args=(process, control), daemon=True)
    watcher.start()
    code = process.wait()
    with suppress(OSError):
        control.sendall(exit_bytes(code))
        control.shutdown(socket.SHUT_RDWR)
    watcher.join()
    control.close()


def _until_left(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    with suppress(OSError):
        if control.recv(1) == b"" and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGHUP)
