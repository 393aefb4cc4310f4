"""A value that others follow: they get it as it is, then as it becomes; what they were too slow for is skipped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

T = TypeVar("T")


class Latest(Generic[T]):
    """Holds one value."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._moved = asyncio.Event()

    @property
    def value(self) -> T:
        return self._value

    def put(self, value: T) -> None:
        """Followers hear of it unless it equals the one before."""
        if value != self._value:
            self._value = value
            self._moved.set()
            self._moved = asyncio.Event()

    async def follow(self) -> AsyncIterator[T]:
        """Never ends."""
        while True:
            moved, value = self._moved, self._value
            yield value
            if value is self._value:
                await moved.wait()
