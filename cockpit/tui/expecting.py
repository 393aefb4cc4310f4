"""When the queued jobs on the screen likely start: asked for now and then, for all that are in sight at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cockpit.model.ids import JobId, Millis
    from cockpit.tui.face import Face

FRESH_SECONDS, APART_SECONDS = 10.0, 2.0
"""Known starts are asked for again after so long, and those that came in sight so long after the last question."""


class Expecting:
    """One question at a time; what is out of sight is forgotten with the next answer."""

    def __init__(self, app: Face, changed: Callable[[Iterable[JobId]], None]) -> None:
        """`changed` is called with the jobs of which something else is expected now."""
        self.starts: Mapping[JobId, Millis] = {}
        self._app = app
        self._changed = changed
        self._asked: frozenset[JobId] = frozenset()
        self._asked_at: float | None = None
        """In the event loop's time."""
        self._asking = False

    def look_over(self, jobs: Sequence[JobId]) -> None:
        """These queued jobs are in sight."""
        now = asyncio.get_running_loop().time()
        age = FRESH_SECONDS if self._asked_at is None else now - self._asked_at
        due = age >= FRESH_SECONDS or (age >= APART_SECONDS and not self._asked.issuperset(jobs))
        if jobs and due and not self._asking:
            self._asking, self._asked, self._asked_at = True, frozenset(jobs), now
            self._app.run_worker(self._ask(jobs), name="starts", group="starts")

    async def _ask(self, jobs: Sequence[JobId]) -> None:
        try:
            found = await self._app.backend.starts(jobs)
        except CockpitError:  # the cluster is away: what was expected stands until it is back
            return
        finally:
            self._asking = False
        before, self.starts = self.starts, {each.job: each.at for each in found if each.at is not None}
        self._changed({job for job, _ in before.items() ^ self.starts.items()})
