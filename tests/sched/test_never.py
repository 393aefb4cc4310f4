"""Jobs that never start, and jobs ahead of others, compared with every free state of many small random clusters."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from msgspec.structs import replace

from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce, Partition, PartitionState
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import NodeState
from cockpit.model.reasons import (
    BeginsLater,
    DependencyNever,
    Held,
    LimitReached,
    NeverFits,
    NoAlternative,
    NotEnoughFree,
    NotEvaluated,
    PartitionRefuses,
    never_starts,
)
from cockpit.model.spec import Dependency, DependencyKind, TaskSpread, WorkerPool
from cockpit.sched.explain import explain, reason_of
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.sched.counterfactual import copied
from tests.sched.every_rule import every_rule_world
from tests.sched.lab import tree
from tests.sched.world import World, cards, node, wants

pytestmark = pytest.mark.req("SC-13")


def starts_alone(world: World, job: Job) -> bool:
    """Whether the job starts in some free state: nothing else is there, all is in service, nothing is used up, and what
    it waits for has come. Every set of nodes is tried: others may be on the rest."""
    nodes = [replace(each, state=NodeState.UP) for each in world.nodes.values()]
    return any(
        _starts_on(world, job, chosen) for count in range(1, len(nodes) + 1) for chosen in combinations(nodes, count)
    )


def _starts_on(world: World, job: Job, nodes) -> bool:
    rules = dict(world.rules)
    partitions = tuple(replace(each, state=PartitionState.UP) for each in rules["cluster"].partitions)
    rules["cluster"] = replace(rules["cluster"], partitions=partitions)
    kept = rules.get("reservations", {}).get(job.spec.reservation)
    rules["reservations"] = {kept.name: kept} if kept is not None else {}
    alone = World(*nodes, policy=Policy(), **rules | {"usage": {}, "qos_usage": {}})
    alone.now = max(world.now, Millis(kept.start_at)) if kept is not None else world.now
    spec = replace(job.spec, begin_at=None)
    job = replace(job, id=JobId(1), spec=spec, waits_for=job.waits_for if job.never else (), clears=())
    alone.jobs[job.id] = job
    alone.queue.append(job)
    return bool(alone.cycle().starts)


@pytest.mark.parametrize("first", range(0, 800, 200))
def test_a_job_never_starts_if_and_only_if_no_free_cluster_could_start_it(first: int) -> None:
    met: Counter[str] = Counter()
    for seed in range(first, first + 200):
        world = every_rule_world(seed)
        if world.rules["cluster"].members:
            continue  # only totals are known of a fleet
        for job in world.queue:
            told = world.reason(job.id)
            if isinstance(told, Held | NotEvaluated):
                continue
            never = never_starts(told)
            met[f"{type(told).__name__} {never}"] += 1
            assert never != starts_alone(world, job), (seed, job.id, told)
    assert len(met) >= 12, met


@pytest.mark.parametrize("seed", range(200))
def test_a_job_that_never_starts_is_ahead_of_no_job_and_has_no_position(seed: int) -> None:
    world = every_rule_world(seed)
    plan, snapshot = world.cycle(), world.snapshot()
    never = {job.id for job in world.queue if never_starts(reason_of(plan, job))}
    for job in world.queue:
        told = explain(snapshot, plan, job.id)
        if told is not None:
            assert never.isdisjoint(told.ahead)
            assert (told.place is None) == (never_starts(told.reason) or isinstance(told.reason, Held))


SHORT = Partition(name="short", max_time_seconds=300)
MAIN = Partition(name="main")


def of_two(**user) -> World:
    cluster = Cluster(partitions=(SHORT, MAIN), enforce=(Enforce.LIMITS,))
    return World(node("n1", cards(8, "A100")), cluster=cluster, accounts=tree(user=user))


def in_both(world: World, **fields) -> JobId:
    return world.submit(record={"account": "nlp", "partitions": ("short", "main")}, **fields)


def test_the_reason_is_of_the_partition_that_can_start_the_job() -> None:
    world = of_two(max_jobs=1)
    in_both(world, limit=7200)
    world.run()
    waits = in_both(world, limit=600)
    world.run()
    told = world.reason(waits)
    assert isinstance(told, LimitReached)
    assert (told.limit, told.never) == ("MaxJobs", False)


@pytest.mark.parametrize("first", [10, 500])
def test_the_reason_is_of_the_full_partition_that_is_free_sooner(first: int) -> None:
    places = (Partition(name="a", nodes=(NodeName("n1"),)), Partition(name="b", nodes=(NodeName("n2"),)))
    world = World(node("n1", 4), node("n2", 2), cluster=Cluster(partitions=places))
    world.submit(wants(4000), limit=first, record={"partitions": ("a",)})
    world.submit(wants(2000), limit=100, record={"partitions": ("b",)})
    world.run()
    waits = world.submit(wants(1000), record={"partitions": ("a", "b")})
    world.run()
    assert world.reason(waits).nearest[0].node == ("n1" if first == 10 else "n2")


@pytest.mark.parametrize("seed", range(150))
def test_the_reason_is_of_the_partition_where_the_job_starts_first(seed: int) -> None:
    """By the forecasts of the same job alone in the queue, in one partition after the other."""
    world = every_rule_world(seed)
    partitions = world.rules["cluster"].partitions
    if world.rules["cluster"].members or len(partitions) < 2:
        return
    world.policy = Policy(backfill=Backfill(kind=BackfillKind.EASY))
    world.change_rules(reservations={}, cluster=replace(world.rules["cluster"], preemption=Cluster().preemption))
    world.change_rules(quota=None)
    if any(world.jobs[each].suspension or world.jobs[each].ending for each in world.occupied):
        return
    for job in [each for each in world.queue if not each.held_by and not each.waits_for and each.array is None]:
        where = (partitions[0].name, partitions[1].name)
        moments, reasons = [], []
        for names in (where, where[:1], where[1:]):
            fresh = copied(world)
            fresh.withdraw(*(each.id for each in world.queue if each.id != job.id))
            fresh.change(job.id, partitions=names, clears=(), spec=replace(job.spec, begin_at=None))
            plan = fresh.cycle()
            if plan.starts:
                break
            reasons.append(fresh.reason(job.id))
            moments.append(StartPredictor(fresh.snapshot(), plan, fresh.policy, History()).start(job.id).likely_at)
        if len(moments) == 3 and moments[1] != moments[2] and all(each is not None for each in moments):
            assert reasons[0] == reasons[1 if moments[1] < moments[2] else 2], (seed, job.id, moments)


@pytest.mark.parametrize("gate", ["begin", "waits", "full array", "limit"])
def test_a_permanent_reason_is_reported_before_a_temporary_one(gate: str) -> None:
    world = of_two(max_jobs=1)
    first = in_both(world)
    world.run()
    too_big = wants(9000)
    fields = {"begin_at": Millis(world.now + 5000)} if gate == "begin" else {}
    waits = (Dependency(DependencyKind.AFTER_ANY, first),) if gate == "waits" else ()
    job = world.submit(too_big, record={"account": "nlp", "partitions": ("main",), "waits_for": waits}, **fields)
    world.run()
    assert isinstance(world.reason(job), NeverFits)
    passing = world.submit(record={"account": "nlp", "partitions": ("main",), "waits_for": waits}, **fields)
    world.run()
    assert not never_starts(world.reason(passing))
    if gate == "begin":
        assert isinstance(world.reason(passing), BeginsLater)


def test_a_partition_that_is_down_hides_no_permanent_reason() -> None:
    world = of_two()
    down = replace(SHORT, state=PartitionState.DOWN)
    world.change_rules(cluster=replace(world.rules["cluster"], partitions=(down, MAIN)))
    job = world.submit(limit=600, record={"account": "nlp", "partitions": ("short",)})
    world.run()
    assert world.reason(job) == PartitionRefuses("short", "max_time", "300", "600")


def test_a_temporary_limit_hides_none_that_the_job_exceeds_by_itself() -> None:
    world = of_two(max_jobs=1, grp_tres={"cpu": 2.0})
    in_both(world)
    world.run()
    job = world.submit(wants(cpus=3), record={"account": "nlp", "partitions": ("main",)})
    world.run()
    told = world.reason(job)
    assert (told.limit, told.resource, told.never) == ("GrpTRES", "cpu", True)


@pytest.mark.parametrize("kind", ["helpers", "tasks"])
@pytest.mark.parametrize("gate", ["limit", "partition"])
def test_replicas_that_differ_and_tasks_that_may_be_spread_are_judged_by_limits_too(kind: str, gate: str) -> None:
    """The job breaks a limit by itself, and something that passes stops it first."""
    world = of_two(max_jobs=1, grp_tres={"cpu": 4.0})
    for more in ("n2", "n3"):
        world.set_node(node(more))
    if gate == "limit":
        in_both(world)
        world.run()
    else:
        down = replace(MAIN, state=PartitionState.DOWN)
        world.change_rules(cluster=replace(world.rules["cluster"], partitions=(SHORT, down)))
    each = wants(cpus=2)
    pools = tuple(WorkerPool(replicas=1, spec=spec) for spec in (wants(cpus=2), wants(cpus=1), wants(cpus=3)))
    uneven = {"worker_pools": pools} if kind == "helpers" else {"spread": TaskSpread(tasks=3, each=each)}
    job = world.submit(each, record={"account": "nlp", "partitions": ("main",)}, **uneven)
    behind = world.submit(record={"account": "nlp", "partitions": ("main",)})
    plan = world.run()
    told = world.reason(job)
    assert isinstance(told, LimitReached)
    assert (told.limit, told.asked, told.never) == ("GrpTRES", 6.0, True)
    assert job not in explain(world.snapshot(), plan, behind).ahead


def test_tasks_that_need_more_nodes_than_a_limit_allows_never_start() -> None:
    world = of_sizes({"node": 2.0}, *(node(name, cpus=4) for name in ("a", "b", "c")))
    job = of_ann(world, wants(cpus=2), spread=TaskSpread(tasks=6, each=wants(cpus=2)))
    fewer = of_ann(world, wants(cpus=2), spread=TaskSpread(tasks=4, each=wants(cpus=2)))
    plan = world.run()
    told = world.reason(job)
    assert (told.limit, told.resource, told.asked, told.never) == ("GrpTRES", "node", 3.0, True)
    assert [start.job for start in plan.starts] == [fewer]


def test_jobs_that_never_start_are_not_counted() -> None:
    world = World(node("n1", 2))
    world.submit(wants(2000), limit=50)
    world.run()
    gone = JobId(99)
    condition = (Dependency(DependencyKind.AFTER_OK, gone),)
    world.submit(wants(3000))
    world.submit(wants(1000), record={"waits_for": condition, "never": gone})
    waits = world.submit(wants(2000))
    snapshot, plan = world.snapshot(), world.cycle()
    told = explain(snapshot, plan, waits)
    assert isinstance(told.reason, NotEnoughFree)
    assert (told.place, told.ahead) == (1, ())
    assert isinstance(explain(snapshot, plan, JobId(3)).reason, DependencyNever)


def of_sizes(limit: dict, *nodes, **rules) -> World:
    """Ann's jobs together may hold so much."""
    cluster = Cluster(enforce=(Enforce.LIMITS,))
    return World(*nodes, cluster=cluster, accounts=tree(user={"grp_tres": limit}), **rules)


