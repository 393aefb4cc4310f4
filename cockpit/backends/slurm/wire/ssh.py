"""Slurm's commands on a login node, over one SSH connection: `ssh://user@login`.

Everything that OpenSSH knows of the host is used: ~/.ssh/config with its jump hosts, the agent, keys, known_hosts, and
a connection that `ssh` holds open already. A host whose key is not known, or is another than it was, is refused with
the fingerprint. Where a server wants something typed, `ssh` asks for it at the terminal before the cockpit opens.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cockpit.backends.base import ShellSession
from cockpit.backends.shell import OpenShell
from cockpit.backends.slurm.wire.calls import Garbled, Printed, Unanswered, all_of
from cockpit.backends.slurm.wire.openssh import Host, Master, log_in_now, logged_in, standing
from cockpit.errors import LoginLost, SpecErrors, Unreachable
from cockpit.model.asking import ShellOpened, ShellRequest

if TYPE_CHECKING:
    import asyncssh

CONNECT_SECONDS = 20.0
KEEPALIVE_SECONDS = 15
LONGEST_SECONDS = 3600.0
"""Longer than any command is given."""


def remote_line(argv: Sequence[str], *, utc: bool = False, end: str = "") -> str:
    """The one place where words become a line that a remote shell reads: every word is quoted.

    `end` is a line of its own behind the output of a command that succeeds, written so that csh and fish understand it.
    """
    line = " ".join((*(("env", "TZ=UTC") if utc else ()), *map(shlex.quote, argv)))
    return f"{line} && echo {shlex.quote(end)}" if end else line


def _whole(printed: Printed, end: str, program: str) -> Printed:
    """Return the output without its last line, which the login shell wrote once the command had succeeded. Raises
    `Garbled` where that did not come through: then what stood before it need not have either."""
    if not end or printed.code != 0:
        return printed
    if not printed.stdout.endswith(f"{end}\n"):
        raise Garbled(program, "its end did not come through")
    return printed._replace(stdout=printed.stdout.removesuffix(f"{end}\n"))


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
        self._to = Host(self._host, self.user, port)
        self._master: Master | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()
        self._refused = self._typed = False
        """The keys were refused at the last attempt to connect; a login was typed before."""

    async def log_in(self) -> None:
        """Connect before anybody waits for an answer, at a terminal that nothing else uses yet: what the server wants
        typed is asked for there. Raises `Unreachable` where the server wants more; one that does not answer is asked
        again later."""
        try:
            await self._way_in()
        except Unreachable as error:
            if not isinstance(error, Refused | LoginLost):
                return
            if shutil.which("ssh") is None:
                raise
            self._master = await logged_in(self._to, typing=True)
            self._typed = True

    @property
    def is_needed(self) -> bool:
        return self._refused and self._master is None

    def ask_at_terminal(self) -> None:
        """Implements `TypedLogin`."""
        self._master = log_in_now(self._to, typing=True)
        self._typed = True

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        import asyncssh

        end = f"~{os.urandom(6).hex()}~" if reading else ""
        line, error_type = remote_line(argv, utc=reading, end=end), Unreachable
        try:
            async with asyncio.timeout(seconds):
                connection = await self._way_in()
                error_type = Unanswered
                if isinstance(connection, Master):
                    return _whole(await self._through(connection, line, stdin), end, argv[0])
                process = await connection.create_process(line, encoding=None)
                try:
                    return _whole(await _talk(process, stdin, argv[0]), end, argv[0])
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

        connection = await self._way_in()
        if isinstance(connection, Master):
            return await connection.open_shell(remote_line(argv), request)
        fds = remote_shell(self._connect, remote_line(argv), request)
        return OpenShell(ShellOpened(request.terminal, kept=False, remounted=False, cards_freed=False), fds)

    async def close(self) -> None:
        if self._master is not None:
            await self._master.close()
            self._master = None
        if self._connection is not None:
            self._connection.close()
            with suppress(OSError):
                await self._connection.wait_closed()
            self._connection = None

    async def _way_in(self) -> asyncssh.SSHClientConnection | Master:
        """The connection that stands; else the one that ssh holds; else one of our own."""
        async with self._connecting:
            if self._master is not None:
                return self._master
            if self._connection is not None and not self._connection.is_closed():
                return self._connection
            found = await standing(self._to)
            self._master = self._master or found  # a login may have been typed meanwhile
            if self._master is not None:
                return self._master
            try:
                self._connection = await self._connect()
                self._refused = False
            except ValueError:  # a key or a setting that only ssh itself understands
                self._master = await logged_in(self._to, typing=False)
                return self._master
            return self._connection

    async def _through(self, master: Master, line: str, stdin: bytes) -> Printed:
        """The time of the whole is the caller's."""
        try:
            return await master.run(line, seconds=LONGEST_SECONDS, stdin=stdin)
        except Unreachable:
            self._master = None  # the next command looks for another way
            await master.close()
            raise

    async def _connect(self) -> asyncssh.SSHClientConnection:
        import asyncssh

        hops: list[asyncssh.SSHClientConnection] = []
        try:
            for jump in self._jumps():
                hops.append(await self._hop(jump, hops))
            return await self._hop(self._to, hops)
        except asyncssh.HostKeyNotVerifiable as error:
            raise Unreachable(await self._unverified(error)) from None
        except asyncssh.PermissionDenied as error:
            self._refused = True
            if self._typed:
                raise LoginLost(self.name) from None
            raise Refused(
                f"{self.name} lets nobody in with the keys of this machine and its agent: {error.reason}. Where it "
                "wants a password or a code, type :login in an open cockpit, run the command again or open the cockpit "
                f"at a terminal, or keep a connection open: {_KEPT_OPEN}."
            ) from None
        except (OSError, asyncssh.Error) as error:
            raise Unreachable(f"{self.name} cannot be reached over SSH: {error}.") from None

    async def _hop(self, host: Host, hops: Sequence[asyncssh.SSHClientConnection]) -> asyncssh.SSHClientConnection:
        """To the host that a name means by ~/.ssh/config, through those before it."""
        import asyncssh

        connection = await asyncssh.connect(
            host.name,
            connect_timeout=CONNECT_SECONDS,
            keepalive_interval=KEEPALIVE_SECONDS,
            tunnel=hops[-1] if hops else None,
            **_options(host),
        )
        if hops:
            connection.set_tunnel(hops[-1])
        return connection

    def _jumps(self) -> Sequence[Host]:
        """The jump hosts of the configuration, in their order; each has settings of its own."""
        said = str(_configured(self._to)["ProxyJump"] or "")
        return [_jump(each) for each in said.split(",") if each and each.lower() != "none"]

    async def _unverified(self, error: Exception) -> str:
        """With the fingerprint that the host shows, to compare with what its administrator says."""
        import asyncssh

        found = None
        with suppress(OSError, asyncssh.Error):
            own = {name: value for name, value in _options(self._to).items() if name in {"config", "port"}}
            found = await asyncssh.get_server_host_key(self._host, **own)
        shown = f" It shows {found.get_fingerprint()}." if found is not None else ""
        return (
            f"The host key of {self.name} is not the one in known_hosts, or is not there: {error}.{shown} Connect once "
            f"with `ssh {self.name}` and compare it before you say yes."
        )


