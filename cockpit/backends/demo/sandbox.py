"""A shell that can hurt nothing: bubblewrap shows it this machine's programs, one folder of the demo, and no network.

It has the interface of a container's shell: a terminal or three pipes, and a control socket, which carries the exit
code at the end and whose closing ends the shell. A thread watches each shell, because the screen's event loop does not
run while a shell has the terminal.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cockpit.errors import RequestRefused
from cockpit.launch.workspace import WORKSPACE, mounted_folders
from cockpit.model.names import dns_name
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import HoldCards
from cockpit.runtime.containers.entering import EnteredShell, EntryFacts
from cockpit.runtime.exit_signals import restore_signals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.engine.effects import StartReplica
    from cockpit.model.ids import ReplicaId
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
        """Kill the shell, and wait until that is done."""
        self._kill()
        self._watcher.join()

    def _watch(self) -> None:
        """Wait for the shell's end; closing the other end of the control descriptor ends it."""
        # A pidfd can be polled beside the socket, and cannot mean another process that got the same number.
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
        """Kill the whole process group.

        bubblewrap's inner process, with which all others end, belongs to it from the start.
        """
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
            preexec_fn=restore_signals,  # noqa: PLW1509 - system calls alone, no lock
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )
    finally:
        # A set, since a terminal is the same descriptor three times.
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
    """Return the whole vector, program name first."""
    return [
        "bwrap",
        *("--unshare-all", "--die-with-parent", "--hostname", dns_name(view.label)),
        *("--uid", str(view.who.uid), "--gid", str(view.who.gid)),
        *(word for path in _MACHINE for word in ("--ro-bind-try", path, path)),
        *(word for path in _PROGRAMS for word in _as_here(Path(path))),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
        # Programs want a home that they can write to. This one is empty: the machine's own is not in the sandbox at
        # all.
        *("--tmpfs", view.who.home, "--bind", str(view.room), "/workspace", "--chdir", "/workspace/algorithm"),
        *("--ro-bind", str(_names(view)), "/etc/passwd"),
        "--clearenv",
        *(word for name, value in _environment(view, terminal).items() for word in ("--setenv", name, value)),
        *("--", *(command or ("/bin/bash", "-i"))),
    ]


def _as_here(path: Path) -> tuple[str, ...]:
    # A link stays one: what it leads to is in /usr, which is mounted already.
    if path.is_symlink():
        return "--symlink", str(path.readlink()), str(path)
    return "--ro-bind-try", str(path), str(path)


def _environment(view: View, terminal: Terminal | None) -> dict[str, str]:
    """Return the shell's environment.

    The label reaches the prompt through a variable, which no shell expands twice.
    """
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
    """Return a password file in which the user has a name."""
    file = view.room.with_suffix(".passwd")
    who = view.who
    file.write_text(f"{who.name}:x:{who.uid}:{who.gid}::{who.home}:/bin/bash\n")
    return file


PROGRAM = "bwrap"
WITHOUT_BUBBLEWRAP = (
    "The demo's terminals are sandboxes made by bubblewrap, which this machine does not have: "
    "install the package bubblewrap."
)
TRAINING = """\
# A file of the demo: no job has run it.
import json

config = json.load(open("/workspace/algorithm/config.json"))
for step in range(config["steps"]):
    print("step", step)
"""
CONFIG = '{"steps": 6000, "batch": 64, "lr": 2e-05, "seed": 17}\n'


class Sandboxes:
    """The sandboxes' folders below `folder`, one for each replica, made when a user first opens a shell in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shells: list[Shell] = []

    def enter(
        self, effect: StartReplica, command: Sequence[str], *, terminal: Terminal | None, label: str, kept: bool
    ) -> EnteredShell:
        """Open a shell. Raises `RequestRefused` when this machine has no bubblewrap."""
        if shutil.which(PROGRAM) is None:
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, WITHOUT_BUBBLEWRAP))
        view = View(self._with_files(effect), effect.submitter, label)
        shell = enter(view, command, terminal)
        self._shells = [each for each in self._shells if each.alive] + [shell]
        freed = kept and effect.spec.debug_hold.cards is not HoldCards.KEEP and bool(effect.allocation.slices)
        return EnteredShell(
            terminal_fd=shell.terminal_fd,
            pipe_fds=shell.pipe_fds,
            control_fd=shell.control_fd,
            facts=EntryFacts(kept=kept, cards_freed=freed),
        )

    def remove(self, replica: ReplicaId) -> None:
        """Remove the files; open shells then see an empty folder, as in a container that is removed."""
        shutil.rmtree(self._folder / replica.folder, ignore_errors=True)

    def close(self) -> None:
        """End every shell."""
        for shell in self._shells:
            shell.end()

    def _with_files(self, effect: StartReplica) -> Path:
        """Return the replica's folder; create it with example files if it does not exist."""
        folder_of_replica = self._folder / effect.replica.folder
        if not folder_of_replica.exists():
            places = (each.target.removeprefix(f"{WORKSPACE}/") for each in mounted_folders(effect.spec))
            for folder in dict.fromkeys(("algorithm", *places, "outputs/checkpoint-1000")):
                (folder_of_replica / folder).mkdir(parents=True, exist_ok=True)
            # The script that the job's command names, so that a look around shows what one expects to find there.
            programs = [word for word in effect.spec.command.split() if word.endswith(".py") and "/" not in word]
            for program in programs or ["train.py"]:
                (folder_of_replica / "algorithm" / program).write_text(TRAINING)
            (folder_of_replica / "algorithm/config.json").write_text(CONFIG)
            state = folder_of_replica / "outputs/checkpoint-1000/state.json"
            state.write_text('{"step": 1000, "loss": 1.4127}\n')
        return folder_of_replica
