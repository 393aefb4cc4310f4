"""Notes how the likely starts that users were shown have moved, for jobs without a promised latest start."""

from __future__ import annotations

from typing import Final

from cockpit.model.forecast import Forecast, StartMove
from cockpit.model.ids import JobId, Millis
from cockpit.sched.forecast.moves import MOST_MOVES, Basis, PlanDifference

LEAST_MOVE_MS: Final = 300_000
"""A likely start has moved where it has left the range that the user was shown, and by at least five minutes. An
estimate changes a little with each job that ends; a mark for each change would be on nearly every row."""


class LikelyHistory:
    """The likely starts that users were shown, and how they have moved; it begins anew with the engine."""

    def __init__(self) -> None:
        self._basis: Basis | None = None
        self._difference: PlanDifference | None = None
        self._shown: dict[JobId, Forecast] = {}
        self._moves: dict[JobId, tuple[StartMove, ...]] = {}

    def show(self, job: JobId, forecast: Forecast, basis: Basis) -> tuple[StartMove, ...]:
        """Note the forecast that a user is about to be shown, and return the last moves of its likely start.

        `basis`: the state and plan that the forecast follows from.
        """
        if self._basis is None or basis.snapshot is not self._basis.snapshot:
            self._begin(basis)
        if forecast.likely_at is None or forecast.now or forecast.latest_at is not None:
            # A promised start is followed by `BoundHistory`; a start that is not known moves nowhere.
            self._forget(job)
            return ()
        shown = self._shown.setdefault(job, forecast)
        before = shown.likely_at
        if before is None or not _has_left_range(shown, before, forecast.likely_at):
            return self._moves.get(job, ())
        self._shown[job] = forecast
        if self._difference is not None and self._difference.knows(job):
            causes = self._difference.causes(job, later=forecast.likely_at > before)
            move = StartMove(basis.snapshot.now, before, forecast.likely_at, causes)
            self._moves[job] = (*self._moves.get(job, ()), move)[-MOST_MOVES:]
        return self._moves.get(job, ())

    def _begin(self, basis: Basis) -> None:
        """Compare with the last plan that users were shown starts of, and forget the jobs that left the queue."""
        self._difference = PlanDifference(self._basis, basis) if self._basis is not None else None
        self._basis = basis
        queued = {job.id for job in basis.snapshot.queue}
        self._shown = {job: shown for job, shown in self._shown.items() if job in queued}
        self._moves = {job: moves for job, moves in self._moves.items() if job in queued}

    def _forget(self, job: JobId) -> None:
        self._shown.pop(job, None)
        self._moves.pop(job, None)


def _has_left_range(shown: Forecast, before: Millis, after: Millis) -> bool:
    first = shown.likely_from if shown.likely_from is not None else before
    last = shown.likely_to if shown.likely_to is not None else before
    return not first <= after <= last and abs(after - before) >= LEAST_MOVE_MS
