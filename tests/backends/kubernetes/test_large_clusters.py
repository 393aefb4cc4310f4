"""What is computed of a large cluster on which something always changes."""

from __future__ import annotations

import pytest

from cockpit.backends import planning_mirror
from cockpit.backends.kubernetes import why
from cockpit.backends.kubernetes.mapping.planning import ClusterLists
from cockpit.backends.kubernetes.why import SchedulerForecast
from tests.builders import NOON


@pytest.mark.req("PF-20", "KU-05")
@pytest.mark.parametrize(("large", "rest", "times"), [(0, 1_000_000, 1), (0, 0, 3), (1, 1_000_000, 3)])
async def test_the_simulation_of_a_large_cluster_rests_although_something_changes(
    monkeypatch: pytest.MonkeyPatch, large: int, rest: int, times: int
) -> None:
    monkeypatch.setattr(planning_mirror, "LARGE", large)
    monkeypatch.setattr(planning_mirror, "REST", rest)
    simulated: list[object] = []
    judge = why._judgement
    monkeypatch.setattr(why, "_judgement", lambda lists: (simulated.append(lists.version), judge(lists))[1])
    forecast = SchedulerForecast()
    for version in range(3):
        await forecast.starts(ClusterLists(NOON, {}, {}, (), version=version), ())
    assert len(simulated) == times
