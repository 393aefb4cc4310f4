"""The session with one API server: it begins with the first operation, and knows whether the server still answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from cockpit.backends.base import Connection, Phase
from cockpit.backends.kubernetes.wire.access import user_name
from cockpit.errors import CockpitError, Unreachable
from cockpit.runtime.latest import Latest
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.ids import Millis
    from cockpit.runtime.clock import Timekeeper

COALESCE_SECONDS = 0.15
"""How long changes are collected before they are shown: some six times a second, however many there are."""
CHECK_SECONDS = 10.0
"""How often a server is asked for a sign of life, and for the kinds of objects that it serves."""
RECHECK_SECONDS = 2.0
"""How often a server is asked that did not answer."""
FIRST_LIST_SECONDS = 60.0
"""Longest time that the first complete list may take."""


class Changes:
    """Wakes those who wait for a change of anything that is shown."""

    def __init__(self) -> None:
        self.count = 0
        """How many changes there have been."""
        self._next = asyncio.Event()

    def notify(self) -> None:
        self.count += 1
        # Wakes those who wait now; the next ones wait for an event of their own.
        self._next.set()
        self._next = asyncio.Event()

    async def after(self, seen: int) -> None:
        """Wait until there have been more changes than `seen`, and for those that follow within `COALESCE_SECONDS`.

        `seen`: the `count` before the caller looked at what may change, so that it misses nothing while it is busy.
        """
        while self.count == seen:
            await self._next.wait()
        await asyncio.sleep(COALESCE_SECONDS)


class Session:
    """Sends no request before `ready`."""

    def __init__(self, api: Api, inventory: Inventory, changes: Changes, clock: Timekeeper, user: str) -> None:
        """`user`: the name in the kubeconfig, which counts where the server does not tell the user's name."""
        self._api, self._inventory, self._changes, self._clock = api, inventory, changes, clock
        self.user = user
        """The user's name on the cluster."""
        self.server_version = ""
        """The server's version, such as `v1.36.3`."""
        self.good_at: Millis | None = None
        """When the server last answered while all watches were in order."""
        self._connection = Latest(Connection(Phase.CONNECTING))
        self._unanswered: CockpitError | None = None
        """Why the server gave the last check no answer; None: it did."""
        self._starting = asyncio.Lock()
        self.started = False
        """Whether what the cluster serves is known."""
        self._tasks = Tasks()
        self._lacks_kind = asyncio.Event()
        """Set when the server has said since the last check that it does not serve a kind which it did."""
        api.lacks_kind = self._note_lack
        inventory.moved = self._judge

    @property
    def connection(self) -> Connection:
        return self._connection.value

    def connections(self) -> AsyncIterator[Connection]:
        """Yield the present connection state, then each change of its phase or reason. Never ends."""
        return self._connection.follow()

    @property
    def silence(self) -> str:
        """Why the cluster does not answer at present; empty: it does."""
        return self.connection.reason if self.connection.phase is Phase.STALE else ""

    async def ready(self) -> None:
        """Begin to read the cluster, and wait until everything has been listed once.

        Raises `Unreachable` while the server has never answered.
        """
        async with self._starting:
            if not self.started:
                self.server_version = await _version(self._api)
                self.user = await user_name(self._api) or self.user
                await self._inventory.start()
                self.started = True
                self._tasks.start(self._check(), "the check of the API server")
        try:
            async with asyncio.timeout(FIRST_LIST_SECONDS):
                seen = self._changes.count
                while not self._inventory.synced:
                    if self._inventory.trouble is not None:
                        raise self._inventory.trouble
                    await self._changes.after(seen)
                    seen = self._changes.count
        except TimeoutError:
            raise Unreachable(
                f"The API server of the context {self._api.context!r} did not list its objects within "
                f"{FIRST_LIST_SECONDS:.0f} s."
            ) from None
        self._judge()

    async def close(self) -> None:
        await self._tasks.cancel_all()
        await self._inventory.stop()
        await self._api.close()

    async def _check(self) -> None:
        """Ask for a sign of life again and again: a server that has gone away ends no watch.

        Which kinds it serves is as cheap to ask as anything else. It is asked earlier when it has just said that it
        does not serve a kind, but however often it says so not more often than a server that did not answer.
        """
        while True:
            seconds = CHECK_SECONDS if self._unanswered is None else RECHECK_SECONDS
            shortest = min(seconds, RECHECK_SECONDS)
            await asyncio.sleep(shortest)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds - shortest):
                    await self._lacks_kind.wait()
            has_cause = self._lacks_kind.is_set()
            self._lacks_kind.clear()
            try:
                if self._unanswered is not None:
                    # What answers now may be a newer server.
                    self.server_version = await _version(self._api)
                await self._inventory.look_for_kinds(whole=has_cause)
            except CockpitError as error:
                self._unanswered = error
            else:
                self._unanswered = None
                if self._inventory.trouble is None:
                    self.good_at = self._clock.now()
            self._judge()

    def _note_lack(self, path: str) -> None:
        """Have the kinds looked at soon. What was never served, such as an extension that is asked in vain, says
        nothing new."""
        if self._inventory.claims_kind(path):
            self._lacks_kind.set()

    def _judge(self) -> None:
        """Update the connection state by what the watches and the last check met.

        What a caller of `ready` wants is no sign of life: while the server is silent it gets what is known.
        """
        if not self._inventory.synced:
            return
        error = self._inventory.trouble or self._unanswered
        phase, reason = (Phase.CONNECTED, "") if error is None else (Phase.STALE, str(error))
        if (phase, reason) != (self.connection.phase, self.connection.reason):
            if error is None or self.good_at is None:
                self.good_at = self._clock.now()
            self._connection.put(Connection(phase, reason, self.good_at))
            self._changes.notify()


class _ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


async def _version(api: Api) -> str:
    try:
        return msgspec.json.decode(await api.get("/version"), type=_ServerVersion).git_version
    except msgspec.DecodeError as error:
        raise Unreachable(f"What answers for the context {api.context!r} is no API server: {error}.") from error
