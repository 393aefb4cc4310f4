"""The selection that an action applies to: the present view, and the rows that are marked or under the cursor in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.model.ids import JobId
from cockpit.tui.action import JOB, NODE, ON_PLACES
from cockpit.tui.screens.action_palette import ActionPalette
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.node import NodePage
from cockpit.tui.views.all import CATALOGUE
from cockpit.tui.views.cards import CARDS
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.views.priority import PRIORITY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import App
    from textual.screen import Screen

    from cockpit.model.accounts import Qos
    from cockpit.model.catalogue import EntryRow
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import AccountRow
    from cockpit.tui.app_state import AppState
    from cockpit.tui.tables import Tables


class Selection:
    """The part of the application that knows what is chosen on its screen."""

    def __init__(self, app: App[Any], state: AppState, tables: Tables) -> None:
        self._app = app
        self._state = state
        self._tables = tables

    @property
    def _screen(self) -> Screen[Any] | None:
        """The top screen, below the command palette where that is open; None: the application closes."""
        # The palette lists the actions of the view from which it was opened, so that it is no view itself.
        stack = reversed(self._app.screen_stack)
        return next((screen for screen in stack if not isinstance(screen, ActionPalette)), None)

    @property
    def job_page(self) -> JobPage | None:
        """The job's page on the screen; None where another screen is shown."""
        return self._screen if isinstance(self._screen, JobPage) else None

    @property
    def view_name(self) -> str:
        """The name of the present view: a list's, or `job` or `node` for a page."""
        # Above other dialogs no key of a view works, so that it does not matter that they count as the list below.
        pages = {JobPage: JOB, NodePage: NODE}
        return next((view for page, view in pages.items() if isinstance(self._screen, page)), self._tables.view.id)

    def chosen_rows(self) -> list[JobRow]:
        """Return the jobs that an action applies to: the marked ones, else the one under the cursor."""
        rows, view, page = self._state.job_rows, self.view_name, self.job_page
        # The Jobs view may have folded arrays: a folded row stands for those of its tasks that an action may change.
        if view == JOBS.id:
            ids: Iterable[Any] = self._tables.jobs.chosen()
            return [row for row_id in ids for row in rows.folds.action_targets(row_id)]
        jobs: Iterable[int] = ()
        if page is not None:
            jobs = (page.job,)
        elif view == CARDS.id:
            part = self._state.card_rows.part
            jobs = (part.job,) if part is not None and part.job else ()
        elif view == PRIORITY.id:
            jobs = self._ranked_jobs()
        # A page or an answer may be older than the list: a job that has left the list is not chosen.
        return [row for job in jobs if (row := rows.row(JobId(job))) is not None]

    def _ranked_jobs(self) -> Iterable[int]:
        """Return the marked jobs of the Priority view in their order, else the one under the cursor, each once."""
        rows = (self._state.priority_rows.row(each) for each in self._tables.by_view[PRIORITY.id].chosen())
        return dict.fromkeys(row.job for row in rows if row is not None)

    def job_under_cursor(self) -> JobRow | None:
        """Return the job under the cursor of the list of jobs."""
        row: JobRow | None = self._tables.row_under_cursor(JOBS.id)
        return row

    def place_under_cursor(self) -> AccountRow | Qos | None:
        """Return the account, user or QOS under the cursor; None in other views."""
        view = self.view_name
        place: AccountRow | Qos | None = self._tables.row_under_cursor(view) if view in ON_PLACES else None
        return place

    def entry_under_cursor(self) -> EntryRow | None:
        """Return the catalogue's entry under the cursor; None in other views."""
        view = self.view_name
        entry: EntryRow | None = self._tables.row_under_cursor(view) if view == CATALOGUE.id else None
        return entry
