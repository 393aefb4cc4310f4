"""What is done anywhere: going from view to view, waiting, leaving."""

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
    """Every key of this view."""
    from cockpit.tui.screens.help import Help

    app.push_screen(Help(app.help_entries(), app.view_name, app.role_theme))


def ask_command(app: CockpitBase) -> None:
    """The command line."""
    app.main_view.ask_command()


async def choose_cluster(app: CockpitBase) -> None:
    """This cockpit closes, and one on the chosen cluster opens."""
    choices = [Choice(name, name, about) for name, about in app.clusters.items()]
    picked = await app.push_screen_wait(Pick("Clusters", choices, app.role_theme, verb="opens", current=app.cluster))
    if picked is not None:
        app.go_to_cluster(picked.id)


def show_jobs(app: CockpitBase) -> None:
    """The list of jobs."""
    show_view(app, "jobs")


def show_nodes(app: CockpitBase) -> None:
    """The nodes."""
    show_view(app, "nodes")


def show_cards(app: CockpitBase) -> None:
    """The cards."""
    show_view(app, "cards")


async def open_demo(app: CockpitBase) -> None:
    """A demo of its own in front of this cockpit, until it is left."""
    with app.suspend():
        subprocess.run([sys.executable, "-m", "cockpit.cli", "demo"], check=False)  # noqa: ASYNC221 - the screen is the demo's now
    app.refresh()


async def log_in(app: CockpitBase) -> None:
    """Have ssh ask at the terminal for a login that was lost, then go on. Raises `CockpitError` where it fails."""
    login = app.login
    if login is None or not login.is_needed:
        app.notify("No login is needed." if login is not None else "This cluster asks for no login.")
        return
    app.check_terminal()
    failure: CockpitError | None = None
    with app.suspend():  # the event loop waits too: nothing may draw over the question
        print(f"Log in to {app.cluster} again.")  # noqa: T201 - the screen is ssh's now
        before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-c ends ssh, not the cockpit
        try:
            login.ask_at_terminal()
        except CockpitError as error:  # raised below: the screen must come back first
            failure = error
        finally:
            signal.signal(signal.SIGINT, before)
    app.refresh()
    if failure is not None:
        raise failure
    await app.catch_up()


def pause(app: CockpitBase) -> None:
    """The screen stands still, or goes on; in a demo, its time."""
    if app.pace is not None:
        (app.pace.resume if app.pace.paused else app.pace.pause)()
    else:
        app.toggle_updates()


async def refresh(app: CockpitBase) -> None:
    """Ask now; the terminal is drawn anew too, in case somebody else wrote on it."""
    app.repaint()
    await app.catch_up()


def faster(app: CockpitBase) -> None:
    """The demo's time passes faster."""
    if app.pace is not None:
        app.pace.faster()


def slower(app: CockpitBase) -> None:
    """The demo's time passes slower."""
    if app.pace is not None:
        app.pace.slower()


def next_theme(app: CockpitBase) -> None:
    """The next theme in order of name."""
    names = sorted(app.themes)
    app.use_theme(names[(names.index(app.role_theme().name) + 1) % len(names)])


def back(app: CockpitBase) -> None:
    """Out of a search, a page, a filter or marks; never out of the cockpit."""
    if (page := app.job_page) and page.stop_searching():
        return
    if len(app.screen_stack) > 1:
        app.pop_screen()
    else:
        app.main_view.step_back()


def leave(app: CockpitBase) -> None:
    """Jobs go on."""
    app.exit(0)


def show_view(app: CockpitBase, view: str) -> None:
    """Also from a job's page."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_view(view)
