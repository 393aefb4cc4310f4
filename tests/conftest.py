"""What every test shares: the plugins of this suite, and how it is spread over the cores."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester", "tests.plugins.skips", "tests.plugins.requirements"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the real machine share its mounts and users, so one worker runs them; being long, they start first."""
    for item in items:
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.xdist_group("real"))
    items.sort(key=lambda item: item.get_closest_marker("real") is None)
