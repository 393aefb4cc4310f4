"""Predicts how long a job will run: at most its time limit, likely the part of it that the user's similar jobs have
used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.spec import NodeSpec
from cockpit.sched.faults import Faults
from cockpit.sched.forecast.history import History, Run

ALIKE = 2
"""The number of similar jobs from which on only these count, not the user's other jobs."""
COUNTED = 5
"""The number of latest runs of which the mean is taken."""
REMEMBERED, FEW = 20, 3
"""The number of latest runs from which a careful bound is taken; with fewer runs than the second, the time limit is
used."""
LEAST_MS = 1000
RunKey = tuple[str, int, int, tuple[NodeSpec, ...]]
"""User, time limit, nodes and node specs."""


class RuntimePredictor(Protocol):
    """Predicts the run time of a job."""

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        """Return the milliseconds from start to end of a job that has run for `elapsed_ms` (below 0: it has not
        started)."""
        ...


class TimeLimitPredictor:
    """Predicts that every job uses its whole time limit."""

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:  # noqa: ARG002 - the limit does not depend on it
        return 1000 * job.spec.time_limit_seconds


class ContainedPredictor:
    """A predictor whose defects cost one job its prediction: that job is assumed to use its whole time limit."""

    def __init__(self, predictor: RuntimePredictor, faults: Faults) -> None:
        self._predictor, self._faults = predictor, faults

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        """Return the milliseconds from start to end, as `RuntimePredictor.run_ms` does."""
        try:
            return self._predictor.run_ms(job, elapsed_ms)
        except Exception as error:  # noqa: BLE001 - one job's defect must not stop the simulation of all others
            self._faults.setdefault(job.id, error)
            return 1000 * job.spec.time_limit_seconds


class UsedShares:
    """The fractions of their time limits that a user's jobs have used: those of the same size and limit, else those of
    the same limit, else all.

    Fractions rather than times: on the logs that tests/bench measures, their mean does better than the mean of the last
    two run times that Tsafrir, Etsion and Feitelson take ("Backfilling Using System-Generated Predictions Rather than
    User Runtime Estimates", 2007).
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._shares: dict[RunKey, list[float]] = {}

    def shares(self, key: RunKey) -> Sequence[float]:
        """Return the fractions, from 0 to 1, the latest first."""
        shares = self._shares.get(key)
        if shares is None:
            shares = self._shares[key] = [_share(run) for run in self._alike(*key)]
        return shares

    def _alike(self, user: str, limit: int, nodes: int, specs: tuple[NodeSpec, ...]) -> list[Run]:
        # the latest first, since only the latest few are counted
        runs = [*reversed(self._history.runs_of(user))]
        same_limit = [run for run in runs if run.limit_seconds == limit]
        same_size = [run for run in same_limit if run.nodes == nodes and run.specs == specs]
        return next((each for each in (same_size, same_limit) if len(each) >= ALIKE), runs)


class MeanRuntimePredictor:
    """Predicts the likely run time: the mean of the last five similar runs; for a running job, of those that ran
    longer. Without any, the whole time limit."""

    def __init__(self, history: History) -> None:
        self._used_shares = UsedShares(history)
        self._full_runs: dict[RunKey, int] = {}
        """Predictions for jobs that have not started."""

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        spec = job.spec
        key = (job.submitter.name, spec.time_limit_seconds, spec.nodes, spec.specs)
        if elapsed_ms < 0 and key in self._full_runs:
            return self._full_runs[key]
        limit_ms = 1000 * spec.time_limit_seconds
        # a running job has outlived the shorter runs, so these say nothing about its end
        longer = [share for share in self._used_shares.shares(key) if share * limit_ms > elapsed_ms][:COUNTED]
        run_ms = _within(limit_ms, sum(longer) / len(longer) if longer else 1.0)
        if elapsed_ms < 0:
            self._full_runs[key] = run_ms
        return run_ms


class P90RuntimePredictor:
    """Predicts a careful run time: at most a tenth of the user's last twenty jobs used a larger part of their limits.
    The whole time limit where little is known of the user, or the job has already run longer."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._shares: dict[str, float] = {}

    def run_ms(self, job: Job, elapsed_ms: int = -1) -> int:
        limit_ms = 1000 * job.spec.time_limit_seconds
        run_ms = _within(limit_ms, self._share(job.submitter.name))
        return run_ms if run_ms > elapsed_ms else limit_ms

    def _share(self, user: str) -> float:
        if user not in self._shares:
            shares = sorted(map(_share, self._history.runs_of(user)[-REMEMBERED:]))
            # the 90th percentile without interpolation
            self._shares[user] = shares[len(shares[:-1]) * 9 // 10] if len(shares) >= FEW else 1.0
        return self._shares[user]


def ends_at(job: Job, predictor: RuntimePredictor, now: Millis) -> Millis:
    """Return when a running job ends by the predictor; this may be before now."""
    attempt = job.attempt
    assert attempt is not None
    # as if the job had started later by the time that it was suspended
    since = attempt.placed_at + attempt.suspended_ms
    return Millis(since + predictor.run_ms(job, now - since))


def _within(limit_ms: int, share: float) -> int:
    return min(limit_ms, max(LEAST_MS, int(limit_ms * share)))


def _share(run: Run) -> float:
    return min(1.0, run.ran_ms / (1000 * run.limit_seconds)) if run.limit_seconds else 1.0
