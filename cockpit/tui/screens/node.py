"""The page of a node: its cards and its jobs, kept up to date while it is open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import on

from cockpit.errors import CockpitError
from cockpit.present.frame import Key, key_at, key_row
from cockpit.present.node_page import node_lines
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, Span, line
from cockpit.tui.screens.dialog import Closable, is_open
from cockpit.tui.widgets.lines import Lines, LineView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from cockpit.model.ids import NodeName
    from cockpit.tui.cockpit import Cockpit

REFRESH_SECONDS = 1.0


class NodePage(Closable[None]):
    """The page of one node, which follows the node while it is open."""

    app: Cockpit

    def __init__(self, node: NodeName) -> None:
        super().__init__()
        self.node = node

    def compose(self) -> ComposeResult:
        theme = self.app.state.role_theme
        yield Lines(theme, id="head")
        yield LineView(theme, id="body")
        yield Lines(theme, id="keys")

    def on_mount(self) -> None:
        self.query_one(LineView).focus()
        self.run_worker(self._follow(), name="node")
        self.draw()

    def draw(self) -> None:
        """Draw the whole page from the present state."""
        if not is_open(self):
            return
        width = self.size.width
        self.query_one("#head", Lines).show([line(Span(" node ", MUTED), Span(safe(self.node), ACCENT))])
        self.query_one("#keys", Lines).show([key_row(self._keys(), width)])
        # Read from the state at each drawing: the node may leave the cluster while its page is open.
        row, body = self.app.state.node_rows.row(self.node), self.query_one(LineView)
        if row is None:
            body.show([line(Span("  It is not part of the cluster any more.", "warning"))])
        else:
            body.show(node_lines(row, self.app.state.job_rows.row, self.app.state.context()))

    def _keys(self) -> list[Key]:
        back = self.app.state.panel_context(self.size.width).keys.get("back")
        return [*([Key(back, "back", action="back")] if back else []), *self.app.dispatcher.keys_of_view()]

    @on(Lines.Clicked, "#keys")
    def _key_clicked(self, event: Lines.Clicked) -> None:
        if action := key_at(self._keys(), event.column):
            self.app.dispatcher.perform(action)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    async def catch_up(self) -> None:
        """Fetch the node now."""
        # The whole list, as no operation fetches one node; the Nodes view below is then as fresh as this page.
        try:
            self.app.state.node_rows.take(await self.app.backend.nodes())
        except CockpitError as error:
            if is_open(self):
                self.query_one("#head", Lines).show([line(Span(f" {safe(str(error))}", "warning"))])
        else:
            self.draw()

    async def _follow(self) -> None:
        while True:
            # First wait: the page is opened from a list that was fetched a moment ago.
            await asyncio.sleep(REFRESH_SECONDS)
            await self.catch_up()
