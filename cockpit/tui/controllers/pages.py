"""Controllers for a job's page.

They change only the screen, and at once rather than in a task: the next key may have been typed already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.tui.screens.job import JobPage
from cockpit.tui.views.accounts import TABS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.parts import JobView


def open_page(app: Cockpit, tab: str) -> None:
    """Open the page of the chosen job at this tab; on a job's page, switch to the tab."""
    if page := app.selection.job_page:
        page.show_tab(tab)
    else:
        (row, *_) = app.selection.chosen_rows()
        app.push_screen(JobPage(row.id, tab))


def open_job(app: Cockpit) -> None:
    """Open the job's page; for a folded array, unfold its tasks."""
    if not app.main_screen.arrangement.unfold():
        open_page(app, "why")


def earlier_attempt(app: Cockpit) -> None:
    """Show the log of the previous attempt; from the first one, go to the last."""

    def show() -> None:
        if page := app.selection.job_page:
            page.earlier_attempt()

    open_page(app, "logs")
    app.call_after_refresh(show)  # a page that was just opened has no widgets before


def switch_tab(app: Cockpit, step: int) -> None:
    """Switch to the tab `step` places to the right on a job's page or in the Accounts view."""
    view = app.main_screen.tables.view
    if page := app.selection.job_page:
        page.turn(step)
    elif view in TABS:
        app.main_screen.show_view(TABS[(TABS.index(view) + step) % len(TABS)].id)


def on_page(act: Callable[[JobView], None]) -> Callable[[Cockpit], None]:
    """Make a function that does this on the job's page, if one is shown."""

    def run(app: Cockpit) -> None:
        if page := app.selection.job_page:
            act(page)

    return run
