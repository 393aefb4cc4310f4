"""A latest start that moves says why: what really happened between the two plans, and nothing else."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace

from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Cluster,
    Enforce,
    Partition,
    PartitionState,
    Reservation,
)
from cockpit.model.forecast import (
    CameAhead,
    Edited,
    EndedEarly,
    LeftQueue,
    LimitFreed,
    MovedUp,
    NodeLost,
    NodeReturned,
    NodesTaken,
    OtherEdited,
    RanLonger,
    Replanned,
    RulesChanged,
    StartMove,
)
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from cockpit.model.spec import NodeSpec
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.moves import MOST_MOVES, BoundHistory
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.sched.world import World, node, wants

HOUR = 3600
CONSERVATIVE = Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE))


class Watched:
    """A world whose bounds are followed from question to question."""

    def __init__(self, *nodes, policy: Policy = CONSERVATIVE, **rules) -> None:
        self.world = World(*nodes, policy=policy, **rules)
        self.history = BoundHistory()

    def submit(self, *specs: NodeSpec, **fields) -> JobId:
        """A job that ends at once when it is asked to, unless it says otherwise."""
        return self.world.submit(*specs, **{"grace_seconds": 0, **fields})

    def ask(self) -> dict[JobId, Millis]:
        """Run a pass, then ask: the latest starts that are promised now."""
        self.world.run()
        world = self.world
        snapshot = replace(
            world.snapshot(),
            jobs=dict(world.jobs),
            occupied=dict(world.occupied),
            ends=dict(world.ends),
            queue=tuple(world.queue),
        )
        foresight = StartPredictor(snapshot, None, world.policy, History())
        self.history.follow(foresight.basis)
        return {job.id: at for job in snapshot.queue if (at := foresight.forecast(job.id).latest_at) is not None}

    def wait(self, seconds: int) -> None:
        self.world.now = Millis(self.world.now + 1000 * seconds)

    def moved(self, job: JobId) -> StartMove:
        (move,) = self.history.of(job)
        return move


def two_in_line(**more) -> tuple[Watched, JobId, JobId]:
    """A node with one card, whose job ends in an hour, and one job that waits for it."""
    watched = Watched(node("n1", 1), **more)
    runs = watched.submit(wants(1000), limit=HOUR)
    watched.ask()
    waits = watched.submit(wants(1000), limit=HOUR)
    assert watched.ask() == {waits: 1000 * HOUR}
    return watched, runs, waits


@pytest.mark.req("SC-12")
def test_the_cause_names_a_job_that_runs_longer() -> None:
    watched, runs, waits = two_in_line()
    watched.wait(60)
    watched.world.occupy(runs, watched.world.occupied[runs], Millis(1000 * (HOUR + 600)))
    watched.ask()
    moment = Millis(1000 * (HOUR + 600))
    assert watched.moved(waits) == StartMove(Millis(60_000), Millis(1000 * HOUR), moment, (RanLonger(runs, moment),))


@pytest.mark.req("SC-12")
def test_the_cause_names_a_job_that_exceeds_its_limit() -> None:
    watched, runs, waits = two_in_line()
    watched.wait(HOUR + 5)
    watched.ask()
    assert RanLonger(runs, Millis(1000 * HOUR)) in watched.moved(waits).causes


@pytest.mark.req("SC-12")
def test_the_cause_names_a_job_that_moved_ahead() -> None:
    watched = Watched(node("n1", 1))
    watched.submit(wants(1000), limit=HOUR)
    watched.ask()
    held = watched.submit(wants(1000), limit=HOUR, held_by="ann")
    waits = watched.submit(wants(1000), limit=HOUR)
    watched.ask()
    watched.world.hold(held, "")
    assert watched.ask()[waits] == 2000 * HOUR
    assert watched.moved(waits).causes == (CameAhead(held),)
    watched.world.withdraw(held)
    watched.ask()
    assert watched.history.of(waits)[-1].causes == (LeftQueue(held),)


@pytest.mark.req("SC-12")
def test_the_cause_names_a_job_ahead_whose_partition_is_up_again() -> None:
    down, up = (Partition(name="other", state=each) for each in (PartitionState.DOWN, PartitionState.UP))
    watched = Watched(node("n1", 2), cluster=Cluster(partitions=(Partition(name="main"), down)))
    for limit in (HOUR, 10 * HOUR):
        watched.submit(wants(1000), limit=limit, record={"partitions": ("main",)})
    watched.ask()
    freed = watched.submit(wants(1000), limit=5 * HOUR, record={"partitions": ("other",)})
    waits = watched.submit(wants(1000), limit=HOUR, record={"partitions": ("main",)})
    assert watched.ask() == {waits: 1000 * HOUR}
    watched.wait(60)
    watched.world.change_rules(cluster=Cluster(partitions=(Partition(name="main"), up)))
    assert watched.ask()[waits] == 6000 * HOUR
    assert watched.moved(waits).causes == (RulesChanged(), LimitFreed(freed))


@pytest.mark.req("SC-12")
@pytest.mark.parametrize("limit", [HOUR // 2, 2 * HOUR])
def test_the_cause_names_a_job_ahead_that_was_changed(limit: int) -> None:
    watched, _, ahead = two_in_line()
    waits = watched.submit(wants(1000), limit=HOUR)
    assert watched.ask()[waits] == 2000 * HOUR
    watched.world.change(ahead, spec=replace(watched.world.jobs[ahead].spec, time_limit_seconds=limit))
    assert watched.ask()[waits] == 1000 * (HOUR + limit)
    assert watched.moved(waits).causes == (OtherEdited(ahead),)


@pytest.mark.req("SC-12")
def test_the_cause_names_a_job_that_is_being_ended_before_its_limit() -> None:
    watched, runs, waits = two_in_line()
    watched.world.occupy(runs, watched.world.occupied[runs], Millis(600_000))
    assert watched.ask() == {waits: 600_000}
    assert watched.moved(waits).causes == (EndedEarly(runs),)


@pytest.mark.req("SC-12")
def test_the_cause_names_a_later_job_whose_grace_reaches_beyond_the_reserved_moment() -> None:
    """It is submitted and started at once, since it ends by that moment; it may take its grace after that."""
    watched = Watched(node("n1", 2), policy=Policy(backfill=Backfill(kind=BackfillKind.EASY)))
    watched.submit(wants(1000), limit=HOUR)
    watched.ask()
    waits = watched.submit(wants(2000), limit=HOUR)
    assert watched.ask() == {waits: 1000 * HOUR}
    late = watched.submit(wants(1000), limit=HOUR, grace_seconds=30)
    assert watched.ask() == {waits: 1000 * (HOUR + 30)}
    assert watched.moved(waits).causes == (CameAhead(late),)


@pytest.mark.req("SC-12")
def test_the_cause_names_nodes_that_leave_and_return() -> None:
    watched = Watched(node("n1", 1), node("n2", 1))
    for limit in (HOUR, 2 * HOUR):
        watched.submit(wants(1000), limit=limit)
    watched.ask()
    waits = watched.submit(wants(1000), limit=HOUR)
    watched.ask()
    watched.world.set_state("n1", NodeState.DRAINED)
    watched.ask()
    assert watched.moved(waits).causes == (NodeLost(NodeName("n1")),)
    watched.world.set_state("n1", NodeState.UP)
    watched.ask()
    assert watched.history.of(waits)[-1].causes == (NodeReturned(NodeName("n1")),)


@pytest.mark.req("SC-12")
def test_the_cause_names_an_advance_reservation_an_edit_and_new_rules() -> None:
    watched, _, waits = two_in_line()
    kept = Reservation(name="service", nodes=(NodeName("n1"),), start_at=1000 * HOUR, end_at=3000 * HOUR)
    watched.world.change_rules(reservations={"service": kept})
    watched.ask()
    assert watched.moved(waits).causes == (NodesTaken("service"),)
    watched.world.change_rules(reservations={})
    watched.ask()
    assert watched.history.of(waits)[-1].causes == (RulesChanged(),)
    first = watched.submit(wants(1000), limit=HOUR)
    watched.ask()
    job = watched.world.jobs[waits]
    watched.world.change(waits, spec=replace(job.spec, time_limit_seconds=2 * HOUR), held_by="ann")
    watched.ask()
    watched.world.change(waits, held_by="")
    watched.ask()
    assert watched.history.of(waits)[-1].causes == (Edited(),)
    assert watched.history.of(first)[-1].causes == (CameAhead(waits),)


@pytest.mark.req("SC-12")
def test_an_early_end_moves_the_forecast_forward_and_is_the_named_cause() -> None:
    watched = Watched(node("n1", 2))
    short = watched.submit(wants(1000), limit=HOUR)
    watched.submit(wants(1000), limit=HOUR // 2)
    watched.ask()
    waits = watched.submit(wants(2000), limit=HOUR)
    watched.ask()
    watched.wait(60)
    watched.world.end(short)
    assert watched.ask() == {waits: 500 * HOUR}
    assert watched.moved(waits).causes == (EndedEarly(short),)


@pytest.mark.req("SC-12")
def test_the_cause_names_a_job_ahead_that_starts_before_its_planned_start() -> None:
    """The plan rounds the end of the running job up to a whole minute; the job ahead starts at the end itself."""
    by_the_minute = Backfill(kind=BackfillKind.CONSERVATIVE, resolution_seconds=60)
    watched = Watched(node("n1", 1), policy=Policy(backfill=by_the_minute))
    runs = watched.submit(wants(1000), limit=HOUR + 30)
    watched.ask()
    ahead = watched.submit(wants(1000), limit=HOUR + 30)
    waits = watched.submit(wants(1000), limit=HOUR)
    assert watched.ask() == {ahead: 1000 * (HOUR + 60), waits: 1000 * (2 * HOUR + 120)}
    watched.wait(HOUR + 30)
    watched.world.end(runs)
    assert watched.ask() == {waits: 1000 * (2 * HOUR + 60)}
    assert watched.moved(waits).causes == (MovedUp(ahead),)


@pytest.mark.req("SC-12")
def test_few_changes_of_a_forecast_are_stored_and_none_of_jobs_that_left_the_queue() -> None:
    watched, runs, waits = two_in_line()
    for more in range(1, MOST_MOVES + 4):
        watched.world.occupy(runs, watched.world.occupied[runs], Millis(1000 * (HOUR + more)))
        watched.ask()
    moves = watched.history.of(waits)
    assert len(moves) == MOST_MOVES
    assert all(first.after == then.before for first, then in pairwise(moves))
    watched.world.withdraw(waits)
    watched.ask()
    assert watched.history.of(waits) == ()


@pytest.mark.req("SC-12")
def test_the_grace_of_a_job_that_may_use_its_whole_limit_is_part_of_the_bound() -> None:
    watched = Watched(node("n1", 2))
    runs = watched.submit(wants(1000), limit=HOUR, grace_seconds=90)
    watched.submit(wants(1000), limit=2 * HOUR, grace_seconds=600)
    watched.ask()
    first = watched.submit(wants(1000), limit=HOUR, grace_seconds=40)
    both = watched.submit(wants(2000), limit=HOUR)
    assert watched.ask() == {first: 1000 * (HOUR + 90), both: 1000 * (2 * HOUR + 600)}
    watched.wait(HOUR + 60)  # it has been asked to end
    assert watched.ask() == {first: 1000 * (HOUR + 90), both: 1000 * (2 * HOUR + 600)}
    watched.world.end(runs)
    assert watched.ask()[both] == 1000 * (2 * HOUR + 600)
    assert watched.world.started_at[first] <= 1000 * (HOUR + 90)


@pytest.mark.req("SC-12")
@pytest.mark.parametrize("kind", BackfillKind)
@pytest.mark.parametrize("seed", range(25))
def test_a_shown_bound_is_never_exceeded_unless_a_cause_is_named(seed: int, kind: BackfillKind) -> None:
    """Jobs come, end early, overrun, are held, released and cancelled, and nodes go and come."""
    random, causes = Random(seed), Counter[str]()
    nodes = [node(f"n{number}", 4) for number in range(3)]
    watched = Watched(*nodes, policy=Policy(backfill=Backfill(kind=kind)))
    world, shown = watched.world, dict[JobId, Millis]()
    for _ in range(120):
        happens(world, random)
        before = dict(watched.history._moves)
        bounds = watched.ask()
        for job, bound in shown.items():
            if job in world.started_at:
                assert world.started_at[job] <= bound, job
            elif world.jobs[job].state is not JobState.QUEUED:
                continue
            elif (noted := watched.history.of(job)) != before.get(job, ()):
                assert noted[-1].before == bound
                assert noted[-1].after == bounds.get(job)
                causes.update(type(each).__name__ for each in noted[-1].causes)
            else:
                assert bounds.get(job) == bound, job
        shown = {job: at for job, at in bounds.items() if job not in world.started_at}
    assert Replanned.__name__ not in causes, causes
    assert kind is BackfillKind.OFF or causes


def happens(world: World, random: Random) -> None:
    """An event that a cluster may see; time advances until then, and no job ends unnoticed meanwhile."""
    soonest = min(world.ends.values(), default=Millis(world.now + 60_000))
    world.now = Millis(min(soonest, world.now + 1000 * random.randrange(1, 900)))
    over = [job for job, end in world.ends.items() if end <= world.now]
    for job in over:
        if random.random() < 0.15:  # it takes its time to end
            world.occupy(job, world.occupied[job], Millis(world.now + 1000 * random.randrange(1, 600)))
        else:
            world.end(job)
    what = random.random()
    running, queued = sorted(world.occupied), [job.id for job in world.queue]
    if what < 0.5:
        cards, gang = 1000 * random.choice((1, 2, 4)), random.choice((1, 1, 2))
        held = "ann" if random.random() < 0.15 else ""
        world.submit(wants(cards), nodes=gang, limit=random.randrange(60, 3000), held_by=held)
    elif what < 0.7 and running:
        world.end(random.choice(running))
    elif what < 0.8 and queued:
        job = random.choice(queued)
        world.hold(job, "" if world.jobs[job].held_by else "ann")
    elif what < 0.85 and queued:
        world.withdraw(random.choice(queued))
    elif what < 0.9:
        name = random.choice(sorted(world.nodes))
        up = world.nodes[name].state is NodeState.UP
        world.set_state(name, NodeState.DRAINED if up else NodeState.UP)


def test_limits_make_the_order_uncertain_where_no_job_passes_the_first() -> None:
    """A limit lets later jobs pass one that it stops, so only the first has a bound then."""
    off = Policy(backfill=Backfill(kind=BackfillKind.OFF))
    promised = []
    for enforce in ((), (Enforce.LIMITS,)):
        watched = Watched(node("n1", 1), policy=off, cluster=Cluster(enforce=enforce))
        if enforce:
            watched.world.change_rules(cluster=Cluster(enforce=enforce))
        jobs = [watched.submit(wants(1000), limit=HOUR) for _ in range(4)]
        promised.append([job in watched.ask() for job in jobs])
    assert promised[0] == [False, True, True, True]
    assert sum(promised[1]) <= 1


@pytest.mark.req("SC-12")
def test_a_job_behind_that_leaves_meanwhile_is_no_cause() -> None:
    watched, runs, waits = two_in_line()
    behind = watched.submit(wants(1000), limit=HOUR)
    watched.ask()
    watched.wait(60)
    watched.world.occupy(runs, watched.world.occupied[runs], Millis(500 * HOUR))
    watched.world.withdraw(behind)
    assert watched.ask() == {waits: 500 * HOUR}
    assert LeftQueue(behind) not in watched.moved(waits).causes
