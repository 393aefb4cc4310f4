"""Controllers for accounts, QOS and card-hours.

Most open the command line with the beginning of a command, which the user completes.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from cockpit.headless.typed_line import LISTS, NOUN, AccountRequest, account_request
from cockpit.model import accountchange as change
from cockpit.model.accounts import Qos
from cockpit.present.account_panel import question
from cockpit.present.filters import quoted
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.views.accounts import QOS, SPENDING

if TYPE_CHECKING:
    from cockpit.present.accounting import Held
    from cockpit.tui.cockpit import Cockpit


def next_grouping(app: Cockpit) -> None:
    """Group the card-hours by the next of account, user, project and QOS."""
    app.state.spending_rows.next_grouping()
    _redraw_spending(app)


def toggle_days(app: Cockpit) -> None:
    """Switch the card-hours between few days and many."""
    app.state.spending_rows.toggle_days()
    _redraw_spending(app)


def _redraw_spending(app: Cockpit) -> None:
    app.main_screen.redraw_rows(SPENDING.id)
    app.poller.wake()


def held_jobs(app: Cockpit) -> None:
    """List the jobs of the account, user, project or QOS in the row of card-hours under the cursor."""
    row: Held | None = app.main_screen.tables.row_under_cursor(SPENDING.id)
    if row is not None:
        app.main_screen.show_jobs(f"{app.state.spending_rows.by}:{quoted(row.name)}")


def run_words(app: Cockpit, text: str) -> None:
    """Run the words after `:accounts`."""
    if text == LISTS:
        app.show_view(QOS.id)
    else:
        app.dispatcher.change(lambda: _change(app, account_request(text)))


def add_user(app: Cockpit) -> None:
    """Open the command line to add a user to the account under the cursor."""
    app.main_screen.entry_line.ask_command(f"{NOUN} add-user {_in_account(app)}")


def add_account(app: Cockpit) -> None:
    """Open the command line to add an account below the one under the cursor."""
    app.main_screen.entry_line.ask_command(f"{NOUN} add {_in_account(app, 'parent')}")


def add_coordinator(app: Cockpit) -> None:
    """Open the command line to add coordinators to the account under the cursor."""
    # Without a row the user types the account, too.
    place = app.selection.place_under_cursor()
    account = "" if place is None or isinstance(place, Qos) else f"{quote(place.association.account)} "
    app.main_screen.entry_line.ask_command(f"{NOUN} add-coordinator {account}")


def modify(app: Cockpit) -> None:
    """Open the command line to change the account, user or QOS under the cursor."""
    place = app.selection.place_under_cursor()
    if isinstance(place, Qos):
        app.main_screen.entry_line.ask_command(f"{NOUN} modify-qos {quote(place.name)} ")
    elif place is not None and place.association.user:
        # A user's association may be of one partition only, as in Slurm; without the option the command is about all.
        user = place.association
        partition = f"--partition {quote(user.partition)} " if user.partition else ""
        app.main_screen.entry_line.ask_command(
            f"{NOUN} modify-user {quote(user.user)} --account {quote(user.account)} {partition}"
        )
    elif place is not None:
        app.main_screen.entry_line.ask_command(f"{NOUN} modify {quote(place.association.account)} ")


async def remove(app: Cockpit) -> None:
    """Ask, then remove the account, user or QOS under the cursor."""
    place = app.selection.place_under_cursor()
    if isinstance(place, Qos):
        await _change(app, AccountRequest(change.RemoveQos(place.name), f"removed QOS {place.name}"))
    elif place is not None and place.association.user:
        user = place.association
        removal = change.RemoveUser(user.user, user.account, user.partition)
        await _change(app, AccountRequest(removal, f"removed user {user.user}"))
    elif place is not None:
        name = place.association.account
        await _change(app, AccountRequest(change.RemoveAccount(name), f"removed account {name}"))


def unfold(app: Cockpit) -> None:
    """Fold or unfold the account under the cursor; for a user, list the user's jobs."""
    place = app.selection.place_under_cursor()
    if place is None or isinstance(place, Qos):
        return
    if place.association.user:
        app.main_screen.show_jobs(f"user:{quoted(place.association.user)}")
    else:
        app.main_screen.arrangement.toggle_fold()


async def _change(app: Cockpit, request: AccountRequest) -> None:
    """Apply the change; ask first where it removes something."""
    # Other changes were typed out and can be taken back in the same way.
    if request.removes and not await app.push_screen_wait(Confirm(*question(request.change))):
        return
    await app.backend.change_accounts(request.change)
    app.last_act.done(request.done, "A change of accounts is taken back by the opposite change.")


def _in_account(app: Cockpit, option: str = "account") -> str:
    place = app.selection.place_under_cursor()
    return "" if place is None or isinstance(place, Qos) else f"--{option} {quote(place.association.account)} "
