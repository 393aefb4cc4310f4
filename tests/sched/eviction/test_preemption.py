"""Which jobs are preempted for which, and that the job they were evicted for starts in their place."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.accounts import Accounts, Association, Qos
from cockpit.model.attempt import EvictionMode, Grounds
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Partition, Preemption, Priority, PriorityKind
from cockpit.model.forecast import Forecast
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.reasons import EvictionPending, NotEnoughFree
from cockpit.model.spec import Dependency, DependencyKind
from cockpit.sched.decisions import Eviction
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.sched.world import World, node, wants

QOS = (
    Qos(name="normal", priority=10),
    Qos(name="scavenge", preempt_mode="CANCEL", grace_seconds=5),
    Qos(name="high", priority=100, preempt=("normal", "scavenge")),
)


def qos_world(
    *nodes, mode: tuple[str, ...] = ("REQUEUE",), backfill: BackfillKind = BackfillKind.EASY, **rules
) -> World:
    accounts = Accounts(
        associations={
            each.key: each for each in (Association(account="root"), Association(account="root", user="root"))
        },
        qos={each.name: each for each in QOS},
    )
    cluster = Cluster(preemption=Preemption(kind="preempt/qos", mode=mode, **rules))
    policy = Policy(backfill=Backfill(kind=backfill))
    return World(*(nodes or (node("n1", 4),)), policy=policy, cluster=cluster, accounts=accounts)


def submit(world: World, *specs, qos: str = "normal", **fields) -> JobId:
    return world.submit(*specs, record={"qos": qos}, **fields)


def running(world: World, *specs, qos: str = "normal", **fields) -> JobId:
    job = submit(world, *specs, qos=qos, **fields)
    world.run()
    assert job in world.occupied
    world.now = Millis(world.now + 1000)
    world.version += 1
    return job


@pytest.mark.req("SC-08")
@pytest.mark.parametrize("kind", list(BackfillKind))
def test_the_youngest_sufficient_victim_is_evicted_and_the_preemptor_starts_in_its_place(kind: BackfillKind) -> None:
    world = qos_world(backfill=kind)
    old, young = running(world, wants(2000)), running(world, wants(2000))
    urgent = submit(world, wants(1000), qos="high")
    plan = world.run()
    assert plan.starts == ()
    assert plan.evictions == (Eviction(young, urgent, EvictionMode.REQUEUE, Grounds.QOS),)
    assert world.reason(urgent) == EvictionPending((young,), world.now)
    assert world.run().evictions == ()
    world.gone(young)
    plan = world.run()
    assert [start.job for start in plan.starts] == [urgent]
    assert world.jobs[young].state is JobState.QUEUED
    assert set(world.occupied) == {old, urgent}


@pytest.mark.req("SC-08")
def test_no_job_is_evicted_where_resources_are_free_or_eviction_would_not_help() -> None:
    world = qos_world(node("n1", 4), node("n2", 2))
    running(world, wants(2000), pins=("n1",))
    fits = submit(world, wants(2000), qos="high")
    plan = world.run()
    assert ([start.job for start in plan.starts], plan.evictions) == ([fits], ())
    too_big = submit(world, wants(4000), qos="high", pins=("n2",))
    assert world.run().evictions == ()
    assert world.reason(too_big).wanted == 4


@pytest.mark.req("SC-08")
def test_the_reason_names_what_else_it_may_preempt_where_that_is_not_enough() -> None:
    world = qos_world(node("n1", 4))
    running(world, wants(3000), qos="high")
    running(world, wants(1000))
    wanting = submit(world, wants(2000), qos="high")
    poor = submit(world, wants(2000))
    assert world.run().evictions == ()
    told = world.reason(wanting)
    assert isinstance(told, NotEnoughFree)
    assert told.preemptable == 1
    assert world.reason(poor).preemptable is None


@pytest.mark.req("SC-08")
def test_the_lowest_rank_is_evicted_first_by_its_own_mode_and_grace() -> None:
    world = qos_world(node("n1", 4))
    scavenger, normal = running(world, wants(2000), qos="scavenge"), running(world, wants(2000))
    urgent = submit(world, wants(2000), qos="high")
    plan = world.run()
    assert plan.evictions == (Eviction(scavenger, urgent, EvictionMode.CANCEL, Grounds.QOS, 5),)
    assert world.reason(urgent) == EvictionPending((scavenger,), Millis(world.now + 5000))
    assert normal in world.occupied


@pytest.mark.req("SC-08")
def test_one_victim_of_higher_rank_is_preferred_to_two_of_lower_rank() -> None:
    world = qos_world(node("n1", 4))
    running(world, wants(1000), qos="scavenge")
    running(world, wants(1000), qos="scavenge")
    normal = running(world, wants(2000))
    submit(world, wants(2000), qos="high")
    assert [each.job for each in world.run().evictions] == [normal]


@pytest.mark.req("SC-08")
@pytest.mark.parametrize("kind", list(BackfillKind))
def test_the_freed_resources_are_reserved_for_the_preemptor(kind: BackfillKind) -> None:
    """Not what is free already beside those who go, nor what they leave."""
    world = qos_world(node("n1", 4), backfill=kind)
    victim = running(world, wants(2000), qos="scavenge")
    urgent = submit(world, wants(4000), qos="high")
    small = submit(world, wants(1000), limit=1)
    plan = world.run()
    assert ([each.job for each in plan.evictions], plan.starts) == ([victim], ())
    submit(world, wants(1000), limit=1)
    plan = world.run()
    assert (plan.evictions, plan.starts) == ((), ())
    world.gone(victim)
    assert [start.job for start in world.run().starts] == [urgent]
    assert small in {job.id for job in world.queue}


@pytest.mark.req("SC-08")
def test_no_job_is_evicted_where_an_ending_job_frees_enough() -> None:
    world = qos_world(node("n1", 4))
    ending, other = running(world, wants(2000)), running(world, wants(2000))
    world.evict(Eviction(ending, ending, EvictionMode.CANCEL, Grounds.QOS, 60))
    urgent = submit(world, wants(2000), qos="high")
    assert world.run().evictions == ()
    assert other in world.occupied
    assert isinstance(world.reason(urgent), NotEnoughFree)


@pytest.mark.req("SC-08")
def test_a_job_is_exempt_from_preemption_until_it_has_run_long_enough() -> None:
    world = qos_world(node("n1", 4), exempt_seconds=60)
    victim = running(world, wants(4000))
    submit(world, wants(4000), qos="high")
    plan = world.run()
    assert (plan.evictions, plan.next_at) == ((), 60_000)
    world.now = Millis(60_000)
    world.version += 1
    assert [each.job for each in world.run().evictions] == [victim]


@pytest.mark.req("SC-08")
def test_suspension_frees_processors_and_nothing_else() -> None:
    world = qos_world(node("n1", 4, cpus=4), mode=("SUSPEND", "GANG"))
    victim = running(world, wants(2000, cpus=4))
    urgent = submit(world, wants(2000, cpus=2), qos="high")
    plan = world.run()
    assert [start.job for start in plan.starts] == [urgent]
    assert plan.evictions == (Eviction(victim, urgent, EvictionMode.SUSPEND, Grounds.QOS),)
    assert [part.cpus for part in world.occupied[victim]] == [0]
    cards = submit(world, wants(4000), qos="high")
    assert world.run().evictions == ()
    assert world.reason(cards).preemptable == 0


@pytest.mark.req("SC-08")
def test_partitions_of_a_higher_tier_preempt_unless_the_mode_is_off() -> None:
    partitions = (
        Partition(name="idle", preempt_mode="CANCEL", grace_seconds=3),
        Partition(name="kept", preempt_mode="OFF"),
        Partition(name="best", priority_tier=5),
    )
    cluster = Cluster(partitions=partitions, preemption=Preemption(kind="preempt/partition_prio", mode=("REQUEUE",)))
    world = World(node("n1", 4), cluster=cluster)
    kept = world.submit(wants(2000), record={"partitions": ("kept",)})
    idle = world.submit(wants(2000), record={"partitions": ("idle",)})
    world.run()
    assert {kept, idle} == set(world.occupied)
    best = world.submit(wants(4000), record={"partitions": ("best",)})
    assert world.run().evictions == ()
    assert world.reason(best).preemptable == 1
    less = world.submit(wants(2000), limit=60, record={"partitions": ("best",)})
    assert world.run().evictions == (Eviction(idle, less, EvictionMode.CANCEL, Grounds.PARTITION, 3),)


@pytest.mark.req("SC-08")
def test_preemption_within_a_qos_needs_a_higher_place_in_the_queue() -> None:
    world = qos_world(node("n1", 4), mode=("REQUEUE", "WITHIN"))
    first = submit(world, wants(4000), held_by="root")
    younger = running(world, wants(4000))
    youngest = submit(world, wants(4000))
    assert world.run().evictions == ()
    world.hold(first, "")
    assert world.run().evictions == (Eviction(younger, first, EvictionMode.REQUEUE, Grounds.QOS),)
    assert youngest in {job.id for job in world.queue}


def foretold(world: World, job: JobId) -> Forecast:
    return StartPredictor(world.snapshot(), None, world.policy, History()).forecast(job)


@pytest.mark.req("SC-08", "SC-12")
def test_predictions_simulate_preemption() -> None:
    world = qos_world(node("n1", 4))
    victim = running(world, wants(4000), qos="scavenge", limit=1000)
    behind = submit(world, wants(4000), limit=100)
    urgent = submit(world, wants(4000), qos="high", limit=600)
    assert foretold(world, urgent).likely_at == world.now + 5000
    assert foretold(world, behind).likely_at == world.now + 605_000
    plan = world.run()
    assert [each.job for each in plan.evictions] == [victim]
    assert foretold(world, urgent).likely_at == world.now + 5000


@pytest.mark.req("SC-08", "SC-12")
@pytest.mark.parametrize("kind", PriorityKind)
def test_predictions_give_a_requeued_job_its_place_before_jobs_that_came_later(kind: PriorityKind) -> None:
    world = qos_world(node("n1", 4))
    world.change_rules(cluster=replace(world.rules["cluster"], priority=Priority(kind=kind)))
    victim = running(world, wants(4000), limit=100)
    behind = submit(world, wants(4000), limit=1000)
    urgent = submit(world, wants(4000), qos="high", limit=10)
    foreseen = foretold(world, behind).likely_at
    assert {each.job for each in world.run().evictions} == {victim}
    world.gone(victim)
    for job, seconds in ((urgent, 10), (victim, 100)):
        assert [start.job for start in world.run().starts] == [job]
        world.now = Millis(world.now + 1000 * seconds)
        world.end(job)
    assert [start.job for start in world.run().starts] == [behind]
    assert foreseen - world.now in (0, 1)  # the simulation gives a victim a millisecond


@pytest.mark.req("SC-08", "SC-10", "SC-12")
def test_what_waits_for_the_success_of_a_cancelled_job_is_predicted_no_start() -> None:
    world = qos_world(node("n1", 4))
    victim = running(world, wants(4000), qos="scavenge", limit=1000)
    after = {
        kind: world.submit(wants(1000), record={"qos": "normal", "waits_for": (Dependency(kind, victim),)})
        for kind in (DependencyKind.AFTER_OK, DependencyKind.AFTER_ANY)
    }
    submit(world, wants(4000), qos="high", limit=600)
    assert foretold(world, after[DependencyKind.AFTER_OK]).likely_at is None
    assert foretold(world, after[DependencyKind.AFTER_ANY]).likely_at == world.now + 605_000
    assert [each.mode for each in world.run().evictions] == [EvictionMode.CANCEL]
    assert foretold(world, after[DependencyKind.AFTER_OK]).likely_at is None


@pytest.mark.req("SC-08", "SC-12")
def test_predictions_resume_suspended_jobs() -> None:
    world = qos_world(node("n1", 4, cpus=4), mode=("SUSPEND", "GANG"))
    running(world, wants(2000, cpus=4), limit=1000)
    urgent = submit(world, wants(1000, cpus=4), qos="high", limit=600)
    world.run()
    assert urgent in world.occupied
    big = submit(world, wants(4000, cpus=4), limit=100)
    assert foretold(world, big).likely_at == world.now + 600_000 + 999_000


@pytest.mark.req("SC-08", "SC-13")
def test_an_exempt_victim_is_evicted_once_its_exemption_ends() -> None:
    """Only the exempt job keeps the other from starting: without its exemption it is preempted."""
    world = qos_world(node("n1", 4), exempt_seconds=3600)
    victim = running(world, wants(4000))
    urgent = submit(world, wants(4000), qos="high")
    assert world.run().evictions == ()
    assert world.reason(urgent).preemptable == 0
    world.now = Millis(3_600_000)
    world.version += 1
    assert [each.job for each in world.run().evictions] == [victim]


@pytest.mark.req("SC-08")
def test_one_pass_preempts_for_a_bounded_number_of_jobs_and_the_next_follows_at_once() -> None:
    world = qos_world(*(node(f"n{number}", 1) for number in range(20)))
    for _ in range(20):
        running(world, wants(1000))
    for _ in range(20):
        submit(world, wants(1000), qos="high")
    plan = world.run()
    assert (len(plan.evictions), plan.next_at) == (16, world.now + 1)
    plan = world.run()
    assert (len(plan.evictions), plan.next_at) == (4, None)


@pytest.mark.req("SC-08", "SC-12")
def test_predictions_suspend_the_victim_of_a_job_that_begins_later() -> None:
    world = qos_world(node("n1", 4, cpus=4), mode=("SUSPEND", "GANG"))
    running(world, wants(cpus=4), limit=1000)
    urgent = submit(world, wants(cpus=4), qos="high", begin_at=Millis(60_000))
    assert foretold(world, urgent).likely_at == 60_000


@pytest.mark.req("SC-08")
def test_a_nomination_makes_the_reasons_of_two_passes_differ() -> None:
    """Otherwise a list of jobs would still show that the job waits for free nodes."""
    world = qos_world()
    running(world, wants(4000), limit=600)
    urgent = submit(world, wants(4000), qos="high", limit=100, begin_at=Millis(world.now + 1))
    normal = submit(world, wants(4000), limit=100)
    before = world.run().refusals
    world.now = Millis(world.now + 1)
    after = world.run().refusals
    assert isinstance(world.reason(urgent), EvictionPending)
    assert isinstance(world.reason(normal), NotEnoughFree)
    assert before != after
