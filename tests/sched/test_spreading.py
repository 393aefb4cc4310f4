"""Tasks on any number of nodes: as many on each as fit, now and later, beside a search that tries every choice."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.node import NodeState
from cockpit.model.reasons import NeverFits, NoEligibleNode, Resource, WouldDelay
from cockpit.model.spec import NodeSpec, TaskSpread
from cockpit.sched.feasible import never_fits
from cockpit.sched.invariants import resource_violations
from cockpit.sched.nodes.node_free import node_free_of
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from cockpit.sched.rules.tres import requested
from cockpit.sched.shape import shape_of
from cockpit.sched.spreading import spread_over
from tests.sched.world import World, cards, node, spec_of, wants

EACH = NodeSpec(cpus=1, memory_mib=0)


def tasks(count: int, *, each: NodeSpec = EACH, nodes: int = 1, limit: int = 600, base=None, **bounds):
    """`sbatch -n COUNT`."""
    spread = TaskSpread(tasks=count, each=each, **bounds)
    return spec_of(base or wants(cpus=each.cpus), nodes=nodes, limit=limit, spread=spread)


def layout(plan: Plan, job: int) -> dict[str, int] | None:
    """The CPUs of each node by which the job starts, or is going to."""
    placed = [each.placement for each in (*plan.starts, *plan.reservations) if each.job == job]
    return {part.node: part.cpus for part in placed[0]} if placed else None


def reserved_at(plan: Plan, job: int) -> int | None:
    return next((each.reserved_at for each in plan.reservations if each.job == job), None)


def busy(kind: BackfillKind) -> World:
    """Of three nodes with 8, 8 and 16 CPUs there are 2, 4 and 12 free; the first gets empty after 100 s, the next after
    200 s, the last after 300 s."""
    nodes = (node("n1", cpus=8), node("n2", cpus=8), node("n3", cpus=16))
    world = World(*nodes, policy=Policy(backfill=Backfill(kind=kind)))
    for name, cpus, limit in (("n1", 6, 100), ("n2", 4, 200), ("n3", 4, 300)):
        world.submit(wants(cpus=cpus), limit=limit, pins=(name,))
    world.run()
    return world


BOTH = pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.CONSERVATIVE])


@pytest.mark.req("SL-14", "SC-04")
@BOTH
def test_tasks_start_at_once_on_what_is_free_of_several_nodes(kind: BackfillKind) -> None:
    world = busy(kind)
    job = world.submit_spec(tasks(18))
    assert layout(world.cycle(), job) == {"n1": 2, "n2": 4, "n3": 12}


@pytest.mark.req("SL-14", "SC-04")
@BOTH
def test_few_nodes_are_used_and_the_remaining_tasks_go_to_the_tightest_fit(kind: BackfillKind) -> None:
    world = busy(kind)
    job = world.submit_spec(tasks(13))
    assert layout(world.cycle(), job) == {"n1": 1, "n3": 12}
    world = busy(kind)
    job = world.submit_spec(tasks(3))
    assert layout(world.cycle(), job) == {"n2": 3}


@pytest.mark.req("SL-14", "SC-06")
@BOTH
@pytest.mark.parametrize(("count", "at"), [(19, 100), (24, 100), (25, 200), (28, 200), (29, 300), (32, 300)])
def test_tasks_wait_for_the_first_time_at_which_all_fit(kind: BackfillKind, count: int, at: int) -> None:
    world = busy(kind)
    job = world.submit_spec(tasks(count))
    assert reserved_at(world.cycle(), job) == 1000 * at
    assert sum((layout(world.cycle(), job) or {}).values()) == count


@pytest.mark.req("SL-14", "SC-06")
@BOTH
def test_later_jobs_may_use_only_resources_that_the_spread_tasks_do_not_need(kind: BackfillKind) -> None:
    world = busy(kind)
    head = world.submit_spec(tasks(23))  # 24 CPUs are free at 100 s
    fits = world.submit(wants(cpus=1), limit=5000)
    late = world.submit(wants(cpus=1), limit=5000)
    plan = world.cycle()
    assert reserved_at(plan, head) == 100_000
    assert [start.job for start in plan.starts] == [fits]
    if kind is BackfillKind.EASY:
        assert isinstance(plan.refusals.reason(world.jobs[late], ""), WouldDelay)
    short = world.submit(wants(cpus=2), limit=90)
    assert short in [start.job for start in world.cycle().starts]


@pytest.mark.req("SL-14", "SC-06")
def test_no_start_is_reserved_where_the_resources_are_not_free_long_enough() -> None:
    world = busy(BackfillKind.CONSERVATIVE)
    first = world.submit_spec(tasks(32, limit=50))  # everything from 300 s to 350 s
    long, short = world.submit_spec(tasks(19, limit=600)), world.submit_spec(tasks(19, limit=200))
    plan = world.cycle()
    assert [reserved_at(plan, each) for each in (first, long, short)] == [300_000, 350_000, 100_000]


@pytest.mark.req("SL-14")
def test_bounds_of_nodes_and_tasks_per_node_are_obeyed() -> None:
    world = busy(BackfillKind.CONSERVATIVE)
    jobs = {
        "at least three nodes": (tasks(12, nodes=3), {"n1": 1, "n2": 1, "n3": 10}),
        "at most two": (tasks(17, most_nodes=2), None),
        "four a node": (tasks(10, most_per_node=4), {"n1": 2, "n2": 4, "n3": 4}),
        "four CPUs at least of each node": (tasks(10, base=wants(cpus=4)), {"n3": 10}),
        "and so on two nodes": (tasks(13, base=wants(cpus=4)), {"n2": 4, "n3": 12}),
        "two CPUs a task": (tasks(8, each=NodeSpec(cpus=2, memory_mib=0)), {"n2": 4, "n3": 12}),
    }
    for name, (spec, expected) in jobs.items():
        job = world.submit_spec(spec)
        plan = world.cycle()
        start = next((each for each in plan.starts if each.job == job), None)
        found = {part.node: part.cpus for part in start.placement} if start is not None else None
        assert found == expected, name
        world.withdraw(job)


@pytest.mark.req("SL-14")
def test_memory_counts_by_task_or_by_node_and_cards_by_task() -> None:
    def free(spec) -> dict[str, tuple[int, int, int]]:
        world = World(
            node("g1", cards(2), cpus=8, memory_mib=4000),
            node("g2", cards(4), cpus=8, memory_mib=9000),
            policy=Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE)),
        )
        job = world.submit_spec(spec)
        (start,) = world.cycle().starts
        assert not resource_violations(world.nodes, {job: start.placement})
        return {part.node: (part.cpus, part.memory_mib, len(part.slices)) for part in start.placement}

    by_task = tasks(10, each=NodeSpec(cpus=1, memory_mib=1000), base=wants(memory_mib=1000))
    assert free(by_task) == {"g1": (2, 2000, 0), "g2": (8, 8000, 0)}
    by_node = tasks(10, base=wants(memory_mib=3000))
    assert free(by_node) == {"g1": (8, 3000, 0), "g2": (2, 3000, 0)}
    a_card_each = tasks(6, each=NodeSpec(cpus=1, memory_mib=0, card_milli=1000), base=wants(1000, memory_mib=0))
    assert free(a_card_each) == {"g1": (2, 0, 2), "g2": (4, 0, 4)}
    a_card_a_node = tasks(10, base=wants(1000, memory_mib=0))
    assert free(a_card_a_node) == {"g1": (8, 0, 1), "g2": (2, 0, 1)}


@pytest.mark.req("SL-14", "SC-13")
def test_more_tasks_than_all_nodes_hold_never_start_and_a_drained_node_is_named() -> None:
    world = busy(BackfillKind.CONSERVATIVE)
    assert never_fits(tasks(32), world.nodes) is None
    assert never_fits(tasks(33), world.nodes) == NeverFits(Resource.CPUS, 33, 32, ())
    drained = {**world.nodes, "n1": replace(world.nodes["n1"], state=NodeState.DRAINED)}
    assert never_fits(tasks(32), drained) is None
    world.set_node(drained["n1"])
    job = world.submit_spec(tasks(32))
    reason = world.cycle().refusals.reason(world.jobs[job], "")
    assert isinstance(reason, NoEligibleNode)
    assert reason.out_of_service == ("n1",)


@pytest.mark.req("SL-14")
def test_requests_of_spread_tasks_are_counted_by_task_and_by_node() -> None:
    asked = requested(tasks(24, nodes=2, base=wants(cpus=1, memory_mib=1024)))
    assert (asked["cpu"], asked["mem"], asked["node"]) == (24, 2048, 2)


@pytest.mark.req("SL-14", "SC-06")
@BOTH
@pytest.mark.parametrize(
    ("wanted", "at"),
    [
        ({"cards": 6}, 200),
        ({"cards": 4, "tasks_per_card": 1}, 100),
        ({"each": NodeSpec(cpus=1, memory_mib=0, card_milli=1000)}, 100),
    ],
)
def test_tasks_wait_for_cards_though_all_cpus_are_free(kind: BackfillKind, wanted: dict, at: int) -> None:
    """Of two nodes with 4 cards each 2 are in use for 100 s and 4 for 200 s."""
    world = World(node("n1", 4), node("n2", 4), policy=Policy(backfill=Backfill(kind=kind)))
    for name, count, limit in (("n1", 2, 100), ("n2", 4, 200)):
        world.submit(wants(count * 1000), limit=limit, pins=(name,))
    world.run()
    job = world.submit_spec(tasks(4, **wanted, base=wants(1000)))
    moment = reserved_at(world.cycle(), job)
    assert moment is not None
    assert (moment - world.now) // 1000 == at


sizes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5)


@pytest.mark.req("SL-14", "SC-04")
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(sizes, st.integers(1, 12), st.integers(1, 3), st.none() | st.integers(1, 4), st.none() | st.integers(1, 4))
def test_tasks_fit_exactly_where_some_choice_of_nodes_fits_them(free, count, least, most, per_node) -> None:
    if count < least or (most is not None and most < least):
        return
    each = NodeSpec(cpus=1, memory_mib=1)
    spec = tasks(count, each=each, nodes=least, base=wants(memory_mib=1), most_nodes=most, most_per_node=per_node)
    nodes_free = [
        node_free_of(node(f"n{order}", cpus=cpus, memory_mib=memory), order, 0, ())
        for order, (cpus, memory) in enumerate(free)
    ]
    found = spread_over(nodes_free, shape_of(spec))
    holds = [min(cpus, memory, per_node or 99) for cpus, memory in free]
    choices = [
        sum(taken > 0 for taken in each_choice)
        for each_choice in product(*(range(min(most_here, count) + 1) for most_here in holds))
        if sum(each_choice) == count
    ]
    lawful = [used for used in choices if least <= used <= (most or 99)]
    assert (found is not None) == bool(lawful)
    if found is not None:
        assert len(found) == min(lawful)
        assert sum(share.tasks for share in found) == count
        assert all(1 <= share.tasks <= holds[share.node_free.order] for share in found)


@pytest.mark.req("SL-14", "SC-04")
@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(sizes, st.integers(1, 8), st.integers(1, 8), st.integers(1, 3), st.none() | st.integers(1, 3))
def test_cards_of_the_whole_job_are_spread_with_its_tasks(free, count, cards_in_all, least, per_card) -> None:
    """`sbatch -n COUNT --gpus=CARDS`: one task and one card at least on each node, and all of both."""
    if per_card is not None:
        count = cards_in_all * per_card
    if min(count, cards_in_all) < least:
        return
    spec = tasks(count, nodes=least, base=wants(1000), cards=cards_in_all, tasks_per_card=per_card)
    nodes_free = [
        node_free_of(node(f"n{order}", number, cpus=cpus), order, 0, ()) for order, (cpus, number) in enumerate(free)
    ]
    found = spread_over(nodes_free, shape_of(spec))
    if per_card is None:
        holding = [(cpus, number) for cpus, number in free if cpus and number]
    else:  # each card has exactly as many tasks
        whole = [min(cpus // per_card, number) for cpus, number in free]
        holding = [(number * per_card, number) for number in whole if number]
    choices = [
        chosen
        for used in range(least, min(len(holding), count, cards_in_all) + 1)
        for chosen in combinations(holding, used)
        if sum(cpus for cpus, _ in chosen) >= count and sum(number for _, number in chosen) >= cards_in_all
    ]
    if found is None:  # a few nodes that suffice may be missed where more of them than cards or tasks hold something
        assert not choices or len(holding) > min(count, cards_in_all)
        return
    assert choices
    assert len(found) >= least
    assert (sum(each.tasks for each in found), sum(each.cards for each in found)) == (count, cards_in_all)
    for each in found:
        cpus, number = free[each.node_free.order]
        assert 1 <= each.tasks <= min(cpus, each.cards * (per_card or 99))
        assert 1 <= each.cards <= number
