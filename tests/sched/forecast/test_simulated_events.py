"""What the simulation of the future knows beside starts and ends: grace to end, budgets, deadlines; and what of it a
promised latest start counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import EndCause, Ending
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce, Partition
from cockpit.model.forecast import Forecast, NoBound
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.spec import Dependency, DependencyKind
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.sched.lab import tree
from tests.sched.world import World, node, wants

pytestmark = pytest.mark.req("SC-12")
HOUR = 3600
CONSERVATIVE, EASY, OFF = (
    Policy(backfill=Backfill(kind=kind)) for kind in (BackfillKind.CONSERVATIVE, BackfillKind.EASY, BackfillKind.OFF)
)


def start(world: World, job: JobId) -> Forecast:
    return StartPredictor(world.snapshot(), None, world.policy, History()).start(job)


def full(policy: Policy = CONSERVATIVE, *, grace: int = 0, **rules) -> World:
    """A node with one card, which is in use for an hour."""
    world = World(node("n1", 1), policy=policy, **rules)
    world.submit(wants(1000), limit=HOUR, grace_seconds=grace)
    world.run()
    return world


def test_a_job_that_is_being_ended_may_take_its_grace() -> None:
    world = full(cluster=Cluster(), grace=90)
    world.now = Millis(1000 * HOUR)
    ending = Ending(cause=EndCause.TIME_LIMIT, at=world.now, kill_at=Millis(world.now + 90_000))
    world.change_running(JobId(1), ending=ending)
    assert start(world, world.submit(wants(1000))).likely_at == 1000 * (HOUR + 90)


def test_what_a_job_uses_until_its_end_counts_for_a_budget() -> None:
    """Each uses 60 of the 100 minutes: the second would exceed the budget by 20, also once the first has ended."""
    accounts = tree(nlp={"grp_tres_minutes": {"cpu": 100.0}})
    world = World(node("n1", 1), cluster=Cluster(enforce=(Enforce.SAFE,)), accounts=accounts)
    world.submit(wants(1000), limit=HOUR, record={"account": "nlp"})
    world.run()
    longer, shorter = (world.submit(wants(1000), limit=limit, record={"account": "nlp"}) for limit in (HOUR, HOUR // 2))
    assert start(world, longer).likely_at is None
    assert start(world, shorter).likely_at == 1000 * HOUR


@pytest.mark.req("SC-10")
def test_a_job_that_misses_its_deadline_never_starts_and_is_in_no_jobs_way() -> None:
    world = full()
    late = world.submit(wants(1000), limit=2 * HOUR, deadline_at=Millis(2500 * HOUR))
    behind = world.submit(wants(1000), limit=HOUR)
    waits = [
        world.submit(wants(cpus=1), record={"waits_for": (Dependency(kind, late),)})
        for kind in (DependencyKind.AFTER_OK, DependencyKind.AFTER_ANY)
    ]
    assert start(world, late).likely_at is None
    assert start(world, behind).likely_at == 1000 * HOUR
    assert [start(world, each).likely_at for each in waits] == [None, 500 * HOUR + 1]


@pytest.mark.req("SC-10")
def test_no_latest_start_beyond_the_deadline_is_promised() -> None:
    world = full(grace=30)
    in_time, at_risk = (
        world.submit(wants(1000), limit=HOUR, grace_seconds=0, deadline_at=Millis(1000 * more))
        for more in (2 * HOUR + 30, 3 * HOUR + 29)
    )
    assert start(world, in_time).latest_at == 1000 * (HOUR + 30)
    assert start(world, at_risk).latest_at is None


def after(job: int) -> dict:
    return {"record": {"waits_for": (Dependency(DependencyKind.AFTER_ANY, JobId(job)),)}}


@pytest.mark.parametrize("policy", [CONSERVATIVE, EASY, OFF])
@pytest.mark.parametrize(
    ("ahead", "promised"),
    [
        (after(1), False),
        ({"begin_at": Millis(500 * HOUR)}, False),
        ({"begin_at": Millis(1000 * HOUR)}, False),
        ({"begin_at": Millis(1000 * HOUR + 1)}, True),
        ({"record": {"never": JobId(99), "waits_for": (Dependency(DependencyKind.AFTER_OK, JobId(99)),)}}, True),
        ({"held_by": "ann"}, True),
    ],
    ids=["dependency", "begins before", "begins then", "begins after", "never", "held"],
)
def test_behind_a_job_that_only_waits_for_a_condition_no_latest_start_is_promised(policy, ahead, promised) -> None:
    world = full(policy)
    world.submit(wants(1000), limit=5 * HOUR, **ahead)
    found = start(world, world.submit(wants(1000), limit=HOUR))
    why = None if promised else NoBound.CONDITION_AHEAD
    assert (found.latest_at, found.no_bound) == (1000 * HOUR if promised else None, why)


@pytest.mark.parametrize("rule", ["limit", "quota", "array"])
def test_behind_a_job_that_a_limit_stops_no_latest_start_is_promised(rule: str) -> None:
    quota = QuotaTree("t", QuotaNode(name="root", max={"jobs": 1000}, namespaces=("nlp",)))
    world = World(
        node("n1", 2),
        policy=CONSERVATIVE,
        cluster=Cluster(enforce=(Enforce.LIMITS,) if rule == "limit" else ()),
        accounts=tree(nlp={"max_jobs": 1} if rule == "limit" else {}),
        quota=quota if rule == "quota" else None,
    )
    record = {"account": "nlp", "project": "nlp"}
    in_array = {"array": ArrayTask(JobId(1), 1, at_once=1)} if rule == "array" else {}
    world.submit(wants(1000), limit=HOUR, record=record | in_array)
    world.submit(wants(1000), limit=HOUR, record={"account": "other"})
    world.run()
    assert len(world.occupied) == 2
    world.submit(wants(2000), limit=5 * HOUR, record=record | in_array)
    found = start(world, world.submit(wants(1000), limit=HOUR, record={"account": "other"}))
    assert (found.latest_at, found.no_bound) == (None, NoBound.CONDITION_AHEAD)


@pytest.mark.parametrize("kind", BackfillKind)
def test_behind_a_job_beyond_the_window_no_latest_start_is_promised(kind: BackfillKind) -> None:
    """It has no reservation, and comes first if other jobs end early. In strict order time limits give a bound."""
    world = World(node("n1", 1), node("n2", 1), policy=Policy(backfill=Backfill(kind=kind, window_seconds=2 * HOUR)))
    for limit in (HOUR, 5 * HOUR):
        world.submit(wants(1000), limit=limit)
    world.run()
    world.submit(wants(1000), nodes=2, limit=HOUR)
    found = start(world, world.submit(wants(1000), limit=HOUR, grace_seconds=0))
    if kind is BackfillKind.OFF:
        assert found.latest_at == 1000 * (6 * HOUR + 60)
    else:
        assert (found.latest_at, found.no_bound) == (None, NoBound.CONDITION_AHEAD)


def test_a_job_that_is_being_requeued_comes_back_ahead() -> None:
    world = full()
    waits = world.submit(wants(1000), limit=HOUR)
    assert start(world, waits).latest_at == 1000 * HOUR
    ending = Ending(cause=EndCause.REQUEUE, at=world.now, kill_at=Millis(30_000), requeue=True)
    world.change_running(JobId(1), ending=ending)
    world.occupy(JobId(1), world.occupied[JobId(1)], Millis(30_000))
    found = start(world, waits)
    assert (found.latest_at, found.no_bound) == (None, NoBound.CONDITION_AHEAD)
    assert found.likely_at == 1000 * (HOUR + 30)


def test_a_condition_of_a_job_on_other_nodes_takes_no_latest_start_away() -> None:
    places = [Partition(name=name, nodes=(NodeName(name),)) for name in ("n1", "n2")]
    world = World(node("n1", 1), node("n2", 1), policy=CONSERVATIVE, cluster=Cluster(partitions=tuple(places)))
    world.submit(wants(1000), limit=HOUR, grace_seconds=0, record={"partitions": ("n1",)})
    world.run()
    waits = (Dependency(DependencyKind.AFTER_ANY, JobId(1)),)
    world.submit(wants(1000), limit=5 * HOUR, record={"partitions": ("n2",), "waits_for": waits})
    job = world.submit(wants(1000), limit=HOUR, record={"partitions": ("n1",)})
    assert start(world, job).latest_at == 1000 * HOUR
    world.change(JobId(2), partitions=("n2", "n1"))
    assert start(world, job).latest_at is None


@pytest.mark.parametrize("policy", [CONSERVATIVE, OFF])
def test_the_grace_of_jobs_that_follow_each_other_adds_up(policy: Policy) -> None:
    """Each job may use its whole limit and then its grace; the next one starts that much later."""
    world = full(policy, grace=30)
    jobs = [world.submit(wants(1000), limit=HOUR, grace_seconds=40) for _ in range(3)]
    assert [start(world, job).latest_at for job in jobs] == [
        1000 * (HOUR + 30),
        1000 * (2 * HOUR + 70),
        1000 * (3 * HOUR + 110),
    ]


def test_records_of_the_snapshot_stay_as_they_are() -> None:
    world = full()
    world.submit(wants(1000), deadline_at=Millis(1000))
    snapshot = world.snapshot()
    before = replace(snapshot, queue=tuple(snapshot.queue), jobs=dict(snapshot.jobs), occupied=dict(snapshot.occupied))
    StartPredictor(snapshot, None, world.policy, History()).start(JobId(2))
    assert (tuple(snapshot.queue), dict(snapshot.jobs)) == (before.queue, before.jobs)
