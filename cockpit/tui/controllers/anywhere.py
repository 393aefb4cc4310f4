"""Controllers that every view has: switch views and clusters, pause, refresh, log in, quit."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from cockpit.errors import CockpitError
from cockpit.tui.screens.pick import Choice, Pick

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_help(app: CockpitBase) -> None:
    """Open the help page of the present view."""
    from cockpit.tui.screens.help import Help

    app.push_screen(Help(app.help_entries(), app.view_name, app.role_theme))


def ask_command(app: CockpitBase) -> None:
    """Open the command line."""
    app.main_view.ask_command()


async def choose_cluster(app: CockpitBase) -> None:
    """Let the user choose a cluster, then close the application so that the caller opens it on that cluster."""
    choices = [Choice(name, name, about) for name, about in app.clusters.items()]
    picked = await app.push_screen_wait(Pick("Clusters", choices, app.role_theme, verb="opens", current=app.cluster))
    if picked is not None:
        app.go_to_cluster(picked.id)


def show_jobs(app: CockpitBase) -> None:
    """Show the list of jobs."""
    show_view(app, "jobs")


def show_nodes(app: CockpitBase) -> None:
    """Show the list of nodes."""
    show_view(app, "nodes")


def show_cards(app: CockpitBase) -> None:
    """Show the map of the cards."""
    show_view(app, "cards")


async def open_demo(app: CockpitBase) -> None:
    """Run a demo in a process of its own on this terminal, and return when the user quits it."""
    with app.suspend():
        subprocess.run([sys.executable, "-m", "cockpit.cli", "demo"], check=False)  # noqa: ASYNC221 - the screen is the demo's now
    app.refresh()


async def log_in(app: CockpitBase) -> None:
    """Let ssh ask at the terminal for a login that was lost. Raises `CockpitError` where it fails."""
    login = app.login
    if login is None or not login.is_needed:
        app.notify("No login is needed." if login is not None else "This cluster asks for no login.")
        return
    app.check_terminal()
    failure: CockpitError | None = None
    with app.suspend():  # `ask_at_terminal` blocks the event loop on purpose: nothing may draw over ssh's prompt
        print(f"Log in to {app.cluster} again.")  # noqa: T201 - the screen is ssh's now
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
    await app.catch_up()


def pause(app: CockpitBase) -> None:
    """Pause or resume updates of the screen; in a demo, pause or resume its clock."""
    if app.pace is not None:
        (app.pace.resume if app.pace.paused else app.pace.pause)()
    else:
        app.toggle_updates()


async def refresh(app: CockpitBase) -> None:
    """Fetch the data now, and redraw the whole terminal in case another program wrote on it."""
    app.repaint()
    await app.catch_up()


def faster(app: CockpitBase) -> None:
    """Speed up the demo's clock."""
    if app.pace is not None:
        app.pace.faster()


def slower(app: CockpitBase) -> None:
    """Slow down the demo's clock."""
    if app.pace is not None:
        app.pace.slower()


def next_theme(app: CockpitBase) -> None:
    """Switch to the next theme in the order of their names."""
    names = sorted(app.themes)
    app.use_theme(names[(names.index(app.role_theme().name) + 1) % len(names)])


def back(app: CockpitBase) -> None:
    """Close the search or the page, else clear the filter or the marks; never quit."""
    if (page := app.job_page) and page.stop_searching():
        return
    if len(app.screen_stack) > 1:
        app.pop_screen()
    else:
        app.main_view.step_back()


def leave(app: CockpitBase) -> None:
    """Quit; jobs continue."""
    app.exit(0)


def show_view(app: CockpitBase, view: str) -> None:
    """Close all pages, then show the view."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_view(view)
