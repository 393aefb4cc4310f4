"""Runs Slurm's commands with OpenSSH's `ssh` program, over a shared connection (ControlMaster).

`ssh` itself is used where the user has to type something at a terminal (a one-time password, a passphrase, an answer
to the server), because it knows every form of login that servers ask for. The user types it once, for a connection
that all further commands share: the user's own, or one that is made here and ends with the cockpit.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.slurm.wire.calls import AnswerLost, Printed, complaint
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.errors import CockpitError, Unreachable

if TYPE_CHECKING:
    from cockpit.backends.base import ShellSession
    from cockpit.model.asking import ShellRequest

CHECK_SECONDS = 5.0
IDLE_SECONDS = 600
"""ControlPersist: how long a connection remains after its cockpit was killed."""
LONGEST_FOLDER = 50
"""Most characters of the socket's folder: a socket's path has at most 107, of which ssh needs some for itself."""
LOST = 255
"""Exit code of ssh when the connection fails."""


class Host(NamedTuple):
    """A login node: its host name or alias in ~/.ssh/config, user and port."""

    name: str
    user: str = ""
    port: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Arguments for ssh; `--` keeps a name that begins with a dash from being an option."""
        port = ("-p", str(self.port)) if self.port is not None else ()
        user = ("-l", self.user) if self.user else ()
        return (*port, *user, "--", self.name)


class Master:
    """An open connection of ssh that several commands share."""

    def __init__(self, host: Host, folder: Path | None = None) -> None:
        """`folder`: folder with the socket of a connection that was made here and that `close` ends.

        None: the user's own connection, which stays open.
        """
        self._host, self._folder = host, folder
        self._local = LocalCommands(os.environ)

    async def run(self, line: str, *, seconds: float, stdin: bytes) -> Printed:
        """Run a shell line on the host. Raises `AnswerLost` when the connection is lost before it or while it runs."""
        printed = await self._local.run(self._argv(line), seconds=seconds, stdin=stdin, reading=False)
        if printed.code == LOST:
            reason = complaint(printed) or "ssh says nothing"
            raise AnswerLost(f"The connection to {self._host.name} was lost: {reason}.")
        return printed

    async def open_shell(self, line: str, request: ShellRequest) -> ShellSession:
        return await self._local.open_shell(self._argv(line, *(("-tt",) if request.terminal else ())), request)

    async def close(self) -> None:
        """End the connection if it was made here."""
        if self._folder is not None:
            # The connection may be gone already, and ControlPersist ends it in any case.
            with suppress(CockpitError):
                await self._local.run(_ssh(self._host, self._folder, "-O", "exit"), seconds=CHECK_SECONDS)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _argv(self, line: str, *options: str) -> tuple[str, ...]:
        """Return ssh's arguments; BatchMode, because by now the terminal belongs to the screen and ssh must not ask."""
        # ControlMaster=no: with `auto` in the user's configuration, a command that finds the connection gone would
        # become the master of a new one.
        shared = ("-o", "ControlMaster=no", "-o", "BatchMode=yes")
        return (*_ssh(self._host, self._folder, *shared, *options), line)


async def open_master(host: Host) -> Master | None:
    """Return the shared connection that the user has open to this host (by ControlPath in ~/.ssh/config), if any."""
    try:
        answer = await LocalCommands(os.environ).run(_ssh(host, None, "-O", "check"), seconds=CHECK_SECONDS)
    except Unreachable:  # there is no ssh here, or its configuration hangs
        return None
    return Master(host) if answer.code == 0 else None


async def logged_in(host: Host, *, typing: bool) -> Master:
    """Open a connection with ssh. Raises `Unreachable`.

    `typing`: ssh asks at the terminal for whatever the server wants; else the user's keys must be enough.
    """
    return await asyncio.to_thread(log_in_now, host, typing=typing)


def log_in_now(host: Host, *, typing: bool) -> Master:
    """Open a connection like `logged_in`, but block: nothing else may use the terminal meanwhile."""
    usual = tempfile.gettempdir()
    long = len(usual) > LONGEST_FOLDER
    folder = Path(tempfile.mkdtemp(prefix="cockpit-ssh-", dir="/tmp" if long else usual))  # noqa: S108 - of mode 0700
    # -n: ssh takes no input but the answers to its questions, which it reads from the terminal itself.
    options = ("-o", "ControlMaster=yes", "-o", f"ControlPersist={IDLE_SECONDS}", "-n")
    argv = (*_ssh(host, folder, *options, *(() if typing else ("-o", "BatchMode=yes"))), "true")
    # With typing ssh writes its questions and errors to the terminal itself.
    pipe = None if typing else subprocess.PIPE
    try:
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=pipe, check=False)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Unreachable(f"ssh cannot be run on this machine: {error.strerror or error}.") from None
    # With ControlPersist ssh stays in the background once `true` has ended, so that the call returns.
    if done.returncode == 0:
        return Master(host, folder)
    shutil.rmtree(folder, ignore_errors=True)
    message = (done.stderr or b"").decode(errors="replace").strip()
    raise Unreachable(f"{host.name} cannot be reached over SSH: {message or 'ssh says why above'}")


def _ssh(host: Host, folder: Path | None, *options: str) -> tuple[str, ...]:
    """Return the arguments of an ssh call; `folder`: folder of the shared socket, None: ControlPath as configured."""
    socket = ("-o", f"ControlPath={folder}/to") if folder is not None else ()
    return ("ssh", *socket, *options, *host.words)
