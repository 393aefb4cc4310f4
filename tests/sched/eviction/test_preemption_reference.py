"""With preemption the plan is that of a scheduler that tries every set of victims; and what holds after every pass."""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cockpit.model.accounts import Accounts, Qos
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Preemption
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, JobState
from cockpit.sched.policy import Policy
from tests.sched.naive_preemption import NaivePreempting
from tests.sched.ruled_worlds import some_node_spec
from tests.sched.world import World, cards, node

EXAMPLES = int(os.environ.get("COCKPIT_EXAMPLES", "150"))
many = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
RANKS = ("low", "low", "low", "mid", "mid", "high")


class PreemptingWorld(World):
    """Jobs of three ranks come, end and give way."""

    def __init__(self, seed: int, kind: BackfillKind) -> None:
        self.random = random = Random(seed)
        nodes = [
            node(
                f"n{number}",
                cards(random.choice((0, 2, 2, 3)), slices=random.choice((0, 0, 2))),
                cpus=4,
                memory_mib=4096,
            )
            for number in range(random.choice((1, 2, 3)))
        ]
        grace = random.choice((0, 2))
        qos = (
            Qos(name="low", grace_seconds=grace),
            Qos(name="mid", priority=5, grace_seconds=1, preempt=random.choice(((), ("low",)))),
            Qos(name="high", priority=9, preempt=("low", "mid")),
        )
        mode = random.choice(("CANCEL", "REQUEUE", "REQUEUE", "SUSPEND", "SUSPEND"))
        preemption = Preemption(kind="preempt/qos", mode=(mode,), exempt_seconds=random.choice((0, 0, 3)))
        super().__init__(
            *nodes,
            policy=Policy(backfill=Backfill(kind=kind)),
            cluster=Cluster(preemption=preemption),
            accounts=Accounts(qos={each.name: each for each in qos}),
        )

    def step(self) -> None:
        random, running = self.random, [job for job in self.occupied if self.jobs[job].state in OCCUPYING]
        match random.choice(["submit"] * 8 + ["tick"] * 4 + ["end", "gone", "gone", "hold"]):
            case "tick":
                self.tick(random.choice((1, 1, 2, 5)))
            case "end" if running:
                self.leave(random.choice(running))
            case "gone":
                for job in [job for job in self.occupied if self.jobs[job].ending is not None]:
                    self.gone(job)
            case "hold" if self.queue:
                job = random.choice(self.queue)
                self.hold(job.id, "" if job.held_by else "root")
            case _:
                specs = [some_node_spec(random) for _ in range(random.choice((1, 1, 2)))]
                nodes, limit = random.choice((1, 1, 1, 2)), random.choice((1, 2, 4, 8, 16))
                self.submit(*specs, nodes=nodes, limit=limit, record={"qos": random.choice(RANKS)})

    def tick(self, seconds: int) -> None:
        self.now = Millis(self.now + 1000 * seconds)
        self.version += 1
        for job in [job for job in self.occupied if job in self.ends and self.ends[job] <= self.now]:
            self.leave(job)

    def leave(self, job: JobId) -> None:
        if self.jobs[job].ending is not None:
            self.gone(job)
            return
        self.end(job)
        self.change_running(job, state=JobState.SUCCEEDED)


def lived(seed: int, steps: int, kind: BackfillKind):
    """A world at each moment before one of its cycles, which come after every third step."""
    world = PreemptingWorld(seed, kind)
    for number in range(steps):
        world.step()
        if number % 3 == 2:
            yield world
            world.carry_out(world.plan)


@pytest.mark.req("SC-08", "SC-14")
@pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.OFF])
@many
@given(st.integers(0, 2**32), st.integers(6, 45))
@example(2000, 15)  # a later alternative behind the first waiting job
@example(2027, 45)  # CPUs kept for a suspended job: fewer than none are free on the only node
@example(2175, 24)  # a victim leaves sooner, and so widens what the first waiting job may choose from
def test_easy_and_in_order_passes_equal_the_reference(kind: BackfillKind, seed: int, steps: int) -> None:
    for world in lived(seed, steps, kind):
        expected = NaivePreempting(world, backfill=kind is BackfillKind.EASY)
        plan = world.cycle()
        assert [turn.job for turn in plan.switches] == expected.switches
        assert [(each.job, each.for_job) for each in plan.evictions] == expected.evictions
        assert [(each.job, each.spec_index, each.placement) for each in plan.starts] == expected.starts
        assert set(plan.refusals.nominated) == expected.nominated


@pytest.mark.req("SC-08")
@pytest.mark.parametrize("kind", list(BackfillKind))
@many
@given(st.integers(0, 2**32), st.integers(6, 45))
def test_a_job_that_preempted_others_starts(kind: BackfillKind, seed: int, steps: int) -> None:
    """Nominated jobs start first once the victims are gone: no job is evicted for nothing."""
    for world in lived(seed, steps, kind):
        plan = world.cycle()
        owed = [job for job in plan.refusals.nominated if not world.jobs[job].held_by]
        world.carry_out(plan)
        for job in [job for job in world.occupied if world.jobs[job].ending is not None]:
            world.gone(job)
        started = {start.job for start in world.cycle().starts}
        assert started.issuperset(owed)


@pytest.mark.req("SC-14")
@many
@given(st.integers(0, 2**32), st.integers(6, 45), st.sampled_from(BackfillKind))
def test_state_carried_between_passes_changes_no_decision(seed: int, steps: int, kind: BackfillKind) -> None:
    for world in lived(seed, steps, kind):
        kept = world.cycle()
        world.plan = None
        anew = world.cycle()
        assert (kept.starts, kept.evictions, kept.switches) == (anew.starts, anew.evictions, anew.switches)
        assert kept.refusals == anew.refusals
