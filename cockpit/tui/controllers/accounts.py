"""Controllers for accounts, QOS and card-hours.

Most open the command line with the beginning of a command, which the user completes.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from cockpit.headless.account_words import LISTS, NOUN, Asked, asked_change
from cockpit.model import accountchange as change
from cockpit.model.accounts import Qos
from cockpit.present.account_changes import question
from cockpit.tui.action import ACCOUNTS, QOS, SPENDING
from cockpit.tui.screens.confirm import Confirm

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_accounts(app: CockpitBase) -> None:
    """Show the tree of accounts."""
    _show(app, ACCOUNTS)


def show_spending(app: CockpitBase) -> None:
    """Show the card-hours of the last days."""
    _show(app, SPENDING)


def turn_by(app: CockpitBase) -> None:
    """Group the card-hours by the next of account, user, project and QOS."""
    app.spending_rows.turn_by()
    app.main_view.redraw_spending()


def turn_days(app: CockpitBase) -> None:
    """Switch the card-hours between few days and many."""
    app.spending_rows.turn_days()
    app.main_view.redraw_spending()


def held_jobs(app: CockpitBase) -> None:
    """List the jobs that are counted in the row under the cursor."""
    app.main_view.show_jobs_of_name()


def run_words(app: CockpitBase, text: str) -> None:
    """Run the words after `:accounts`."""
    if text == LISTS:
        _show(app, QOS)
    elif app.read_only:
        app.notify(app.read_only, severity="warning")
    else:
        app.run_in_background(_change(app, asked_change(text)))


def add_user(app: CockpitBase) -> None:
    """Open the command line to add a user to the account under the cursor."""
    app.main_view.ask_command(f"{NOUN} add-user {_in_account(app)}")


def add_account(app: CockpitBase) -> None:
    """Open the command line to add an account below the one under the cursor."""
    app.main_view.ask_command(f"{NOUN} add {_in_account(app, 'parent')}")


def add_qos(app: CockpitBase) -> None:
    """Open the command line to add a QOS."""
    app.main_view.ask_command(f"{NOUN} add-qos ")


def add_coordinator(app: CockpitBase) -> None:
    """Open the command line to add coordinators to the account under the cursor."""
    place = app.place_under_cursor()
    account = "" if place is None or isinstance(place, Qos) else f"{quote(place.association.account)} "
    app.main_view.ask_command(f"{NOUN} add-coordinator {account}")


def modify(app: CockpitBase) -> None:
    """Open the command line to change the account, user or QOS under the cursor."""
    place = app.place_under_cursor()
    if isinstance(place, Qos):
        app.main_view.ask_command(f"{NOUN} modify-qos {quote(place.name)} ")
    elif place is not None and place.association.user:
        user = place.association
        partition = f"--partition {quote(user.partition)} " if user.partition else ""
        app.main_view.ask_command(f"{NOUN} modify-user {quote(user.user)} --account {quote(user.account)} {partition}")
    elif place is not None:
        app.main_view.ask_command(f"{NOUN} modify {quote(place.association.account)} ")


async def remove(app: CockpitBase) -> None:
    """Ask, then remove the account, user or QOS under the cursor."""
    place = app.place_under_cursor()
    if isinstance(place, Qos):
        await _change(app, Asked(change.RemoveQos(place.name), f"removed QOS {place.name}"))
    elif place is not None and place.association.user:
        user = place.association
        removal = change.RemoveUser(user.user, user.account, user.partition)
        await _change(app, Asked(removal, f"removed user {user.user}"))
    elif place is not None:
        name = place.association.account
        await _change(app, Asked(change.RemoveAccount(name), f"removed account {name}"))


def unfold(app: CockpitBase) -> None:
    """Fold or unfold the account under the cursor; for a user, list the user's jobs."""
    place = app.place_under_cursor()
    if place is None or isinstance(place, Qos):
        return
    if place.association.user:
        app.main_view.show_jobs_of_user(place.association.user)
    else:
        app.main_view.toggle_fold()


def fold_all(app: CockpitBase) -> None:
    """Fold everything below the top accounts, or unfold all."""
    app.main_view.fold_all()


async def _change(app: CockpitBase, request: Asked) -> None:
    """Apply the change; ask first where it removes something."""
    if request.removes and not await app.push_screen_wait(Confirm(*question(request.change))):
        return
    await app.backend.change_accounts(request.change)
    app.notify(request.done)


def _in_account(app: CockpitBase, option: str = "account") -> str:
    place = app.place_under_cursor()
    return "" if place is None or isinstance(place, Qos) else f"--{option} {quote(place.association.account)} "


def _show(app: CockpitBase, view: str) -> None:
    """Close all pages, then show the view."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_view(view)
