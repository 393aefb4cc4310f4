"""The victims: as few as possible, none if the job fits, and the first of those that could be taken."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.node import Node
from cockpit.model.spec import JobSpec
from cockpit.sched.eviction import victim_release
from cockpit.sched.eviction.victim_release import minimal_victims, release_all, release_cpus
from cockpit.sched.index import refresh_index
from cockpit.sched.shape import shape_of
from tests.sched.reference import place
from tests.sched.world import World, cards, node, spec_of, wants

many = settings(
    max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def some_world(random: Random) -> World:
    kinds = [cards(3), cards(2, "H100"), cards(2, slices=2), ()]
    nodes = [
        node(f"n{number}", random.choice(kinds), cpus=4, memory_mib=4096) for number in range(random.choice((1, 2, 3)))
    ]
    world = World(*nodes)
    for _ in range(random.randint(2, 9)):
        world.submit_spec(some_spec(random))
    world.run()
    world.withdraw(*[job.id for job in world.queue])
    return world


def some_spec(random: Random, most: int = 2) -> JobSpec:
    specs = [
        wants(
            random.choice((0, 0, 300, 500, 1000, 2000)),
            cpus=random.randint(1, 3),
            memory_mib=random.choice((512, 2048)),
        )
        for _ in range(random.choice((1, 1, 2)))
    ]
    return spec_of(*specs, nodes=random.choice((1, 1, most)), exclusive=random.random() < 0.15)


def slowly(world: World, spec: JobSpec, offered: list, *, still: bool) -> tuple | None:
    """Every set is tried, the smaller ones first."""
    nodes: list[Node] = list(world.nodes.values())
    for size in range(len(offered) + 1):
        for chosen in combinations(offered, size):
            left = {job: held for job, held in world.occupied.items() if job not in chosen}
            if still:
                left |= {job: tuple(replace(part, cpus=0) for part in world.occupied[job]) for job in chosen}
            if place(spec, nodes, left):
                return chosen
    return None


@pytest.mark.req("SC-08")
@many
@given(st.integers(0, 2**32), st.booleans())
def test_a_minimal_set_of_victims_is_chosen(seed: int, still: bool) -> None:
    random = Random(seed)
    world = some_world(random)
    spec = some_spec(random, most=3)
    offered = random.sample(list(world.occupied), random.randint(0, len(world.occupied)))
    index = refresh_index(None, world.snapshot())
    give = release_cpus if still else release_all
    found = minimal_victims(index, shape_of(spec), [give(index, job) for job in offered])
    assert (None if found is None else tuple(each.job for each in found)) == slowly(world, spec, offered, still=still)


@pytest.mark.req("SC-08")
@many
@given(st.integers(0, 2**32))
def test_no_job_is_evicted_needlessly_when_not_every_set_is_tried(seed: int) -> None:
    random = Random(seed)
    world = some_world(random)
    spec = some_spec(random, most=3)
    index = refresh_index(None, world.snapshot())
    shape = shape_of(spec)
    offers = [release_all(index, job) for job in world.occupied]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(victim_release, "MOST_TRIED", 1)
        found = minimal_victims(index, shape, offers)
    assert (found is None) == (minimal_victims(index, shape, offers) is None)
    for each in found or ():
        rest = [other for other in found or () if other is not each]
        assert minimal_victims(index, replace(shape, specs=spec.specs), rest) is None


def test_not_every_subset_of_many_jobs_on_a_node_is_tried() -> None:
    """Sixty jobs of one CPU on each of a hundred nodes, and one that wants thirty."""
    nodes = [node(f"n{number}", cpus=60) for number in range(100)]
    world = World(*nodes)
    for _ in range(6000):
        world.submit(wants())
    world.run()
    index = refresh_index(None, world.snapshot())
    offers = [release_all(index, job) for job in reversed(world.occupied)]
    found = minimal_victims(index, shape_of(spec_of(wants(cpus=30))), offers)
    assert found is not None
    assert [each.job for each in found] == list(reversed(world.occupied))[:30]


@pytest.mark.req("SC-08")
def test_not_every_subset_of_jobs_that_share_two_nodes_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight jobs of one CPU on each of two nodes, and one that wants five there. Fewer than five are 162 sets."""
    world = World(node("n1", cpus=8), node("n2", cpus=8))
    for _ in range(8):
        world.submit(wants(), nodes=2)
    world.run()
    assert len(world.occupied) == 8
    tried = []
    enough = victim_release._VictimSearch._enough
    monkeypatch.setattr(victim_release, "MOST_TRIED", 100)
    monkeypatch.setattr(victim_release._VictimSearch, "_enough", lambda *args: tried.append(args[1]) or enough(*args))
    index = refresh_index(None, world.snapshot())
    offers = [release_all(index, job) for job in world.occupied]
    found = minimal_victims(index, shape_of(spec_of(wants(cpus=5), nodes=2)), offers)
    assert found is not None
    assert len(found) == 5
    assert len(tried) <= 100 + len(offers), "those beyond the bound leave out whoever is needless"
