"""A pass skips jobs that cannot start. Considering every job must give the same plan, in a list and in columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce, Partition, Priority, PriorityKind, Weights
from cockpit.model.cluster import Reservation as Reserve
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask, Job, JobState
from cockpit.sched.equivalence import OPEN, by_seniority, partitions_of
from cockpit.sched.explain import reason_of
from cockpit.sched.fifo_queue import FifoQueue
from cockpit.sched.pass_queue import ListQueue
from cockpit.sched.policy import Policy
from cockpit.sched.priority import priorities
from tests.sched.lab import tree
from tests.sched.test_properties import quick
from tests.sched.world import World, node, spec_of, wants

amounts = st.fixed_dictionaries({}, optional={"cpu": st.integers(1, 12), "gres/gpu": st.sampled_from([0.5, 1, 2])})
limits = st.fixed_dictionaries(
    {},
    optional={
        "grp_jobs": st.integers(0, 4),
        "grp_tres": amounts,
        "max_jobs": st.integers(0, 3),
        "max_tres_per_job": amounts,
        "max_wall_seconds": st.sampled_from([2, 8]),
    },
)
jobs = st.fixed_dictionaries(
    {
        "specs": st.lists(st.tuples(st.sampled_from([0, 500, 1000, 2000]), st.integers(1, 5)), min_size=1, max_size=2),
        "nodes": st.sampled_from([1, 1, 1, 2]),
        "limit": st.sampled_from([1, 2, 3, 5, 8]),
        "user": st.sampled_from(["ann", "bob"]),
        "account": st.sampled_from(["nlp", "nlp", "other"]),
        "partitions": st.sampled_from([("p",), ("q",), ("p", "q")]),
        "reservation": st.sampled_from(["", "", "", "r0"]),
        "exclusive": st.sampled_from([False, False, False, True]),
        "begin_at": st.sampled_from([None, None, Millis(3000)]),
        "at_once": st.sampled_from([0, 0, 1]),
    }
)
spans = st.tuples(st.integers(0, 9), st.integers(1, 9), st.sampled_from([("n1",), ("n1", "n2")]))


def reservations(drawn) -> dict:
    return {
        f"r{number}": Reserve(
            name=f"r{number}",
            nodes=tuple(map(NodeName, nodes)),
            start_at=1000 * start,
            end_at=1000 * (start + length),
            users=("ann",),
        )
        for number, (start, length, nodes) in enumerate(drawn)
    }


@st.composite
def rules(draw) -> dict:
    kind = draw(st.sampled_from(PriorityKind))
    partitions = (Partition(name="p", nodes=(NodeName("n1"), NodeName("n3"))), Partition(name="q", qos="high"))
    accounts = tree(user=draw(limits), nlp=draw(limits), lab=draw(limits), high={"max_tres_per_user": draw(amounts)})
    return {
        "cluster": Cluster(
            partitions=partitions,
            enforce=(draw(st.sampled_from([Enforce.LIMITS, Enforce.SAFE])),),
            priority=Priority(kind=kind, weights=Weights(job_size=1000, age=1000)),
        ),
        "accounts": accounts,
        "reservations": reservations(draw(st.lists(spans, max_size=3))),
    }


def submit(world: World, drawn: dict) -> None:
    specs = [wants(card, cpus=cpus) for card, cpus in drawn["specs"]]
    spec = spec_of(*specs, **{name: drawn[name] for name in ("nodes", "limit", "reservation", "exclusive", "begin_at")})
    record = {name: drawn[name] for name in ("user", "account", "partitions")}
    array = ArrayTask(JobId(1), len(world.jobs), drawn["at_once"]) if drawn["at_once"] else None
    world.submit_spec(spec, qos="normal", accrues_from=world.now, array=array, **record)


class Unbounded(list[int]):
    """Bounds that cannot be tightened."""

    def __setitem__(self, number, seconds) -> None:
        assert number >= 0


def unbounded(_queue, shapes, classes):
    return Unbounded([OPEN] * shapes), Unbounded([OPEN] * classes)


def story(rules, batches, kind, monkeypatch) -> list:
    policy = Policy(backfill=Backfill(kind=kind))
    world = World(node("n1", 2, cpus=8), node("n2", 2, cpus=8), node("n3", 1, cpus=4), policy=policy, **rules)
    told = []
    for batch in batches:
        for drawn in batch:
            submit(world, drawn)
        plan = world.cycle()
        told.append((plan.starts, plan.reservations, plan.next_at, [reason_of(plan, job) for job in world.queue]))
        world.carry_out(plan)
        world.now = Millis(world.now + 1000)
        for job in [job for job, end in world.ends.items() if end <= world.now]:
            world.end(job)
    return told


@pytest.mark.req("SC-03", "SC-14")
@quick
@given(
    rules(),
    st.lists(st.lists(jobs, min_size=1, max_size=5), min_size=2, max_size=4),
    st.sampled_from([BackfillKind.EASY, BackfillKind.EASY, BackfillKind.OFF, BackfillKind.CONSERVATIVE]),
)
def test_what_is_skipped_could_not_have_started(rules, batches, kind) -> None:
    with pytest.MonkeyPatch.context() as patch:
        listed = story(rules, batches, kind, patch)
        patch.setattr(priorities, "FEW", -1)
        in_columns = story(rules, batches, kind, patch)
        patch.undo()
        patch.setattr(ListQueue, "unbounded", unbounded)
        patch.setattr(FifoQueue, "unbounded", unbounded)
        whole = story(rules, batches, kind, patch)
    assert listed == in_columns
    assert [each[:2] for each in listed] == [each[:2] for each in whole]


happenings = st.lists(
    st.tuples(
        st.sampled_from(["submit", "submit", "submit", "hold", "withdraw", "come back", "cycle", "cycle"]),
        st.sampled_from([("p",), ("q",), ("p", "q"), ("q", "p")]),
        st.integers(0, 20),
    ),
    min_size=5,
    max_size=25,
)


@pytest.mark.req("SC-14")
@quick
@given(happenings)
def test_a_fifo_queue_equals_the_snapshots_after_any_changes(happened) -> None:
    parts = (Partition(name="p", nodes=(NodeName("n1"),)), Partition(name="q"))
    world = World(node("n1", 1), node("n2", 1), cluster=Cluster(partitions=parts))
    for what, partitions, which in happened:
        ran = [job for job in world.jobs.values() if job.attempt is not None and job.id in world.occupied]
        match what:
            case "submit":
                world.submit_spec(spec_of(wants(1000), limit=which + 1), partitions=partitions)
            case "hold" if world.queue:
                world.hold(world.queue[which % len(world.queue)].id, "root")
            case "withdraw" if world.queue:
                world.withdraw(world.queue[which % len(world.queue)].id)
            case "come back" if ran:
                comes_back(world, ran[which % len(ran)])
            case "cycle":
                plan = world.cycle()
                entries = list(plan.priorities.fifo)
                assert [(ask.job.id, ask.equivalence_class.shape.partition) for ask in entries] == [
                    (job.id, name) for job in world.queue for name in partitions_of(job)
                ]
                assert all(ask.job is world.jobs[ask.job.id] for ask in entries)
                world.carry_out(plan)


def comes_back(world: World, job: Job) -> None:
    """To its place in the queue."""
    world.jobs[job.id] = replace(job, state=JobState.QUEUED)
    world.queue = sorted([*world.queue, world.jobs[job.id]], key=by_seniority)
    world.end(job.id)
