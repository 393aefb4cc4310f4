"""Every reason is proved by what happens without it, on a thousand random clusters with every rule on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.pod_reasons import PodReason
from cockpit.model.reasons import Explanation, QuotaWaits, Reason, SchedulerReason, SuspendedReason, WouldDelay
from cockpit.sched.explain import explain
from cockpit.sched.shortage import with_shortage_changed
from tests.sched.counterfactual import CLAIMS, check, copied
from tests.sched.every_rule import every_rule_world
from tests.sched.world import World

WORLDS, EACH = 1_000, 500
LEAST = 4
"""So often every type of reason comes in each part of the worlds: else the proof would be hollow."""
in_parts = pytest.mark.parametrize("first", range(0, WORLDS, EACH))


def reasons_of(world: World) -> Iterator[tuple[JobId, Reason]]:
    """One reason of each type: of queued jobs as it is reported, of suspended jobs as their records have it."""
    told = [(job.id, world.reason(job.id)) for job in world.queue]
    still = [world.jobs[job] for job in world.occupied if world.jobs[job].suspension is not None]
    told += [(job.id, SuspendedReason(job.suspension.by, job.suspension.for_jobs)) for job in still]
    yield from {type(reason): (job, reason) for job, reason in told}.values()


def test_every_type_of_reason_has_a_counterfactual_check() -> None:
    """Reasons of other schedulers come from these."""
    assert set(CLAIMS) | {SchedulerReason, QuotaWaits, *get_args(PodReason)} == set(get_args(Reason))


@pytest.mark.req("SC-13")
@in_parts
def test_without_what_its_reason_names_a_job_starts_or_waits_for_something_else(first: int) -> None:
    met: Counter[type] = Counter()
    for seed in range(first, first + EACH):
        world = every_rule_world(seed)
        for job, reason in reasons_of(world):
            met[type(reason)] += 1
            check(world, job, reason)
    assert min(met[each] for each in CLAIMS) >= LEAST, met


@pytest.mark.req("SC-13")
@pytest.mark.parametrize("first", range(0, 600, 300))
def test_the_jobs_ahead_are_all_that_matter_and_have_the_reported_reservations(first: int) -> None:
    """Jobs behind it are taken away: the job still waits for the same."""
    met = 0
    for seed in range(first, first + 300):
        world = every_rule_world(seed)
        plan = world.cycle()
        if plan.starts or plan.evictions or plan.switches or world.rules["cluster"].members:
            continue  # totals are told as they were when it was looked at
        snapshot, reserved = world.snapshot(), {each.job: each.reserved_at for each in plan.reservations}
        for job in world.queue:
            told = explain(snapshot, plan, job.id)
            assert told.reserved_at == reserved.get(job.id)
            if isinstance(told.reason, WouldDelay):
                assert told.reason.ahead in told.ahead
                assert reserved[told.reason.ahead] == told.reason.reserved_at
            if told.position == len(told.ahead) + 1:
                met += 1
                assert without_those_behind(world, told) == plain(told.reason), (seed, told)
    assert met > 1000


def without_those_behind(world: World, told: Explanation) -> Reason:
    fresh = copied(world)
    fresh.withdraw(*{job.id for job in world.queue} - {told.job, *told.ahead})
    fresh.cycle()
    return plain(fresh.reason(told.job))


def plain(reason: Reason) -> Reason:
    """How many it might preempt is known only if its turn to preempt came."""
    return with_shortage_changed(reason, lambda one: replace(one, preemptable=None))
