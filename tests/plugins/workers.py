"""Lets every run end, although a test hangs or its worker dies.

pytest-xdist's own distribution hands a dead worker's tests back together with those that have run already. A new
worker that gets only such tests reports nothing, is asked for nothing more, and the run waits for it without end. It
would also run the test that killed its worker again.
"""

from __future__ import annotations

import faulthandler
import sys

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

CLEARING_UP = 300
"""Seconds for what is left of a failed test; pytest takes the watch away at the test's end."""


@pytest.hookimpl(tryfirst=True, optionalhook=True)  # there is no such hook with -p no:xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadGroupScheduling | None:
    return Distribution(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_exception_interact() -> None:
    """pytest ends its watch (faulthandler_timeout) at the first failure; a failed test can hang while it clears up."""
    faulthandler.dump_traceback_later(CLEARING_UP, exit=True, file=sys.__stderr__)


class Distribution(LoadGroupScheduling):
    """Groups go to one worker each; what a dead worker had not run goes to others, but for the test that it died in."""

    def remove_node(self, node: WorkerController) -> str | None:
        groups = self.assigned_work.pop(node)
        left = [test for group in groups.values() for test, ran in group.items() if not ran]
        if not left:
            return None
        for name, group in groups.items():
            again = {test: False for test in group if test in left[1:]}
            if again:
                self.workqueue[name] = again
        for other in self.assigned_work:
            self._reschedule(other)
        return left[0]

    def schedule(self) -> None:
        begun = self.collection is not None
        super().schedule()
        if begun:  # a worker starts its last test only when it has another or knows that none follows
            for node in self.nodes:
                self._reschedule(node)
