"""Accept connections on the engine's socket, and limit how many each user has.

A malformed, huge or slow request affects only the client that sent it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING

from cockpit.errors import RuntimeMissing
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.protocol.frames import Answer, frame
from cockpit.runtime.connection import Bounds, Connection
from cockpit.runtime.peers import peer_actor
from cockpit.runtime.socket_folder import trusted_socket_folder

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.engine.access import Actor
    from cockpit.runtime.engine import Engine


class Server:
    """Listens on the socket and serves each connection in a task of its own."""

    def __init__(self, engine: Engine, bounds: Bounds | None = None) -> None:
        self._engine = engine
        self._bounds = bounds or Bounds()
        self._users: dict[int, _User] = {}
        """The users that have connections, by uid."""
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Accept connections on a socket that is bound and listening."""
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, backlog=BACKLOG)

    async def stop(self) -> None:
        """Accept no more connections; open ones end with the process."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        actor = peer_actor(writer.get_extra_info("socket"), self._engine.site)
        refused = self._refuse_connection(actor)
        # A connection that has never sent a request gives way to a new one.
        if actor is not None and refused is not None and self._make_room(actor):
            refused = None
        if actor is None or refused is not None:
            writer.write(frame(Answer(0, no=refused)))
            writer.close()
            return
        user = self._users.setdefault(actor.who.uid, _User())
        connection = Connection(self._engine, actor, (reader, writer), user.large, self._bounds)
        user.connections[connection] = None
        try:
            await connection.run()
        finally:
            user.connections.pop(connection, None)  # unless it has given its place to another one
            # Another connection of the user may have made a new entry meanwhile.
            if not user.connections and self._users.get(actor.who.uid) is user:
                del self._users[actor.who.uid]
            connection.drop()

    def _refuse_connection(self, actor: Actor | None) -> Refusal | None:
        if actor is None:
            return Refusal(
                RefusalKind.DENIED,
                f"This engine serves user {os.geteuid()} only; run `cockpit` as yourself to use your own.",
            )
        user = self._users.get(actor.who.uid)
        own, total = len(user.connections) if user else 0, sum(len(each.connections) for each in self._users.values())
        full = total >= self._bounds.connections and not actor.admin
        if own >= self._bounds.connections_per_user or full:
            return Refusal(RefusalKind.UNAVAILABLE, "The engine has too many open connections; close some cockpits.")
        return None

    def _make_room(self, actor: Actor) -> bool:
        """Close a connection in favour of a new one of this user; return whether there is one that gives way.

        1. A user who has too many gives one of their own that has not sent a request for a while.
        2. If all users together have too many, it is one of the user who has the most.
        3. That user gives any connection to one who has fewer: first those without a request, then the latest, so that
           a flood of connections ends before a cockpit that has been open for long.
        """
        user = self._users.get(actor.who.uid)
        own = len(user.connections) if user is not None else 0
        if user is None or own < self._bounds.connections_per_user:  # 2
            user = max(self._users.values(), key=lambda each: len(each.connections))
        leaving = next((each for each in user.connections if each.may_be_replaced), None)  # 1
        # A difference of one would let two users take the same place from each other in turn.
        if leaving is None and len(user.connections) > own + 1:  # 3
            latest = list(reversed(user.connections))
            leaving = next((each for each in latest if not each.has_asked), latest[0])
        if leaving is None:
            return False
        del user.connections[leaving]
        leaving.drop()
        return True


class _User:
    """The open connections of one user."""

    def __init__(self) -> None:
        self.connections: dict[Connection, None] = {}
        """In the order in which they were opened."""
        self.large = asyncio.Semaphore(1)
        """Held while a large request of the user is in memory."""


BACKLOG = 128
"""Connections that may wait to be accepted."""
LOOK_SECONDS = 1.0
"""Time limit of the test whether an engine listens."""


def listen(path: Path, *, system: bool) -> socket.socket:
    """Return a listening socket: for this user only (mode 0600), or for all users of a machine-wide engine.

    The caller holds the state folder's lock, so a socket file that is there already belongs to no living engine of this
    state folder. Raises `RuntimeMissing` when it cannot.
    """
    trusted_socket_folder(path, os.geteuid(), create=True, shared=system)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Renamed when it is complete: a client that sees the path can connect, and only those who may.
    temporary = path.with_name(f".{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        listener.bind(str(temporary))
        temporary.chmod(0o666 if system else 0o600)
        listener.listen(BACKLOG)
        temporary.rename(path)
    except OSError as error:
        listener.close()
        message = f"The engine cannot listen on {path}: {error.strerror}. Set XDG_RUNTIME_DIR to a folder of yours."
        raise RuntimeMissing(message) from error
    listener.setblocking(False)
    return listener


def is_listened_on(address: str) -> bool:
    """Return whether an engine accepts connections on this socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(LOOK_SECONDS)
        try:
            caller.connect(address)
        except OSError:
            return False
        return True
