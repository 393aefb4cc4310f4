"""A worker that dies costs the run one test, not its end."""

from __future__ import annotations

import pytest

SUITE = """
import os, pytest

@pytest.mark.parametrize("number", range(12))
def test_before(number): pass

@pytest.mark.xdist_group("deadly")
def test_dies(): os._exit(3)

@pytest.mark.xdist_group("deadly")
def test_after_it(): pass

@pytest.mark.parametrize("number", range({after}))
def test_later(number): pass
"""


@pytest.mark.parametrize(("workers", "after"), [(1, 1), (2, 0), (2, 30)])
def test_a_run_ends_although_a_worker_dies(pytester: pytest.Pytester, workers: int, after: int) -> None:
    pytester.makeconftest('pytest_plugins = ["tests.plugins.workers"]')
    pytester.makepyfile(SUITE.format(after=after))
    result = pytester.runpytest_subprocess("-n", str(workers), "--dist", "loadgroup", timeout=300)
    result.assert_outcomes(passed=13 + after, failed=1, skipped=0 if after else 1)
    assert "test_dies" in result.stdout.str()
