"""Under every rule at once, the plan is that of a scheduler that counts everything anew."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model import reasons
from cockpit.model.cluster import BackfillKind
from cockpit.model.job import Job
from cockpit.sched.priority.share_tree import ShareTree, fair_tree
from tests.sched.naive_limits import amounts_asked, amounts_held
from tests.sched.naive_plan import NaiveEasy, naive_holes
from tests.sched.naive_rules import NaiveRules
from tests.sched.reference import Free, could_start
from tests.sched.ruled_worlds import RuledWorld

EXAMPLES = int(os.environ.get("COCKPIT_EXAMPLES", "200"))
many = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
WORDS = {
    reasons.Held: "held",
    reasons.WaitsForJob: "waits",
    reasons.BeginsLater: "begins",
    reasons.InReservation: "reservation",
    reasons.PartitionRefuses: "partition",
    reasons.NoAssociation: "association",
    reasons.QosRefused: "qos",
    reasons.LimitReached: "limit",
    reasons.ArrayFull: "array",
    reasons.NeverFits: "never",
    reasons.NoEligibleNode: "never",
    reasons.NodesReserved: "kept",
    reasons.NotEnoughFree: "no room",
    reasons.WouldDelay: "would delay",
    reasons.BehindHead: "would delay",
}


LATER = {
    ("kept", "no room"),
    ("no room", "would delay"),  # whoever came after took the room that there was
    ("would delay", "no room"),  # as one that runs into fewer reservations, so that nobody has looked at this one
    ("kept", "would delay"),  # the same, and what is left is where an advance reservation keeps it away
    ("limit", "never"),  # for what the limit leaves of the alternatives, that is
}
"""The reported reason, where it differs from the one found when the job was considered."""


def word(reason: reasons.Reason) -> str:
    """Of several alternatives, what may come true soonest."""
    if not isinstance(reason, reasons.NoAlternative):
        return WORDS[type(reason)]
    words = {WORDS[type(one)] for one in reason.specs}
    return next(each for each in ("no room", "kept", "limit", "never") if each in words)


def rules_of(world: RuledWorld) -> NaiveRules:
    return NaiveRules(world, fair_tree(ShareTree(world.rules["accounts"]), world.rules["usage"]))


def lived(seed: int, steps: int, kind: BackfillKind) -> Iterator[RuledWorld]:
    """A world at each moment before one of its cycles, which come after every third step."""
    world = RuledWorld(seed, kind)
    for number in range(steps):
        world.step()
        if number % 3 == 2:
            yield world
            world.run()


def holds_more(rules: NaiveRules) -> bool:
    """Whether a job would break a limit by what it holds on some node and not by what it asks for, as on a sliced card:
    where such jobs are put is proved against every free state (`test_never`)."""
    for job, name in rules.entries():
        for spec in job.spec.specs:
            if not spec.card_milli or rules.exceeds(job, name, amounts_asked(spec, job.spec.nodes)):
                continue
            frees = [Free(node, {}) for node in rules.own_nodes(job, name)]
            held = [free.give(job.spec, spec, 0) for free in frees if free.fits(job.spec, spec)]
            if any(rules.exceeds(job, name, amounts_held((each,) * job.spec.nodes)) for each in held):
                return True
    return False


def for_good(rules: NaiveRules, job: Job) -> Iterator[str]:
    """A condition that never passes is reported before one that does, such as a begin time."""
    for name in job.partitions or ("",) if rules.own(job) != "held" else ():
        yield rules.refused(job, name)
        yield "" if could_start(job.spec, rules.own_nodes(job, name)) else "never"
        specs, nodes = job.spec.specs, rules.own_nodes(job, name)
        limits = [rules.exceeds_alone(job, name, amounts_asked(each, job.spec.nodes)) for each in specs]
        too_big = [not could_start(replace(job.spec, specs=(each,)), nodes) for each in specs]
        if all(limits) or (any(limits) and all(map(max, limits, too_big))):  # each alternative by the one or the other
            yield "limit"
        if rules.own(job) in ("begins", "waits") and not rules.may_be_inside(job, rules.now):
            yield "reservation"


@pytest.mark.req("SC-06", "SC-10", "SC-14")
@pytest.mark.parametrize("kind", [BackfillKind.EASY, BackfillKind.OFF])
@many
@given(st.integers(0, 2**32), st.integers(3, 30))
@example(20171, 40)  # a reservation keeps a job off the last nodes that are left
@example(20194, 40)  # one alternative breaks a limit, the other is too big
@example(70315, 30)  # a shorter job waits its turn where a reservation keeps this one away
def test_easy_and_in_order_passes_equal_the_reference(kind: BackfillKind, seed: int, steps: int) -> None:
    for world in lived(seed, steps, kind):
        rules = rules_of(world)
        if holds_more(rules):
            continue
        order = [(job.id, name) for job, name in rules.entries()]
        expected = NaiveEasy(world, rules, backfill=kind is BackfillKind.EASY)
        plan = world.cycle()
        assert [(job.id, name) for job, name in plan.priorities.order] == order
        assert [(each.job, each.spec_index, each.placement, each.partition) for each in plan.starts] == expected.starts
        reserved = plan.reservation
        promised = reserved and (reserved.job, reserved.reserved_at, reserved.spec_index, reserved.placement)
        assert promised == expected.reservation
        for job, words in expected.words.items():
            told = word(world.reason(job))
            allowed = [*words, *for_good(rules, world.jobs[job])]
            assert told in allowed or any((told, word) in LATER for word in allowed), (job, allowed)


@pytest.mark.req("SC-06", "SC-03", "SC-14")
@many
@given(st.integers(0, 2**32), st.integers(3, 30))
@example(5137, 24)  # a job that waits in one partition starts in another
@example(70672, 30)  # the reservation that a job names ends before another on the same node begins
def test_conservative_passes_equal_the_reference(seed: int, steps: int) -> None:
    for world in lived(seed, steps, BackfillKind.CONSERVATIVE):
        if holds_more(rules_of(world)):
            continue
        expected = naive_holes(world, rules_of(world))
        plan = world.cycle()
        planned = [(each.job, world.now, each.spec_index, each.placement) for each in plan.starts]
        planned += [(each.job, each.reserved_at, each.spec_index, each.placement) for each in plan.reservations]
        assert sorted(planned) == sorted(each[:4] for each in expected)
