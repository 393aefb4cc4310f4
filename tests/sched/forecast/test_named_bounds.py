"""The what-ifs contain the bound that a reason names, and a job that keeps it starts or waits for something else."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from cockpit.engine.prediction import outlook
from cockpit.model.accounts import ResourceLimits
from cockpit.model.cluster import Cluster, Enforce, Partition, Reservation
from cockpit.model.forecast import Change, Forecast, WhatIf
from cockpit.model.ids import Millis, NodeName
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.reasons import (
    BeginsLater,
    InReservation,
    LimitReached,
    NeverFits,
    NoAlternative,
    NodesReserved,
    NotEnoughFree,
    PartitionRefuses,
    QuotaFull,
    WouldDelay,
)
from cockpit.present.columns import Context
from cockpit.present.outlook import prediction, what_if
from cockpit.sched.explain import reasons_of
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.named_bounds import named_bounds
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.forecast.whatif import candidates
from tests.sched.counterfactual import copied, ended, still_so
from tests.sched.every_rule import every_rule_world
from tests.sched.lab import NODE, submit, tree
from tests.sched.lab import world as lab_world
from tests.sched.world import World, node, spec_of, wants

pytestmark = pytest.mark.req("SC-13")


def named(world: World, job: int) -> set[tuple[Change, str]]:
    """By the plan of a new cycle."""
    plan = world.cycle()
    found = named_bounds(world.jobs[job].spec, reasons_of(plan, world.jobs[job]), world.now)
    return {(each.change, each.after) for each in found}


def test_the_limit_of_each_partition_is_named_though_the_reason_is_of_another() -> None:
    places = (Partition(name="short", max_time_seconds=300), Partition(name="main"))
    world = lab_world(tree(user={"max_jobs": 1}), partitions=places)
    submit(world, partitions=("main",))
    world.run()
    job = submit(world, limit=600, partitions=("short", "main"))
    assert world.cycle().starts == ()
    assert world.reason(job).limit == "MaxJobs"
    assert (Change.LIMIT, "300") in named(world, job)


def test_the_number_of_nodes_of_a_partition() -> None:
    few = World(node("n1"), node("n2"), cluster=Cluster(partitions=(Partition(name="p", max_nodes=1),)))
    assert (Change.NODES, "1") in named(few, few.submit(nodes=2, record={"partitions": ("p",)}))
    many = World(node("n1"), node("n2"), cluster=Cluster(partitions=(Partition(name="p", min_nodes=2),)))
    assert (Change.NODES, "2") in named(many, many.submit(record={"partitions": ("p",)}))


@pytest.mark.parametrize(
    ("limits", "asked", "bound"),
    [
        ({"max_wall_seconds": 250}, {"limit": 600}, (Change.LIMIT, "250")),
        ({"max_tres_per_job": {"cpu": 3.0}}, {"cpus": 5}, (Change.CPUS, "3")),
        ({"max_tres_per_job": {"mem": 700.0}}, {}, (Change.MEMORY, "700")),
        ({"max_tres_per_job": {"gres/gpu": 3.0}}, {"card": 4}, (Change.CARDS, "3")),
        ({"max_tres_per_job": {"gres/gpu": 0.4}}, {"card": 0.5}, (Change.SHARE, "400")),
        ({"max_tres_per_node": {"cpu": 3.0}}, {"cpus": 5}, (Change.CPUS, "3")),
        ({"min_tres_per_job": {"cpu": 3.0}}, {"cpus": 2}, (Change.CPUS, "3")),
        ({"grp_tres": {"cpu": 7.0}}, {"cpus": 9}, (Change.CPUS, "7")),
        ({"grp_tres": {"gres/gpu": 3.0}}, {"card": 4}, (Change.CARDS, "3")),
    ],
)
@pytest.mark.parametrize("holder", ["user", "nlp", "normal"])
def test_the_amount_of_a_limit_of_user_account_and_qos(holder, limits, asked, bound) -> None:
    of_holder = {"limits": ResourceLimits(**limits)} if holder == "normal" else limits
    world = lab_world(tree(**{holder: of_holder}))
    job = submit(world, **asked)
    assert world.cycle().starts == ()
    assert isinstance(world.reason(job), LimitReached)
    assert bound in named(world, job)


def test_a_partly_used_limit_names_what_is_left_or_all_of_it_where_that_is_too_little() -> None:
    world = lab_world(tree(nlp={"grp_tres": {"cpu": 8.0}}))
    submit(world, cpus=3)
    world.run()
    assert {(Change.CPUS, "5")} <= named(world, submit(world, cpus=6))
    assert {(Change.CPUS, "5"), (Change.CPUS, "8")} <= named(world, submit(world, cpus=9))


def test_the_end_of_a_budget() -> None:
    world = lab_world(tree(nlp={"grp_tres_minutes": {"cpu": 20.0}}), Enforce.SAFE)
    job = submit(world, cpus=2, limit=1200)
    assert (Change.LIMIT, "600") in named(world, job)


def test_the_total_and_the_free_resources_of_a_node() -> None:
    world = World(node("n1", 4), node("n2", 4))
    assert (Change.CARDS, "4") in named(world, world.submit(wants(5000)))
    assert (Change.NODES, "2") in named(world, world.submit(nodes=3))
    world = World(node("n1", 4), node("n2", 4))
    world.submit(wants(1000), pins=("n1",))
    world.submit(wants(3000), pins=("n2",))
    world.run()
    assert (Change.CARDS, "3") in named(world, world.submit(wants(4000)))
    assert {(Change.NODES, "1"), (Change.CARDS, "1")} <= named(world, world.submit(wants(3000), nodes=2))


def test_the_start_of_a_reservation_and_of_the_job_ahead() -> None:
    kept = Reservation(name="upkeep", nodes=(NodeName("n1"),), start_at=400_000, end_at=900_000, maintenance=True)
    world = World(node("n1"), reservations={"upkeep": kept})
    assert (Change.LIMIT, "400") in named(world, world.submit(limit=600))
    world = World(node("n1", 4))
    world.submit(wants(2000), limit=130)
    world.run()
    world.submit(wants(4000))
    assert (Change.LIMIT, "130") in named(world, world.submit(wants(1000), limit=600))


def test_the_quota_of_a_queue() -> None:
    most = {"gres/gpu": 3000}
    leaf = QuotaNode(name="nlp", namespaces=("nlp",), max=most)
    world = World(NODE, quota=QuotaTree("t", QuotaNode(name="root", min={"gres/gpu": 8000}, children=(leaf,))))
    assert (Change.CARDS, "3") in named(world, world.submit(wants(4000), record={"project": "nlp"}))


def test_a_begin_time_and_other_jobs_on_the_node() -> None:
    world = World(node("n1"))
    assert (Change.BEGIN, "") in named(world, world.submit(begin_at=Millis(5000)))
    world.submit()
    world.run()
    assert (Change.EXCLUSIVE, "") in named(world, world.submit(exclusive=True))


BOUNDED = (
    BeginsLater
    | InReservation
    | LimitReached
    | NeverFits
    | NodesReserved
    | NotEnoughFree
    | PartitionRefuses
    | QuotaFull
)


@pytest.mark.parametrize("first", range(0, 600, 200))
def test_a_job_changed_to_a_named_bound_starts_or_waits_for_another_reason(first: int) -> None:
    """Of those who take what is left free before it, as in the proof of the reasons."""
    met: Counter[str] = Counter()
    for seed in range(first, first + 200):
        world = every_rule_world(seed)
        for job in world.queue:
            reason = world.reason(job.id)
            if isinstance(reason, NoAlternative) or not isinstance(reason, BOUNDED | WouldDelay):
                continue
            for each in named_bounds(job.spec, [reason], world.now):
                met[f"{type(reason).__name__} {each.change}"] += 1
                assert another(world, job.id, reason, each.spec), (seed, job.id, reason, each)
    assert len(met) > 12, met


def another(world: World, job: int, reason, spec) -> bool:
    fresh = copied(world)
    if isinstance(reason, WouldDelay):
        fresh.policy = replace(fresh.policy, backfill=replace(fresh.policy.backfill, resolution_seconds=0))
    fresh.change(job, spec=spec)
    while True:
        plan = fresh.cycle()
        if job in {start.job for start in plan.starts} or not still_so(reason, fresh.reason(job)):
            return True
        takers = {start.job for start in plan.starts} | {*plan.refusals.nominated} - {job}
        if not takers:
            return False
        for other in takers:
            ended(fresh, other) if other in fresh.occupied else fresh.withdraw(other)


def test_an_answer_lists_every_named_bound_with_its_start_and_the_best_of_the_other_changes() -> None:
    """`[short, main]`, 10 min: short allows 5, and main is full."""
    places = (Partition(name="short", max_time_seconds=300), Partition(name="main", nodes=(NodeName("n2"),)))
    world = World(node("n1", 4), node("n2", 2), cluster=Cluster(partitions=places))
    world.submit(wants(2000), limit=900, record={"partitions": ("main",)})
    world.run()
    job = world.jobs[world.submit(wants(2000), limit=600, record={"partitions": ("short", "main")})]
    seer = StartPredictor(world.snapshot(), world.cycle(), world.policy, History())
    found = named_bounds(job.spec, reasons_of(seer.plan, job), world.now)
    tried = [*found, *candidates(world.snapshot(), job, None)]
    answer = outlook(seer, job, [(each, replace(job, spec=each.spec)) for each in tried])
    limits = [each for each in answer.what_ifs if each.change is Change.LIMIT]
    assert [(each.after, each.named, each.forecast.now) for each in limits] == [("300", True, True)]
    assert what_if(limits[0]) == "with a limit of 5 min instead of 10 min"
    assert answer.what_ifs[0] is limits[0]
    assert isinstance(answer.explanation.reason, NotEnoughFree)


def test_a_named_bound_is_listed_though_the_job_starts_no_sooner_with_it() -> None:
    places = (Partition(name="short", max_time_seconds=300, nodes=(NodeName("n1"),)),)
    world = World(node("n1", 4), cluster=Cluster(partitions=places))
    world.submit(wants(4000), limit=200, record={"partitions": ("short",)})
    world.run()
    job = world.jobs[world.submit(wants(4000), limit=600, record={"partitions": ("short",)})]
    seer = StartPredictor(world.snapshot(), world.cycle(), world.policy, History())
    (bound,) = named_bounds(job.spec, reasons_of(seer.plan, job), world.now)
    answer = outlook(seer, job, [(bound, replace(job, spec=bound.spec))])
    (told,) = answer.what_ifs
    assert (told.after, told.forecast.likely_at) == ("300", 200_000)
    assert prediction(answer, Context(now=world.now)) == "never starts as it is"


def test_every_change_has_its_text() -> None:
    words = {
        Change.CPUS: ("4", "2", "with 2 CPUs on each node instead of 4"),
        Change.MEMORY: ("2048", "1024", "with 1G of memory on each node instead of 2G"),
        Change.SHARE: ("500", "400", "with 0.4 of a card instead of 0.5"),
        Change.BEGIN: ("5000", "", "without a time to begin at"),
        Change.EXCLUSIVE: ("", "", "beside other jobs"),
    }
    for change, (before, after, sentence) in words.items():
        assert what_if(WhatIf(change, before, after, spec_of(), Forecast())) == sentence