class Refused(Unreachable):
    """The server wants another proof than the keys of this machine."""


_KEPT_OPEN = (
    "`ControlMaster auto`, `ControlPath ~/.ssh/%C` and `ControlPersist 8h` in ~/.ssh/config, then log in with ssh"
)


def _config_files() -> list[str]:
    own = Path.home() / ".ssh" / "config"
    return [str(own)] if own.exists() else []


def _configured(host: Host) -> Mapping[str, object]:
    """What ~/.ssh/config says of the host."""
    from getpass import getuser

    from asyncssh.config import SSHClientConfig

    whose = (host.user or (), host.name, host.port if host.port is not None else ())
    found = SSHClientConfig.load(None, _config_files(), False, False, False, getuser(), *whose)
    return {name: found.get(name) for name in ("IdentityFile", "ProxyJump")}


def _options(host: Host) -> dict[str, Any]:
    """For asyncssh. Keys that the configuration names and that are not there are passed over, as ssh does; those that
    need a passphrase are ssh's or the agent's to open."""
    found: dict[str, Any] = {"config": _config_files() or None}
    if host.user:
        found["username"] = host.user
    if host.port is not None:
        found["port"] = host.port
    said = _configured(host)["IdentityFile"]
    named = [Path(str(each)).expanduser() for each in said] if isinstance(said, list) else []
    if named:
        found |= {"client_keys": [str(each) for each in named if each.is_file()], "ignore_encrypted": True}
    return found


def _jump(said: str) -> Host:
    """`user@host:port`, or `ssh://user@host:port`."""
    found = urlsplit(said if "://" in said else f"ssh://{said}")
    return Host(found.hostname or said, found.username or "", found.port)


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
