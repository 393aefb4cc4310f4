"""Measures how accurate predicted starts are: a history is replayed, and predictions for some of its jobs are compared
with what happened.

A prediction uses only what was known at that moment: the queue, the running jobs with their starts, and the run times
of the users' jobs that had ended by then.
"""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.prediction import remember
from cockpit.engine.replay.jobs import Arrival, Replay
from cockpit.model.events import JobSubmitted
from cockpit.sched.forecast.future import ClusterSimulation, simulation_index
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.forecast.runtime_predictors import TimeLimitPredictor
from cockpit.sched.index import refresh_index
from cockpit.sched.priority.priorities import prioritised

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cockpit.model.events import EventBody
    from cockpit.model.forecast import Forecast
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.node import Node
    from cockpit.sched.policy import Policy
    from cockpit.sched.snapshot import Snapshot

MINUTE, TEN_MINUTES = 60, 600


class ArrivalPrediction(msgspec.Struct, frozen=True):
    """The prediction for one job at its arrival; waiting times in seconds."""

    job: JobId
    waited: float
    """The time that the job really waited."""
    likely: float
    range: tuple[float, float]
    """The range from the earliest to the latest likely start."""
    bound: float | None
    """The latest start that the policy promised; None: it promised none."""
    by_limits: float
    """The wait by the scheduler's plan alone, in which every job uses its whole limit and no other job arrives."""


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy of many predictions; errors in seconds, shares from 0 to 1."""

    jobs: int
    median_error: float
    mean_error: float
    within_a_minute: float
    within_ten_minutes: float
    coverage: float
    """The share of jobs that started no later than the end of the range of likely starts."""
    tightness: float
    """The median of the end of the range ÷ wait."""
    coverage_by_limits: float
    tightness_by_limits: float
    range_coverage: float
    """The share of jobs that started within the range."""
    range_width: float
    """The median of the width of the range ÷ wait."""
    bounds: int
    """The number of jobs with a promised latest start."""
    bound_coverage: float | None
    """The share of these that started no later; None: there were none."""


def predict_arrivals(
    nodes: Sequence[Node],
    arrivals: Sequence[Arrival],
    policy: Policy,
    chosen: Collection[JobId],
    rules: Sequence[EventBody] = (),
    watch: Callable[[int], None] = lambda _: None,
) -> list[ArrivalPrediction]:
    """Replay the arrivals and predict the start of each chosen job when it arrives, in this order. `watch` is called
    now and then with the number of ended jobs."""
    replay = Replay(nodes, arrivals, policy, rules)
    predictor = _ArrivalPredictor(replay, policy, frozenset(chosen))
    replay.on_event = predictor.follow
    for ended in replay.moments():
        watch(ended)
    return predictor.predictions()


def accuracy(predictions: Sequence[ArrivalPrediction]) -> Accuracy:
    """Return the accuracy over the jobs that waited. Raises `ValueError` if there are none."""
    if not predictions:
        raise ValueError("no job waited: there is nothing to be right or wrong about")
    kept = [each.waited <= each.bound for each in predictions if each.bound is not None]
    errors = [abs(each.likely - each.waited) for each in predictions]
    return Accuracy(
        jobs=len(predictions),
        median_error=median(errors),
        mean_error=fmean(errors),
        within_a_minute=fmean(error <= MINUTE for error in errors),
        within_ten_minutes=fmean(error <= TEN_MINUTES for error in errors),
        coverage=fmean(each.waited <= each.range[1] for each in predictions),
        tightness=median(each.range[1] / each.waited for each in predictions),
        coverage_by_limits=fmean(each.waited <= each.by_limits for each in predictions),
        tightness_by_limits=median(each.by_limits / each.waited for each in predictions),
        range_coverage=fmean(each.range[0] <= each.waited <= each.range[1] for each in predictions),
        range_width=median((each.range[1] - each.range[0]) / each.waited for each in predictions),
        bounds=len(kept),
        bound_coverage=fmean(kept) if kept else None,
    )


class _ArrivalPredictor:
    """Follows a replay, and predicts the start of each chosen job when it arrives."""

    def __init__(self, replay: Replay, policy: Policy, chosen: frozenset[JobId]) -> None:
        self._replay, self._policy, self._chosen = replay, policy, chosen
        self._history = History()
        self._predictions: dict[JobId, tuple[Millis, Forecast, Millis]] = {}
        """By job: the moment of its arrival, its forecast, and its start if every job used its whole limit."""

    def follow(self, body: EventBody, now: Millis) -> None:
        machine = self._replay.machine
        remember(self._history, body, machine.state.jobs)
        # Right after the submission and before the pass that follows it, so that the prediction knows no later event.
        if isinstance(body, JobSubmitted) and body.job in self._chosen:
            snapshot = machine.peek(now)
            forecast = StartPredictor(snapshot, None, self._policy, self._history).forecast(body.job)
            self._predictions[body.job] = (now, forecast, self._by_limits(snapshot, body.job))

    def predictions(self) -> list[ArrivalPrediction]:
        """Return the predictions with what happened, in order of arrival, for the jobs that waited."""
        started = self._replay.started_at
        return [
            ArrivalPrediction(
                job,
                (started[job] - at) / 1000,
                ((forecast.likely_at or at) - at) / 1000,
                (((forecast.likely_from or at) - at) / 1000, ((forecast.likely_to or at) - at) / 1000),
                (forecast.latest_at - at) / 1000 if forecast.latest_at is not None else None,
                (by_limits - at) / 1000,
            )
            for job, (at, forecast, by_limits) in self._predictions.items()
            # The accuracy has ratios to the wait, so that jobs which started at once are left out.
            if started[job] > at
        ]

    def _by_limits(self, snapshot: Snapshot, job: JobId) -> Millis:
        index, order = simulation_index(refresh_index(None, snapshot)), prioritised(snapshot).order
        begun = ClusterSimulation(snapshot, index, self._policy, order, TimeLimitPredictor()).start_of(job)
        return begun.at if begun is not None else snapshot.now
