"""Rows that pour in while a list is loaded: shown some times a second instead of page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.present.job.list import Changes

if TYPE_CHECKING:
    from cockpit.model.ids import JobId

SECONDS_BETWEEN: Final = 0.05
"""Drawing each page of a hundred takes longer than reading them."""


class Arrivals:
    """Collects what pages have changed until it is worth a look."""

    def __init__(self) -> None:
        self._changed: list[JobId] = []
        self._order_changed = False
        self._next = 0.0

    def worth_showing(self, changes: Changes, now: float, *, loaded: bool) -> Changes | None:
        """All that has changed since something was shown; None: more comes soon. `now` in seconds of any clock that
        only goes on; once all is loaded nothing waits.
        """
        self._changed += changes.changed
        self._order_changed |= changes.order_changed
        if not loaded and now < self._next:
            return None
        self._next = now + SECONDS_BETWEEN
        return self.rest()

    def rest(self) -> Changes:
        """What waits to be shown, where nothing more comes."""
        rest = Changes(self._changed, self._order_changed)
        self._changed, self._order_changed = [], False
        return rest
