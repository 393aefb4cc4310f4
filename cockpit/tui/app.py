"""The Textual application: it binds the keys, registers the themes and starts the poller.

`CockpitApp` is the end of a chain of classes, each of which adds one concern: `CockpitBase` (the abstract interface),
`AppState` (what is shown), `Poller` (fetching it), `ActionDispatcher` (running actions).
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import SystemCommand
from textual.binding import BindingType

from cockpit.present.frame import Key
from cockpit.present.tables.accounting import HOURS as spending_table  # noqa: N811 - likewise
from cockpit.present.tables.accounts import ACCOUNTS as account_table  # noqa: N811 - ACCOUNTS is the view's name here
from cockpit.present.tables.cards import CARDS as card_table  # noqa: N811 - likewise
from cockpit.present.tables.catalogue import CATALOGUE as catalogue_table  # noqa: N811 - likewise
from cockpit.present.tables.clusters import CLUSTERS as cluster_table  # noqa: N811 - likewise
from cockpit.present.tables.jobs import JOBS as job_table  # noqa: N811 - likewise
from cockpit.present.tables.nodes import NODES as node_table  # noqa: N811 - likewise
from cockpit.present.tables.priority import PRIORITY as priority_table  # noqa: N811 - likewise
from cockpit.present.tables.qos import QOS as qos_table  # noqa: N811 - likewise
from cockpit.present.tables.queues import QUEUES as queue_table  # noqa: N811 - likewise
from cockpit.tui import commands, offers
from cockpit.tui.action import ACCOUNTS, CARDS, CATALOGUE, CLUSTERS, JOBS, NODES, PRIORITY, QOS, QUEUES, SPENDING
from cockpit.tui.action_dispatcher import ActionDispatcher
from cockpit.tui.cockpit_base import HelpEntry
from cockpit.tui.defects import defect_text
from cockpit.tui.driver import lasting
from cockpit.tui.screens.dialog import Palette

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual.driver import Driver
    from textual.screen import Screen

    from cockpit.backends.base import Backend
    from cockpit.tui.app_options import AppOptions

_TABLES = {
    JOBS: job_table,
    NODES: node_table,
    CARDS: card_table,
    PRIORITY: priority_table,
    ACCOUNTS: account_table,
    QOS: qos_table,
    SPENDING: spending_table,
    QUEUES: queue_table,
    CATALOGUE: catalogue_table,
    CLUSTERS: cluster_table,
}


class CockpitApp(ActionDispatcher, inherit_bindings=False):
    """The application that shows one backend's cluster."""

    CSS_PATH: ClassVar[list[str | PurePath]] = [
        "app.tcss",
        *(f"screens/{screen}.tcss" for screen in ("main", "job", "form", "specs", "confirm", "help", "pick")),
    ]
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, backend: Backend, outside: AppOptions) -> None:
        super().__init__(backend, outside)
        for key in {key for action in self.actions for key in action.keys}:
            self.bind(key, f"press('{key}')", show=False)

    def get_driver_class(self) -> type[Driver]:
        return lasting(super().get_driver_class())

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    @property
    def failed(self) -> bool:
        """Whether an unexpected exception has ended the application."""
        return self._exception is not None

    def _fatal_error(self) -> None:
        """End the application with a traceback that has no local variables (Textual shows them): they may be secret."""
        self.bell()
        self._exit_renderables.append(Text(defect_text(sys.exception())))
        self._close_messages_no_wait()

    def get_default_screen(self) -> Screen[Any]:
        return self.main_screen

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self._role_theme.variables()

    def on_mount(self) -> None:
        for role_theme in self.themes.values():
            self.register_theme(role_theme.for_textual())
        self.theme = self._role_theme.name
        self.start_polling()

    def keys_of_view(self) -> Iterable[Key]:
        return offers.bottom_row(self.actions, self.situation())

    def help_entries(self) -> Sequence[HelpEntry]:
        return offers.help_entries(self.actions, self.situation())

    def action_names(self) -> Sequence[str]:
        return commands.completions(self)

    def complete(self, text: str) -> Sequence[str]:
        return commands.continuations(self, text)

    def filter_names(self, view: str) -> Sequence[str]:
        return [f"{name}:" for name in _TABLES[view].names()]

    def use_theme(self, name: str) -> None:
        """Switch to this theme and redraw everything."""
        self._role_theme = self.themes[name]
        self.ansi_color = self._role_theme.ansi
        self.theme = name
        self.refresh_css()
        for screen in self.screen_stack:
            screen.refresh(recompose=False, layout=True)
        self.main_screen.table.redraw()
        self.main_screen.table.refresh()
        self.main_screen.draw()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:  # noqa: ARG002 - Textual's signature
        """Yield the entries of Textual's command palette: actions, saved filters and themes."""
        situation = self.situation()
        saved, use_filter = self.saved_filters(), self.main_screen.filter
        return offers.palette(self.actions, situation, self.themes, saved, self.perform, self.use_theme, use_filter)
