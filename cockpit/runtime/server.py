"""The engine's socket: who may connect, and how many. A malformed, huge or slow client hurts itself alone."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.protocol.frames import Answer, frame
from cockpit.runtime.connection import Bounds, Connection
from cockpit.runtime.listening import BACKLOG
from cockpit.runtime.peers import peer_actor

if TYPE_CHECKING:
    import socket

    from cockpit.engine.access import Actor
    from cockpit.runtime.engine import Engine


class Server:
    """Listens, and answers each connection in a task of its own."""

    def __init__(self, engine: Engine, bounds: Bounds | None = None) -> None:
        self._engine = engine
        self._bounds = bounds or Bounds()
        self._guests: dict[int, _Guest] = {}
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Answer on a socket that is bound and listens."""
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, backlog=BACKLOG)

    async def stop(self) -> None:
        """Take no more connections; those that are open end with the process."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        actor = peer_actor(writer.get_extra_info("socket"), self._engine.site)
        refused = self._refuse_connection(actor)
        if actor is None or refused is not None:
            writer.write(frame(Answer(0, no=refused)))
            writer.close()
            return
        guest = self._guests.setdefault(actor.who.uid, _Guest())
        guest.connections += 1
        try:
            await Connection(self._engine, actor, (reader, writer), guest.large, self._bounds).run()
        finally:
            guest.connections -= 1
            if not guest.connections:
                del self._guests[actor.who.uid]
            writer.transport.abort()  # what is still to be sent, nobody takes

    def _refuse_connection(self, actor: Actor | None) -> Refusal | None:
        if actor is None:
            return Refusal(
                RefusalKind.DENIED,
                f"This engine serves user {os.geteuid()} only; run `cockpit` as yourself to use your own.",
            )
        guest = self._guests.get(actor.who.uid)
        mine, all_of_them = guest.connections if guest else 0, sum(each.connections for each in self._guests.values())
        crowded = all_of_them >= self._bounds.connections and not actor.admin
        if mine >= self._bounds.connections_per_user or crowded:
            return Refusal(RefusalKind.UNAVAILABLE, "The engine has too many open connections; close some cockpits.")
        return None


class _Guest:
    """What one user has open."""

    def __init__(self) -> None:
        self.connections = 0
        self.large = asyncio.Semaphore(1)
