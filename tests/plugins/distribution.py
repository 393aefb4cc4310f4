"""Gives the tests of a worker that died to the others.

pytest-xdist's own distribution hands a dead worker's tests back together with those that have run already. A new
worker that gets only such tests reports nothing, is asked for nothing more, and the run waits for it without end. It
would also run the test that killed its worker again.
"""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


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
