"""How the program of a session is started: by executing Python, which takes half a second until cockpit is imported."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from typing import Protocol

from cockpit.serve.accounts import Account


class Process(Protocol):
    """A process of this one, which collects its exit code."""

    @property
    def pid(self) -> int: ...

    def wait(self) -> int:
        """Return its exit code, or minus the signal that ended it. It has ended, and this is called once."""


class StartProgram(Protocol):
    """Starts cockpit as a user."""

    def __call__(
        self,
        words: Sequence[str],
        account: Account,
        env: Mapping[str, str],
        theirs: tuple[int, int, int],
        *,
        terminal: bool,
    ) -> Process:
        """Start it with these words and this whole environment. `theirs`: its standard input, output and error.

        `terminal`: they are a terminal, which becomes the controlling one. Raises `OSError`.
        """


def command_line(words: Sequence[str]) -> list[str]:
    """Return the command that runs cockpit with these words, by the Python that runs this."""
    # -P: no module comes from the working folder, which is the user's home.
    return [sys.executable, "-P", "-m", "cockpit.cli", *words]


def start_program(
    words: Sequence[str],
    account: Account,
    env: Mapping[str, str],
    theirs: tuple[int, int, int],
    *,
    terminal: bool,
) -> Process:
    """Start a Python that runs cockpit."""
    stdin, stdout, stderr = theirs
    own = account.is_own
    return subprocess.Popen(
        command_line(words),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=dict(env),
        cwd=account.home if os.path.isdir(account.home) else "/",  # noqa: PTH112 - one call of the system
        start_new_session=True,
        preexec_fn=take_terminal if terminal else None,  # noqa: PLW1509 - one call of the system, which takes no lock
        user=None if own else account.uid,
        group=None if own else account.gid,
        extra_groups=None if own else account.groups(),
    )


def take_terminal() -> None:
    """Make the terminal the controlling one, so that Ctrl-C and a hang-up reach the program."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
