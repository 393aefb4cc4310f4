from __future__ import annotations

from collections import Counter

import pytest

from cockpit.formats.traces.gpu import arriving, card_milli
from tests.sched.world import spec_of, wants

PODS = [spec_of(wants(milli), limit=number + 1) for number, milli in enumerate([0, 250, 500, 1000, 2000])]
"""3750 thousandths; the limits tell them apart."""


def asked(pods) -> int:
    return sum(map(card_milli, pods))


@pytest.mark.req("SC-23")
def test_the_whole_trace_arrives_once_before_any_pod_arrives_twice() -> None:
    came = arriving(PODS, 20_000, seed=1)
    assert Counter(pod.time_limit_seconds for pod in came[:5]) == Counter(range(1, 6))
    assert 18_000 < asked(came) <= 20_000


@pytest.mark.req("SC-23")
def test_a_trace_above_the_target_demand_drops_pods() -> None:
    came = arriving(PODS, 1_800, seed=1)
    assert asked(came) <= 1_800
    assert len({pod.time_limit_seconds for pod in came}) == len(came) < len(PODS)


@pytest.mark.req("SC-23")
def test_the_seed_alone_decides_which_and_when() -> None:
    assert arriving(PODS, 20_000, seed=3) == arriving(PODS, 20_000, seed=3) != arriving(PODS, 20_000, seed=4)
