"""Controllers for the catalogue. Most open the command line with the beginning of a command."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from cockpit.headless.catalogue_words import ADD, NOUN, SET, Place, done_sentence, full_name, requested_change
from cockpit.model.catalogue import CatalogueShown, EntryChange
from cockpit.present.safe import safe
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.undo import WayBack

if TYPE_CHECKING:
    from cockpit.tui.cockpit import Cockpit

CONSEQUENCE = "Its files stay, and submitted jobs keep using them; new jobs can no longer use the name."


def run_words(app: Cockpit, text: str) -> None:
    """Run the words after `:catalogue`."""
    app.dispatcher.change(lambda: _run(app, text))


def add_entry(app: Cockpit) -> None:
    """Open the command line to add an entry of the kind under the cursor."""
    row = app.selection.entry_under_cursor()
    app.main_screen.entry_line.ask_command(f"{NOUN} {ADD} " + (f"{row.entry.kind} " if row is not None else ""))


def set_entry(app: Cockpit) -> None:
    """Open the command line to change the entry under the cursor."""
    row = app.selection.entry_under_cursor()
    if row is not None:
        app.main_screen.entry_line.ask_command(f"{NOUN} {SET} {row.entry.kind} {quote(full_name(row.entry))} ")


async def remove_entry(app: Cockpit) -> None:
    """Ask, then remove the entry under the cursor."""
    row = app.selection.entry_under_cursor()
    if row is not None:
        await _change(app, EntryChange(row.entry, None))


async def _run(app: Cockpit, text: str) -> None:
    # Fetched now: the words name only what changes, and the rest of the entry stays as it is on the cluster.
    shown: CatalogueShown = await app.backend.catalogue()
    await _change(app, requested_change(text, shown, Place(str(Path.cwd()), str(Path.home()))))


async def _change(app: Cockpit, wanted: EntryChange) -> None:
    removed = wanted.before
    if wanted.after is None and removed is not None:
        question = f"Remove the {removed.kind} {safe(full_name(removed).removeprefix('/'))} from the catalogue?"
        if not await app.push_screen_wait(Confirm(question, CONSEQUENCE)):
            return
    await app.backend.change_catalogue([wanted])

    async def restore() -> str:
        back = EntryChange(wanted.after, wanted.before)
        await app.backend.change_catalogue([back])
        return done_sentence(back)

    app.last_act.done(done_sentence(wanted), WayBack("restores it" if removed is not None else "removes it", restore))
