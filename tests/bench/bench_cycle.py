"""A scheduling cycle on a full cluster with a long queue and every rule on, again and again as jobs come and go."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from random import Random
from time import perf_counter

import pytest

from cockpit.model.accounts import ROOT, Accounts, Association, AssocKey, Qos, ResourceLimits, Usage
from cockpit.model.cluster import Cluster, Enforce, Partition, Priority, PriorityKind, Reservation, Weights
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.spec import Dependency, DependencyKind
from tests.bench.figures import Figures
from tests.sched.world import World, node, spec_of, wants

JOBS = 100_000
NODES = 10_000
CYCLES = 40
COME_AND_GO = 50
HOUR = 3600
PARTITIONS = ("main", "wide", "short", "night")
QOS = ("normal", "high", "low")
ACCOUNTS = [f"lab{lab}-group{group}" for lab in range(10) for group in range(5)]
USERS = [f"user{number}" for number in range(500)]


def cluster() -> Cluster:
    weights = Weights(age=1000, fairshare=100_000, job_size=1000, partition=500, qos=2000, tres={"gres/gpu": 300})
    return Cluster(
        partitions=(
            Partition(name="main", pools=("east", "west"), default=True, billing_weights={"cpu": 1, "gres/gpu": 16}),
            Partition(name="wide", pools=("west",), min_nodes=2, priority_job_factor=10),
            Partition(name="short", max_time_seconds=4 * HOUR, priority_tier=2),
            Partition(name="night", qos="by-night", pools=("east",)),
        ),
        enforce=(Enforce.LIMITS, Enforce.QOS),
        priority=Priority(kind=PriorityKind.MULTIFACTOR, weights=weights),
    )


def accounts(random: Random) -> Accounts:
    labs = [
        Association(
            account=f"lab{lab}",
            parent=ROOT,
            limits=ResourceLimits(grp_tres={"gres/gpu": 20_000}, max_wall_seconds=200 * HOUR),
        )
        for lab in range(10)
    ]
    groups = [
        Association(
            account=name,
            parent=name.split("-")[0],
            limits=ResourceLimits(grp_jobs=2000, max_jobs=random.choice([30, 100])),
        )
        for name in ACCOUNTS
    ]
    users = [
        Association(
            account=ACCOUNTS[number % len(ACCOUNTS)],
            user=user,
            qos=QOS,
            limits=ResourceLimits(grp_tres={"gres/gpu": 512}),
        )
        for number, user in enumerate(USERS)
    ]
    qos = [
        Qos(name="normal"),
        Qos(name="high", priority=10, max_tres_per_user={"gres/gpu": 256}, limits=ResourceLimits(grp_jobs=1500)),
        Qos(name="low", limits=ResourceLimits(max_jobs=20, grp_tres_minutes={"cpu": 1e9})),
        Qos(name="by-night", limits=ResourceLimits(grp_tres={"gres/gpu": 8000})),
    ]
    lines = [Association(account=ROOT), *labs, *groups, *users]
    return Accounts(associations={each.key: each for each in lines}, qos={each.name: each for each in qos})


def submit(world: World, random: Random) -> JobId:
    number = random.randrange(len(USERS))
    spec = spec_of(
        wants(
            1000 * random.choice([1, 2, 4, 8]),
            cpus=random.choice([1, 4, 8, 16]),
            memory_mib=random.choice([4096, 32768]),
        ),
        nodes=random.choice([1, 1, 1, 2, 2, 4, 8, 16]),
        limit=60 * random.randrange(1, 48 * 60),
        begin_at=Millis(10**15) if random.random() < 0.01 else None,
    )
    return world.submit_spec(
        spec,
        user=USERS[number],
        account=ACCOUNTS[number % len(ACCOUNTS)],
        qos=random.choice(QOS),
        partitions=(random.choice(PARTITIONS),) if random.random() < 0.9 else ("wide", "main"),
        held_by="root" if random.random() < 0.02 else "",
        waits_for=(Dependency(DependencyKind.AFTER_OK, JobId(1)),) if random.random() < 0.03 else (),
        accrues_from=world.now,
    )


def full_world(random: Random) -> World:
    nodes = [
        node(f"n{number}", 8, cpus=64, memory_mib=524288, pool=random.choice(["east", "west"]))
        for number in range(NODES)
    ]
    kept = Reservation(
        name="service",
        nodes=tuple(NodeName(f"n{number}") for number in range(50)),
        start_at=1000 * 20 * HOUR,
        end_at=1000 * 30 * HOUR,
        maintenance=True,
    )
    usage = {
        AssocKey(f"{ACCOUNTS[number % len(ACCOUNTS)]}/{user}"): Usage(random.random() * 1e6)
        for number, user in enumerate(USERS)
    }
    world = World(*nodes, cluster=cluster(), accounts=accounts(random), reservations={"service": kept}, usage=usage)
    while len(world.queue) < JOBS:
        submit(world, random)
    world.run()
    while len(world.queue) < JOBS:
        submit(world, random)
    return world


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = full_world(Random(1))
    gc.collect()
    gc.freeze()
    yield world
    gc.unfreeze()


def test_a_cycle_with_every_rule_on(world: World, figure: Figures):
    random, took = Random(2), []
    for _ in range(CYCLES):
        world.now += 1000
        for job in random.sample(sorted(world.occupied), min(COME_AND_GO, len(world.occupied))):
            world.end(job)
        while len(world.queue) < JOBS:
            submit(world, random)
        before = perf_counter()
        plan = world.cycle()
        took.append(1000 * (perf_counter() - before))
        world.carry_out(plan)
    figure.spread("PF-01", "cycle, 100 000 gangs × 10 000 nodes", took)
