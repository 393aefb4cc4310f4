"""What must not change a plan, or must change it in one known way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.engine.machine import Machine
from cockpit.engine.replay.jobs import Arrival, Replay
from cockpit.engine.state import ClusterState
from cockpit.model.cluster import Backfill, BackfillKind, PriorityKind
from cockpit.model.events import JobSubmitted
from cockpit.model.ids import JobId, Millis
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.sched.cycle import cycle
from cockpit.sched.policy import ONE_CYCLE_A_MOMENT, Policy
from tests.builders import ANN, a_node
from tests.sched.ruled_worlds import RuledWorld

ROOT = Path(__file__).parents[2]
SEEDS = st.integers(0, 2**32)
POLICIES = st.sampled_from(
    [
        Policy(),
        Policy(backfill=Backfill(kind=BackfillKind.OFF)),
        Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE), ties=ONE_CYCLE_A_MOMENT),
    ]
)
some = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def plans(hash_seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.sched.plans_of_seeds", "25"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True).stdout


@pytest.mark.req("SC-14")
def test_the_same_input_gives_the_same_plans_byte_for_byte_whatever_the_hashes() -> None:
    first = plans("0")
    assert len(first) > 100_000
    assert plans("0") == first
    assert plans("4711") == first


def history(seed: int, times: int = 1, numbers: int = 1) -> list[Arrival]:
    """A dozen jobs on two nodes of eight CPUs; `times` stretches it, `numbers` renumbers the jobs."""
    random, at, arrivals = Random(seed), 0, []
    for number in range(1, 15):
        at += random.choice((0, 0, 1, 3, 7))
        runs, slack = random.choice((1, 4, 9, 20)), random.choice((0, 0, 3, 15))
        spec = JobSpec(
            name=f"j{number}",
            command="",
            output="",
            nodes=random.choice((1, 1, 2)),
            specs=(NodeSpec(cpus=random.choice((1, 3, 5, 8))),),
            time_limit_seconds=times * (runs + slack),
        )
        submitted = JobSubmitted(JobId(numbers * number), spec, ANN, "ann")
        arrivals.append(Arrival(Millis(1000 * times * at), submitted, 1000 * times * runs))
    return arrivals


def replay(arrivals: list[Arrival], policy: Policy, *names: str) -> Replay:
    return Replay([a_node(name) for name in names or ("n1", "n2")], arrivals, policy)


def starts(played: Replay) -> list[int]:
    """In the order of submission."""
    for _ in played.moments():
        pass
    return [played.started_at[job] for job in sorted(played.started_at)]


@pytest.mark.req("SC-14", "SC-20")
@some
@given(SEEDS, POLICIES, st.integers(1, 20))
def test_a_replay_resumed_from_its_snapshot_equals_an_uninterrupted_one(seed, policy, after) -> None:
    whole, split = replay(history(seed), policy), replay(history(seed), policy)
    for number, _ in enumerate(split.moments()):
        if number % after == 0:
            state = msgspec.msgpack.encode(split.machine.state)
            split.machine = Machine(msgspec.msgpack.decode(state, type=ClusterState))
    assert [split.started_at[job] for job in sorted(split.started_at)] == starts(whole)
    assert split.machine.state == whole.machine.state


@pytest.mark.req("SC-14", "SC-20")
@some
@given(SEEDS, POLICIES)
def test_job_ids_and_node_names_change_no_start(seed, policy) -> None:
    expected = starts(replay(history(seed), policy))
    assert starts(replay(history(seed, numbers=7), policy)) == expected
    assert starts(replay(history(seed), policy, "x9", "a1")) == expected


@pytest.mark.req("SC-14", "SC-20")
@some
@given(SEEDS, POLICIES, st.integers(2, 9))
def test_scaling_all_times_scales_every_start(seed, policy, times) -> None:
    expected = [times * start for start in starts(replay(history(seed), policy))]
    assert starts(replay(history(seed, times), policy)) == expected


@pytest.mark.req("SC-01", "SC-14")
@some
@given(SEEDS, st.sampled_from(BackfillKind), st.integers(1, 10**6))
def test_adding_the_same_priority_to_every_job_changes_nothing(seed, kind, more) -> None:
    world = RuledWorld(seed, kind)
    priority = replace(world.rules["cluster"].priority, kind=PriorityKind.MULTIFACTOR)
    world.change_rules(cluster=replace(world.rules["cluster"], priority=priority))
    for _ in range(12):
        world.submit_one()
    decided = []
    for offset in (10_000, 10_000 + more):
        queue = [replace(job, direct_priority=None, site_factor=job.site_factor + offset) for job in world.queue]
        plan = cycle(replace(world.snapshot(), queue=queue), None, world.policy)
        decided.append((plan.starts, plan.reservations, plan.order))
    assert decided[0] == decided[1]
