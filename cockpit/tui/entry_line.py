"""The entry line of the main screen, into which the user types filters, their names, weights and commands."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from cockpit.errors import CockpitError
from cockpit.formats.typed_values import read_weights, weights_text
from cockpit.present.safe import safe
from cockpit.tui.views.all import VIEWS
from cockpit.tui.widgets.candidates import CandidateList
from cockpit.tui.widgets.entry import COMMAND, FILTER, NAME, WEIGHTS, Entry, Suggestions, offer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from cockpit.model.priority import WeightChanges
    from cockpit.tui.app_state import AppState
    from cockpit.tui.parts import DispatcherPart, PollerPart
    from cockpit.tui.tables import Tables

HINTS = {
    WEIGHTS: "age=1000,fairshare=5000,tres/gres/gpu=200",
    COMMAND: "an action, a job's number, theme NAME, filter …; Tab completes",
    NAME: "a name for this filter",
}
"""What the empty entry shows, by its kind; for a filter it is the view's example."""


_STATE_TERM = re.compile(r"(?<!\S)state:[a-z,]+(?!\S)")
"""A term of a filter that wants certain states."""


class EntryLine:
    """The part of the main screen that opens the entry line and acts on what is typed."""

    def __init__(
        self,
        tables: Tables,
        state: AppState,
        poller: PollerPart,
        dispatcher: DispatcherPart,
        draw: Callable[[], None],
    ) -> None:
        """Make the part; `draw` draws what the screen shows around its tables."""
        self.entry = Entry(id="entry")
        """The widget into which the user types."""
        self.candidates = CandidateList(state.role_theme)
        """The list above it."""
        self._tables = tables
        self._state = state
        self._poller = poller
        self._dispatcher = dispatcher
        self._draw = draw
        self._filters = dict.fromkeys(VIEWS, "")
        self.error = ""
        """The error in the text that is being typed; empty: none."""
        self._came_from: Hashable | None = None
        """The id of the row under the cursor before the filter was opened."""
        self._weights_before: WeightChanges | None = None
        """The weights that were tried before the entry for weights was opened."""

    @property
    def filter_text(self) -> str:
        """The filter of the present view; empty: none."""
        return self._filters[self._tables.view.id]

    # Opening

    def ask_filter(self) -> None:
        """Open the filter line, which filters while the user types."""
        self._came_from = self._tables.table.cursor_id
        view = self._tables.view
        self.entry.ask(FILTER, self.filter_text, view.hint, self._dispatcher.filter_offer)
        self.draw_offer()
        self.entry.run_worker(self._prepare_search(), name="search", group="search", exclusive=True)

    async def _prepare_search(self) -> None:
        """Index the rows' texts in small steps while the user thinks, so that the first letter does not wait for it."""
        for _ in self._state.job_rows.list.prepare_search():
            await asyncio.sleep(0)

    def ask_filter_name(self) -> None:
        """Ask for the name under which the present filter is saved."""
        saved = self._state.saved_filters(self._tables.view.id)
        self.entry.ask(NAME, "", f"{HINTS[NAME]}: {safe(self.filter_text)}", offer_of(list(saved)))
        self.draw_offer()

    def ask_command(self, text: str = "") -> None:
        """Open the command line with `text` in it."""
        self.entry.ask(COMMAND, text, HINTS[COMMAND], self._dispatcher.command_offer)
        self.draw_offer()
        self.entry.run_worker(self._poller.fetch_names(), name="names", group="names")

    def ask_weights(self) -> None:
        """Open the entry line with the present weights; the view shows the order under the typed ones."""
        rows = self._state.priority_rows
        self._weights_before = rows.tried
        if rows.weights is not None:
            self.entry.ask(WEIGHTS, weights_text(rows.weights), HINTS[WEIGHTS])

    # What the user types

    def typed(self, text: str) -> None:
        """Act on the text that is being typed: filters and weights take effect at once."""
        # A change may arrive after the line was closed: what it says was undone or submitted already.
        if self.entry.kind == FILTER and self.entry.display:
            self.filter(text)
        elif self.entry.kind == WEIGHTS and self.entry.display:
            self._try_weights(text)
        self.draw_offer()

    def draw_offer(self) -> None:
        """List what completes the text, while the line is open."""
        offer, place = self.entry.offered() if self.entry.display else (Suggestions(()), None)
        self.candidates.show_offer(offer, place)

    def submitted(self, text: str) -> None:
        """Act on the text that Enter completes, and close the line; where the text has an error, it stays open."""
        if self.entry.kind == WEIGHTS:
            self._try_weights(text)
        if self.entry.kind in {FILTER, WEIGHTS} and self.error:
            return
        # Closed first: a command may open the line again, with the beginning of another one.
        self._close()
        if self.entry.kind == COMMAND:
            self._dispatcher.run_command(text)
        elif self.entry.kind == NAME and text.strip():
            self._dispatcher.run_command(f"save-filter {text.strip()}")

    def escaped(self, kind: str) -> None:
        """Undo what was typed into the entry of this kind, and close the line."""
        if kind == FILTER:
            self._remove_filter()
        elif kind == WEIGHTS:
            self.error = ""
            self._poller.try_weights(self._weights_before)
        self._close()

    def _try_weights(self, text: str) -> None:
        try:
            self._poller.try_weights(read_weights(text))
        except CockpitError as error:
            self.error = str(error).splitlines()[0]
        else:
            self.error = ""
        self._draw()

    def _close(self) -> None:
        self.entry.display = False
        self.draw_offer()
        self.entry.screen.set_focus(self._tables.table, scroll_visible=False)
        self._draw()

    # Filtering

    def filter(self, text: str) -> None:
        """Filter the present view; a text with an error shows the error and leaves the last filter in force."""
        view = self._tables.view.id
        try:
            self._tables.rows[view].filter_by(text)
        except CockpitError as error:
            self.error = str(error).removeprefix("filter: ")
        else:
            self.error = ""
            self._filters[view] = text
            self._tables.table.order_changed()
        self._draw()

    def filter_from_here(self, text: str) -> None:
        """Filter the present view so that removing the filter puts the cursor back on its present row."""
        self._came_from = self._tables.table.cursor_id
        self.filter(text)

    def show_row(self, row_id: Hashable) -> None:
        """Put the cursor on this row of the present view; a filter that hides the row is removed."""
        if self.filter_text and self._tables.rows[self._tables.view.id].place(row_id) is None:
            self.filter("")
        self._tables.table.move_to(row_id)

    def toggle_state(self, states: str) -> None:
        """Show only the rows in these states, instead of other states that were chosen so; shown already: all states.

        The other terms of the filter stay.
        """
        term = f"state:{states}"
        others = _STATE_TERM.sub(" ", self.filter_text).strip()
        if term not in _STATE_TERM.findall(self.filter_text):
            self.filter_from_here(f"{others} {term}".strip())
        elif others:
            self.filter(others)
        else:
            self._remove_filter()

    def step_back(self) -> bool:
        """Remove the filter, or the error in it; return whether there was one."""
        if not (self.filter_text or self.error):
            return False
        self._remove_filter()
        return True

    def _remove_filter(self) -> None:
        """Remove the filter and put the cursor back on the row where it was before."""
        self.filter("")
        if self._came_from is not None:
            self._tables.table.move_to(self._came_from)
            self._came_from = None
