"""Runs Slurm's commands on a login node over one SSH connection: `ssh://user@login`.

It uses what OpenSSH is configured with: ~/.ssh/config with its jump hosts, the agent, keys, known_hosts, and a shared
connection that `ssh` holds open already. A host whose key is unknown or has changed is refused, and the error shows
its fingerprint. If the server asks for a password or a code, `ssh` asks at the terminal before the cockpit opens.

Each command looks for a connection in this order (`_open_connection`):

1. the shared connection of `ssh` that an earlier command used;
2. the asyncssh connection of an earlier command, if it is still open;
3. a shared connection that the user has opened meanwhile (ControlMaster);
4. a new asyncssh connection, with the user's keys;
5. a new connection of `ssh`, where the configuration has something that asyncssh does not support.
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
from cockpit.backends.slurm.wire.calls import DATABASE_PROGRAMS, NOTHING_ABSENT, AnswerLost, Garbled, Printed, all_of
from cockpit.backends.slurm.wire.openssh import Host, Master, log_in_now, logged_in, open_master
from cockpit.errors import LoginLost, SpecErrors, Unreachable
from cockpit.model.asking import ShellRequest

if TYPE_CHECKING:
    import asyncssh

CONNECT_SECONDS = 20.0
KEEPALIVE_SECONDS = 15
LONGEST_SECONDS = 3600.0
"""A time limit that is longer than that of any command."""


def remote_line(argv: Sequence[str], *, utc: bool = False, end: str = "") -> str:
    """Return the argument vector as one line for a remote shell, with every word quoted. No other code builds one.

    `utc`: run the command with TZ=UTC. `end`: a line that is printed after the output of a command that succeeds; it
    is written so that sh, csh and fish all understand it.
    """
    # `env` and not `TZ=UTC command`, which csh does not understand.
    line = " ".join((*(("env", "TZ=UTC") if utc else ()), *map(shlex.quote, argv)))
    return f"{line} && echo {shlex.quote(end)}" if end else line


def _whole(printed: Printed, end: str, program: str) -> Printed:
    """Return the output without its last line `end`, which the login shell printed after the command succeeded.

    Raises `Garbled` when that line is missing: then the output before it may be incomplete, too. An SSH connection
    that breaks can look like an ordinary end of output.
    """
    # A command that failed explains itself on stderr; `&&` kept the mark from being printed.
    if not end or printed.code != 0:
        return printed
    if not printed.stdout.endswith(f"{end}\n"):
        raise Garbled(program, "its end did not come through")
    return printed._replace(stdout=printed.stdout.removesuffix(f"{end}\n"))


class SshCommands:
    """Runs commands on a login node; implements `wire.calls.Commands`.

    Connects with the first command, and again after the connection was lost.
    """

    on_this_disk = False
    database_programs = DATABASE_PROGRAMS
    absent = NOTHING_ABSENT

    def __init__(self, address: str) -> None:
        """`address`: `ssh://[user@]host[:port]`. Raises `SpecErrors` for any other."""
        url = urlsplit(address)
        try:
            port = url.port
        except ValueError:
            port = 0
        if url.scheme != "ssh" or not url.hostname or port == 0 or url.path.strip("/") or url.password:
            raise SpecErrors([f"{address}: is not an SSH address; write ssh://user@login or ssh://user@login:2222."])
        self.name = f"{url.username}@{url.hostname}" if url.username else url.hostname
        self.user = url.username or ""
        self._host, self._port = url.hostname, port
        self._to = Host(self._host, self.user, port)
        self._master: Master | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()
        self._refused = self._typed = False
        """Whether the server refused the keys at the last attempt to connect; whether the user typed a login before."""

    async def log_in(self) -> None:
        """Connect before the screen opens, so that `ssh` can ask at the terminal for a password or a code.

        Raises `Unreachable` when the login fails. A server that does not answer is not an error here: the first
        command tries again.
        """
        try:
            await self._open_connection()
        except Unreachable as error:
            # A terminal helps only against a server that wants another login; a host that is down is shown as silent by
            # the screen.
            if not isinstance(error, Refused | LoginLost):
                return
            # Without ssh there is only asyncssh, which has just been refused.
            if shutil.which("ssh") is None:
                raise
            self._master = await logged_in(self._to, typing=True)
            self._typed = True

    @property
    def is_needed(self) -> bool:
        return self._refused and self._master is None

    def ask_at_terminal(self) -> None:
        """Log in again at the terminal; implements `TypedLogin`."""
        self._master = log_in_now(self._to, typing=True)
        self._typed = True

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        import asyncssh

        # random, so that no text of a job can look like the end of the output
        end = f"~{os.urandom(6).hex()}~" if reading else ""
        line, error_type = remote_line(argv, utc=reading, end=end), Unreachable
        try:
            async with asyncio.timeout(seconds):
                connection = await self._open_connection()
                error_type = AnswerLost  # from here on the command may have taken effect
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
            # the next command connects again
            self._connection = None
            raise error_type(f"The connection to {self.name} was lost: {error}.") from None

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        del stdin
        return tuple(argv)

    async def open_shell(self, argv: Sequence[str], request: ShellRequest) -> ShellSession:
        """Open a shell on a connection of its own, whose thread keeps running while the caller's event loop is
        blocked."""
        from cockpit.backends.slurm.wire.ssh_shell import ssh_shell

        connection = await self._open_connection()
        # ssh opens a channel of the shared connection in a process of its own, so that it needs no thread here.
        if isinstance(connection, Master):
            return await connection.open_shell(remote_line(argv), request)
        # `_connect` is passed and not the open connection: that one belongs to this event loop and cannot be used in
        # another.
        return ssh_shell(self._connect, remote_line(argv), request)

    async def close(self) -> None:
        if self._master is not None:
            await self._master.close()
            self._master = None
        if self._connection is not None:
            self._connection.close()
            with suppress(OSError):
                await self._connection.wait_closed()
            self._connection = None

    async def _open_connection(self) -> asyncssh.SSHClientConnection | Master:
        """Return an open connection, by the steps at the top of this module."""
        async with self._connecting:
            if self._master is not None:  # step 1
                return self._master
            if self._connection is not None and not self._connection.is_closed():  # step 2
                return self._connection
            master = await open_master(self._to)  # step 3
            self._master = self._master or master  # the user may have typed a login meanwhile
            if self._master is not None:
                return self._master
            # after step 3, since a new login may ask the user for a code once more
            try:
                self._connection = await self._connect()  # step 4
                self._refused = False
            except ValueError:  # step 5: a key or a setting that only ssh itself understands
                self._master = await logged_in(self._to, typing=False)
                return self._master
            return self._connection

    async def _through(self, master: Master, line: str, stdin: bytes) -> Printed:
        """Run the line over ssh's shared connection; the caller limits the time."""
        try:
            return await master.run(line, seconds=LONGEST_SECONDS, stdin=stdin)
        except Unreachable:
            self._master = None  # the next command looks for another way
            await master.close()
            raise

    async def _connect(self) -> asyncssh.SSHClientConnection:
        """Connect through the jump hosts. Raises `Unreachable`; `Refused` when the server does not accept the keys."""
        import asyncssh

        hops: list[asyncssh.SSHClientConnection] = []
        try:
            for jump in self._jumps():
                hops.append(await self._hop(jump, hops))
            return await self._hop(self._to, hops)
        except asyncssh.HostKeyNotVerifiable as error:
            raise Unreachable(await self._unknown_key_error(error)) from None
        except asyncssh.PermissionDenied as error:
            self._refused = True
            # `_typed`: the user has given a password or a code, which cockpit does not keep, so it cannot repeat the
            # login alone.
            if self._typed:
                raise LoginLost(self.name) from None
            raise Refused(
                f"{self.name} refuses the keys of this machine and its agent: {error.reason}. If it asks for a "
                "password or a code, type :login in an open cockpit, run the command again or open the cockpit "
                f"at a terminal, or keep a connection open: {_KEPT_OPEN}."
            ) from None
        except (OSError, asyncssh.Error) as error:
            raise Unreachable(f"{self.name} cannot be reached over SSH: {error}.") from None

    async def _hop(self, host: Host, hops: Sequence[asyncssh.SSHClientConnection]) -> asyncssh.SSHClientConnection:
        """Connect to a host, by its entry in ~/.ssh/config, through the last of the jump hosts `hops`."""
        import asyncssh

        connection = await asyncssh.connect(
            host.name,
            connect_timeout=CONNECT_SECONDS,
            keepalive_interval=KEEPALIVE_SECONDS,
            tunnel=hops[-1] if hops else None,
            **_options(host),
        )
        # asyncssh closes a tunnel with its connection only where it has opened the tunnel itself, or is asked to.
        if hops:
            connection.set_tunnel(hops[-1])
        return connection

    def _jumps(self) -> Sequence[Host]:
        """Return the jump hosts (ProxyJump) in their order; each has its own entry in ~/.ssh/config."""
        # One by one, so that each gets the settings of its own entry.
        names = str(_read_ssh_config(self._to)["ProxyJump"] or "")
        return [_jump(each) for each in names.split(",") if each and each.lower() != "none"]

    @property
    def _by_hand(self) -> tuple[str, ...]:
        """Return the command with which a user connects to the same server."""
        return ("ssh", *(("-p", str(self._port)) if self._port is not None else ()), self.name)

    async def _unknown_key_error(self, error: Exception) -> str:
        """Return the error for an unknown host key, with its fingerprint, to compare with the administrator's."""
        import asyncssh

        key = None
        with suppress(OSError, asyncssh.Error):
            # get_server_host_key logs in as no one, and takes none of the options of a login.
            own = {name: value for name, value in _options(self._to).items() if name in {"config", "port"}}
            key = await asyncssh.get_server_host_key(self._host, **own)
        shown = f" Its fingerprint is {key.get_fingerprint()}." if key is not None else ""
        return (
            f"The host key of {self.name} is unknown or differs from the one in known_hosts: {error}.{shown} Connect "
            f"once with `{shlex.join(self._by_hand)}` and compare the fingerprint before you accept it."
        )


