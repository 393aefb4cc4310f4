"""One table from a forecast to its words."""

from __future__ import annotations

from datetime import UTC
from typing import get_args

import pytest
from msgspec.structs import replace

from cockpit.model.forecast import (
    CameAhead,
    Edited,
    EndedEarly,
    EngineRestarted,
    Forecast,
    LeftQueue,
    LimitFreed,
    MoveCause,
    MovedUp,
    NoBound,
    NodeLost,
    NodeReturned,
    NodesTaken,
    OtherEdited,
    RanLonger,
    Replanned,
    RulesChanged,
    SharesLimit,
    StartMove,
)
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.present.columns import Context
from cockpit.present.spans import plain
from cockpit.present.start_words import WHY_NO_BOUND, bound_lines, cause_words, last_move, no_bound_lines, spread_words
from tests.doubles.samples import HOUR, MINUTE, NOW

CONTEXT = Context(now=NOW, zone=UTC)
JOB = JobId(12)
CAUSES: dict[MoveCause, str] = {
    CameAhead(JOB): "job 12 came ahead of it",
    CameAhead(JobId(0)): "job - came ahead of it",
    LimitFreed(JOB): "no rule stops job 12 any more, which is ahead of it",
    SharesLimit(JOB): "job 12 uses up a limit that it, or a job ahead of it, shares",
    RanLonger(JOB, Millis(NOW + HOUR)): "job 12 keeps its resources longer than planned, until 13:00",
    RanLonger(JOB, NOW): "job 12 keeps its resources longer than planned",
    RanLonger(JOB): "job 12 keeps its resources longer than planned",
    MovedUp(JOB): "job 12 moved up to an earlier start",
    NodeLost(NodeName("n1\x1b[31m")): "node n1",
    NodesTaken("service\x1b"): "reservation service",
    EndedEarly(JOB): "job 12 gives its resources back earlier than planned",
    LeftQueue(JOB): "job 12 is no longer ahead of it",
    NodeReturned(NodeName("n1")): "node n1 came into service",
    Edited(): "the job was changed",
    RulesChanged(): "the cluster's rules were changed",
    EngineRestarted(): "the engine was stopped meanwhile",
    OtherEdited(JobId(12)): "job 12 was changed",
    Replanned(): "the queue was planned again",
}


@pytest.mark.req("SC-12")
@pytest.mark.parametrize("cause", CAUSES, ids=lambda each: type(each).__name__)
def test_each_cause_has_an_escaped_sentence(cause: MoveCause) -> None:
    said = cause_words(cause, CONTEXT)
    assert said.startswith(CAUSES[cause])
    assert "\x1b" not in said


def test_no_cause_and_no_want_of_a_bound_is_without_words() -> None:
    assert {type(each) for each in CAUSES} == set(get_args(MoveCause))
    assert WHY_NO_BOUND.keys() == set(NoBound)


@pytest.mark.req("SC-12")
def test_a_bound_is_rounded_up_to_the_minute_that_it_holds_in() -> None:
    forecast = Forecast(likely_at=NOW, latest_at=Millis(NOW + HOUR + 1))
    assert spread_words(forecast, CONTEXT) == ("no later than", "13:01")
    ranged = Forecast(likely_at=NOW, likely_from=Millis(NOW + 59_000), likely_to=Millis(NOW + MINUTE + 1))
    assert spread_words(ranged, CONTEXT) == ("likely", "12:00–12:02")
    assert spread_words(Forecast(likely_at=NOW), CONTEXT) is None


@pytest.mark.req("SC-12")
def test_the_last_change_that_a_clock_shows_is_reported() -> None:
    hour, two = Millis(NOW + HOUR), Millis(NOW + 2 * HOUR)
    moves = (
        StartMove(NOW, hour, two, (CameAhead(JOB),)),
        StartMove(NOW, Millis(two + 1), Millis(two + 2), (RanLonger(JOB),)),
    )
    forecast = Forecast(likely_at=NOW, latest_at=two, moves=moves)
    assert last_move(forecast) is moves[0]
    (told,) = map(plain, bound_lines(forecast, CONTEXT))
    assert told == "  latest start moved from 13:00 to 14:00 at 12:00: job 12 came ahead of it"
    lost = Forecast(moves=(StartMove(NOW, hour, None, (NodeLost(NodeName("n1")),)),), no_bound=NoBound.NO_RESERVATION)
    (told,) = map(plain, bound_lines(lost, CONTEXT))
    assert told == "  latest start 13:00 no longer guaranteed since 12:00: node n1 went out of service"
    (told,) = map(plain, no_bound_lines(lost))
    assert told == "  no guaranteed latest start: the scheduler has reserved no start for it yet"
    assert list(bound_lines(Forecast(), CONTEXT)) == list(no_bound_lines(Forecast())) == []


@pytest.mark.req("SC-12")
def test_a_likely_start_that_moved_is_reported_where_no_latest_one_has() -> None:
    moves = (StartMove(NOW, Millis(NOW + HOUR), Millis(NOW + 2 * HOUR), (CameAhead(JOB),)),)
    forecast = Forecast(likely_at=Millis(NOW + 2 * HOUR), likely_moves=moves)
    (told,) = map(plain, bound_lines(forecast, CONTEXT))
    assert told == "  likely start moved from 13:00 to 14:00 at 12:00: job 12 came ahead of it"
    withdrawn = StartMove(NOW, Millis(NOW + HOUR), None, (EngineRestarted(),))
    (told,) = map(plain, bound_lines(replace(forecast, moves=(withdrawn,)), CONTEXT))
    assert told.startswith("  latest start 13:00 no longer guaranteed"), "a withdrawn promise matters more"
