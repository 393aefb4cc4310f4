"""A likely start that moves says why, where the policy promises no latest one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.forecast import EndedEarly, Forecast, LeftQueue, RanLonger, StartMove
from cockpit.model.ids import JobId, Millis
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.likely_moves import LikelyHistory
from cockpit.sched.forecast.moves import MOST_MOVES
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.sched.world import World, node, wants

HOUR, MINUTE = 3600, 60
EASY = Policy(backfill=Backfill(kind=BackfillKind.EASY))


class Shown:
    """A node with one card: a job runs, the next has a promised start, the one behind it has none."""

    def __init__(self) -> None:
        self.world = World(node("n1", 1), policy=EASY)
        self.history = LikelyHistory()
        self.runs = self.submit()
        self.world.run()
        self.next, self.behind = self.submit(), self.submit()

    def submit(self) -> JobId:
        return self.world.submit(wants(1000), limit=HOUR, grace_seconds=0)

    def ask(self, job: JobId) -> tuple[Forecast, tuple[StartMove, ...]]:
        self.world.run()
        world = self.world
        snapshot = replace(
            world.snapshot(),
            jobs=dict(world.jobs),
            occupied=dict(world.occupied),
            ends=dict(world.ends),
            queue=tuple(world.queue),
        )
        predictor = StartPredictor(snapshot, None, world.policy, History())
        forecast = predictor.forecast(job)
        return forecast, self.history.show(job, forecast, predictor.basis)

    def runs_until(self, seconds: int) -> None:
        self.world.occupy(self.runs, self.world.occupied[self.runs], Millis(1000 * seconds))


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.mark.req("SC-12")
def test_a_likely_start_that_moved_names_its_cause(shown: Shown) -> None:
    before, moves = shown.ask(shown.behind)
    assert (before.likely_at, before.latest_at, moves) == (2000 * HOUR, None, ())
    shown.world.now = Millis(60_000)
    shown.runs_until(3 * HOUR)
    after, moves = shown.ask(shown.behind)
    assert after.likely_at == 2000 * HOUR + 2000 * HOUR
    cause = RanLonger(shown.runs, Millis(1000 * (3 * HOUR)))
    assert moves == (StartMove(Millis(60_000), before.likely_at, after.likely_at, (cause,)),)
    assert shown.ask(shown.behind)[1] == moves, "an unchanged start moved again"


@pytest.mark.req("SC-12")
def test_a_job_that_gets_a_promise_has_no_moved_likely_start(shown: Shown) -> None:
    shown.ask(shown.behind)
    shown.world.withdraw(shown.next)
    forecast, moves = shown.ask(shown.behind)
    assert forecast.latest_at is not None
    assert moves == ()


@pytest.mark.req("SC-12")
def test_only_a_start_that_leaves_the_range_shown_before_has_moved(shown: Shown) -> None:
    ahead = [shown.submit() for _ in range(4)]
    last = shown.submit()
    before, _ = shown.ask(last)
    assert (before.likely_from, before.likely_at) == (7000 * HOUR // 3, 7000 * HOUR)
    for number, job in enumerate(ahead, 1):
        shown.world.withdraw(job)
        after, moves = shown.ask(last)
        assert (after.likely_at, moves) == (1000 * (7 - number) * HOUR, ())


@pytest.mark.req("SC-12")
def test_a_likely_start_that_became_earlier_names_its_cause(shown: Shown) -> None:
    last = [shown.submit() for _ in range(5)][-1]
    before, _ = shown.ask(last)
    left = [job.id for job in shown.world.queue if job.id not in (shown.next, last)]
    # the last job stays the second in line, without a promise; the first one asks for less time than it did
    for job in left:
        shown.world.withdraw(job)
    shown.world.now = Millis(1800 * 1000)
    shown.runs_until(HOUR - 10 * MINUTE)
    after, moves = shown.ask(last)
    assert before.likely_from is not None
    assert after.likely_at is not None
    assert after.likely_at < before.likely_from
    (move,) = moves
    assert move.causes == (EndedEarly(shown.runs), *map(LeftQueue, left[:2]))


@pytest.mark.req("SC-12")
@pytest.mark.parametrize(("seconds", "told"), [(299, False), (300, True)])
def test_a_few_minutes_are_no_move_where_no_range_is_known(seconds: int, told: bool, shown: Shown) -> None:
    forecast, _ = shown.ask(shown.behind)
    basis = shown.history._basis
    point = replace(forecast, likely_from=None, likely_to=None)
    history = LikelyHistory()
    assert history.show(shown.behind, point, basis) == ()
    later = replace(point, likely_at=Millis(point.likely_at + 1000 * seconds))
    history.show(shown.behind, later, replace(basis, snapshot=replace(basis.snapshot)))
    assert (shown.behind in history._moves) is told


@pytest.mark.req("SC-12")
def test_few_moves_are_kept_and_none_of_jobs_that_left_the_queue(shown: Shown) -> None:
    shown.ask(shown.behind)
    for times in range(MOST_MOVES + 3):
        shown.runs_until(HOUR + 3**times * HOUR)
        _, moves = shown.ask(shown.behind)
    assert len(moves) == MOST_MOVES
    assert moves[-1].after == 1000 * (2 + 3 ** (MOST_MOVES + 2)) * HOUR
    shown.world.withdraw(shown.behind)
    other = shown.submit()
    shown.ask(other)
    assert shown.behind not in shown.history._moves
    assert shown.behind not in shown.history._shown