class Refused(Unreachable):
    """The server does not accept the keys of this machine."""


_KEPT_OPEN = (
    "`ControlMaster auto`, `ControlPath ~/.ssh/%C` and `ControlPersist 8h` in ~/.ssh/config, then log in with ssh"
)


def _config_files() -> list[str]:
    own = Path.home() / ".ssh" / "config"
    return [str(own)] if own.exists() else []


def _read_ssh_config(host: Host) -> Mapping[str, object]:
    """Return IdentityFile and ProxyJump of the host in ~/.ssh/config."""
    from getpass import getuser

    from asyncssh.config import SSHClientConfig

    target = (host.user or (), host.name, host.port if host.port is not None else ())
    # Read here and not by asyncssh alone, so that `_options` can leave out the files that do not exist.
    config = SSHClientConfig.load(None, _config_files(), False, False, False, getuser(), *target)
    return {name: config.get(name) for name in ("IdentityFile", "ProxyJump")}


def _options(host: Host) -> dict[str, Any]:
    """Return the options of asyncssh for the host.

    Key files that the configuration names but that do not exist are skipped, as ssh does. Keys that need a passphrase
    are left to ssh or the agent.
    """
    options: dict[str, Any] = {"config": _config_files() or None}
    if host.user:
        options["username"] = host.user
    if host.port is not None:
        options["port"] = host.port
    identities = _read_ssh_config(host)["IdentityFile"]
    keys = [Path(str(each)).expanduser() for each in identities] if isinstance(identities, list) else []
    if keys:
        options |= {"client_keys": [str(each) for each in keys if each.is_file()], "ignore_encrypted": True}
    return options


def _jump(text: str) -> Host:
    """Return the jump host of `user@host:port` or `ssh://user@host:port`."""
    url = urlsplit(text if "://" in text else f"ssh://{text}")
    return Host(url.hostname or text, url.username or "", url.port)


def _end(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """Kill the remote program and close its channel, without waiting: a program that hangs might never close it."""
    if process.exit_status is None and process.exit_signal is None:
        with suppress(OSError):
            process.kill()
    process.close()


async def _talk(process: asyncssh.SSHClientProcess[bytes], stdin: bytes, program: str) -> Printed:
    """Write the input, read both outputs, and wait for the end."""

    async def feed() -> None:
        with suppress(OSError):
            process.stdin.write(stdin)
            await process.stdin.drain()
            process.stdin.write_eof()

    out, err, _ = await asyncio.gather(all_of(process.stdout, program), all_of(process.stderr, program), feed())
    await process.wait_closed()
    code = process.returncode
    return Printed(out.decode(errors="replace"), err.decode(errors="replace"), 255 if code is None else code)
