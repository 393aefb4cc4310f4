"""How long a job will run: at most its time limit, likely as much of it as its user's jobs like it have used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.spec import NodeSpec
from cockpit.sched.faults import Faults
from cockpit.sched.forecast.history import History, Run

ALIKE = 2
"""So many jobs alike tell more than all the others."""
COUNTED = 5
"""The latest of them, for what is likely."""
REMEMBERED, FEW = 20, 3
"""So many of the latest count for a bound; fewer tell nothing."""
LEAST_MS = 1000
Asked = tuple[str, int, int, tuple[NodeSpec, ...]]
"""User, time limit, nodes and node specs."""


class RuntimePredictor(Protocol):
    """Tells the length of a run."""

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        """From start to end, of a job that has run for so long already (below 0: it has not started)."""
        ...


class TimeLimitPredictor:
    """Every job uses its whole limit."""

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:  # noqa: ARG002 - whatever it is
        return 1000 * job.spec.time_limit_seconds


class ContainedPredictor:
    """Run times of which a defect costs one job its habits: that job is taken to use its whole time limit."""

    def __init__(self, predictor: RuntimePredictor, faults: Faults) -> None:
        self._predictor, self._faults = predictor, faults

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        """Return the milliseconds from start to end, as `RuntimePredictor.run_ms` does."""
        try:
            return self._predictor.run_ms(job, elapsed_ms)
        except Exception as error:  # noqa: BLE001 - the future of all other jobs depends on going on
            self._faults.setdefault(job.id, error)
            return 1000 * job.spec.time_limit_seconds


class Past:
    """What part of their limits a user's jobs have used: those of the same size and limit, else of the same limit,
    else all.

    Parts rather than times: on the logs that tests/bench measures their mean does better than the mean of the last two
    run times that Tsafrir, Etsion and Feitelson take ("Backfilling Using System-Generated Predictions Rather than User
    Runtime Estimates", 2007).
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._shares: dict[Asked, list[float]] = {}

    def shares(self, asked: Asked) -> Sequence[float]:
        """Of the time limit, from 0 to 1, the latest first."""
        found = self._shares.get(asked)
        if found is None:
            found = self._shares[asked] = [_share(run) for run in self._alike(*asked)]
        return found

    def _alike(self, user: str, limit: int, nodes: int, specs: tuple[NodeSpec, ...]) -> list[Run]:
        runs = [*reversed(self._history.runs_of(user))]
        same_limit = [run for run in runs if run.limit_seconds == limit]
        same_size = [run for run in same_limit if run.nodes == nodes and run.specs == specs]
        return next((each for each in (same_size, same_limit) if len(each) >= ALIKE), runs)


class MeanRuntimePredictor:
    """What is likely: the mean of the last five, of a running job of those that were longer. The whole limit of a job
    that nothing is known of."""

    def __init__(self, history: History) -> None:
        self._past = Past(history)
        self._whole: dict[Asked, int] = {}
        """Of jobs that have not started."""

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        spec = job.spec
        asked = (job.submitter.name, spec.time_limit_seconds, spec.nodes, spec.specs)
        if elapsed_ms < 0 and asked in self._whole:
            return self._whole[asked]
        limit_ms = 1000 * spec.time_limit_seconds
        longer = [share for share in self._past.shares(asked) if share * limit_ms > elapsed_ms][:COUNTED]
        found = _within(limit_ms, sum(longer) / len(longer) if longer else 1.0)
        if elapsed_ms < 0:
            self._whole[asked] = found
        return found


class P90RuntimePredictor:
    """What a careful person counts with: the longest of the user's last twenty jobs but for a tenth of them. The whole
    limit of a job of somebody little is known of, or that has run for longer."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._shares: dict[str, float] = {}

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        limit_ms = 1000 * job.spec.time_limit_seconds
        found = _within(limit_ms, self._share(job.submitter.name))
        return found if found > elapsed_ms else limit_ms

    def _share(self, user: str) -> float:
        if user not in self._shares:
            shares = sorted(map(_share, self._history.runs_of(user)[-REMEMBERED:]))
            self._shares[user] = shares[len(shares[:-1]) * 9 // 10] if len(shares) >= FEW else 1.0
        return self._shares[user]


def ends_at(job: Job, predictor: RuntimePredictor, now: Millis) -> Millis:
    """When a job that runs now ends, if it runs as long as that; before now where it should have ended."""
    attempt = job.attempt
    assert attempt is not None
    since = attempt.placed_at + attempt.suspended_ms
    return Millis(since + predictor.run_ms(job, now - since))


def _within(limit_ms: int, share: float) -> int:
    return min(limit_ms, max(LEAST_MS, int(limit_ms * share)))


def _share(run: Run) -> float:
    return min(1.0, run.ran_ms / (1000 * run.limit_seconds)) if run.limit_seconds else 1.0
