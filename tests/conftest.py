"""What every test shares: the plugins of this suite, and how it is spread over the cores."""

from __future__ import annotations

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.backends.contract")  # or its failures would show no values
pytest_plugins = ["pytester", "tests.plugins.skips", "tests.plugins.requirements", "tests.plugins.workers"]


settings.register_profile("anywhere", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("anywhere")  # the same examples on every machine, however slow it is

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it puts into the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # or no program that a test starts could be interrupted

SHARING = ("people", "slurm", "kubernetes")
"""Groups for which something is made once that takes long: an environment for everybody, a cluster."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the real machine start first, being long; one worker runs a whole file or group of them."""
    groups = {item.nodeid: _group(item) for item in items if item.get_closest_marker("real")}
    for item in items:
        if item.nodeid in groups:
            item.add_marker(pytest.mark.xdist_group(groups[item.nodeid]))
    items.sort(key=lambda item: (item.nodeid not in groups, groups.get(item.nodeid) not in SHARING))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What stays to the end is not looked through at each collection of garbage: a tenth of the suite's time."""
    gc.collect()
    gc.freeze()


def _group(item: pytest.Item) -> str:
    if item.get_closest_marker("real_slurm"):
        return "slurm"
    if item.get_closest_marker("real_kubernetes"):
        return "kubernetes"
    if "everybodys_python" in getattr(item, "fixturenames", ()):
        return "people"
    return f"{item.path.parent.name}-{item.path.stem}"
