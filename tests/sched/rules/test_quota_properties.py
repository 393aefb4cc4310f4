"""On random trees, nodes and jobs, after every pass: no max is passed, sums hold, who may insist is served, only
borrowers go, and no more of them than a search of every set needs."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.quota import QuotaNode, QuotaTree, tree_errors
from cockpit.sched.policy import Policy
from tests.sched.naive_quota import RESOURCES, Naive, every
from tests.sched.world import World, cards, node, spec_of, wants

pytestmark = pytest.mark.req("SC-07", "FL-02")
many = settings(
    max_examples=250, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)

UNITS = {"cpu": 1000, "mem": 1000 * 1024, "gres/gpu": 1000}


def some_amounts(random: Random, most: dict[str, int]) -> dict[str, int]:
    return {name: UNITS[name] * random.randint(0, amount // UNITS[name]) for name, amount in most.items()}


def some_node(random: Random, name: str, least: dict[str, int], top: dict[str, int], depth: int) -> QuotaNode:
    most = {
        name_: max(least[name_], UNITS[name_] * random.randint(0, amount // UNITS[name_]))
        for name_, amount in top.items()
        if random.random() < 0.3
    }
    if random.random() < 0.15:
        most["jobs"] = 1000 * random.randint(1, 3)
    children = ()
    if depth and random.random() < 0.5:
        children = some_children(random, name, least, top | {key: most[key] for key in top if key in most}, depth - 1)
        most.pop("jobs", None)
    return QuotaNode(name=name, min=least, max=most, namespaces=() if children else (name,), children=children)


def some_children(random: Random, name: str, least: dict, top: dict, depth: int) -> tuple[QuotaNode, ...]:
    left, children = dict(least), []
    for number in range(random.choice((2, 2, 3))):
        own = some_amounts(random, left)
        left = {key: left[key] - own[key] for key in left}
        children.append(some_node(random, f"{name}{number}", own, top, depth))
    return tuple(children)


def some_world(random: Random) -> World:
    nodes = [node(f"n{n}", cards(random.choice((2, 3))), cpus=6, memory_mib=6144) for n in range(random.choice((1, 2)))]
    whole = {"cpu": 1000 * random.randint(4, 12), "mem": 1000 * 1024 * random.randint(4, 12)}
    whole |= {"gres/gpu": 1000 * random.randint(2, 6)}
    tree = QuotaTree(
        "t", QuotaNode(name="r", min=whole, max=whole, children=some_children(random, "q", whole, whole, 1))
    )
    assert list(tree_errors(tree)) == []
    kind = random.choice(list(BackfillKind))
    return World(*nodes, policy=Policy(backfill=Backfill(kind=kind)), quota=tree)


def submit_some(random: Random, world: World) -> None:
    leaves = [each.name for each in every(world.rules["quota"].root) if not each.children]
    project = random.choice([*leaves, *leaves, "guests"])
    spec = wants(1000 * random.choice((0, 1, 1, 2)), cpus=random.randint(1, 3), memory_mib=1024 * random.randint(1, 3))
    world.submit_spec(spec_of(spec, nodes=random.choice((1, 1, 1, 2))), project=project)


def checked_pass(world: World) -> None:
    before, jobs = Naive(world, dict(world.occupied)), dict(world.jobs)
    leaving = [job for job in before.occupied if jobs[job].ending is not None]
    owed = leaving or any(job.clears for job in world.queue)  # these come first
    insisting = [] if owed else who_may_insist(world, before)
    plan = world.cycle()
    nominated = plan.refusals.nominated
    assert all(jobs[each.job].state is JobState.RUNNING for each in plan.evictions)
    if insisting:
        served = {*nominated, *(start.job for start in plan.starts)}
        assert served & set(insisting), "somebody who may insist is served at once"
    if len(nominated) == 1 and plan.evictions and not (plan.starts or leaving):
        (job,) = nominated
        assert before.fewest(jobs[job], list(before.occupied)) == len(plan.evictions)
    world.carry_out(plan)
    now = Naive(world, dict(world.occupied))
    assert now.passes_max() == []
    assert sums_hold(now)
    if not (plan.starts or plan.evictions):  # who may insist by what was started or sent away waits for the next pass
        after = Naive(
            world, {job: parts for job, parts in plan.scheduling_pass.index.placed.items() if job not in leaving}
        )
        assert [job for job in who_may_insist(world, after) if job not in nominated] == []


def who_may_insist(world: World, now: Naive) -> list[JobId]:
    """Return the jobs within the guarantee of their queue that fit once the fewest borrowers, or none, have been
    evicted."""
    running = [job for job in now.occupied if world.jobs[job].state is JobState.RUNNING]
    return [job.id for job in world.queue if now.keepers(job) and now.fewest(job, running) is not None]


def sums_hold(now: Naive) -> bool:
    return all(
        now.used(each, name) == sum(now.used(child, name) for child in each.children)
        for each in every(now.root)
        for name in RESOURCES
        if each.children
    )


@many
@given(st.integers(0, 2**32))
def test_passes_over_random_trees_respect_the_quotas(seed: int) -> None:
    random = Random(seed)
    world = some_world(random)
    for _ in range(random.randint(3, 8)):
        for _ in range(random.randint(0, 3)):
            submit_some(random, world)
        checked_pass(world)
        world.now = Millis(world.now + 1000)
        world.version += 1
        for job in [job for job in world.occupied if world.jobs[job].ending is not None]:
            if random.random() < 0.6:
                world.gone(job)
        running = [job for job in world.occupied if world.jobs[job].ending is None]
        if running and random.random() < 0.3:
            world.end(random.choice(running))
