from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.model.node import NodeState
from cockpit.model.reasons import BehindHead, Held, NeverFits, NoEligibleNode, NotEnoughFree, NotEvaluated, WouldDelay
from cockpit.sched.explain import explain
from tests.sched.random_worlds import act, histories, policies, some_nodes
from tests.sched.test_properties import quick
from tests.sched.world import World, cards, node, wants


@pytest.mark.req("SC-13")
def test_an_explanation_has_reason_place_those_ahead_and_the_reservation() -> None:
    world = World(node("n1", 2))
    world.submit(wants(1000), limit=50)
    head, held, last = world.submit(wants(2000)), world.submit(wants(1000), held_by="root"), world.submit(wants(2000))
    snapshot, plan = world.snapshot(), world.cycle()
    told = explain(snapshot, plan, head)
    assert isinstance(told.reason, NotEnoughFree)
    assert (told.position, told.ahead, told.reserved_at) == (1, (), 50_000)
    told = explain(snapshot, plan, last)
    assert (told.position, told.ahead, told.reserved_at) == (2, (head,), None)
    assert explain(snapshot, plan, held).reason == Held("root", Millis(0))


@pytest.mark.req("SC-13")
def test_at_most_ten_ahead_are_named_from_the_head_on() -> None:
    world = World(node("n1"))
    jobs = [world.submit(wants(1000)) for _ in range(15)]
    told = explain(world.snapshot(), world.cycle(), jobs[-1])
    assert (told.position, told.ahead) == (15, tuple(jobs[:10]))


@pytest.mark.req("SC-13")
def test_a_job_that_starts_or_is_not_queued_has_no_explanation() -> None:
    world = World(node("n1"))
    job = world.submit(wants())
    snapshot, plan = world.snapshot(), world.cycle()
    assert explain(snapshot, plan, job) is None
    assert explain(snapshot, plan, job + 1) is None


@pytest.mark.req("SC-13")
def test_a_job_of_a_new_shape_that_came_since_the_cycle_is_not_evaluated_yet() -> None:
    world = World(node("n1"))
    world.cycle()
    assert world.reason(world.submit(wants(1000))) == NotEvaluated()


@pytest.mark.req("SC-13")
def test_an_edited_job_is_judged_by_what_it_asks_for_now() -> None:
    world = World(node("n1", 2))
    job = world.submit(wants(9000))
    world.cycle()
    world.change(job, spec=replace(world.jobs[job].spec, specs=(wants(1000),)))
    assert [start.job for start in world.cycle().starts] == [job]


def roomy(name: str, spec):
    """A node in service that holds any one replica of the job."""
    model = (*spec.specs[0].card_models, "A100")[0]
    where = {"pool": spec.pool or "", "driver_version": spec.driver_version or ""}
    return node(name, cards(4, model), cpus=99, memory_mib=99999, **where)


def take_away(world: World, spec, job, reason) -> None:
    """Exactly what the reason says is in the way."""
    match reason:
        case Held():
            world.hold(job, by="")
        case NotEnoughFree():
            near = reason.nearest[0].node
            for other in [other for other, parts in world.occupied.items() if any(each.node == near for each in parts)]:
                world.end(other)
        case WouldDelay() | BehindHead():
            world.withdraw(reason.ahead)
        case NoEligibleNode() if reason.out_of_service:
            for name in reason.out_of_service:
                world.set_state(name, NodeState.UP)
        case NoEligibleNode() | NeverFits():
            for name in (*spec.node_names, "x1", "x2", "x3")[: max(spec.nodes, len(spec.node_names))]:
                world.set_node(roomy(name, spec))


def with_only(world: World, queue) -> World:
    """The same cluster as things stand, with just these jobs waiting."""
    other = World(*world.nodes.values(), policy=world.policy)
    other.now, other.jobs, other.queue = world.now, world.jobs, queue
    for job, placement in world.occupied.items():
        other.occupy(job, placement, world.ends.get(job))
    return other


@pytest.mark.req("SC-13")
@settings(quick, max_examples=100)
@given(some_nodes(), histories(), policies)
def test_removing_what_a_reason_names_lets_the_job_start_or_changes_its_reason(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    for step in history:
        act(world, step)
        world.run()
    for job in world.queue:
        if job.spec.node_names and len(job.spec.node_names) < job.spec.nodes:
            continue  # no cluster could run it: what is in the way is in the job
        reason = world.reason(job.id)
        ahead = [
            each for each in world.queue if isinstance(reason, WouldDelay | BehindHead) and each.id == reason.ahead
        ]
        other = with_only(world, [*ahead, job])
        assert other.cycle().starts == ()
        before = other.reason(job.id)
        take_away(other, job.spec, job.id, before)
        after = other.cycle()
        assert job.id in [start.job for start in after.starts] or other.reason(job.id) != before
