"""The outlook of the job under the cursor: asked for beside everything else, since it takes longer than a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.forecast import Outlook
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobrow import JobRow
    from cockpit.tui.face import Face

FRESH_MS = 10_000


class Foretelling:
    """Asks once per job and version, and again after a while; never twice at once for one job, so that an answer comes
    however long it takes."""

    def __init__(self, app: Face, changed: Callable[[], None]) -> None:
        """`changed` is called when there is another outlook."""
        self.outlook: Outlook | None = None
        self._app = app
        self._changed = changed
        self._asked: tuple[JobId, int] | None = None
        self._asked_at: Millis | None = None
        self._asking: JobId | None = None
        """Whose answer is under way."""

    def look_at(self, row: JobRow | None) -> None:
        """The cursor is here; what is known of another job is forgotten."""
        if row is None or not row.queued:
            self.outlook = self._asked = None
            return
        if self._asking == row.id:
            return
        now = self._app.now()
        if self._asked == (row.id, row.version) and self._asked_at is not None and now - self._asked_at < FRESH_MS:
            return
        self._asked, self._asked_at, self._asking = (row.id, row.version), now, row.id
        self._app.run_worker(self._ask(row), name="outlook", group="outlook", exclusive=True)

    async def _ask(self, row: JobRow) -> None:
        try:
            self.outlook = await self._app.backend.explain(row.id)
        except CockpitError:  # it has just started, or the cluster is away: the panel says so anyhow
            self.outlook = None
        finally:
            if self._asking == row.id:
                self._asking = None
        self._changed()
