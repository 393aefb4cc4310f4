"""What the actions on accounts and QOS do: most write the words of a command and let the person go on."""

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
    """The tree of accounts, as it was left: another part of the view is one key away."""
    _show(app, ACCOUNTS)


def show_spending(app: CockpitBase) -> None:
    """What was held over the last days."""
    _show(app, SPENDING)


def turn_by(app: CockpitBase) -> None:
    """Sums by something else."""
    app.spending_rows.turn_by()
    app.main_view.redraw_spending()


def turn_days(app: CockpitBase) -> None:
    """More days, or few."""
    app.spending_rows.turn_days()
    app.main_view.redraw_spending()


def held_jobs(app: CockpitBase) -> None:
    """The jobs of the name under the cursor."""
    app.main_view.show_jobs_of_name()


def run_words(app: CockpitBase, text: str) -> None:
    """What stands after `:accounts`."""
    if text == LISTS:
        _show(app, QOS)
    elif app.read_only:
        app.notify(app.read_only, severity="warning")
    else:
        app.run_in_background(_asked(app, asked_change(text)))


def add_user(app: CockpitBase) -> None:
    """To the account under the cursor."""
    app.main_view.ask_command(f"{NOUN} add-user {_in_account(app)}")


def add_account(app: CockpitBase) -> None:
    """Below the account under the cursor."""
    app.main_view.ask_command(f"{NOUN} add {_in_account(app, 'parent')}")


def add_qos(app: CockpitBase) -> None:
    """A name is asked for first."""
    app.main_view.ask_command(f"{NOUN} add-qos ")


def add_coordinator(app: CockpitBase) -> None:
    """Of the account under the cursor."""
    place = app.place_under_cursor()
    account = "" if place is None or isinstance(place, Qos) else f"{quote(place.association.account)} "
    app.main_view.ask_command(f"{NOUN} add-coordinator {account}")


def modify(app: CockpitBase) -> None:
    """What is under the cursor."""
    place = app.place_under_cursor()
    if isinstance(place, Qos):
        app.main_view.ask_command(f"{NOUN} modify-qos {quote(place.name)} ")
    elif place is not None and place.association.user:
        each = place.association
        only = f"--partition {quote(each.partition)} " if each.partition else ""
        app.main_view.ask_command(f"{NOUN} modify-user {quote(each.user)} --account {quote(each.account)} {only}")
    elif place is not None:
        app.main_view.ask_command(f"{NOUN} modify {quote(place.association.account)} ")


async def remove(app: CockpitBase) -> None:
    """What is under the cursor, when that is meant."""
    place = app.place_under_cursor()
    if isinstance(place, Qos):
        await _asked(app, Asked(change.RemoveQos(place.name), f"removed QOS {place.name}"))
    elif place is not None and place.association.user:
        each = place.association
        gone = change.RemoveUser(each.user, each.account, each.partition)
        await _asked(app, Asked(gone, f"removed user {each.user}"))
    elif place is not None:
        name = place.association.account
        await _asked(app, Asked(change.RemoveAccount(name), f"removed account {name}"))


def unfold(app: CockpitBase) -> None:
    """What is below an account; of a user the jobs."""
    place = app.place_under_cursor()
    if place is None or isinstance(place, Qos):
        return
    if place.association.user:
        app.main_view.show_jobs_of_user(place.association.user)
    else:
        app.main_view.toggle_fold()


def fold_all(app: CockpitBase) -> None:
    """Everything below the topmost accounts."""
    app.main_view.fold_all()


async def _asked(app: CockpitBase, asked: Asked) -> None:
    if asked.removes and not await app.push_screen_wait(Confirm(*question(asked.change))):
        return
    await app.backend.change_accounts(asked.change)
    app.notify(asked.done)


def _in_account(app: CockpitBase, option: str = "account") -> str:
    place = app.place_under_cursor()
    return "" if place is None or isinstance(place, Qos) else f"--{option} {quote(place.association.account)} "


def _show(app: CockpitBase, view: str) -> None:
    """Also from a job's page."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_view(view)