def of_ann(world: World, *specs, **fields) -> JobId:
    return world.submit(*specs, record={"account": "nlp"}, **fields)


@pytest.mark.req("SC-03", "SC-04")
def test_a_whole_node_job_is_checked_against_all_nodes_not_only_the_free_one() -> None:
    world = of_sizes({"cpu": 2.0}, node("small", cpus=2), node("big", cpus=4))
    taken = world.submit(wants(cpus=2), pins=("small",), record={"account": "other"}, limit=50)
    world.run()
    job = of_ann(world, exclusive=True)
    behind = world.submit(wants(cpus=2), pins=("big",), record={"account": "other"}, limit=9999)
    plan = world.run()
    told = world.reason(job)
    assert isinstance(told, NotEnoughFree)
    assert [each.node for each in told.nearest] == ["small"]
    assert (plan.reservation.job, plan.reservation.reserved_at) == (job, 50_000)
    assert behind in {start.job for start in plan.starts}
    world.withdraw(behind)
    world.end(behind)
    world.end(taken)
    assert [(each.job, each.placement[0].node) for each in world.run().starts] == [(job, "small")]


@pytest.mark.req("SC-03", "SC-04")
def test_a_whole_node_job_gets_a_node_within_the_limit_though_another_fits_better() -> None:
    world = of_sizes({"gres/gpu": 2.0}, node("tight", 4, cpus=2), node("wide", 2, cpus=8))
    world.submit(wants(cpus=1), pins=("wide",), record={"account": "other"}, limit=5)
    world.run()
    job = of_ann(world, exclusive=True)
    world.run()
    assert not never_starts(world.reason(job))
    world.end(JobId(1))
    assert [each.placement[0].node for each in world.run().starts] == ["wide"]


