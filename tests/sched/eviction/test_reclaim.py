"""Borrowed quota is reclaimed: for which job, from which queues, and no more than is needed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import EvictionMode, Grounds
from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Node
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.reasons import EvictionPending, NotEnoughFree, QuotaFull
from cockpit.sched.policy import Policy
from cockpit.sched.scheduling_pass import MOST_RECLAIMS
from tests.sched.world import World, node, wants

EVERY_KIND = pytest.mark.parametrize("kind", list(BackfillKind))


def share(
    name: str, cards: int, *, most: int | None = None, jobs: int | None = None, below=(), cpus: int = 0
) -> QuotaNode:
    """With enough CPUs and memory for its cards, unless said otherwise."""
    least = {"gres/gpu": 1000 * cards, "cpu": 1000 * (cpus or 4 * cards), "mem": 1000 * 4096 * cards}
    bounds = {} if most is None else {"gres/gpu": 1000 * most}
    bounds |= {} if jobs is None else {"jobs": 1000 * jobs}
    return QuotaNode(name=name, min=least, max=bounds, namespaces=() if below else (name,), children=below)


def a_world(*children: QuotaNode, cards: int = 8, nodes=None, kind: BackfillKind = BackfillKind.EASY) -> World:
    whole = {"gres/gpu": 1000 * cards, "cpu": 32_000, "mem": 1000 * 4096 * cards}
    tree = QuotaTree("teams", QuotaNode(name="root", min=whole, max=whole, children=children))
    return World(*(nodes or (node("n1", 8, cpus=32),)), policy=Policy(backfill=Backfill(kind=kind)), quota=tree)


def submit(world: World, project: str, cards: int, **fields) -> JobId:
    return world.submit(wants(1000 * cards), record={"project": project}, **fields)


def running(world: World, project: str, cards: int, **fields) -> JobId:
    job = submit(world, project, cards, **fields)
    world.run()
    assert job in world.occupied
    world.now = Millis(world.now + 1000)
    world.version += 1
    return job


def evicted(plan) -> list[JobId]:
    return [each.job for each in plan.evictions]


@pytest.mark.req("SC-07", "FL-02")
@EVERY_KIND
def test_a_lender_reclaims_its_quota_from_the_youngest_borrower(kind: BackfillKind) -> None:
    world = a_world(share("a", 4), share("b", 4), kind=kind)
    running(world, "a", 4)
    running(world, "a", 2)
    youngest = running(world, "a", 2)
    own = submit(world, "b", 2)
    plan = world.run()
    assert [(each.job, each.for_job, each.mode, each.grounds) for each in plan.evictions] == [
        (youngest, own, EvictionMode.REQUEUE, Grounds.QUOTA)
    ]
    assert world.reason(own) == EvictionPending((youngest,), Millis(world.now + 30_000))
    assert world.run().evictions == ()
    world.gone(youngest)
    assert [start.job for start in world.run().starts] == [own]
    told = world.reason(youngest)
    assert told == QuotaFull("root", "gres/gpu", 8, 8, 2)


@pytest.mark.req("SC-07")
@EVERY_KIND
def test_reclaimed_resources_are_reserved_and_no_borrowing_job_starts_first(kind: BackfillKind) -> None:
    world = a_world(share("a", 4), share("b", 4), kind=kind)
    old, young = running(world, "a", 4), running(world, "a", 3)
    eager = submit(world, "a", 1)
    own = submit(world, "b", 4)
    assert evicted(world.run()) == [young]
    late = submit(world, "a", 1)
    plan = world.run()
    assert (plan.starts, plan.evictions) == ((), ())
    world.gone(young)
    assert [start.job for start in world.run().starts] == [own]
    assert set(world.occupied) == {old, own}
    assert {world.reason(job).queue for job in (eager, late, young)} == {"root"}


@pytest.mark.req("SC-07", "FL-02")
def test_a_queue_within_its_quota_is_not_reclaimed_from() -> None:
    world = a_world(share("a", 6), share("b", 2), nodes=(node("n1", 6, cpus=32),))
    running(world, "a", 3)
    running(world, "a", 3)
    own = submit(world, "b", 2)
    assert world.run().evictions == ()
    assert isinstance(world.reason(own), NotEnoughFree)


@pytest.mark.req("SC-07", "FL-02")
def test_a_queue_that_would_borrow_reclaims_nothing() -> None:
    world = a_world(share("a", 2), share("b", 2), share("c", 4))
    running(world, "a", 4)
    running(world, "b", 4)
    more = submit(world, "b", 1)
    assert world.run().evictions == ()
    assert world.reason(more) == QuotaFull("root", "gres/gpu", 8, 8, 1)


@pytest.mark.req("SC-07")
def test_a_job_of_no_leaf_queue_is_neither_bounded_nor_reclaimed() -> None:
    world = a_world(share("a", 4), share("b", 4))
    guest = running(world, "guests", 6)
    own = submit(world, "b", 4)
    assert world.run().evictions == ()
    assert isinstance(world.reason(own), NotEnoughFree)
    world.end(guest)
    assert [start.job for start in world.run().starts] == [own]


@pytest.mark.req("SC-07")
def test_one_big_borrower_is_preferred_to_two_small_ones() -> None:
    world = a_world(share("a", 2), share("b", 6), nodes=(node("n1", 8, cpus=32),))
    running(world, "a", 1)
    big = running(world, "a", 4)
    running(world, "a", 1)
    running(world, "a", 2)
    submit(world, "b", 3)
    assert evicted(world.run()) == [big]


@pytest.mark.req("SC-07")
def test_no_queue_is_reclaimed_below_its_quota_by_more_than_its_last_job() -> None:
    """`a` holds five cards and has a min of four: one of its jobs may be evicted, though two would free enough."""
    world = a_world(share("a", 4), share("b", 4), cards=8, nodes=(node("n1", 5, cpus=32),))
    for _ in range(5):
        running(world, "a", 1)
    submit(world, "b", 2)
    assert world.run().evictions == ()
    one = submit(world, "b", 1)
    assert len(world.run().evictions) == 1
    assert isinstance(world.reason(one), EvictionPending)


@pytest.mark.req("SC-07", "FL-02")
def test_the_quota_of_a_queue_protects_all_queues_below_it() -> None:
    """`team` has six: `x` is guaranteed two of them, and any queue below `team` may use the rest."""
    team = share("team", 6, below=(share("x", 2), share("y", 0)))
    world = a_world(team, share("other", 2))
    borrower = running(world, "other", 2)
    greedy = running(world, "other", 3)
    running(world, "x", 2)
    more = submit(world, "x", 3)
    assert evicted(world.run()) == [greedy]
    assert isinstance(world.reason(more), EvictionPending)
    assert world.jobs[borrower].ending is None


@pytest.mark.req("SC-07", "FL-02")
def test_within_a_parent_queue_only_the_borrowing_sibling_is_reclaimed_from() -> None:
    team = share("team", 6, below=(share("x", 3), share("y", 3)))
    world = a_world(team, share("other", 2))
    running(world, "other", 2)
    first = running(world, "y", 3)
    second = running(world, "y", 3)
    submit(world, "x", 3)
    assert evicted(world.run()) == [second]
    assert world.jobs[first].ending is None


@pytest.mark.req("SC-07")
def test_nodes_are_reclaimed_where_the_quota_is_not_full_too() -> None:
    """The cluster has fewer cards than the tree."""
    world = a_world(share("a", 2), share("b", 4), cards=8, nodes=(node("n1", 4, cpus=32),))
    running(world, "a", 1)
    young = running(world, "a", 3)
    submit(world, "b", 2)
    assert evicted(world.run()) == [young]


@pytest.mark.req("SC-07")
def test_borrowing_of_another_resource_is_no_reason_to_reclaim() -> None:
    """`a` borrows CPUs and holds no more cards than its own; cards are what is short."""
    world = a_world(share("a", 4, cpus=2), share("b", 4), nodes=(node("n1", 4, cpus=32),))
    for _ in range(4):
        running(world, "a", 1)
    own = submit(world, "b", 1)
    assert world.run().evictions == ()
    assert isinstance(world.reason(own), NotEnoughFree)


@pytest.mark.req("SC-07", "FL-02")
def test_evicting_other_jobs_does_not_lift_a_bound_on_the_number_of_jobs() -> None:
    team = share("team", 8, jobs=1, below=(share("x", 4), share("y", 4)))
    world = a_world(team)
    running(world, "y", 8)
    waits = submit(world, "x", 1)
    assert world.run().evictions == ()
    assert world.reason(waits).queue == "root/team"


@pytest.mark.req("SC-07")
def test_two_jobs_served_in_one_pass_share_no_victim() -> None:
    world = a_world(share("a", 0), share("b", 4), share("c", 4))
    first, second = running(world, "a", 4), running(world, "a", 4)
    b, c = submit(world, "b", 4), submit(world, "c", 4)
    plan = world.run()
    assert sorted(evicted(plan)) == [first, second]
    assert {each.for_job for each in plan.evictions} == {b, c}
    for job in (first, second):
        world.gone(job)
    assert sorted(start.job for start in world.run().starts) == [b, c]


@pytest.mark.req("SC-07")
def test_one_pass_serves_a_bounded_number_and_the_next_a_second_later() -> None:
    world = a_world(share("a", 0), share("b", 40), cards=40, nodes=[node(f"n{n}", 8, cpus=32) for n in range(5)])
    world.change_rules(quota=wide(world.rules["quota"]))
    for _ in range(40):
        submit(world, "a", 1)
    assert len(world.run().starts) == 40
    owed = [submit(world, "b", 1) for _ in range(40)]
    world.now = Millis(1000)
    plan = world.run()
    assert (len(plan.evictions), plan.next_at) == (MOST_RECLAIMS, 2000)
    assert len(world.run().evictions) == len(owed) - MOST_RECLAIMS


def wide(tree: QuotaTree) -> QuotaTree:
    """With CPUs enough for all its cards."""
    cpus = {"cpu": 160_000}
    return QuotaTree(tree.name, replace(tree.root, min=tree.root.min | cpus, max=tree.root.max | cpus))


@pytest.mark.req("SC-07")
def test_without_a_quota_tree_no_reclaim_is_prepared() -> None:
    world = World(node("n1", 4))
    world.submit(wants(1000))
    assert world.run().scheduling_pass.reclaim is None
    assert world.plan.scheduling_pass.eviction_planner is None


@pytest.mark.req("SC-07")
def test_two_borrowers_are_evicted_together_where_none_alone_frees_enough() -> None:
    world = a_world(share("a", 4), share("b", 4))
    *_, third, youngest = [running(world, "a", 2) for _ in range(4)]
    submit(world, "b", 4)
    assert set(evicted(world.run())) == {third, youngest}


def a_world_of_two_queues(*nodes: Node, least: int, most: int) -> World:
    """Queue `a` with this guarantee and maximum of CPUs, and queue `b` without a guarantee."""
    queues = [
        QuotaNode(name=name, min={"cpu": 1000 * cpus}, max={"cpu": 1000 * most}, namespaces=(name,))
        for name, cpus in (("a", least), ("b", 0))
    ]
    whole = {"cpu": 10_000}
    root = QuotaNode(name="root", min=whole, max=whole, children=tuple(queues))
    return World(*nodes, quota=QuotaTree("teams", root))


@pytest.mark.req("SC-07", "SC-03")
@pytest.mark.parametrize("least", [2, 4])
def test_a_whole_node_within_the_guarantee_is_one_that_the_maximum_allows(least: int) -> None:
    # the larger node comes first, and would be taken
    world = a_world_of_two_queues(node("big", cpus=6), node("small", 1, cpus=4), least=least, most=4)
    world.submit(wants(), exclusive=True, record={"project": "a"})
    assert [each.placement[0].node for each in world.run().starts] == ["small"]


@pytest.mark.req("SC-07")
@pytest.mark.parametrize(("least", "reclaims"), [(2, False), (4, True)])
def test_a_job_whose_whole_node_is_beyond_the_guarantee_reclaims_nothing(least: int, reclaims: bool) -> None:
    world = a_world_of_two_queues(node("n1", cpus=4), least=least, most=10)
    borrower = world.submit(wants(cpus=4), record={"project": "b"})
    world.run()
    # it asks for less than the guarantee
    world.submit(wants(), exclusive=True, record={"project": "a"})
    assert evicted(world.run()) == ([borrower] if reclaims else [])
