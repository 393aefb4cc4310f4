"""The load of the last hours, as seen by this cockpit and as told by the jobs: what is in use, and the queue."""

from __future__ import annotations

from typing import Final, NamedTuple

from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.view import Overview
from cockpit.present.bars import sparkline
from cockpit.present.past_load import Load, PastLoad

PART_MS: Final = 10 * 60_000
PARTS: Final = 24
"""Four hours in parts of ten minutes, a column each."""


class LoadCharts(NamedTuple):
    """Two charts, the oldest part first; parts before the first that is known are left out."""

    used: str
    """Cards in use, of all cards; CPUs on a cluster without cards."""
    queued: str
    """Queued jobs, of the most that were queued at a time."""


class LoadHistory:
    """The last figures of each part of the last hours."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[float, int]] = {}
        """What is used of 1, and the number of queued jobs, by the number of the part since the epoch."""

    def note(self, overview: Overview, now: Millis) -> None:
        """Take over the figures of this moment."""
        queued = overview.jobs_by_state.get(JobState.QUEUED, 0)
        present = now // PART_MS
        self._parts[present] = _used(Load(overview.used_card_milli, overview.used_cpus, queued), overview), queued
        self._parts = {part: figures for part, figures in self._parts.items() if part > present - PARTS}

    def fill(self, past: PastLoad, overview: Overview) -> bool:
        """Take over what the list of jobs tells about the parts for which no figures came; return whether it does."""
        figures = past.figures(overview)
        for moment, load in figures:
            # The figures of a part are the last in it.
            self._parts.setdefault(moment // PART_MS - 1, (_used(load, overview), load.queued))
        return bool(figures)

    def charts(self, now: Millis) -> LoadCharts | None:
        """Return the charts up to now; None: figures of one moment are no history."""
        present = now // PART_MS
        known = [part for part in self._parts if present - PARTS < part <= present]
        if len(known) < 2:
            return None
        # No answer came in some parts: these are gaps.
        figures = [self._parts.get(part) for part in range(min(known), present + 1)]
        most = max(queued for _, queued in self._parts.values())
        return LoadCharts(
            sparkline([(1, each and each[0]) for each in figures], len(figures), 1.0),
            sparkline([(1, each and each[1]) for each in figures], len(figures), float(most)),
        )


def _used(load: Load, overview: Overview) -> float:
    """Return what is in use, of 1: of the cards that there are now, or of the CPUs where there are none."""
    used, total = (load.card_milli, overview.card_milli) if overview.card_milli else (load.cpus, overview.cpus)
    return min(1.0, used / max(total, 1))