@pytest.mark.req("SC-03", "SC-04")
def test_where_the_limit_excludes_every_whole_node_the_job_never_starts_and_blocks_no_job() -> None:
    world = of_sizes({"cpu": 2.0}, node("n1", cpus=3), node("n2", cpus=4))
    world.submit(wants(cpus=1), pins=("n1",), record={"account": "other"})
    world.submit(wants(cpus=1), pins=("n2",), record={"account": "other"})
    world.run()
    job = of_ann(world, exclusive=True)
    plan = world.run()
    told = world.reason(job)
    assert (told.limit, told.resource, told.asked, told.never) == ("GrpTRES", "cpu", 3.0, True)
    assert plan.reservation is None


@pytest.mark.req("SC-03", "SC-04")
def test_a_gang_of_whole_nodes_gets_nodes_that_are_together_within_the_limit() -> None:
    world = of_sizes({"cpu": 6.0}, node("a", cpus=2), node("b", cpus=4), node("c", cpus=4))
    job = of_ann(world, nodes=2, exclusive=True)
    (start,) = world.run().starts
    assert (start.job, sorted(part.cpus for part in start.placement)) == (job, [2, 4])
    third = of_ann(world, nodes=2, exclusive=True)
    world.run()
    assert not never_starts(world.reason(third))


