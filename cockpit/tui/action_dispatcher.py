"""From a key to its controller: which job or account an action applies to, whether it is allowed, and running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.config.clusternames import EVERY_CLUSTER
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.ids import JobId, job_words
from cockpit.present.requests import refusal_text
from cockpit.tui import commands
from cockpit.tui.action import (
    CARDS,
    CATALOGUE,
    JOB,
    JOBS,
    NODE,
    ON_ACCOUNTS,
    ON_PLACES,
    PARTS,
    PRIORITY,
    QOS,
    Situation,
)
from cockpit.tui.poller import Poller
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.node import NodePage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from cockpit.model.accounts import Qos
    from cockpit.model.catalogue import EntryRow
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import AccountRow
    from cockpit.tui.cockpit_base import CockpitBase


class ActionDispatcher(Poller):
    """The layer of the application that runs actions for keys, command line and palette, or shows why it refuses."""

    @property
    def job_page(self) -> JobPage | None:
        """The job's page on the screen; None where another screen is shown."""
        return self.screen if isinstance(self.screen, JobPage) else None

    def situation(self) -> Situation:
        """Return the state by which actions decide whether they can be performed."""
        return Situation(
            self.view_name,
            self.chosen_rows(),
            self.outside.read_only,
            demo=self.pace is not None,
            filter=self.main_screen.filter_text,
            place=self.place_under_cursor(),
            entry=self.entry_under_cursor(),
            accounts=self.accounts,
            admin=self.overview is None or self.overview.admin,
            trying=self.priority_rows.tried is not None,
            several=self.cluster == EVERY_CLUSTER,
        )

    @property
    def view_name(self) -> str:
        """The name of the present view: a list's, or `job` or `node` for a page."""
        shown = self.screen if self.screen_stack else None
        pages = {JobPage: JOB, NodePage: NODE}
        return next((view for page, view in pages.items() if isinstance(shown, page)), self.main_screen.view)

    def chosen_rows(self) -> list[JobRow]:
        """Return the jobs that an action applies to: the marked ones, else the one under the cursor."""
        if isinstance(self.screen, JobPage):
            row = self.job_rows.row(self.screen.job)
            return [row] if row is not None else []
        if isinstance(self.screen, NodePage):
            return []
        if self.main_screen.view == CARDS:
            row = self.job_rows.row(JobId(self.main_screen.job_of_card()))
            return [row] if row is not None else []
        if self.main_screen.view == PRIORITY:
            chosen = dict.fromkeys(self.main_screen.ranked_jobs())
            return [row for job in chosen if (row := self.job_rows.row(JobId(job))) is not None]
        ids: Iterable[Any] = self.main_screen.jobs.chosen() if self.main_screen.view == JOBS else []
        return [row for row_id in ids for row in self.job_rows.folds.acted_on(row_id)]

    def place_under_cursor(self) -> AccountRow | Qos | None:
        row_id: Any = self.main_screen.table.cursor_id if self.view_name in ON_PLACES else None
        if row_id is None:
            return None
        return (self.qos_rows if self.view_name == QOS else self.account_rows).row(row_id)

    def entry_under_cursor(self) -> EntryRow | None:
        row_id: Any = self.main_screen.catalogue.cursor_id if self.view_name == CATALOGUE else None
        return None if row_id is None else self.catalogue_rows.row(row_id)

    def action_press(self, key: str) -> None:
        """Perform the action that the key has in the present view.

        Where it has none here, perform its action of another view, whose refusal tells the user that it does not apply.
        """
        actions = [action for action in self.actions if key in action.keys]
        in_view = [action for action in actions if self.view_name in action.views]
        self.perform((in_view or actions)[0].id)

    def perform(self, action_id: str, run: Callable[[CockpitBase], Awaitable[None] | None] | None = None) -> None:
        """Run the action, or show a toast with the reason why it is refused.

        `run` replaces the action's own function where the command line already has the arguments that it would ask for.
        """
        # A screen that was pushed a moment ago has no widgets yet: try again once it has.
        if not self.screen.is_mounted:
            self.screen.call_later(self.perform, action_id, run)
            return
        action = next(each for each in self.actions if each.id == action_id)
        refusal = action.refusal(self.situation())
        if refusal:
            self.clear_notifications()
            self.notify(refusal, severity="warning")
            return
        try:
            work = (run or action.run)(self)
        except CockpitError as error:
            self._show_error(error)
        else:
            if work is not None:
                self.run_in_background(work)

    def run_in_background(self, work: Awaitable[None]) -> None:
        self.run_worker(self._finish(work), group="actions")

    async def _finish(self, work: Awaitable[None]) -> None:
        try:
            await work
        except CockpitError as error:
            self._show_error(error)
        self.wake()

    def _show_error(self, error: CockpitError) -> None:
        if isinstance(error, RequestRefused):
            self.notify(refusal_text(error.refusal, self.now()), severity="warning")
        else:
            self.notify(str(error), severity="error")

    def run_command(self, text: str) -> None:
        """Run a line of the command line; errors become toasts."""
        try:
            commands.run_command(self, text)
        except CockpitError as error:
            self._show_error(error)

    def go_to(self, number: int) -> None:
        """Put the cursor on the job with this number, or show a toast where the list lacks it."""
        job = JobId(number)
        row_id = self.job_rows.folds.shown_as(job)
        if self.job_rows.place(row_id) is None:
            hidden = "is filtered out; Esc shows them all" if self.job_rows.row(job) else "is not on the list"
            self.notify(f"Job {job_words(number)} {hidden}.", severity="warning")
            return
        self.perform("jobs")
        self.main_screen.jobs.move_to(row_id)

    def switch_tab(self, step: int) -> None:
        if isinstance(self.screen, JobPage):
            self.screen.turn(step)
        elif self.view_name in ON_ACCOUNTS:
            self.main_screen.show_view(PARTS[(PARTS.index(self.view_name) + step) % len(PARTS)])

    def go_to_cluster(self, name: str) -> None:
        self.next_cluster = name
        self.exit(0)

    def earlier_attempt(self) -> None:
        self.open_page("logs")
        self.call_after_refresh(self._earlier_attempt)

    def _earlier_attempt(self) -> None:
        if isinstance(self.screen, JobPage):
            self.screen.earlier_attempt()

    def open_page(self, tab: str) -> None:
        if isinstance(self.screen, JobPage):
            self.screen.show_tab(tab)
        else:
            (row, *_) = self.chosen_rows()
            self.push_screen(JobPage(row.id, tab))
