"""Decisions about several jobs at once, such as the tasks of an array, and when single jobs end."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.arrays import on_each
from cockpit.engine.completion_policy import first_failure
from cockpit.engine.machine import _released_at
from cockpit.engine.timers import latest_end
from cockpit.engine.views.spending import is_open
from cockpit.model.attempt import Attempt, EndCause, Ending, ExitStatus, Replica
from cockpit.model.events import HoldEndCause, HoldEnded, HoldExtended
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job, JobState
from cockpit.model.node import Allocation
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


def running(*ended_with: int | None, **fields: Any) -> Job:
    """A running job, whose replicas have ended with these codes."""
    replicas = tuple(
        Replica(rank=rank, started_at=NOON)
        if code is None
        else Replica(rank=rank, started_at=NOON, ended_at=Millis(NOON + rank), exit=ExitStatus(code=code))
        for rank, code in enumerate(ended_with)
    )
    placement = tuple(Allocation(rank, NodeName("n1"), 1, 1) for rank in range(len(replicas)))
    attempt = Attempt(number=1, spec_index=0, placement=placement, placed_at=NOON, replicas=replicas)
    return replace(HELD, state=JobState.RUNNING, held_until=None, attempt=attempt, **fields)


def an_end(cause: EndCause, kill_at: int = NOON) -> Ending:
    return Ending(cause=cause, at=NOON, kill_at=Millis(kill_at))


@pytest.mark.req("SC-08")
def test_a_job_releases_its_nodes_at_its_end_or_when_it_is_killed() -> None:
    end = latest_end(running(None))
    assert end is not None
    assert _released_at(running(None)) == end
    for kill_at, gone in ((end - 1, end - 1), (end + 1, end)):
        assert _released_at(running(None, ending=an_end(EndCause.STOP, kill_at))) == gone
    assert _released_at(HELD) == NOON + HOUR
    queued = replace(HELD, state=JobState.QUEUED, held_until=None)
    assert _released_at(queued) is None
    assert _released_at(replace(queued, ending=an_end(EndCause.STOP, 7))) == 7


@pytest.mark.req("LA-12")
@pytest.mark.parametrize(
    ("codes", "failed"), [((None, 3), (1, 3)), ((0, 4, 3), (1, 4)), ((0, None), None), ((3,), None)]
)
def test_the_replica_that_failed_first_is_named_if_there_are_several(codes: Any, failed: Any) -> None:
    assert first_failure(replace(running(*codes), end_cause=EndCause.EXIT)) == failed
    assert first_failure(replace(HELD, end_cause=EndCause.EXIT)) is None
    asked = replace(running(*codes, ending=an_end(EndCause.STOP)), end_cause=EndCause.EXIT)
    assert first_failure(asked) is None
    ended = replace(running(*codes, ending=an_end(EndCause.EXIT)), end_cause=EndCause.EXIT)
    assert first_failure(ended) == failed
    assert first_failure(replace(running(*codes), end_cause=EndCause.STOP)) is None


@pytest.mark.req("SC-16")
def test_jobs_that_run_are_counted_until_the_accounting_has_them() -> None:
    assert is_open(running(None))
    assert not is_open(replace(running(3), state=JobState.ERROR))
    assert not is_open(replace(HELD, state=JobState.QUEUED, held_until=None))
