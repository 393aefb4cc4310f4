"""Slurm's commands through OpenSSH's own program, over a connection that stands already.

What a person has to type at a terminal (a one-time password, a passphrase, an answer to the server) only `ssh` asks in
every form that servers know. It is typed once, for a connection that further commands share (ControlMaster): the
person's own, or one that is made here and ends with the cockpit.
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

from cockpit.backends.slurm.wire.calls import Printed, Unanswered, complaint
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.errors import CockpitError, Unreachable

if TYPE_CHECKING:
    from cockpit.backends.base import ShellSession
    from cockpit.model.asking import ShellRequest

CHECK_SECONDS = 5.0
IDLE_SECONDS = 600
"""So long a connection outlives a cockpit that was killed."""
LONGEST_FOLDER = 50
"""A socket's path has at most 107 characters, of which ssh wants some for itself."""
LOST = 255
"""The exit code of ssh where the connection fails."""


class Host(NamedTuple):
    """A login node, as it is named to ssh."""

    name: str
    user: str = ""
    port: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """A name that begins with a dash is a name."""
        port = ("-p", str(self.port)) if self.port is not None else ()
        user = ("-l", self.user) if self.user else ()
        return (*port, *user, "--", self.name)


class Master:
    """A connection of ssh that stands and is shared."""

    def __init__(self, host: Host, folder: Path | None = None) -> None:
        """`folder`: where the socket is, of a connection that was made here and ends with this object; None: the
        person's own, which stays."""
        self._host, self._folder = host, folder
        self._local = LocalCommands(os.environ)

    async def run(self, line: str, *, seconds: float, stdin: bytes) -> Printed:
        """The line over there. Raises `Unanswered` where the connection is lost, before it or in its midst."""
        printed = await self._local.run(self._argv(line), seconds=seconds, stdin=stdin, reading=False)
        if printed.code == LOST:
            reason = complaint(printed) or "ssh says nothing"
            raise Unanswered(f"The connection to {self._host.name} was lost: {reason}.")
        return printed

    async def open_shell(self, line: str, request: ShellRequest) -> ShellSession:
        return await self._local.open_shell(self._argv(line, *(("-tt",) if request.terminal else ())), request)

    async def close(self) -> None:
        """End it where it was made here."""
        if self._folder is not None:
            with suppress(CockpitError):
                await self._local.run(_ssh(self._host, self._folder, "-O", "exit"), seconds=CHECK_SECONDS)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _argv(self, line: str, *options: str) -> tuple[str, ...]:
        """Nothing is asked at a terminal that something else may hold by now."""
        shared = ("-o", "ControlMaster=no", "-o", "BatchMode=yes")
        return (*_ssh(self._host, self._folder, *shared, *options), line)


async def standing(host: Host) -> Master | None:
    """The connection that the person has open to this host by the ControlPath of their configuration, if any."""
    try:
        answer = await LocalCommands(os.environ).run(_ssh(host, None, "-O", "check"), seconds=CHECK_SECONDS)
    except Unreachable:  # there is no ssh here, or its configuration hangs
        return None
    return Master(host) if answer.code == 0 else None


async def logged_in(host: Host, *, typing: bool) -> Master:
    """A connection that ssh makes. `typing`: it asks at the terminal for whatever the server wants; else the keys must
    do. Raises `Unreachable`."""
    return await asyncio.to_thread(log_in_now, host, typing=typing)


def log_in_now(host: Host, *, typing: bool) -> Master:
    """`logged_in` for callers that must wait: nothing else may use the terminal meanwhile."""
    usual = tempfile.gettempdir()
    long = len(usual) > LONGEST_FOLDER
    folder = Path(tempfile.mkdtemp(prefix="cockpit-ssh-", dir="/tmp" if long else usual))  # noqa: S108 - of mode 0700
    options = ("-o", "ControlMaster=yes", "-o", f"ControlPersist={IDLE_SECONDS}", "-n")
    argv = (*_ssh(host, folder, *options, *(() if typing else ("-o", "BatchMode=yes"))), "true")
    pipe = None if typing else subprocess.PIPE
    try:
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=pipe, check=False)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Unreachable(f"ssh cannot be run on this machine: {error.strerror or error}.") from None
    if done.returncode == 0:
        return Master(host, folder)
    shutil.rmtree(folder, ignore_errors=True)
    said = (done.stderr or b"").decode(errors="replace").strip()
    raise Unreachable(f"{host.name} cannot be reached over SSH: {said or 'ssh says why above'}")


def _ssh(host: Host, folder: Path | None, *options: str) -> tuple[str, ...]:
    """`folder`: of the shared connection's socket; None: as the person's configuration says."""
    socket = ("-o", f"ControlPath={folder}/to") if folder is not None else ()
    return ("ssh", *socket, *options, *host.words)
