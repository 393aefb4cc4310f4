"""The application as screens and controllers see it: Textual's app with the parts that it owns.

`app.py` builds it. Screens, controllers and parts name this class and never `app.py`, so that there is no import cycle;
for the same reason the main screen is described here, and the parts that lie above it in `parts.py`, by protocols.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

from textual.app import App

from cockpit.errors import CockpitError
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from cockpit.backends.base import Backend, ShellSession
    from cockpit.runtime.tensorboard import Board
    from cockpit.tui.app_options import AppOptions
    from cockpit.tui.app_state import AppState
    from cockpit.tui.arrangement import Arrangement
    from cockpit.tui.emulator.base import Emulator
    from cockpit.tui.entry_line import EntryLine
    from cockpit.tui.parts import DispatcherPart, PollerPart, SelectionPart
    from cockpit.tui.shell_link import ShellLink
    from cockpit.tui.tables import Tables
    from cockpit.tui.undo import LastAct


class MainView(Protocol):
    """The main screen as controllers see it: its parts, and what needs several of them."""

    tables: Tables
    arrangement: Arrangement
    entry_line: EntryLine

    def show_view(self, view: str) -> None:
        """Show the view of this id in place of the present one."""

    def show_jobs(self, filter_text: str) -> None:
        """Show the Jobs view under this filter."""

    def redraw_rows(self, view: str) -> None:
        """Redraw a view after a change of its rows, its columns or their order."""

    def step_back(self) -> None:
        """Undo the first of these that is set: marks; filter; own jobs only, or tried weights."""

    @property
    def terminal_link(self) -> ShellLink | None:
        """The shell in the terminal pane; None: none is open."""

    @property
    def terminal_title(self) -> str:
        """The job of the shell in the terminal pane."""

    def terminal_size(self) -> tuple[int, int]:
        """Return the columns and rows that a terminal in the pane has."""

    def open_terminal(self, title: str, session: ShellSession, emulator: Emulator, notice: str) -> None:
        """Show this shell in the pane and give it the keys."""

    async def close_terminal(self) -> int | None:
        """Hang up and hide the pane. Returns the exit code of a shell that has ended; None: it had not."""

    def focus_terminal(self) -> None:
        """Give the keys to the pane."""

    def fit_terminal(self) -> None:
        """Give the shell in the pane the pane's size again."""

    def draw_terminal(self) -> None:
        """Draw the line above the terminal."""


class Cockpit(App[int]):
    """The application; what it does lies in its parts."""

    backend: Backend
    options: AppOptions
    state: AppState
    main_screen: MainView
    """The screen that lies below all pages and dialogs."""
    selection: SelectionPart
    poller: PollerPart
    dispatcher: DispatcherPart
    last_act: LastAct
    boards: list[Board]
    """TensorBoards that this application started; they end with it."""
    next_cluster = ""
    """The name of the cluster to open after this application has closed; empty: none."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a toast, with control characters made visible and markup off.

        Refusals and errors quote names and paths that other users chose, so the text must not be interpreted.
        """
        # Line by line, as `safe` would also make the line breaks visible.
        harmless = "\n".join(map(safe, message.split("\n")))
        super().notify(harmless, title=safe(title), severity=severity, timeout=timeout, markup=markup)

    def check_terminal(self) -> None:
        """Raise `CockpitError` where no terminal can be given to a shell: in a browser, or when a script plays keys."""
        if self.is_headless or self.is_web:
            raise CockpitError("There is no terminal here for a shell: open the cockpit in one.")

    def close_pages(self) -> None:
        """Close all pages and dialogs, so that the main screen is shown."""
        # The bottom of the stack is the main screen; an app whose last screen is popped ends with an error.
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def show_view(self, view: str) -> None:
        """Close all pages, then show this view of the main screen."""
        self.close_pages()
        self.main_screen.show_view(view)

    def go_to_cluster(self, name: str) -> None:
        """Close the application so that the caller opens the cluster of this name."""
        self.next_cluster = name
        self.exit(0)

    @abstractmethod
    def repaint(self) -> None:
        """Write the whole screen to the terminal again, as another program may have written on it."""

    @abstractmethod
    def use_theme(self, name: str) -> None:
        """Switch to this theme and redraw everything."""
