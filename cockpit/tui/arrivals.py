"""Throttling of redraws while a long job list arrives page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.present.job.list import Changes

if TYPE_CHECKING:
    from cockpit.model.ids import JobId

SECONDS_BETWEEN: Final = 0.05
"""Least time between two redraws: drawing after each page of 100 rows would take longer than reading the pages."""


class Arrivals:
    """The changes of several pages, collected until they are drawn together."""

    def __init__(self) -> None:
        self._changed: list[JobId] = []
        self._order_changed = False
        self._next = 0.0

    def worth_showing(self, changes: Changes, now: float, *, loaded: bool) -> Changes | None:
        """Add changes; return all that are to be drawn now, or None to wait for more.

        `now` is in seconds of any monotonic clock. Once the whole list is loaded every change is drawn at once.
        """
        self._changed += changes.changed
        self._order_changed |= changes.order_changed
        if not loaded and now < self._next:
            return None
        self._next = now + SECONDS_BETWEEN
        return self.rest()

    def rest(self) -> Changes:
        """Return the collected changes and forget them."""
        rest = Changes(self._changed, self._order_changed)
        self._changed, self._order_changed = [], False
        return rest
