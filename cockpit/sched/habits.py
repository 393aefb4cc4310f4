"""How long a job will run: at most its time limit, likely as much of it as its user's jobs like it have used."""

from __future__ import annotations

from typing import Protocol

from cockpit.model.job import Job
from cockpit.model.spec import NodeSpec
from cockpit.sched.history import History, Run

ALIKE = 2
"""So many jobs alike tell more than all the others."""
COUNTED = 5
"""The latest of them."""
LEAST_MS = 1000
REMEMBERED, MARGIN, FEW = 20, 1.2, 3
"""For bounds: so many of the user's last runs, so much more than the longest of them; fewer runs tell nothing."""


class Lengths(Protocol):
    """Tells the length of a run."""

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        """From start to end, of a job that has run for so long already (below 0: it has not started)."""
        ...


class Limits:
    """Every job uses its whole limit."""

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:  # noqa: ARG002 - whatever it is
        return 1000 * job.spec.time_limit_seconds


class Margins:
    """What a careful person counts with: a fifth more of the limit than any of the user's last twenty jobs used, all of
    it for one who is new, or for a job that runs longer than that."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._most: dict[str, float] = {}

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        limit_ms = 1000 * job.spec.time_limit_seconds
        found = int(limit_ms * self._share(job.submitter.name))
        return limit_ms if found <= elapsed_ms else min(limit_ms, max(LEAST_MS, found))

    def _share(self, user: str) -> float:
        if user not in self._most:
            runs = self._history.runs_of(user)[-REMEMBERED:]
            self._most[user] = MARGIN * max(map(_share, runs)) if len(runs) >= FEW else 1.0
        return self._most[user]


class Habits:
    """The mean share of the limit that the user's last jobs used: of those of the same size and limit, else of the same
    limit, else of all; of a running job without those that were over by now. The limit where nobody knows.

    Shares rather than times, after Tsafrir, Etsion and Feitelson, "Backfilling Using System-Generated Predictions
    Rather than User Runtime Estimates", 2007, whose mean of the last two run times this does better than on the logs
    that tests/bench measures.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._shares: dict[tuple[str, int, int, tuple[NodeSpec, ...]], list[float]] = {}

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        limit_ms = 1000 * job.spec.time_limit_seconds
        longer = [share for share in self._shares_of(job) if share * limit_ms > elapsed_ms][:COUNTED]
        if not longer:
            return limit_ms
        return min(limit_ms, max(LEAST_MS, int(limit_ms * sum(longer) / len(longer))))

    def _shares_of(self, job: Job) -> list[float]:
        """The latest first."""
        spec = job.spec
        asked = (job.submitter.name, spec.time_limit_seconds, spec.nodes, spec.specs)
        found = self._shares.get(asked)
        if found is None:
            found = self._shares[asked] = [_share(run) for run in self._alike(*asked)]
        return found

    def _alike(self, user: str, limit: int, nodes: int, specs: tuple[NodeSpec, ...]) -> list[Run]:
        runs = [*reversed(self._history.runs_of(user))]
        same_limit = [run for run in runs if run.limit_seconds == limit]
        same_size = [run for run in same_limit if run.nodes == nodes and run.specs == specs]
        return next((each for each in (same_size, same_limit) if len(each) >= ALIKE), runs)


def _share(run: Run) -> float:
    return min(1.0, run.ran_ms / (1000 * run.limit_seconds)) if run.limit_seconds else 1.0
