"""Slurm's commands on a login node, over one SSH connection: `ssh://user@login`.

Everything that OpenSSH knows of the host is used: ~/.ssh/config with its jump hosts, the agent, keys, known_hosts. A
host whose key is not known, or is another than it was, is refused with the fingerprint: nobody says yes blindly.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cockpit.backends.base import ShellSession
from cockpit.backends.shell import OpenShell
from cockpit.backends.slurm.wire.calls import Printed, Unanswered, all_of
from cockpit.errors import SpecErrors, Unreachable
from cockpit.model.asking import ShellOpened, ShellRequest

if TYPE_CHECKING:
    import asyncssh

CONNECT_SECONDS = 20.0
KEEPALIVE_SECONDS = 15


def remote_line(argv: Sequence[str], *, utc: bool = False) -> str:
    """The one place where words become a line that a remote shell reads: every word is quoted."""
    return " ".join((*(("env", "TZ=UTC") if utc else ()), *map(shlex.quote, argv)))


class SshCommands:
    """Implements `wire.calls.Commands`. Connects with the first command, and again after the connection was lost."""

    on_this_disk = False

    def __init__(self, address: str) -> None:
        """`address`: `ssh://[user@]host[:port]`. Raises `SpecErrors` for any other."""
        found = urlsplit(address)
        try:
            port = found.port
        except ValueError:
            port = 0
        if found.scheme != "ssh" or not found.hostname or port == 0 or found.path.strip("/") or found.password:
            raise SpecErrors([f"{address}: is no way in; write ssh://user@login or ssh://user@login:2222."])
        self.name = f"{found.username}@{found.hostname}" if found.username else found.hostname
        self.user = found.username or ""
        self._host, self._port = found.hostname, port
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        import asyncssh

        error_type = Unreachable
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connected()
                error_type = Unanswered
                process = await connection.create_process(remote_line(argv, utc=reading), encoding=None)
                try:
                    return await _talk(process, stdin, argv[0])
                finally:
                    _end(process)
        except TimeoutError:
            raise error_type(f"{argv[0]} on {self.name} has not answered within {seconds:g} s.") from None
        except (OSError, asyncssh.Error) as error:
            self._connection = None
            raise error_type(f"The connection to {self.name} was lost: {error}.") from None

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        del stdin
        return tuple(argv)

    async def open_shell(self, argv: Sequence[str], request: ShellRequest) -> ShellSession:
        """On a connection of its own: a person stays in it, and it must not wait for anybody's event loop."""
        from cockpit.backends.slurm.wire.pumping import remote_shell

        fds = remote_shell(self._connect, remote_line(argv), request)
        return OpenShell(ShellOpened(request.terminal, kept=False, remounted=False, cards_freed=False), fds)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            with suppress(OSError):
                await self._connection.wait_closed()
            self._connection = None

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> asyncssh.SSHClientConnection:
        import asyncssh

        whose = {"username": self.user} if self.user else {}
        try:
            return await asyncssh.connect(
                self._host,
                connect_timeout=CONNECT_SECONDS,
                keepalive_interval=KEEPALIVE_SECONDS,
                **self._way(),
                **whose,
            )
        except asyncssh.HostKeyNotVerifiable as error:
            raise Unreachable(await self._unverified(error)) from None
        except asyncssh.PermissionDenied as error:
            message = f"{self.name} lets nobody in with the keys of this machine and its agent: {error.reason}."
            raise Unreachable(message) from None
        except (OSError, asyncssh.Error) as error:
            raise Unreachable(f"{self.name} cannot be reached over SSH: {error}.") from None

    def _way(self) -> dict[str, Any]:
        """To the host that a name means: by ~/.ssh/config, and through its jump hosts."""
        config = Path.home() / ".ssh" / "config"
        port = {"port": self._port} if self._port is not None else {}
        return {"config": [str(config)] if config.exists() else None, **port}

    async def _unverified(self, error: Exception) -> str:
        """With the fingerprint that the host shows, to compare with what its administrator says."""
        import asyncssh

        found = None
        with suppress(OSError, asyncssh.Error):
            found = await asyncssh.get_server_host_key(self._host, **self._way())
        shown = f" It shows {found.get_fingerprint()}." if found is not None else ""
        return (
            f"The host key of {self.name} is not the one in known_hosts, or is not there: {error}.{shown} Connect once "
            f"with `ssh {self.name}` and compare it before you say yes."
        )


def _end(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """With all that it started there, and without waiting: a program that hangs would keep its channel for as long."""
    if process.exit_status is None and process.exit_signal is None:
        with suppress(OSError):
            process.kill()
    process.close()


async def _talk(process: asyncssh.SSHClientProcess[bytes], stdin: bytes, program: str) -> Printed:
    async def feed() -> None:
        with suppress(OSError):
            process.stdin.write(stdin)
            await process.stdin.drain()
            process.stdin.write_eof()

    out, err, _ = await asyncio.gather(all_of(process.stdout, program), all_of(process.stderr, program), feed())
    await process.wait_closed()
    code = process.returncode
    return Printed(out.decode(errors="replace"), err.decode(errors="replace"), 255 if code is None else code)
