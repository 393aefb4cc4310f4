"""The page of the object that a cluster itself has of a job, as it was when the page was opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.frame import Key, key_row
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, Span, line
from cockpit.tui.screens.dialog import Closable, is_open
from cockpit.tui.widgets.lines import Lines, LineView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from cockpit.model.fleetrow import MemberObject
    from cockpit.tui.cockpit import Cockpit


class OwnObjectPage(Closable[None]):
    """The text of one object."""

    app: Cockpit

    def __init__(self, job: str, shown: MemberObject) -> None:
        super().__init__()
        self._job, self._shown = job, shown

    def compose(self) -> ComposeResult:
        theme = self.app.state.role_theme
        yield Lines(theme, id="head")
        yield LineView(theme, id="body")
        yield Lines(theme, id="keys")

    def on_mount(self) -> None:
        self.query_one(LineView).focus()
        self.draw()

    def draw(self) -> None:
        """Draw the whole page."""
        if not is_open(self):
            return
        shown = self._shown
        words = f"  {safe(shown.own)} on {safe(shown.cluster)}"
        self.query_one("#head", Lines).show([line(Span(f" {safe(self._job)}", ACCENT), Span(words, MUTED))])
        back = self.app.state.keys.get("back", "Esc")
        self.query_one("#keys", Lines).show([key_row([Key(back, "back", action="back")], self.size.width)])
        self.query_one(LineView).show([line(Span(safe(each))) for each in shown.text.splitlines()])

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)
