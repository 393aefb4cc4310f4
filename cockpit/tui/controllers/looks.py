"""Controllers that change only the screen: open a page, switch tabs, filter, sort, copy.

Those of a job's page change it at once rather than in a task: the next key may have been typed already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.filters import quoted
from cockpit.present.folding import id_text
from cockpit.present.saved import SAVED
from cockpit.present.tables.queues import jobs_filter
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.pick import Choice, pick
from cockpit.tui.views.accounts import TABS
from cockpit.tui.views.all import NODES, QUEUES
from cockpit.tui.views.clusters import TABS as CLUSTER_TABS
from cockpit.tui.views.jobs import JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.view import NodeRow, QueueRow
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.parts import JobView


def open_node(app: Cockpit) -> None:
    """Open the page of the node under the cursor."""
    from cockpit.tui.screens.node import NodePage

    row = _node_under_cursor(app)
    if row is not None:
        app.push_screen(NodePage(row.node.name))


def node_jobs(app: Cockpit) -> None:
    """List the jobs on the page's node, on which the cursor of the list of nodes still is."""
    app.close_pages()
    row = _node_under_cursor(app)
    if row is not None:
        app.main_screen.show_jobs(f"node:{quoted(row.node.name)}")


def _node_under_cursor(app: Cockpit) -> NodeRow | None:
    row: NodeRow | None = app.main_screen.tables.row_under_cursor(NODES.id)
    return row


def queue_jobs(app: Cockpit) -> None:
    """List the jobs of the partition, or of all projects of the queue, under the cursor."""
    row: QueueRow | None = app.main_screen.tables.row_under_cursor(QUEUES.id)
    filter_text = None if row is None else jobs_filter(row, app.state.queue_rows.below(row))
    if filter_text is None:
        app.notify("No project belongs to this queue, so it has no jobs.")
    else:
        app.main_screen.show_jobs(filter_text)


async def saved_filters(app: Cockpit) -> None:
    """Let the user choose a saved filter to apply, or one to delete (asks)."""
    view = app.selection.view_name
    saved = app.options.filters.of(view)
    if not saved:
        app.notify(f"No filter of {view} is saved yet: filter the list, then save the filter.")
        return
    choices = [Choice(name, name, text) for name, text in sorted(saved.items())]
    picked = await pick(app, f"Saved filters of {view}", choices, verb="applies", deletion="delete")
    if picked is None:
        return
    if not picked.delete:
        app.main_screen.entry_line.filter(f"{SAVED}{picked.id}")
    elif await app.push_screen_wait(Confirm(f"Delete the filter {picked.id}?", saved[picked.id])):
        app.options.filters.delete(view, picked.id)


async def choose_sort(app: Cockpit) -> None:
    """Let the user choose the column to sort by; the present one again reverses the order."""
    rows = app.main_screen.tables.sorted_rows()
    if rows is None:
        return
    view, current = app.main_screen.tables.view, rows.sort_column
    choices = [Choice(column.id, column.title.lower(), column.help) for column in view.table.columns]
    if view is JOBS:
        choices.insert(0, Choice("", "what needs you", "Your held and failed jobs, your others, then other users'"))
    picked = await pick(app, "Sort by", choices, verb="sorts, the same again reverses", current=current)
    if picked is not None:
        app.main_screen.arrangement.sort_by(picked.id)


def copy(app: Cockpit) -> None:
    """Copy the ids of the chosen jobs to the clipboard, through the terminal (OSC 52)."""
    # As commands take them: `cockpit cancel 41 42_3`.
    ids = " ".join(id_text(row) for row in app.selection.chosen_rows())
    app.copy_to_clipboard(ids)
    app.notify(f"copied {ids}")


def open_page(app: Cockpit, tab: str) -> None:
    """Open the page of the chosen job at this tab; on a job's page, switch to the tab."""
    if page := app.selection.job_page:
        page.show_tab(tab)
    else:
        # Of several marked jobs the first: a page shows one.
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
    """Switch to the tab `step` places to the right on a job's page or in the Accounts and Clusters views."""
    view = app.main_screen.tables.view
    if page := app.selection.job_page:
        page.switch_tab(step)
    for tabs in (TABS, CLUSTER_TABS):
        if view in tabs and not page:
            app.main_screen.show_view(tabs[(tabs.index(view) + step) % len(tabs)].id)


def on_page(act: Callable[[JobView], None]) -> Callable[[Cockpit], None]:
    """Make a function that does this on the job's page, if one is shown."""

    def run(app: Cockpit) -> None:
        if page := app.selection.job_page:
            act(page)

    return run
