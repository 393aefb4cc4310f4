"""Changes of reasons are recorded: of the whole queue in turns, bounded, and shown with the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import Held, LimitReached, NotEnoughFree, Resource
from cockpit.runtime import reason_history
from cockpit.runtime.reason_history import ReasonHistory
from tests.builders import NOON, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.model.reasons import Reason


class Waiting:
    """As much of a job as a reason is asked for."""

    def __init__(self, number: int) -> None:
        self.id = JobId(number)


def short_of(cards: int) -> NotEnoughFree:
    return NotEnoughFree(Resource.CARDS, cards, (), 1, 0, ())


@pytest.fixture
def reasons(monkeypatch: pytest.MonkeyPatch) -> dict[int, Reason]:
    """What the plan says of each job."""
    told: dict[int, Reason] = {}
    monkeypatch.setattr(reason_history, "reason_of", lambda _, job: told[job.id])
    return told


def queue(numbers: Iterable[int]) -> dict[JobId, Waiting]:
    return {JobId(number): Waiting(number) for number in numbers}


@pytest.mark.req("UI-03")
def test_only_another_kind_of_reason_is_a_change(reasons: dict[int, Reason]) -> None:
    history, waiting = ReasonHistory(), queue([1])
    told = (
        short_of(4),
        short_of(3),
        Held("ann", NOON),
        LimitReached("account a", "MaxJobs"),
        LimitReached("qos b", "MaxJobs"),
    )
    for second, reason in enumerate(told):
        reasons[1] = reason
        history.look(None, waiting, waiting, Millis(NOON + second * SECOND))
    assert [(each.since - NOON, each.reason) for each in history.of(JobId(1))] == [
        (0, told[0]),
        (2 * SECOND, told[2]),
        (3 * SECOND, told[3]),
        (4 * SECOND, told[4]),
    ]


@pytest.mark.req("UI-03")
def test_a_long_queue_is_examined_in_parts_and_at_a_bounded_rate(
    reasons: dict[int, Reason], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reason_history, "LOOKED_AT", 2)
    history, waiting = ReasonHistory(), queue(range(5))
    reasons.update(dict.fromkeys(range(5), short_of(1)))
    seen = []
    for second in (0, 0.5, 1, 2, 3):
        history.look(None, waiting, waiting, Millis(NOON + int(second * SECOND)))
        seen.append([number for number in range(5) if history.of(JobId(number))])
    assert seen == [[0, 1], [0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]


def test_the_history_of_reasons_is_bounded(reasons: dict[int, Reason], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reason_history, "CHANGES_KEPT", 3)
    monkeypatch.setattr(reason_history, "SPARE", 1)
    history, waiting = ReasonHistory(), queue([1, 2, 3])
    for second in range(9):
        reasons.update(dict.fromkeys((1, 2, 3), Held("ann", NOON) if second % 2 else short_of(1)))
        history.look(None, waiting, waiting, Millis(NOON + second * SECOND))
    assert [each.since - NOON for each in history.of(JobId(1))] == [6 * SECOND, 7 * SECOND, 8 * SECOND]
    left = queue([3])
    history.look(None, left, left, Millis(NOON + 9 * SECOND))
    assert [len(history.of(JobId(number))) for number in (1, 2, 3)] == [0, 0, 3]
