"""The load of a cluster before the cockpit was opened, from the starts and ends of the jobs in its list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.view import Overview

TOLERANCE: Final = 0.05
"""How far the sums over the list may be from the cluster's own figures of now, as a part of all there is; a single
card, CPU or job never counts."""


class Load(NamedTuple):
    """What jobs occupied at a moment, and how many were queued."""

    card_milli: int
    cpus: int
    queued: int


class PastLoad:
    """Sums over a list of jobs for equally distant moments, of which the last is now."""

    def __init__(self, now: Millis, step_ms: int, steps: int) -> None:
        """`step_ms` is the time between two moments, and `steps` their number; all but now are multiples of it."""
        present = now // step_ms
        self._moments = [step * step_ms for step in range(present - steps + 2, present + 1)] + [now]
        self._step_ms = step_ms
        self._changes = [[0, 0, 0] for _ in range(len(self._moments) + 1)]
        """What a moment has more of card thousandths, CPUs and queued jobs than the one before it."""
        self._first_end: Millis | None = None

    def add(self, rows: Iterable[JobRow]) -> None:
        """Count these jobs. Of a job that was retried only the last attempt is known."""
        for row in rows:
            if row.ended_at is not None:
                if self._first_end is None or row.ended_at < self._first_end:
                    self._first_end = row.ended_at
                if row.ended_at < self._moments[0]:
                    continue
            if row.started_at is not None:
                self._occupied(row.started_at, row.ended_at, row.card_milli, row.cpus)
            until = row.started_at if row.started_at is not None else row.ended_at
            first, end = self._between(row.submitted_at, until)
            number = len(row.tasks) or 1
            self._changes[first][2] += number
            self._changes[end][2] -= number

    def figures(self, overview: Overview) -> list[tuple[Millis, Load]]:
        """Return the load at each moment since the first end that the list has, before now.

        It is empty where the list cannot tell: its sums differ from the cluster's own figures, as where other users'
        jobs are private, or nothing has ended, as where ended jobs leave the list at once.
        """
        loads = self._loads()
        if self._first_end is None or not _agree(loads[-1], overview):
            return []
        moments = zip(self._moments[:-1], loads[:-1], strict=True)
        return [(Millis(moment), load) for moment, load in moments if moment >= self._first_end]

    def _occupied(self, since: Millis, until: Millis | None, card_milli: int, cpus: int) -> None:
        first, end = self._between(since, until)
        for place, sign in ((first, 1), (end, -1)):
            self._changes[place][0] += sign * card_milli
            self._changes[place][1] += sign * cpus

    def _between(self, since: Millis, until: Millis | None) -> tuple[int, int]:
        """Return the place of the first moment in this time, and of the first after it."""
        return self._place(since), len(self._moments) if until is None else self._place(until)

    def _place(self, moment: Millis) -> int:
        """Return the place of the first moment that is not before this one; the number of moments if all are."""
        if moment > self._moments[-2]:
            return len(self._moments) - (moment <= self._moments[-1])
        return max(0, -((self._moments[0] - moment) // self._step_ms))

    def _loads(self) -> list[Load]:
        sums, loads = [0, 0, 0], []
        for changes in self._changes[:-1]:
            sums = [before + change for before, change in zip(sums, changes, strict=True)]
            loads.append(Load(*sums))
        return loads


def _agree(load: Load, overview: Overview) -> bool:
    if overview.card_milli:
        differ, most = abs(load.card_milli - overview.used_card_milli), max(TOLERANCE * overview.card_milli, 1000)
    else:
        differ, most = abs(load.cpus - overview.used_cpus), max(TOLERANCE * overview.cpus, 1)
    queued = overview.jobs_by_state.get(JobState.QUEUED, 0)
    return differ <= most and abs(load.queued - queued) <= max(TOLERANCE * queued, 1)
