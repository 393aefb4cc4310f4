from __future__ import annotations

import pytest

from cockpit.engine.replay.arrival_predictions import ArrivalPrediction, accuracy
from cockpit.engine.replay.jobs import Figures, Run, figures
from cockpit.model.ids import JobId


def test_a_short_job_counts_as_ten_seconds_long() -> None:
    assert Run(submitted=0, waited=90, ran=1, processors=1).bounded_slowdown == 9.1
    assert Run(submitted=0, waited=90, ran=100, processors=1).bounded_slowdown == 1.9
    assert Run(submitted=0, waited=0, ran=1, processors=1).bounded_slowdown == 1.0


def test_utilisation_is_of_the_time_from_the_first_submission_to_the_last_end() -> None:
    runs = [Run(100, 0, 10, 2), Run(105, 5, 10, 4)]
    assert figures(runs, 4) == Figures(mean_bounded_slowdown=1.25, mean_wait=2.5, utilisation=60 / 80)


def test_a_replay_without_jobs_or_time_has_no_figures() -> None:
    assert figures([], 4) == Figures(0.0, 0.0, 0.0)
    assert figures([Run(5, 0, 0, 1)], 4).utilisation == 0.0


@pytest.mark.req("SC-12")
def test_a_promised_bound_is_kept_by_the_jobs_that_waited_no_longer() -> None:
    said = [
        ArrivalPrediction(job=JobId(number), waited=waited, likely=90, range=(50, 100), bound=bound, by_limits=200)
        for number, (waited, bound) in enumerate([(80, 100), (100, 100), (101, 100), (300, None)])
    ]
    found = accuracy(said)
    assert (found.jobs, found.bounds, found.bound_coverage) == (4, 3, 2 / 3)
    assert (found.coverage, found.coverage_by_limits, found.range_coverage) == (0.5, 0.75, 0.5)
    assert (found.within_a_minute, found.mean_error) == (0.75, (10 + 10 + 11 + 210) / 4)
    assert accuracy(said[3:]).bound_coverage is None


@pytest.mark.req("SC-12")
def test_a_prediction_counts_as_right_up_to_a_minute_and_up_to_ten() -> None:
    said = [
        ArrivalPrediction(job=JobId(error), waited=1000 + error, likely=1000, range=(1, 2), bound=None, by_limits=9)
        for error in (60, 61, 600, 601)
    ]
    found = accuracy(said)
    assert (found.within_a_minute, found.within_ten_minutes) == (0.25, 0.75)
