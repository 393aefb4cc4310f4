"""All clusters beside the one that is open: watched from the first look at them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.backends.fleet.backend import FleetBackend
    from cockpit.model.view import ClusterRow


class Watching:
    """Nothing is opened before somebody looks."""

    def __init__(self, make: Callable[[], FleetBackend]) -> None:
        self._make = make
        self._fleet: FleetBackend | None = None

    async def clusters(self) -> list[ClusterRow]:
        """As they stand: none of them is waited for."""
        if self._fleet is None:
            self._fleet = self._make()
            self._fleet.begin()
        return await self._fleet.clusters()

    async def close(self) -> None:
        if self._fleet is not None:
            await self._fleet.close()
