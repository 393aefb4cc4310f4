"""Decisions about several jobs at once, such as the tasks of an array, and about held containers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.arrays import on_each
from cockpit.model.events import HoldEndCause, HoldEnded, HoldExtended
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job, JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.rules.bounds import WINDOW_SECONDS
from tests.builders import ANN, HOUR, NOON, a_spec

NO = {number: Refusal(RefusalKind.CONFLICT, f"job {number} has ended") for number in (1, 2)}


@pytest.mark.req("JT-09")
@pytest.mark.parametrize(
    ("jobs", "refusing", "result"),
    [
        ((3, 4), (), ["held 3", "held 4"]),
        ((1, 3, 2), (1, 2), ["held 3"]),
        ((1, 2), (1, 2), NO[1]),
        ((2, 1), (1, 2), NO[2]),
        ((), (), []),
    ],
)
def test_jobs_that_refuse_are_skipped_unless_all_do(jobs: Any, refusing: Any, result: Any) -> None:
    assert on_each(jobs, lambda job: NO[job] if job in refusing else [f"held {job}"]) == result


HELD = Job(
    id=JobId(7),
    spec=a_spec(),
    submitter=ANN,
    project="p",
    submitted_at=NOON,
    state_since=NOON,
    state=JobState.ERROR,
    held_until=Millis(NOON + HOUR),
)


@pytest.mark.req("JT-40")
def test_a_hold_is_extended_by_at_most_so_many_days_from_now() -> None:
    most = WINDOW_SECONDS.high - HOUR // 1000
    assert decide.extend_hold(HELD, NOON, most) == [HoldExtended(HELD.id, Millis(NOON + 1000 * WINDOW_SECONDS.high))]
    for seconds, said in ((most + 1, "at most"), (0, "a positive time"), (-5, "a positive time")):
        refused = decide.extend_hold(HELD, NOON, seconds)
        assert isinstance(refused, Refusal)
        assert said in refused.message
    assert decide.extend_hold(HELD, NOON, 1) == [HoldExtended(HELD.id, Millis(NOON + HOUR + 1000))]
    free = replace(HELD, held_until=None)
    assert isinstance(decide.extend_hold(free, NOON, 1), Refusal)
    assert isinstance(decide.end_hold(free), Refusal)
    assert decide.end_hold(HELD) == [HoldEnded(HELD.id, HoldEndCause.ENDED)]
