"""The Textual application, which builds its parts and connects them with Textual.

- `state` (`app_state.py`): what is shown; it knows neither Textual nor the network.
- `poller` (`poller.py`): fetches from the cluster into the state and has the screen redrawn.
- `selection` (`selection.py`): what is marked or under the cursor.
- `dispatcher` (`action_dispatcher.py`): from a key, command or click to the function of an action.
- `painter` (`painting.py`) and `key_queue` (`keyboard.py`): what is written to the terminal, and when a key is handled.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from rich.text import Text
from textual import on
from textual.binding import BindingType
from textual.events import Event, Key, MouseEvent
from textual.filter import LineFilter

from cockpit.present.ascii import ascii_text
from cockpit.present.command_text import shell_text
from cockpit.present.safe import safe_lines
from cockpit.tui.action_dispatcher import ActionDispatcher
from cockpit.tui.app_state import AppState
from cockpit.tui.cockpit import Cockpit
from cockpit.tui.driver import robust_driver
from cockpit.tui.keyboard import KeyQueue, KeyTaken, is_on_removed_widget
from cockpit.tui.keymap import names_of_keys, with_keys
from cockpit.tui.painting import RESET_MODES, Painter
from cockpit.tui.poller import Poller
from cockpit.tui.resizing import ignore_old_sizes
from cockpit.tui.screens.action_palette import ActionPalette
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.screens.main import MainScreen
from cockpit.tui.selection import Selection
from cockpit.tui.undo import LastAct
from cockpit.tui.widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from textual.color import Color
    from textual.driver import Driver
    from textual.screen import Screen

    from cockpit.backends.base import Backend, CommandPreview
    from cockpit.tui.app_options import AppOptions

MOST_FRAMES = 12
"""The number of innermost frames that a traceback shows."""


class CockpitApp(Cockpit, inherit_bindings=False):
    """The application that shows one backend's cluster."""

    CSS_PATH: ClassVar[list[str | PurePath]] = [
        "app.tcss",
        *(
            f"screens/{screen}.tcss"
            for screen in ("main", "job", "form", "running", "specs", "dialog", "help", "pick", "action_palette")
        ),
    ]
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = []

    main_screen: MainScreen
    selection: Selection
    poller: Poller
    dispatcher: ActionDispatcher

    def __init__(self, backend: Backend, options: AppOptions) -> None:
        # Textual asks for the theme's variables in its own constructor, so that the state must be there before it.
        actions = with_keys(options.keys)
        self.options = options
        self.state = AppState(
            options,
            names_of_keys(actions),
            has_colours=lambda: not self.no_color,
            chosen=lambda: self.selection.job_under_cursor(),  # noqa: PLW0108 - the selection is made below
        )
        super().__init__(ansi_color=self.state.theme.ansi)
        # A filter of Textual sees every segment last, so that also scrollbars and borders of its widgets become ASCII.
        if options.ascii_only:
            self._filters.append(AsciiFilter())
        self.backend = backend
        # With --show-commands a backend asks this before each command that changes something.
        backend.announce(self._may_run)
        self.boards = []
        self.last_act = LastAct(self.notify, lambda: self.state.keys.get("undo", ""))
        ignore_old_sizes()
        self.painter = Painter()
        self.key_queue = KeyQueue(self, self._handle_key)
        self.main_screen = MainScreen(self.state)
        self.selection = Selection(self, self.state, self.main_screen.tables)
        self.poller = Poller(self, self.state, self.main_screen)
        self.dispatcher = ActionDispatcher(self, actions)
        # Each key is bound once for the whole application: what it does in which view is decided when it is pressed, so
        # that a key without a meaning here can say why.
        for key in {key for action in actions for key in action.keys}:
            self.bind(key, f"press('{key}')", show=False)

    def get_driver_class(self) -> type[Driver]:
        return robust_driver(super().get_driver_class())

    def get_default_screen(self) -> Screen[Any]:
        return self.main_screen

    def on_load(self) -> None:
        """Start each task after the step that makes it, with every version of Python.

        From Python 3.12 on Textual starts tasks at once. A page was then made before it was on the stack of screens,
        and `Closable` took it for one that is closed already: it stayed without its widgets.
        """
        asyncio.get_running_loop().set_task_factory(None)

    def on_mount(self) -> None:
        self._set_theme()
        # While a shell or an editor has the terminal, what was drawn is overwritten, and modes of the terminal may be
        # left as that program had them. `immediate`: before the first frame behind it, not through the message queue.
        self.app_suspend_signal.subscribe(self, lambda _: self.painter.forget(), immediate=True)
        self.app_resume_signal.subscribe(self, lambda _: self._reset_modes(), immediate=True)
        self.poller.start()

    # Keys and actions

    async def on_event(self, event: Event) -> None:
        """Let keys take effect one after the other, and ignore clicks on what has been removed."""
        # Textual passes a key on to the focused widget as a forwarded event; only the one from the terminal is queued.
        if isinstance(event, Key) and not event.is_forwarded:
            # What is typed into a terminal changes nothing that the next key depends on.
            if (terminal := self._focused_terminal()) and terminal.takes_directly(event) and self.key_queue.is_idle:
                self._to_terminal(event)
            else:
                await self.key_queue.take(event)
        elif not (isinstance(event, MouseEvent) and is_on_removed_widget(self, event)):
            await super().on_event(event)

    def _focused_terminal(self) -> TerminalView | None:
        return self.focused if isinstance(self.focused, TerminalView) else None

    async def _handle_key(self, event: Event) -> None:
        """Give a key to the terminal that has the focus, before any key of the application; else to Textual."""
        if self._focused_terminal() is not None:
            self._to_terminal(event)
        else:
            await super().on_event(event)

    def _to_terminal(self, event: Event) -> None:
        self.app_focus = True
        if (terminal := self._focused_terminal()) is not None:
            terminal._forward_event(event)  # noqa: SLF001 - as Textual gives keys to the focused widget

    @on(KeyTaken)
    async def _key_taken(self, message: KeyTaken) -> None:
        await self.key_queue.key_taken(message)

    def action_press(self, key: str) -> None:
        self.dispatcher.press(key)

    def action_command_palette(self) -> None:
        # This key comes here from above every screen; a second palette above the first would be no use.
        if isinstance(self.screen, ActionPalette):
            self.screen.dismiss(None)
        else:
            self.push_screen(ActionPalette())

    async def _may_run(self, commands: Sequence[CommandPreview]) -> bool:
        """Ask the user whether these commands may run on the cluster."""
        line = "; ".join(shell_text(command.argv) for command in commands)
        scripts = [command.stdin for command in commands if command.stdin]
        return await self.push_screen_wait(Confirm("Run this on the cluster?", line, "\n".join(scripts)))

    # What is written to the terminal

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Write to the terminal. Textual passes every frame through here."""
        super()._display(screen, self.painter.differing(renderable))

    def _reset_modes(self) -> None:
        if self._driver is not None:
            self._driver.write(RESET_MODES)

    def on_resize(self) -> None:
        self.painter.forget()  # the terminal may have wrapped or cut what it showed

    def repaint(self) -> None:
        """Write the whole screen to the terminal again, as another program may have written on it."""
        self.painter.forget()
        self.screen.refresh(layout=True)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self.state.theme.variables()

    def use_theme(self, name: str) -> None:
        """Switch to this theme and redraw everything."""
        self.state.use_theme(name)
        self.ansi_color = self.state.theme.ansi
        self._set_theme()
        # The stylesheets change at once; lines and tables draw with styles of the theme and are drawn again one by one.
        self.refresh_css()
        for screen in self.screen_stack:
            screen.refresh(recompose=False, layout=True)
        self.main_screen.tables.table.redraw()
        self.main_screen.tables.table.refresh()
        self.main_screen.draw()

    def _set_theme(self) -> None:
        # Registered before it is set: Textual refuses the name of an unknown theme.
        self.register_theme(self.state.theme.for_textual())
        self.theme = self.state.theme.name

    # Its end

    @property
    def failed(self) -> bool:
        """Whether an unexpected exception has ended the application."""
        return self._exception is not None

    def _fatal_error(self) -> None:
        """End the application with a traceback that has no local variables (Textual shows them): they may be secret."""
        self.bell()
        self._exit_renderables.append(Text(defect_text(sys.exception())))
        self._close_messages_no_wait()


class AsciiFilter(LineFilter):
    """Replaces all characters that are drawn by ASCII, for terminals that show nothing else."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        """Return the same cells in ASCII."""
        return [Segment(ascii_text(text), style, control) for text, style, control in segments]


def defect_text(defect: BaseException | None) -> str:
    """Return what the user reads where a defect has ended the cockpit: what it means, and the traceback."""
    trace = "" if defect is None else "".join(traceback.format_exception(defect, limit=-MOST_FRAMES))
    return safe_lines(
        f"The cockpit has ended because of a defect. Jobs are not affected. Please report it with these lines:\n{trace}"
    )
