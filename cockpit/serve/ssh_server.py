"""The SSH server: who may connect, log in and open sessions, and how the server ends.

1. `SshConnection.connection_made` refuses addresses that connect too fast, and more connections than there may be.
2. `begin_auth` gives asyncssh the keys that admit the user; passwords and all other ways are switched off.
3. `session_requested` opens an `SshSession`, which starts a program with the user's credentials.

Everything else that SSH can do (forwarding of ports, sockets, agents and X11, SFTP, SCP, tunnels) is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import asyncssh

from cockpit.errors import CockpitError
from cockpit.model.access_level import AccessLevel
from cockpit.model.ids import Millis
from cockpit.present.safe import safe
from cockpit.runtime.tasks import report_defect
from cockpit.serve.keys import KeyFile, UsersKeys, still_valid
from cockpit.serve.limits import Bounds, ConnectionRate, Sessions
from cockpit.serve.program import GRACE_SECONDS
from cockpit.serve.ssh_session import WINDOW, SshSession, Visitor
from cockpit.serve.starting import StartProgram, start_program

SESSIONS_OF_CONNECTION: Final = 10
"""Sessions that one connection may have, as `ssh -M` shares it; the default of sshd's MaxSessions."""
KEEPALIVE_SECONDS: Final = 30
KEEPALIVES: Final = 3
"""A client that answers none of so many questions is gone, or reads nothing any more."""


