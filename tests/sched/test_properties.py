"""What holds for every cluster and every history of it."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.ids import NodeName
from cockpit.model.reasons import BehindHead, Held, NeverFits, NoAlternative, NoEligibleNode, NotEnoughFree, WouldDelay
from cockpit.sched.cycle import cycle, next_plan
from cockpit.sched.explain import reason_of
from cockpit.sched.feasible import never_fits
from cockpit.sched.invariants import resource_violations
from cockpit.sched.nodes.cards import accepts, share_taken
from cockpit.sched.policy import FractionFit, Policy
from cockpit.sched.scheduling_pass import SchedulingPass
from tests.sched.random_worlds import act, histories, job_specs, policies, some_node, some_nodes
from tests.sched.reference import Reference, holes
from tests.sched.world import World

quick = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
WORDS = {
    Held: "held",
    NeverFits: "never",
    NoEligibleNode: "never",
    NotEnoughFree: "no room",
    WouldDelay: "would delay",
    BehindHead: "would delay",
}


def word(reason) -> str:
    """Of several alternatives, what may come true soonest."""
    if not isinstance(reason, NoAlternative):
        return WORDS[type(reason)]
    words = {WORDS[type(one)] for one in reason.specs}
    return next(each for each in ("no room", "never") if each in words)


def decided(plan):
    reasons = [reason_of(plan, job) for job, _ in plan.priorities.order]
    return plan.starts, reasons, plan.reservations, plan.order, plan.next_at


@pytest.mark.req("SC-04", "SC-05", "TR-02")
@quick
@given(some_nodes(), histories(), policies)
def test_no_resource_is_allocated_twice_and_every_gang_is_whole(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    for step in history:
        act(world, step)
        plan = world.run()
        assert resource_violations(world.nodes, world.occupied) == []
        assert all(len(start.placement) == world.jobs[start.job].spec.nodes for start in plan.starts)


@pytest.mark.req("SC-05")
@quick
@given(some_nodes(), histories(), policies)
def test_a_replica_gets_what_it_asked_for_of_cards_and_no_more_than_a_slot_beyond(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    for step in history:
        act(world, step)
        for start in world.run().starts:
            spec = world.jobs[start.job].spec
            asked = spec.specs[start.spec_index]
            for part in () if spec.exclusive else start.placement:
                cards = [world.nodes[part.node].cards[each.card] for each in part.slices]
                assert all(accepts(asked, card) for card in cards)
                if asked.shares_a_card:
                    assert len({card.index for card in cards}) == 1
                    assert part.card_milli == share_taken(cards[0], asked.card_milli)
                else:
                    assert [each.slot for each in part.slices] == [None] * asked.whole_cards


@pytest.mark.req("SC-14", "PF-01")
@quick
@given(some_nodes(), histories(), policies)
def test_an_updated_index_equals_one_built_from_scratch(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    for step in history:
        act(world, step)
        kept, anew = cycle(world.snapshot(), world.index, policy), cycle(world.snapshot(), None, policy)
        assert decided(kept) == decided(anew)
        assert kept.index.nodes_free == anew.index.nodes_free
        assert kept.index.placed == anew.index.placed
        assert kept.index.by_hole == anew.index.by_hole
        assert kept.index.by_whole == anew.index.by_whole
        world.run()


@pytest.mark.req("SC-04", "SC-05", "SC-14")
@settings(quick, max_examples=150)
@given(some_nodes(), histories(), st.booleans())
def test_the_plan_equals_that_of_the_reference_scheduler(nodes, history, backfill) -> None:
    world = World(*nodes, policy=Policy(backfill=Backfill() if backfill else Backfill(kind=BackfillKind.OFF)))
    for step in history:
        act(world, step)
        expected = Reference(world, backfill=backfill)
        plan = world.cycle()
        assert [(start.job, start.spec_index, start.placement) for start in plan.starts] == expected.starts
        reserved = plan.reservation
        assert (
            reserved and (reserved.job, reserved.reserved_at, reserved.spec_index, reserved.placement)
        ) == expected.reservation
        starting = {start.job for start in plan.starts}
        waiting = [job.id for job in world.queue if job.id not in starting]
        assert {job: word(world.reason(job)) for job in waiting} == {
            job: word for job, word in expected.words.items() if word
        }
        world.run()


@pytest.mark.req("SC-14", "SC-06")
@settings(quick, max_examples=100)
@given(some_nodes(), histories(), policies)
def test_an_incremental_pass_decides_as_a_full_pass(nodes, history, policy) -> None:
    world = World(*nodes, policy=policy)
    went_on = 0
    for step in history:
        act(world, step)
        snapshot, last = world.snapshot(), world.plan
        whole = cycle(snapshot, None, policy)
        with patch.object(SchedulingPass, "resumed", autospec=True, side_effect=SchedulingPass.resumed) as resumed:
            plan = next_plan(last, snapshot, policy)
        went_on += resumed.call_count
        assert (plan.starts, plan.reservations, plan.order) == (whole.starts, whole.reservations, whole.order)
        starting = {start.job for start in plan.starts}
        for job in [job for job in world.queue if job.id not in starting]:
            assert reason_of(plan, job) == reason_of(whole, job)
        assert plan.index.nodes_free == whole.index.nodes_free
        assert plan.index.departures == whole.index.departures
        assert plan.index.counters.used == whole.index.counters.used
        world.run()
    event(f"went on {min(went_on, 3)} times")


@pytest.mark.req("SC-06", "SC-14")
@settings(quick, max_examples=150)
@given(some_nodes(), histories())
def test_conservative_plans_equal_those_of_the_reference_scheduler(nodes, history) -> None:
    world = World(*nodes, policy=Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE)))
    for step in history:
        act(world, step)
        expected = holes(world)
        plan = world.cycle()
        planned = [(start.job, world.now, start.spec_index, start.placement) for start in plan.starts]
        planned += [(each.job, each.reserved_at, each.spec_index, each.placement) for each in plan.reservations]
        assert sorted(planned) == sorted(expected)
        world.run()


@pytest.mark.req("SC-06")
@quick
@given(some_nodes(), st.lists(job_specs(), min_size=1, max_size=8))
def test_conservative_backfill_starts_no_job_later_than_its_first_reservation(nodes, specs) -> None:
    world = World(*nodes, policy=Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE)))
    promised = {}
    for spec in specs:
        world.submit_spec(spec)
    while world.run() and world.ends:
        for each in world.plan.reservations:
            assert each.reserved_at <= promised.setdefault(each.job, each.reserved_at)
        world.now = min(world.ends.values())
        for job in [job for job, end in world.ends.items() if end <= world.now]:
            world.end(job)
    assert all(world.started_at[job] <= moment for job, moment in promised.items())


@pytest.mark.req("SC-14")
@quick
@given(some_nodes(), st.lists(job_specs(), min_size=1, max_size=8), policies)
def test_the_head_starts_no_later_than_its_first_reservation(nodes, specs, policy) -> None:
    world = World(*nodes, policy=policy)
    promised = {}
    for spec in specs:
        world.submit_spec(spec)
    while world.run() and world.ends:
        if world.plan.reservation:
            promised.setdefault(world.plan.reservation.job, world.plan.reservation.reserved_at)
        world.now = min(world.ends.values())
        for job in [job for job, end in world.ends.items() if end <= world.now]:
            world.end(job)
    assert all(world.started_at[job] <= moment for job, moment in promised.items())


@pytest.mark.req("SC-14")
@quick
@given(some_nodes(), histories(), policies)
def test_node_names_do_not_change_the_plan(nodes, history, policy) -> None:
    renamed = {each.name: NodeName(f"x{9 - number}") for number, each in enumerate(nodes)}
    without_node_changes = [step for step in history if step[0] != "node"]

    def other(step):
        if step[0] != "submit":
            return step
        return step[0], replace(step[1], node_names=tuple(renamed.get(name, name) for name in step[1].node_names))

    one = World(*nodes, policy=policy)
    two = World(*(replace(each, name=renamed[each.name]) for each in nodes), policy=policy)
    for step in without_node_changes:
        act(one, step)
        act(two, other(step))
        one.run()
        two.run()
        assert {
            job: tuple(replace(part, node=renamed[part.node]) for part in placement)
            for job, placement in one.occupied.items()
        } == two.occupied


@pytest.mark.req("SC-04")
@quick
@given(some_nodes(), some_node("n9"), job_specs())
def test_adding_a_node_makes_no_job_infeasible(nodes, extra, spec) -> None:
    few = {each.name: each for each in nodes}
    assume(never_fits(spec, few) is None)
    assert never_fits(spec, {**few, extra.name: extra}) is None


@pytest.mark.req("SC-13")
@quick
@given(some_nodes(), histories(), policies)
def test_what_never_fits_at_submission_is_never_placed_and_the_rest_fits_the_empty_cluster(
    nodes, history, policy
) -> None:
    world = World(*nodes, policy=policy)
    specs = [step[1] for step in history if step[0] == "submit"]
    for spec in specs:
        alone = World(*nodes, policy=policy)
        job = alone.submit_spec(spec)
        starts = alone.run().starts
        verdict = never_fits(spec, world.nodes)
        if verdict is not None:
            assert starts == ()
        elif not starts:
            told = alone.reason(job)
            each = told.specs if isinstance(told, NoAlternative) else (told,)
            assert any(isinstance(one, NoEligibleNode) for one in each)


@pytest.mark.req("SC-14")
@quick
@given(some_nodes(), histories(), st.sampled_from(FractionFit))
def test_equal_shapes_wait_for_equal_reasons(nodes, history, fit) -> None:
    world = World(*nodes, policy=Policy(fraction_fit=fit))
    for step in history:
        act(world, step)
    world.run()
    for first in list(world.queue):
        twin = world.submit_spec(replace(first.spec, time_limit_seconds=first.spec.time_limit_seconds + 1))
        world.cycle()
        if not first.held_by and not isinstance(world.reason(first.id), WouldDelay | BehindHead):
            assert type(world.reason(twin)) is type(world.reason(first.id))
        world.withdraw(twin)
