"""Controllers for a job's page.

They change only the screen, and at once rather than in a task: the next key may have been typed already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_logs(app: CockpitBase) -> None:
    """Open the job's page at its logs."""
    app.open_page("logs")


def open_job(app: CockpitBase) -> None:
    """Open the job's page; for a folded array, unfold its tasks."""
    if not app.main_view.unfold():
        app.open_page("why")


def show_record(app: CockpitBase) -> None:
    """Open the job's page at the engine's record of the job."""
    app.open_page("record")


def earlier_attempt(app: CockpitBase) -> None:
    """Show the log of the previous attempt; from the first one, go to the last."""
    app.earlier_attempt()


def wrap(app: CockpitBase) -> None:
    """Wrap long lines of the page, or cut them at the edge."""
    if page := app.job_page:
        page.wrap()


def search(app: CockpitBase) -> None:
    """Open the search line, which searches while the user types."""
    if page := app.job_page:
        page.ask_search()


def next_match(app: CockpitBase) -> None:
    """Go to the next match."""
    if page := app.job_page:
        page.find(1)


def previous_match(app: CockpitBase) -> None:
    """Go to the previous match."""
    if page := app.job_page:
        page.find(-1)


def times(app: CockpitBase) -> None:
    """Show or hide the time at which each line of the log arrived."""
    if page := app.job_page:
        page.turn_times()


def next_tab(app: CockpitBase) -> None:
    """Switch to the tab to the right."""
    app.switch_tab(1)


def previous_tab(app: CockpitBase) -> None:
    """Switch to the tab to the left."""
    app.switch_tab(-1)


def other_replica(app: CockpitBase) -> None:
    """Show the log of the job's next replica."""
    if page := app.job_page:
        page.other_replica()


def other_stream(app: CockpitBase) -> None:
    """Switch the log between stdout and stderr."""
    if page := app.job_page:
        page.other_stream()
