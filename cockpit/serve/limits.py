"""Limits on what clients may cost the server: how fast they connect, and how many of them there are."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

MOST_SOURCES: Final = 4096
"""Addresses that are remembered; those that have been quiet for longest are forgotten first."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a server. The settings `serve_*` change those that depend on the site."""

    sessions: int = 100
    sessions_per_user: int = 20
    idle_seconds: int = 3600
    """How long a terminal may be without a key; a session without a terminal has no such limit."""
    login_seconds: float = 30.0
    """Time from the connection to the login, and from the login to the first session."""
    connections: int = 200
    waiting: int = 30
    """Most connections that have not logged in yet, of all addresses."""
    burst: int = 60
    """Connections that one address may open at once, beyond `per_second`."""
    per_second: float = 5.0
    """Connections that one address may open in the long run."""
    refusals: int = 20
    """Keys that a connection may offer in vain."""
    drain_seconds: float = 0.0
    """How long a stop waits for sessions to end by themselves."""


class ConnectionRate:
    """Limits how often each address connects: a bucket of `burst` tokens that fills again by `per_second`."""

    def __init__(self, bounds: Bounds, now: Callable[[], float]) -> None:
        self._bounds, self._now = bounds, now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tokens that were left, and when, by address; the one that connected last is last."""

    def admits(self, address: str) -> bool:
        """Count a connection of the address, and return whether it is within the limit."""
        at = self._now()
        left, before = self._buckets.pop(address, (float(self._bounds.burst), at))
        left = min(self._bounds.burst, left + (at - before) * self._bounds.per_second)
        admitted = left >= 1
        self._buckets[address] = (left - 1 if admitted else left, at)
        if len(self._buckets) > MOST_SOURCES:
            self._buckets.popitem(last=False)
        return admitted


class Sessions:
    """Counts the open sessions of each user."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._of_user = Counter[str]()
        self.empty = asyncio.Event()
        """Set while no session is open."""
        self.empty.set()

    def open(self, user: str) -> str:
        """Count a new session; return why it may not open, as a sentence, or an empty text."""
        if self._of_user.total() >= self._bounds.sessions:
            return f"All {self._bounds.sessions} sessions of this server are in use. Try again later."
        if self._of_user[user] >= self._bounds.sessions_per_user:
            most = self._bounds.sessions_per_user
            return f"You have {most} open sessions here, the most that one user may have. Close one."
        self._of_user[user] += 1
        self.empty.clear()
        return ""

    def close(self, user: str) -> None:
        """Count a session that `open` counted as closed."""
        self._of_user[user] -= 1
        if not self._of_user[user]:
            del self._of_user[user]
        if not self._of_user:
            self.empty.set()

    def __len__(self) -> int:
        return self._of_user.total()