class SshServer:
    """Listens at an address, and holds what all connections share."""

    def __init__(
        self,
        keys: KeyFile | UsersKeys,
        host_key: asyncssh.SSHKey,
        default: AccessLevel,
        bounds: Bounds,
        *,
        now: Callable[[], Millis],
        report: Callable[[str], None],
    ) -> None:
        """`default`: the access level of keys that name none. `report`: writes a line of the server's log."""
        self.keys, self.default, self.bounds, self.now = keys, default, bounds, now
        self._host_key = host_key
        self._report = report
        self.sessions = Sessions(bounds)
        self.connections: set[SshConnection] = set()
        self.address: Callable[[str, AccessLevel], str] | None = None
        """Makes an address of the web server for a user, where there is one."""
        self.start: StartProgram = start_program
        """Starts the programs of sessions."""
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._rate: ConnectionRate | None = None
        self._drain: asyncio.Timeout | None = None
        """The time limit of a stop that waits for sessions."""

    async def listen(self, host: str, port: int) -> int:
        """Start to listen; return the port, which the system chooses for port 0. Raises `CockpitError`."""
        # Its own log would repeat what clients send, unescaped.
        asyncssh.set_log_level("CRITICAL")
        self._rate = ConnectionRate(self.bounds, asyncio.get_running_loop().time)
        try:
            self._acceptor = await asyncssh.listen(
                host,
                port,
                server_factory=lambda: SshConnection(self),
                server_host_keys=[self._host_key],
                server_version="cockpit",
                login_timeout=self.bounds.login_seconds,
                keepalive_interval=KEEPALIVE_SECONDS,
                keepalive_count_max=KEEPALIVES,
                public_key_auth=True,
                password_auth=False,
                kbdint_auth=False,
                host_based_auth=False,
                gss_auth=False,
                gss_kex=False,
                x509_trusted_certs=None,
                agent_forwarding=False,
                x11_forwarding=False,
                allow_scp=False,
                sftp_factory=None,
                line_editor=False,
                compression_algs=None,
                encoding=None,
                window=WINDOW,
            )
        except OSError as error:
            raise CockpitError(
                f"The server cannot listen at {host}:{port}: {error.strerror}. Choose another: --listen HOST:PORT"
            ) from None
        return int(self._acceptor.get_port())

    def report(self, what: str) -> None:
        """Write a line of the server's log; control characters are escaped."""
        self._report(safe(what))

    def admits(self, address: str) -> bool:
        """Whether one more connection from the address is within the limits."""
        assert self._rate is not None
        waiting = sum(not each.is_logged_in for each in self.connections)
        return (
            self._rate.admits(address)
            and len(self.connections) < self.bounds.connections
            and waiting < self.bounds.waiting
        )

    async def drain(self) -> None:
        """Accept no more connections, and wait for sessions to end by themselves, up to the limit."""
        if self._acceptor is not None:
            self._acceptor.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.bounds.drain_seconds) as self._drain:
                await self.sessions.empty.wait()
        self._drain = None

    def end_sessions(self) -> None:
        """Ask all programs to end, and tell the clients why."""
        for connection in list(self.connections):
            connection.end("The server stops. Jobs continue.")

    async def close(self) -> None:
        """Close all connections, once the sessions have ended or the programs had their time."""
        await self._empty(GRACE_SECONDS + 1)
        for connection in list(self.connections):
            connection.abort()

    def hurry(self) -> None:
        """Let `drain` wait no longer."""
        if self._drain is not None:
            self._drain.reschedule(asyncio.get_running_loop().time())

    async def _empty(self, seconds: float) -> None:
        """Wait until no session is open, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.sessions.empty.wait()


class SshConnection(asyncssh.SSHServer):
    """One client."""

    def __init__(self, server: SshServer) -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection | None = None
        self._login = ""
        self._refusals = 0
        self._sessions: set[SshSession] = set()
        self._deadline: asyncio.TimerHandle | None = None
        self.is_logged_in = False

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        address = conn.get_extra_info("peername")
        source = str(address[0]) if address else ""
        if not self._server.admits(source):
            conn.abort()
            return
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
        # What a client can cause is no defect of the server.
        if exc is not None and not isinstance(exc, (asyncssh.Error, OSError)):
            report_defect("an SSH connection", exc)

    async def begin_auth(self, username: str) -> bool:
        self._login = username
        try:
            # In a thread: a home on a server that does not answer stops no other session.
            found = await asyncio.to_thread(self._server.keys.lines, username)
            lines = list(still_valid(found, self._server.now()))
        except (CockpitError, OSError) as error:
            self._server.report(f"{username} cannot log in: {error}")
            lines = []
        if lines:
            self._the_connection.set_authorized_keys(
                asyncssh.import_authorized_keys("\n".join(each.text for each in lines))
            )
        return True

    def public_key_auth_supported(self) -> bool:
        return True  # also for unknown users: a client cannot tell which there are

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        del username, key
        return self._count_refusal()

    def validate_ca_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        del username, key
        return self._count_refusal()

    def auth_completed(self) -> None:
        self.is_logged_in = True
        # A connection without a session would occupy its place for nothing.
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._server.bounds.login_seconds, self._close_if_unused)

    def session_requested(self) -> tuple[asyncssh.SSHServerChannel[bytes], SshSession] | bool:
        if len(self._sessions) >= SESSIONS_OF_CONNECTION:
            return False
        server = self._server
        visitor = Visitor(
            self._login,
            self._level(),
            server.sessions,
            server.bounds,
            start=server.start,
            terminal=self._may_have_terminal(),
            address=server.address,
        )
        session = SshSession(visitor, self._session_closed, server.report)
        self._sessions.add(session)
        channel = self._the_connection.create_server_channel(encoding=None, window=WINDOW)
        return channel, session

    def end(self, why: str) -> None:
        """End the sessions, and tell each why."""
        for session in list(self._sessions):
            session.end(why)

    def abort(self) -> None:
        """Close the connection without waiting for the client."""
        self._the_connection.abort()

    def _level(self) -> AccessLevel:
        given = self._the_connection.get_key_option("access")
        return AccessLevel(given[0]) if isinstance(given, list) and given else self._server.default

    def _may_have_terminal(self) -> bool:
        """Whether the key's `restrict` leaves terminals; asyncssh knows `no-pty` alone."""
        option = self._the_connection.get_key_option
        return bool(option("pty")) or not option("restrict")

    def _count_refusal(self) -> bool:
        """Count a key by which the client may not log in, and end the connection after too many of them."""
        self._refusals += 1
        if self._refusals > self._server.bounds.refusals:
            self._the_connection.disconnect(asyncssh.DISC_PROTOCOL_ERROR, "Too many keys")
        return False

    def _session_closed(self, session: SshSession) -> None:
        self._sessions.discard(session)
        if not self._sessions and self.is_logged_in:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self._server.bounds.login_seconds, self._close_if_unused)

    def _close_if_unused(self) -> None:
        if not self._sessions:
            self._the_connection.close()

    @property
    def _the_connection(self) -> asyncssh.SSHServerConnection:
        assert self._connection is not None
        return self._connection
