from __future__ import annotations

import pytest

from cockpit.engine.invariants import violations
from cockpit.engine.replay.pods import ArrivalSums, Curve, PodReplay
from cockpit.sched.policy import FractionFit, Policy
from tests.sched.world import node, spec_of, wants


def replay(*pods, policy: Policy | None = None):
    world = PodReplay([node("n1", 2)], policy or Policy())
    came = list(world.arrivals(pods))
    assert violations(world.machine) == []
    return world, came


@pytest.mark.req("SC-23")
def test_a_pod_that_does_not_fit_leaves_and_delays_no_other() -> None:
    world, came = replay(spec_of(wants(700)), spec_of(wants(2000)), spec_of(wants(600)), spec_of(wants(300)))
    assert came == [
        ArrivalSums(700, 700, 1),
        ArrivalSums(2700, 700, 1),
        ArrivalSums(3300, 1300, 2),
        ArrivalSums(3600, 1600, 3),
    ]
    assert list(world.machine.queue) == []
    assert sorted(world.machine.occupied) == [1, 3, 4]


@pytest.mark.req("SC-23", "SC-04")
def test_the_policy_decides_where_a_pod_is_placed() -> None:
    def card_of_the_last(fit: FractionFit) -> int:
        policy = Policy(fraction_fit=fit, workload=((wants(500), 1),))
        world, _ = replay(spec_of(wants(400)), spec_of(wants(700)), spec_of(wants(200)), policy=policy)
        return world.machine.occupied[3][0].slices[0].card

    assert card_of_the_last(FractionFit.BEST) == 1  # 300 left of it, the smallest hole that does
    assert card_of_the_last(FractionFit.FGD) == 1  # of no use to anybody who wants 500


@pytest.mark.req("SC-23")
def test_a_point_of_the_curve_is_the_mean_over_the_arrivals_near_it() -> None:
    curve = Curve(1000)
    for asked, allocated in [(4, 4), (12, 10), (14, 12), (40, 20)]:
        curve.add(ArrivalSums(asked, allocated, 0))
    assert curve.points() == [0.4, 1.1, 1.1, 1.1, 2.0]
