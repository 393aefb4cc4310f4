"""Controllers for lists: filter, sort, fold, colour, copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.ids import job_words
from cockpit.present.filters import SAVED
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.priority import PRIORITY
from cockpit.tui.screens.confirm import Confirm
from cockpit.tui.screens.pick import Choice, Pick

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def fold(app: CockpitBase) -> None:
    """Unfold an array's tasks or an account, or fold them into one row."""
    app.main_view.toggle_fold()


def open_node(app: CockpitBase) -> None:
    """Open the page of the node under the cursor."""
    from cockpit.tui.screens.node import NodePage

    row = app.main_view.node_under_cursor()
    if row is not None:
        app.push_screen(NodePage(row.node.name))


def node_jobs(app: CockpitBase) -> None:
    """List the jobs on the page's node, on which the cursor of the list of nodes still is."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_jobs_of_node()


def ask_filter(app: CockpitBase) -> None:
    """Open the filter line, which filters while the user types."""
    app.main_view.ask_filter()


def save_filter(app: CockpitBase) -> None:
    """Ask for a name, then save the present filter under it."""
    app.main_view.ask_filter_name()


async def saved_filters(app: CockpitBase) -> None:
    """Let the user choose a saved filter to apply, or one to delete (asks)."""
    view = app.view_name
    saved = app.filters.of(view)
    if not saved:
        app.notify(f"No filter of {view} is saved yet: filter the list, then save the filter.")
        return
    choices = [Choice(name, name, text) for name, text in sorted(saved.items())]
    picked = await app.push_screen_wait(
        Pick(f"Saved filters of {view}", choices, app.role_theme, verb="applies", deletes=True)
    )
    if picked is None:
        return
    if not picked.delete:
        app.main_view.filter(f"{SAVED}{picked.id}")
    elif await app.push_screen_wait(Confirm(f"Delete the filter {picked.id}?", saved[picked.id])):
        app.filters.delete(view, picked.id)


async def choose_sort(app: CockpitBase) -> None:
    """Let the user choose the column to sort by; the present one again reverses the order."""
    ranked = app.view_name == PRIORITY.name
    table, current = (PRIORITY, app.priority_rows.sort_column) if ranked else (JOBS, app.job_rows.list.sort_column)
    choices = [Choice(column.id, column.title.lower(), column.help) for column in table.columns]
    picked = await app.push_screen_wait(
        Pick("Sort by", choices, app.role_theme, verb="sorts, the same again reverses", current=current)
    )
    if picked is not None:
        app.main_view.sort_by(picked.id)


def turn_colours(app: CockpitBase) -> None:
    """Switch the colours of the cards between one for each user and one for each job."""
    app.main_view.turn_colours()


def toggle_mine(app: CockpitBase) -> None:
    """Show only the user's own jobs, or all jobs."""
    app.main_view.toggle_mine()


def sort_next(app: CockpitBase) -> None:
    """Sort by the column to the right."""
    app.main_view.sort_by_neighbour(1)


def sort_previous(app: CockpitBase) -> None:
    """Sort by the column to the left."""
    app.main_view.sort_by_neighbour(-1)


def sort_reverse(app: CockpitBase) -> None:
    """Reverse the order."""
    app.main_view.reverse_sort()


def copy(app: CockpitBase) -> None:
    """Copy the ids of the chosen jobs to the clipboard, through the terminal (OSC 52)."""
    ids = " ".join(job_words(row.id) for row in app.chosen_rows())
    app.copy_to_clipboard(ids)
    app.notify(f"copied {ids}")
