"""Lets every run end, although a test hangs or its worker dies."""

from __future__ import annotations

import faulthandler
import sys

import pytest

CLEARING_UP = 300
"""Seconds for what is left of a failed test; pytest takes the watch away at the test's end."""


@pytest.hookimpl(tryfirst=True, optionalhook=True)  # there is no such hook with -p no:xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    from tests.plugins.distribution import Distribution  # tests also run where xdist is not installed

    return Distribution(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_exception_interact() -> None:
    """pytest ends its watch (faulthandler_timeout) at the first failure; a failed test can hang while it clears up."""
    faulthandler.dump_traceback_later(CLEARING_UP, exit=True, file=sys.__stderr__)
