"""Controllers for lists: filter, sort, fold, colour, copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.ids import job_words
from cockpit.present.saved import SAVED
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.priority import PRIORITY
from cockpit.tui.screens.confirm import Confirm
from cockpit.tui.screens.pick import Choice, Pick

if TYPE_CHECKING:
    from cockpit.tui.cockpit import Cockpit


def open_node(app: Cockpit) -> None:
    """Open the page of the node under the cursor."""
    from cockpit.tui.screens.node import NodePage

    row = app.main_screen.node_under_cursor()
    if row is not None:
        app.push_screen(NodePage(row.node.name))


def node_jobs(app: Cockpit) -> None:
    """List the jobs on the page's node, on which the cursor of the list of nodes still is."""
    app.close_pages()
    app.main_screen.show_jobs_of_node()


async def saved_filters(app: Cockpit) -> None:
    """Let the user choose a saved filter to apply, or one to delete (asks)."""
    view = app.selection.view_name
    saved = app.options.filters.of(view)
    if not saved:
        app.notify(f"No filter of {view} is saved yet: filter the list, then save the filter.")
        return
    choices = [Choice(name, name, text) for name, text in sorted(saved.items())]
    picked = await app.push_screen_wait(
        Pick(f"Saved filters of {view}", choices, app.state.role_theme, verb="applies", deletes=True)
    )
    if picked is None:
        return
    if not picked.delete:
        app.main_screen.filter(f"{SAVED}{picked.id}")
    elif await app.push_screen_wait(Confirm(f"Delete the filter {picked.id}?", saved[picked.id])):
        app.options.filters.delete(view, picked.id)


async def choose_sort(app: Cockpit) -> None:
    """Let the user choose the column to sort by; the present one again reverses the order."""
    ranked = app.selection.view_name == PRIORITY.name
    table, current = (
        (PRIORITY, app.state.priority_rows.sort_column) if ranked else (JOBS, app.state.job_rows.list.sort_column)
    )
    choices = [Choice(column.id, column.title.lower(), column.help) for column in table.columns]
    picked = await app.push_screen_wait(
        Pick("Sort by", choices, app.state.role_theme, verb="sorts, the same again reverses", current=current)
    )
    if picked is not None:
        app.main_screen.sort_by(picked.id)


def copy(app: Cockpit) -> None:
    """Copy the ids of the chosen jobs to the clipboard, through the terminal (OSC 52)."""
    ids = " ".join(job_words(row.id) for row in app.selection.chosen_rows())
    app.copy_to_clipboard(ids)
    app.notify(f"copied {ids}")
