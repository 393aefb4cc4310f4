"""Predictions during a replay, for histories small enough to follow by hand; a job is as in `test_jobs`."""

from __future__ import annotations

import pytest

from cockpit.engine.replay.arrival_predictions import ArrivalPrediction, accuracy, predict_arrivals
from cockpit.formats.traces.swf import machine
from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.ids import JobId
from cockpit.sched.policy import ONE_CYCLE_A_MOMENT, Policy
from tests.engine.replay.test_jobs import arrival

HISTORY = ((0, 4, 60, 600), (100, 4, 60, 600), (120, 4, 30, 600), (130, 4, 20, 100))
"""Each job needs the whole machine. Jobs 3 and 4 wait, until 160 and 190; one job has ended by then, after 60 s."""
CONSERVATIVE = Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE), ties=ONE_CYCLE_A_MOMENT)


def predicted(*chosen: int, policy: Policy | None = None) -> list[ArrivalPrediction]:
    arrivals = [arrival(number, *job) for number, job in enumerate(HISTORY, 1)]
    jobs = [JobId(number) for number in chosen]
    return predict_arrivals([machine(4)], arrivals, policy or Policy(), jobs)


@pytest.mark.req("SC-12")
def test_a_prediction_at_arrival_uses_earlier_run_times_and_names_the_wait_by_limits() -> None:
    third = ArrivalPrediction(JobId(3), waited=40, likely=40, range=(13.333, 610), bound=610, by_limits=580)
    assert predicted(3) == [third]


@pytest.mark.req("SC-12")
def test_jobs_that_did_not_wait_have_no_prediction() -> None:
    assert [(each.job, each.waited) for each in predicted(1, 2, 3, 4)] == [(3, 40), (4, 60)]


@pytest.mark.req("SC-12")
def test_only_the_policy_with_reservations_for_all_promises_the_second_waiting_job_a_start() -> None:
    (easy,), (conservative,) = predicted(4), predicted(4, policy=CONSERVATIVE)
    assert (easy.bound, easy.likely, easy.by_limits, easy.range) == (None, 90, 1170, (30, 1170))
    assert (conservative.bound, conservative.range) == (1230, (30, 1230))


@pytest.mark.req("SC-12")
def test_the_replay_reports_how_many_jobs_have_ended() -> None:
    arrivals = [arrival(number, *job) for number, job in enumerate(HISTORY, 1)]
    seen: list[int] = []
    predict_arrivals([machine(4)], arrivals, Policy(), [], watch=seen.append)
    assert seen == [0, 1, 1, 1, 1, 2, 3, 4]


@pytest.mark.req("SC-12")
def test_ranges_are_measured_in_waits() -> None:
    def prediction(waited: float, first: float, last: float, limit: float) -> ArrivalPrediction:
        return ArrivalPrediction(JobId(1), waited=waited, likely=1, range=(first, last), bound=None, by_limits=limit)

    found = accuracy([prediction(10, 5, 20, 40), prediction(20, 20, 20, 20), prediction(40, 41, 60, 39)])
    assert (found.tightness, found.tightness_by_limits) == (1.5, 1.0)
    assert (found.range_coverage, found.coverage, found.coverage_by_limits) == (2 / 3, 1.0, 2 / 3)
    assert (found.range_width, found.median_error) == (0.475, 19)


def test_without_predictions_there_is_no_accuracy() -> None:
    with pytest.raises(ValueError, match="no job waited"):
        accuracy([])