@pytest.mark.req("SC-03", "SC-05")
def test_a_share_and_a_card_of_any_model_are_placed_where_the_limit_permits() -> None:
    world = of_sizes({"gres/gpu": 0.4}, node("halves", cards(1, slices=2)), node("whole", cards(1)))
    of_ann(world, wants(300))
    assert [each.placement[0].node for each in world.run().starts] == ["whole"]
    world = of_sizes({"gres/gpu:h100": 0.0}, node("h", cards(1, "H100"), cpus=2), node("a", cards(1, "A100"), cpus=9))
    of_ann(world, wants(1000))
    assert [each.placement[0].node for each in world.run().starts] == ["a"]


@pytest.mark.req("SC-03", "SC-04")
def test_an_alternative_that_breaks_a_limit_on_every_node_hides_none_that_may_start() -> None:
    world = of_sizes({"gres/gpu": 2.0}, node("wide", 4), node("small", 1))
    job = of_ann(world, wants(2000), wants(500), exclusive=True)
    (start,) = world.run().starts
    assert (start.job, start.spec_index, [part.node for part in start.placement]) == (job, 1, ["small"])


@pytest.mark.req("SC-03", "SC-06")
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_job_that_a_limit_keeps_off_the_nodes_in_service_waits_for_the_others_and_reserves_none(nodes: int) -> None:
    small = [node(name, 1) for name in ("small", "less")[:nodes]]
    world = of_sizes({"gres/gpu": 1.0 * nodes}, *small, *(node(name, 4) for name in ("wide", "more")[:nodes]))
    for each in small:
        world.set_state(each.name, NodeState.DRAINED)
    world.submit(wants(1000), nodes=nodes, limit=50, record={"account": "other"})
    world.run()
    job = of_ann(world, nodes=nodes, exclusive=True)
    behind = world.submit(wants(1000), nodes=nodes, limit=9999, record={"account": "other"})
    plan = world.run()
    assert [start.job for start in plan.starts] == [behind]
    assert (plan.reservation, world.reason(job).pins) == (None, ())
    assert set(world.reason(job).out_of_service) == {each.name for each in small}
    for each in small:
        world.set_state(each.name, NodeState.UP)
    assert [start.job for start in world.run().starts] == [job]


@pytest.mark.req("SC-03", "SC-13")
def test_an_alternative_that_no_node_could_hold_hides_none_that_waits_for_a_node_out_of_service() -> None:
    world = of_sizes({"cpu": 4.0}, node("small", cpus=4), node("big", cpus=6))
    world.set_state("small", NodeState.DRAINED)
    job = of_ann(world, wants(2000), wants(cpus=2), exclusive=True)
    behind = of_ann(world, wants(cpus=6), held_by="ann")
    world.run()
    assert isinstance(world.reason(job), NoAlternative)
    assert not never_starts(world.reason(job))
    assert explain(world.snapshot(), world.plan, behind).ahead == (job,)
    world.set_state("small", NodeState.UP)
    assert [(each.job, each.spec_index, each.placement[0].node) for each in world.run().starts] == [(job, 1, "small")]


@pytest.mark.req("SC-03", "SC-13")
def test_a_whole_node_that_exceeds_a_limit_now_is_named_beside_an_alternative_that_never_fits() -> None:
    """What the job asks for would be within the limit; the node that it would hold is not while another job runs."""
    world = of_sizes({"cpu": 4.0}, node("n1", cpus=1), node("n2", cpus=4))
    runs = world.submit(wants(cpus=1), pins=("n1",), record={"account": "nlp"}, limit=50)
    world.run()
    job = of_ann(world, wants(cpus=2), wants(1000), exclusive=True)
    world.run()
    told = world.reason(job)
    assert not never_starts(told)
    assert isinstance(told, NoAlternative)
    limit, never = told.specs
    assert (limit.limit, limit.resource, limit.used, limit.asked) == ("GrpTRES", "cpu", 1.0, 4.0)
    assert isinstance(never, NeverFits)
    world.end(runs)
    assert [each.job for each in world.run().starts] == [job]
