"""What is done to a list: filtered, sorted, folded, coloured, copied from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.ids import job_words
from cockpit.present.saved import SAVED
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.priority import PRIORITY
from cockpit.tui.screens.confirm import Confirm
from cockpit.tui.screens.pick import Choice, Pick

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def fold(app: CockpitBase) -> None:
    """An array's tasks, or one row for all of them."""
    app.main_view.toggle_fold()


def open_node(app: CockpitBase) -> None:
    """The page of the node under the cursor."""
    from cockpit.tui.screens.node import NodePage

    row = app.main_view.node_under_cursor()
    if row is not None:
        app.push_screen(NodePage(row.node.name))


def node_jobs(app: CockpitBase) -> None:
    """The jobs on the node of the page, which the cursor of the list is on."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_jobs_of_node()


def ask_filter(app: CockpitBase) -> None:
    """The filter line; it filters as one types."""
    app.main_view.ask_filter()


def save_filter(app: CockpitBase) -> None:
    """The present filter under a name that is asked for."""
    app.main_view.ask_filter_name()


async def saved_filters(app: CockpitBase) -> None:
    """One of them is applied, or deleted when that is meant."""
    view = app.view_name
    saved = app.filters.of(view)
    if not saved:
        app.notify(f"No filter of {view} is saved yet: filter them, then save that.")
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
    """By any column; by the one that leads already: the other way round."""
    ranked = app.view_name == PRIORITY.name
    table, current = (PRIORITY, app.priority_rows.sort_column) if ranked else (JOBS, app.job_rows.list.sort_column)
    choices = [Choice(column.id, column.title.lower(), column.help) for column in table.columns]
    picked = await app.push_screen_wait(
        Pick("Sort by", choices, app.role_theme, verb="sorts, the same again reverses", current=current)
    )
    if picked is not None:
        app.main_view.sort_by(picked.id)


def turn_colours(app: CockpitBase) -> None:
    """By user, or by job."""
    app.main_view.turn_colours()


def toggle_mine(app: CockpitBase) -> None:
    """Only one's own jobs, or everybody's."""
    app.main_view.toggle_mine()


def sort_next(app: CockpitBase) -> None:
    """By the column to the right."""
    app.main_view.sort_by_neighbour(1)


def sort_previous(app: CockpitBase) -> None:
    """By the column to the left."""
    app.main_view.sort_by_neighbour(-1)


def sort_reverse(app: CockpitBase) -> None:
    """The other way round."""
    app.main_view.reverse_sort()


def copy(app: CockpitBase) -> None:
    """The ids of the chosen jobs, through the terminal (OSC 52)."""
    ids = " ".join(job_words(row.id) for row in app.chosen_rows())
    app.copy_to_clipboard(ids)
    app.notify(f"copied {ids}")
