"""The selection that an action applies to: the present view, and the rows that are marked or under the cursor in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.model.ids import JobId
from cockpit.tui.action import CARDS, CATALOGUE, JOB, JOBS, NODE, ON_PLACES, PRIORITY, QOS
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.node import NodePage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import App
    from textual.screen import Screen

    from cockpit.model.accounts import Qos
    from cockpit.model.catalogue import EntryRow
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import AccountRow
    from cockpit.tui.app_state import AppState
    from cockpit.tui.screens.main import MainScreen


class Selection:
    """The part of the application that knows what is chosen on its screen."""

    def __init__(self, app: App[Any], state: AppState, main: MainScreen) -> None:
        self._app = app
        self._state = state
        self._main = main

    @property
    def _screen(self) -> Screen[Any] | None:
        return self._app.screen if self._app.screen_stack else None

    @property
    def job_page(self) -> JobPage | None:
        """The job's page on the screen; None where another screen is shown."""
        return self._screen if isinstance(self._screen, JobPage) else None

    @property
    def view_name(self) -> str:
        """The name of the present view: a list's, or `job` or `node` for a page."""
        pages = {JobPage: JOB, NodePage: NODE}
        return next((view for page, view in pages.items() if isinstance(self._screen, page)), self._main.view)

    def chosen_rows(self) -> list[JobRow]:
        """Return the jobs that an action applies to: the marked ones, else the one under the cursor."""
        rows, view, page = self._state.job_rows, self.view_name, self.job_page
        if view == JOBS:
            ids: Iterable[Any] = self._main.jobs.chosen()
            return [row for row_id in ids for row in rows.folds.action_targets(row_id)]
        jobs: list[int] = []
        if page is not None:
            jobs = [page.job]
        elif view == CARDS:
            jobs = [self._main.job_of_card()]
        elif view == PRIORITY:
            jobs = list(dict.fromkeys(self._main.ranked_jobs()))
        return [row for job in jobs if (row := rows.row(JobId(job))) is not None]

    def job_under_cursor(self) -> JobRow | None:
        """Return the job under the cursor of the list of jobs."""
        row_id: Any = self._main.jobs.cursor_id
        return None if row_id is None else self._state.job_rows.folds.speaker(row_id)

    def place_under_cursor(self) -> AccountRow | Qos | None:
        """Return the account, user or QOS under the cursor; None in other views."""
        view = self.view_name
        row_id: Any = self._main.table.cursor_id if view in ON_PLACES else None
        if row_id is None:
            return None
        return (self._state.qos_rows if view == QOS else self._state.account_rows).row(row_id)

    def entry_under_cursor(self) -> EntryRow | None:
        """Return the catalogue's entry under the cursor; None in other views."""
        row_id: Any = self._main.catalogue.cursor_id if self.view_name == CATALOGUE else None
        return None if row_id is None else self._state.catalogue_rows.row(row_id)
