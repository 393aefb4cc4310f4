"""How long jobs may run: one of a few usual changes, or any other by the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.formats.typed_values import limit_text, read_limit
from cockpit.model.asking import WantedLimit
from cockpit.present.units import duration
from cockpit.tui.controllers.jobs import named, task_of
from cockpit.tui.screens.pick import Choice, Pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.jobrow import JobRow
    from cockpit.tui.cockpit_base import CockpitBase

COMMAND: Final = "time-limit"
_ANOTHER: Final = "another"
_USUAL: Final = {"+1h": "one hour longer", "+4h": "four hours longer", "+1d": "one day longer", "+7d": "a week longer"}


async def choose_limit(app: CockpitBase) -> None:
    """For the chosen jobs."""
    rows = app.chosen_rows()
    choices = [Choice(text, about, _comes_to(rows, text)) for text, about in _USUAL.items()]
    choices.append(Choice(_ANOTHER, "another", "6h, or -30m beside the present one"))
    picked = await app.push_screen_wait(Pick(f"Time limit of {named(rows)}", choices, app.role_theme, verb="sets it"))
    if picked is None:
        return
    wanted = read_limit(picked.id)
    if wanted is None:
        app.main_view.ask_command(f"{COMMAND} ")
    else:
        await set_limit(app, rows, wanted)


async def set_limit(app: CockpitBase, rows: Sequence[JobRow], wanted: WantedLimit) -> None:
    """The same for all of them."""
    for row in rows:
        await app.backend.set_time_limit(row.id, wanted, task=task_of(row))
    app.notify(f"time limit {limit_text(wanted)} for {named(rows)}")


def _comes_to(rows: Sequence[JobRow], text: str) -> str:
    wanted = read_limit(text)
    if wanted is None or len(rows) != 1:
        return ""
    return duration(rows[0].time_limit_seconds + wanted.seconds)
