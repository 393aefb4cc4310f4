"""Controllers that every view has: switch views and clusters, pause, refresh, log in, quit."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from cockpit.config.cluster_names import EVERY_CLUSTER
from cockpit.errors import CockpitError
from cockpit.model.capabilities import Ability
from cockpit.present.filters import quoted
from cockpit.tui.screens.pick import Choice, pick
from cockpit.tui.views.clusters import CLUSTERS
from cockpit.tui.views.jobs import JOBS

if TYPE_CHECKING:
    from cockpit.model.view import ClusterRow
    from cockpit.tui.cockpit import Cockpit


def show_help(app: Cockpit) -> None:
    """Open the help page of the present view."""
    from cockpit.tui.screens.help import Help

    app.push_screen(Help(app.dispatcher.help_entries(), app.selection.view_name, app.state.role_theme))


async def choose_cluster(app: Cockpit) -> None:
    """Let the user choose a cluster, then close the application so that the caller opens it on that cluster."""
    choices = [Choice(name, name, about) for name, about in app.options.clusters.items()]
    picked = await pick(app, "Clusters", choices, verb="opens", current=app.options.cluster)
    if picked is not None:
        app.go_to_cluster(picked.id)


async def open_demo(app: Cockpit) -> None:
    """Run a demo in a process of its own on this terminal, and return when the user quits it."""
    app.check_terminal()
    with app.suspend():
        # A process of its own, which draws and reads keys itself; this application waits until it ends.
        subprocess.run([sys.executable, "-P", "-m", "cockpit.cli", "demo"], check=False)  # noqa: ASYNC221 - the screen is the demo's now
    app.refresh()


async def log_in(app: Cockpit) -> None:
    """Let ssh ask at the terminal for a login that was lost. Raises `CockpitError` where it fails."""
    login = app.options.login
    if login is None or not login.is_needed:
        app.notify("No login is needed." if login is not None else "This cluster asks for no login.")
        return
    app.check_terminal()
    failure: CockpitError | None = None
    with app.suspend():  # `ask_at_terminal` blocks the event loop on purpose: nothing may draw over ssh's prompt
        print(f"Log in to {app.options.cluster} again.")  # noqa: T201 - the screen is ssh's now
        before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-c ends ssh, not the cockpit
        try:
            login.ask_at_terminal()
        except CockpitError as error:  # raised below, once the screen has been restored
            failure = error
        finally:
            signal.signal(signal.SIGINT, before)
    app.refresh()
    if failure is not None:
        raise failure
    await app.poller.catch_up()


def pause(app: Cockpit) -> None:
    """Pause or resume updates of the screen; in a demo, pause or resume its clock."""
    if app.options.pace is not None:
        (app.options.pace.resume if app.options.pace.paused else app.options.pace.pause)()
    else:
        app.poller.toggle_updates()


async def refresh(app: Cockpit) -> None:
    """Fetch the data now, and redraw the whole terminal in case another program wrote on it."""
    # First: what another program wrote is gone at once, also where the cluster does not answer.
    app.repaint()
    await app.poller.catch_up()


def faster(app: Cockpit) -> None:
    """Speed up the demo's clock."""
    if app.options.pace is not None:
        app.options.pace.faster()


def slower(app: Cockpit) -> None:
    """Slow down the demo's clock."""
    if app.options.pace is not None:
        app.options.pace.slower()


def next_theme(app: Cockpit) -> None:
    """Switch to the next theme in the order of their names."""
    names = sorted(app.options.themes)
    app.use_theme(names[(names.index(app.state.role_theme().name) + 1) % len(names)])


def back(app: Cockpit) -> None:
    """Close the search or the page, else clear the filter or the marks; never quit."""
    if (page := app.selection.job_page) and page.stop_searching():
        return
    if len(app.screen_stack) > 1:
        app.pop_screen()
    else:
        app.main_screen.step_back()


def open_cluster(app: Cockpit) -> None:
    """Open the cluster under the cursor: its jobs where it is part of the present one, else in place of it."""
    row: ClusterRow | None = app.main_screen.tables.row_under_cursor(CLUSTERS.id)
    if row is None:
        return
    # A member of a merged view or of a fleet is part of what is open: its jobs are a filter away.
    if row.fleet:
        app.main_screen.show_jobs(f"cluster:{quoted(row.name)}")
    elif row.name == app.options.cluster or app.options.every.is_complete:
        app.main_screen.show_view(JOBS.id)
    else:
        app.go_to_cluster(row.name)


def every_job(app: Cockpit) -> None:
    """List the jobs of all clusters in one table; a demo shows the jobs of its own clusters."""
    if app.backend.capabilities.has(Ability.CLUSTERS) or app.options.every.is_complete:
        app.main_screen.show_view(JOBS.id)
    else:
        app.go_to_cluster(EVERY_CLUSTER)
