"""Fetches the predicted starts that the list, the panel below it and a job's page show.

The starts of all visible queued jobs, and the outlook of the job under the cursor, are fetched one after the other and
shown together: fetched at different moments, the list and the panel showed different starts of one job.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from cockpit.backends.base import Backend
    from cockpit.model.forecast import Forecast, Outlook
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobrow import JobRow
    from cockpit.tui.app_state import PredictedStarts

FRESH_SECONDS, APART_SECONDS = 10.0, 2.0
"""Age in seconds at which starts are fetched again, by the screen's clock or the cluster's, which in a demo is faster;
and the least time between two fetches, when other jobs become visible or the cluster's time has passed."""


class Forecasts:
    """Fetches once at a time, so that slow answers arrive too; a new job under the cursor does not wait."""

    def __init__(
        self,
        starts: PredictedStarts,
        backend: Backend,
        now: Callable[[], Millis],
        *,
        wake: Callable[[], None],
        run: Callable[[Coroutine[Any, Any, None]], None],
        changed: Callable[[Iterable[JobId]], None],
    ) -> None:
        """Make the part that fills `starts`.

        `run` runs a fetch in the background and ends the one before it; `wake` has the poller call `update` again;
        `changed` is called after each answer with the jobs whose forecast differs from before.
        """
        self._starts = starts
        self._backend = backend
        self._now = now
        self._wake = wake
        self._run = run
        self._changed = changed
        self.seconds: Callable[[], float] = time.monotonic
        """The screen's clock. A script that plays keys sets its own: otherwise the figures in its pictures would depend
        on how fast the machine is."""
        self._cursor: tuple[JobId, int] | None = None
        """The job under the cursor when it was last asked, and its version."""
        self._visible: frozenset[JobId] = frozenset()
        self._asked_at: tuple[float, Millis] | None = None
        """The moment of the last fetch, by the screen's clock and by the cluster's."""
        self.is_asking = False
        """Whether an answer is still to come."""
        self._asking_about: JobId | None = None
        """The job whose outlook is being fetched; None: only the list's starts are."""
        self._listing = False
        """Whether the list's starts are being fetched. A cursor that keeps moving must not interrupt them for ever."""
        self._missed = False
        """Whether the cursor moved to another job meanwhile."""

    def update(self, visible: Sequence[JobId], row: JobRow | None) -> None:
        """Fetch if these visible queued jobs or the row under the cursor are new, or the known starts are old.

        1. Forget the outlook of a job that is no longer under the cursor, or no longer queued.
        2. Ask for the visible jobs and the one under the cursor, if that is due.
        3. Let a question under way finish if it answers this one, or if the list's starts are still to come: then
           `_missed` has the poller look again as soon as these are there.
        4. Else ask anew, which ends the question under way about another job's outlook.
        """
        queued = row if row is not None and row.queued else None
        cursor = (queued.id, queued.version) if queued is not None else None
        # Step 1
        if cursor is None:
            self._starts.outlook = self._cursor = None
        # Step 2. The job under the cursor may be out of visible; it is asked for once also where it is visible.
        jobs = [*dict.fromkeys((*visible, *([queued.id] if queued is not None else [])))]
        if not jobs or not self._is_due(jobs, cursor):
            return
        # Step 3
        about = queued.id if queued is not None else None
        if self.is_asking and (self._listing or about in (None, self._asking_about)):
            self._missed |= about not in (None, self._asking_about)
            return
        # Step 4
        self._cursor, self._visible = cursor, frozenset(jobs)
        self._asked_at = self.seconds(), self._now()
        self.is_asking, self._asking_about, self._listing, self._missed = True, about, True, False
        self._run(self._ask(jobs, about))

    def _is_due(self, jobs: Sequence[JobId], cursor: tuple[JobId, int] | None) -> bool:
        if self._asked_at is None or (cursor is not None and cursor != self._cursor):
            return True
        # `old` by the cluster's clock: in a fast demo the known starts may have passed after a second of the screen. To
        # compute them is the most expensive question, so that `APART_SECONDS` of real time always lie between two.
        age = self.seconds() - self._asked_at[0]
        old = self._now() - self._asked_at[1] >= 1000 * FRESH_SECONDS
        return age >= FRESH_SECONDS or (age >= APART_SECONDS and (old or not self._visible.issuperset(jobs)))

    async def _ask(self, jobs: Sequence[JobId], about: JobId | None) -> None:
        """Fetch the starts of these jobs, then the outlook of the one under the cursor, and show both together."""
        try:
            starts = await self._backend.starts(jobs)
            forecasts = {each.job: each.forecast for each in starts if each.at is not None}
            self._listing = False
            # Show the list at once, with the outlook that the panel has, and ask about the new job under the cursor.
            if self._missed:
                self._show(forecasts, self._starts.outlook)
                self._wake()
            outlook = await self._outlook(about)
        except CockpitError:  # the cluster is away: what was known stands until it is back
            return
        finally:
            if self._asking_about == about:  # a question that was cancelled must not end its successor's
                self.is_asking = self._listing = False
        # Both were asked for at nearly one moment, and the second answer is the newer. Where another scheduler names
        # the start, its word stands in the list, and so in the panel.
        if outlook is not None and not (outlook.scheduler and outlook.job in forecasts):
            forecasts.pop(outlook.job, None)
            if outlook.forecast.likely_at is not None:
                forecasts[outlook.job] = outlook.forecast
        self._show(forecasts, outlook)

    def _show(self, forecasts: Mapping[JobId, Forecast], outlook: Outlook | None) -> None:
        before, self._starts.known, self._starts.outlook = self._starts.known, forecasts, outlook
        self._changed([job for job in before.keys() | forecasts.keys() if before.get(job) != forecasts.get(job)])

    async def _outlook(self, job: JobId | None) -> Outlook | None:
        if job is None:
            return None
        try:
            return await self._backend.explain(job)
        except CockpitError:  # it has just started, or the cluster is away: the panel says so anyhow
            return None
