"""Learns from the list of jobs what the load was before the cockpit was opened."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from cockpit.present.load_history import PART_MS, PARTS
from cockpit.present.past_load import PastLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from cockpit.model.view import Overview
    from cockpit.tui.app_state import AppState

TRIES: Final = 3
"""The list and the figures of a busy cluster may be of different moments, and then disagree."""
ROWS_AT_ONCE: Final = 2000
"""Some three milliseconds' work: a key that is pressed meanwhile need not wait longer."""


class LookBack:
    """Looks once the whole list is there, and until it tells something."""

    def __init__(self, state: AppState, run: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        """`run` starts a task that ends with the application."""
        self._state = state
        self._run = run
        self._tries = TRIES

    def with_figures(self, overview: Overview) -> None:
        """Look if these are the first figures of the cluster since the whole list is there."""
        if self._state.all_came and self._tries:
            self._tries -= 1
            self._run(self._look(overview))

    async def _look(self, overview: Overview) -> None:
        past = PastLoad(self._state.now(), PART_MS, PARTS)
        rows = list(self._state.job_rows.list.rows())
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            past.add(rows[begin : begin + ROWS_AT_ONCE])
            await asyncio.sleep(0)
        if self._state.load.fill(past, overview):
            self._tries = 0
