"""A shell that can hurt nothing: bubblewrap shows it this machine's programs, one folder of the demo, and no network.

It is spoken to as a container is: a terminal or three pipes, and a control socket that carries the exit code at the end
and whose closing ends the shell. A thread watches over each, because a face that has handed the screen to a shell lets
its own loop stand still.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cockpit.model.names import dns_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.job import Submitter
    from cockpit.runtime.containers.entering import Terminal

_EXIT = struct.Struct("!i")
_MACHINE = ("/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/terminfo", "/etc/vim")
_PROGRAMS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr on today's distributions, folders of their own on others."""
_OPENING_TERMINAL = ("/bin/sh", "-c", 'exec <"$0" && exec "$@"')
"""Followed by its name: a session's leader that opens a terminal has it from then on. It belongs to nothing else, so
what a sandbox could push into its input, only the sandbox would read."""


class View(NamedTuple):
    """The content of the sandbox."""

    room: Path
    """Shown as /workspace, writable."""
    who: Submitter
    label: str
    """Leads the prompt."""


class Shell:
    """A running shell. The caller closes its descriptors."""

    def __init__(self, process: subprocess.Popen[bytes], outer: Sequence[int], *, terminal: bool) -> None:
        ours, theirs = socket.socketpair()
        self.terminal_fd = outer[0] if terminal else None
        self.pipe_fds = None if terminal else (outer[0], outer[1], outer[2])
        self.control_fd = theirs.detach()
        self._process = process
        self._control = ours
        self._watcher = threading.Thread(target=self._watch, name="demo shell", daemon=True)
        self._watcher.start()

    @property
    def alive(self) -> bool:
        return self._watcher.is_alive()

    def end(self) -> None:
        """Kill it, and wait until that is done."""
        self._kill()
        self._watcher.join()

    def _watch(self) -> None:
        """Wait for the shell's end; closing the other end of the control descriptor ends it."""
        pidfd = os.pidfd_open(self._process.pid)
        ready = select.poll()
        ready.register(pidfd, select.POLLIN)
        ready.register(self._control, select.POLLIN | select.POLLHUP)
        if pidfd not in {fd for fd, _ in ready.poll()}:
            self._kill()
        code = self._process.wait()
        os.close(pidfd)
        with self._control, contextlib.suppress(OSError):
            self._control.sendall(_EXIT.pack(code if code >= 0 else 128 - code))

    def _kill(self) -> None:
        """The whole group: bubblewrap's inner process, with which all others go, is of it from its first moment on."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def enter(view: View, command: Sequence[str], terminal: Terminal | None) -> Shell:
    """Run `command` (empty: an interactive shell) in there."""
    inner, outer = _terminal(terminal) if terminal else _pipes()
    opening = (*_OPENING_TERMINAL, os.ttyname(inner[0])) if terminal else ()
    try:
        process = subprocess.Popen(
            [*opening, *_arguments(view, command, terminal)],
            stdin=inner[0],
            stdout=inner[1],
            stderr=inner[2],
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )
    finally:
        for fd in set(inner):
            os.close(fd)
    return Shell(process, outer, terminal=terminal is not None)


def _terminal(terminal: Terminal) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    outer, inner = os.openpty()
    termios.tcsetwinsize(inner, (terminal.rows, terminal.columns))
    return (inner, inner, inner), (outer,)


def _pipes() -> tuple[tuple[int, int, int], tuple[int, ...]]:
    stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
    return (stdin[0], stdout[1], stderr[1]), (stdin[1], stdout[0], stderr[0])


def _arguments(view: View, command: Sequence[str], terminal: Terminal | None) -> list[str]:
    """The whole vector, program name first."""
    return [
        "bwrap",
        *("--unshare-all", "--die-with-parent", "--hostname", dns_name(view.label)),
        *("--uid", str(view.who.uid), "--gid", str(view.who.gid)),
        *(word for path in _MACHINE for word in ("--ro-bind-try", path, path)),
        *(word for path in _PROGRAMS for word in _as_here(Path(path))),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
        *("--tmpfs", view.who.home, "--bind", str(view.room), "/workspace", "--chdir", "/workspace/algorithm"),
        *("--ro-bind", str(_names(view)), "/etc/passwd"),
        "--clearenv",
        *(word for name, value in _environment(view, terminal).items() for word in ("--setenv", name, value)),
        *("--", *(command or ("/bin/bash", "-i"))),
    ]


def _as_here(path: Path) -> tuple[str, ...]:
    if path.is_symlink():
        return "--symlink", str(path.readlink()), str(path)
    return "--ro-bind-try", str(path), str(path)


def _environment(view: View, terminal: Terminal | None) -> dict[str, str]:
    """The label reaches the prompt through a variable, which no shell expands twice."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": view.who.home,
        "USER": view.who.name,
        "LANG": "C.UTF-8",
        "TERM": terminal.term if terminal else "dumb",
        "COCKPIT_PROMPT": view.label,
        "PS1": "${COCKPIT_PROMPT}:\\w\\$ ",
    }


def _names(view: View) -> Path:
    """A password file in which the user has a name."""
    file = view.room.with_suffix(".passwd")
    who = view.who
    file.write_text(f"{who.name}:x:{who.uid}:{who.gid}::{who.home}:/bin/bash\n")
    return file
