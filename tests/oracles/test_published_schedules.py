"""Schedules that others published: each line of these logs is input and answer."""

from __future__ import annotations

import pytest

from cockpit.engine.replay.jobs import figures
from cockpit.formats.traces.swf import history, read_swf
from cockpit.headless.verbs.replay import PERFECT, replayed
from tests.oracles.traces import trace


def replay(name: str, processors: int, policy: str):
    past = history(read_swf(name, trace(name).read_bytes()), processors, perfect=policy == PERFECT)
    runs = replayed(past, processors, policy, lambda _: None)
    assert [run.waited for run in runs] == [job.waited for job in past.jobs]
    assert not past.skipped
    return len(runs), figures(runs, processors)


@pytest.mark.req("SC-20", "PF-03")
def test_kth_under_easy() -> None:
    jobs, found = replay("KTH-SP2.easy-oracle.swf.gz", 100, "easy")
    assert jobs == 28_481
    assert round(found.mean_bounded_slowdown, 4) == 92.5765
    assert round(found.mean_wait, 1) == 6_836.9
    assert round(found.utilisation, 3) == 0.686


@pytest.mark.req("SC-20", "PF-03")
def test_sdsc_under_easy() -> None:
    jobs, found = replay("SDSC-SP2.easy-oracle.swf.gz", 128, "easy")
    assert jobs == 54_006
    assert round(found.mean_bounded_slowdown, 4) == 87.8703
    assert round(found.mean_wait, 1) == 20_497.8
    assert round(found.utilisation, 3) == 0.823


@pytest.mark.req("SC-21")
def test_kth_under_easy_with_perfect_run_times() -> None:
    jobs, found = replay("KTH-SP2.easy-clairvoyant-oracle.swf.gz", 100, PERFECT)
    assert jobs == 28_481
    assert round(found.mean_bounded_slowdown, 4) == 71.7224


@pytest.mark.req("SC-22", "PF-04")
def test_kth_under_conservative_backfill() -> None:
    jobs, found = replay("KTH-SP2.conservative-replan-oracle.swf.gz", 100, "conservative")
    assert jobs == 28_481
    assert round(found.mean_bounded_slowdown, 3) == 101.827
