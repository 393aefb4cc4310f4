"""Watches all clusters of the user beside the open one, from the first time that the view of clusters is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.model.ids import Millis

if TYPE_CHECKING:
    from cockpit.backends.base import Backend
    from cockpit.model.view import ClusterRow


class Watching:
    """The clusters for the view of clusters; none is opened before the view is first shown."""

    is_complete = False

    def __init__(self, make: Callable[[], Backend], ahead: Callable[[], int] = lambda: 0) -> None:
        """`ahead`: milliseconds by which the open cluster's clock is ahead of the others', as a demo's may be."""
        self._make, self._ahead = make, ahead
        self._fleet: Backend | None = None

    async def clusters(self) -> list[ClusterRow]:
        """Return the present state of all clusters, without waiting for any of them."""
        if self._fleet is None:
            self._fleet = self._make()
            self._fleet.begin()
        rows, ahead = await self._fleet.clusters(), self._ahead()
        return [replace(row, heard_at=_later(row.heard_at, ahead)) for row in rows] if ahead else rows

    async def close(self) -> None:
        if self._fleet is not None:
            await self._fleet.close()


def _later(moment: Millis | None, milliseconds: int) -> Millis | None:
    return None if moment is None else Millis(moment + milliseconds)
