"""A value with followers: each gets the current value and then each new one, but a slow follower skips some."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

T = TypeVar("T")


class Latest(Generic[T]):
    """One value, and the followers that wait for it to change."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._changed = asyncio.Event()

    @property
    def value(self) -> T:
        return self._value

    def put(self, value: T) -> None:
        """Set the value, and wake the followers if it differs from the one before."""
        if value != self._value:
            self._value = value
            # Wakes the followers of the old value; those of the new one wait for an event of its own.
            self._changed.set()
            self._changed = asyncio.Event()

    async def follow(self) -> AsyncIterator[T]:
        """Yield the current value, then each new one, without end."""
        while True:
            changed, value = self._changed, self._value
            yield value
            # Only if no other value came while the follower was busy with this one.
            if value is self._value:
                await changed.wait()
