"""What the actions on the catalogue do: they write the words of a command and let the person go on."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from cockpit.headless.catalogue_words import ADD, NOUN, SET, Place, asked_change, full_name, said_done
from cockpit.model.catalogue import CatalogueShown, EntryChange
from cockpit.present.safe import safe
from cockpit.tui.action import CATALOGUE
from cockpit.tui.screens.confirm import Confirm

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase

KEPT = "What it stands for stays where it is, and jobs that have found it keep it; new ones do not find it."


def show_catalogue(app: CockpitBase) -> None:
    """Also from a job's page."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_view(CATALOGUE)


def run_words(app: CockpitBase, text: str) -> None:
    """What stands after `:catalogue`."""
    if app.read_only:
        app.notify(app.read_only, severity="warning")
    else:
        app.run_in_background(_asked(app, text))


def add_entry(app: CockpitBase) -> None:
    """Of the kind under the cursor."""
    row = app.entry_under_cursor()
    app.main_view.ask_command(f"{NOUN} {ADD} " + (f"{row.entry.kind} " if row is not None else ""))


def set_entry(app: CockpitBase) -> None:
    """The entry under the cursor."""
    row = app.entry_under_cursor()
    if row is not None:
        app.main_view.ask_command(f"{NOUN} {SET} {row.entry.kind} {quote(full_name(row.entry))} ")


async def remove_entry(app: CockpitBase) -> None:
    """The entry under the cursor, when that is meant."""
    row = app.entry_under_cursor()
    if row is not None:
        await _change(app, EntryChange(row.entry, None))


async def _asked(app: CockpitBase, text: str) -> None:
    shown: CatalogueShown = await app.backend.catalogue()
    await _change(app, asked_change(text, shown, Place(str(Path.cwd()), str(Path.home()))))


async def _change(app: CockpitBase, wanted: EntryChange) -> None:
    gone = wanted.before
    if wanted.after is None and gone is not None:
        question = f"Take the {gone.kind} {safe(full_name(gone).removeprefix('/'))} out of the catalogue?"
        if not await app.push_screen_wait(Confirm(question, KEPT)):
            return
    await app.backend.change_catalogue([wanted])
    app.notify(said_done(wanted))
