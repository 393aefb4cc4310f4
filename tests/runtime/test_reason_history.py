"""Changes of reasons are recorded: of the whole queue in turns, bounded, and shown with the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.engine.access import Actor
from cockpit.model.events import JobSubmitted
from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import Held, LimitReached, NotEnoughFree, Resource
from cockpit.protocol import messages
from cockpit.runtime import reading, reason_history
from cockpit.runtime.engine import Engine
from cockpit.runtime.host import Act
from cockpit.runtime.reason_history import ReasonHistory
from cockpit.runtime.request_context import RequestContext
from tests.builders import ANN, BOB, NOON, SECOND, a_spec
from tests.runtime.host_world import World, eventually

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cockpit.model.reasons import Reason


async def nothing_used(_: Any) -> None:
    return None


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
    monkeypatch.setattr(reason_history, "queue_front", lambda *_: ())
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


@pytest.mark.req("UI-15")
async def test_the_jobs_ahead_are_recorded_and_only_shown_to_users_who_may_see_them(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.begin()
    try:
        world.executor.used = nothing_used  # type: ignore[attr-defined] # the double has none
        engine = Engine(host=world.host, state_folder=world.folder, socket=world.folder / "s", system=True, cluster="l")
        jobs = [
            JobSubmitted(JobId(number), a_spec(f"job-{number}", cpus=4), who, "own")
            for number, who in enumerate((BOB, BOB, ANN), 1)
        ]
        await world.host.act(lambda _machine, _now: jobs, Act(actor="test", origin="socket"))
        await eventually(lambda: 3 in world.host.machine.queue and world.host.plan is not None)
        for admin, ahead in ((True, (1, 2)), (False, ())):
            context = RequestContext(Actor(ANN, admin=admin))
            shown = await reading.job(engine, context, messages.JobArgs(JobId(3)))
            assert shown.waited[0].ahead == ahead
    finally:
        await world.stop()
