"""The page of the policy lab: the recorded past under today's rules and under changed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.frame import Key, key_row
from cockpit.present.lab import lab_lines
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, Line, Span, line
from cockpit.tui.screens.dialog import Closable, is_open
from cockpit.tui.widgets.lines import Lines, LineView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from cockpit.present.lab import LabReport
    from cockpit.tui.cockpit import Cockpit

HINT = "Name changes: :lab --weights age=1000,fairshare=5000 --backfill easy; `cockpit lab --help` lists all"


class LabPage(Closable[None]):
    """The result of one run; without changes, how to name some."""

    app: Cockpit

    def __init__(self, cluster: str, report: LabReport) -> None:
        super().__init__()
        self._cluster, self._report = cluster, report

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
        head = line(Span(" lab", ACCENT), Span(f"  the past of {safe(self._cluster)} under other rules", MUTED))
        self.query_one("#head", Lines).show([head])
        back = self.app.state.keys.get("back", "Esc")
        self.query_one("#keys", Lines).show([key_row([Key(back, "back", action="back")], self.size.width)])
        self.query_one(LineView).show(self._lines())

    def _lines(self) -> list[Line]:
        hint = [] if self._report.changes else [line(Span(f"  {HINT}", MUTED)), line()]
        return [*hint, *lab_lines(self._report, self.size.width)]

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)
