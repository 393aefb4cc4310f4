"""Starts a program at a pseudo terminal of its own, or between pipes, for a user who opens a shell in a job."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from cockpit.backends.shell import OpenShell
from cockpit.backends.shell_ends import Ends, exit_bytes, pipes, pseudo_terminal
from cockpit.errors import Unreachable
from cockpit.model.asking import ShellOpened, ShellRequest
from cockpit.runtime.exit_signals import restore_signals


def at_terminal(argv: Sequence[str], env: Mapping[str, str], request: ShellRequest) -> OpenShell:
    """Start the program on this machine; closing its control socket ends it. Raises `Unreachable` if it cannot run."""
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
            preexec_fn=lambda: _begin(ends, terminal=request.terminal),  # noqa: PLW1509 - system calls alone, no lock
        )
    except OSError as error:
        for fd in (*ends.inner, *ends.outer, ours.detach(), theirs.detach()):
            os.close(fd)
        raise Unreachable(f"{argv[0]} cannot be run on this machine: {error.strerror or error}.") from None
    # the program has its own copies; with these open here, its end would not end the output
    for fd in ends.inner:
        os.close(fd)
    threading.Thread(target=_attend, args=(process, theirs), daemon=True).start()
    opened = ShellOpened(request.terminal, kept=False, remounted=False, cards_freed=False)
    return OpenShell(opened, (ours.detach(), *ends.outer))


def _begin(ends: Ends, *, terminal: bool) -> None:
    """Make the child the leader of a session, so that its group can be ended as a whole."""
    restore_signals()
    if terminal:
        os.login_tty(ends.stdin)
    else:
        os.setsid()


def _attend(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    """Wait for the program and send its exit code; end it when the user closes the control socket."""
    watcher = threading.Thread(target=_until_left, args=(process, control), daemon=True)
    watcher.start()
    code = process.wait()
    with suppress(OSError):
        control.sendall(exit_bytes(code))
        control.shutdown(socket.SHUT_RDWR)
    # The watcher reads from the socket; it must not be closed under it. shutdown ended its read.
    watcher.join()
    control.close()


def _until_left(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    """Send SIGHUP to the program when the user closes the control socket, as a terminal does when it is closed."""
    with suppress(OSError):
        # The client never sends anything: an empty read means that it has closed its end.
        if control.recv(1) == b"" and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGHUP)
