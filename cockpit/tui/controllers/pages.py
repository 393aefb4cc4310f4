"""What is done on a job's page. It only changes the screen, at once: the next key may be typed already."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_logs(app: CockpitBase) -> None:
    """The job's page at its logs."""
    app.open_page("logs")


def open_job(app: CockpitBase) -> None:
    """The job's page; of a folded array its tasks."""
    if not app.main_view.unfold():
        app.open_page("why")


def show_record(app: CockpitBase) -> None:
    """The job's page at the record that the engine keeps."""
    app.open_page("record")


def earlier_attempt(app: CockpitBase) -> None:
    """The log of the attempt before the one that is shown; from the first back to the last."""
    app.earlier_attempt()


def wrap(app: CockpitBase) -> None:
    """Long lines of the page go on below, or are cut at the edge."""
    if page := app.job_page:
        page.wrap()


def search(app: CockpitBase) -> None:
    """The search line of a job's page; it searches as one types."""
    if page := app.job_page:
        page.ask_search()


def next_match(app: CockpitBase) -> None:
    """Where the text stands next."""
    if page := app.job_page:
        page.find(1)


def previous_match(app: CockpitBase) -> None:
    """Where it stood before."""
    if page := app.job_page:
        page.find(-1)


def times(app: CockpitBase) -> None:
    """The second in which each line of the log came, or only the lines."""
    if page := app.job_page:
        page.turn_times()


def next_tab(app: CockpitBase) -> None:
    """The tab to the right."""
    app.switch_tab(1)


def previous_tab(app: CockpitBase) -> None:
    """The tab to the left."""
    app.switch_tab(-1)


def other_replica(app: CockpitBase) -> None:
    """The log of the job's next replica."""
    if page := app.job_page:
        page.other_replica()


def other_stream(app: CockpitBase) -> None:
    """stdout or stderr."""
    if page := app.job_page:
        page.other_stream()
