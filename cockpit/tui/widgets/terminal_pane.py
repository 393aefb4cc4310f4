"""The pane with a shell beside the list: a line with its name and its menu, and the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Vertical
from textual.message import Message

from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.tui.emulator.typed import key_bytes
from cockpit.tui.shell_link import ShellLink
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.terminal import MENU_KEY, MENU_KEY_NAME, TerminalView

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from cockpit.backends.base import ShellSession
    from cockpit.tui.emulator.base import Emulator
    from cockpit.tui.theme import RoleTheme

LIST = "l"
MENU = (("Esc", "back"), (LIST, "list"), ("f", "full screen"), ("r", "record"), ("x", "close"))
ACTION_OF_KEY = {"f": "terminal_full_screen", "r": "record_terminal", "x": "close_terminal"}
"""The actions behind the keys of the menu; `LIST` only gives the keys to the list."""


class TerminalPane(Vertical):
    """The pane. It is hidden while no shell is open in it, and there is one shell at most."""

    class Asked(Message):
        """The message that the user chose this key of the menu."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Ended(Message):
        """The message that the shell has ended."""

    def __init__(self, theme: Callable[[], RoleTheme], *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._theme = theme
        self.title = ""
        """What is open in it, such as `4715 bert-eval`."""
        self.view = TerminalView(theme, id="terminal-view")

    def compose(self) -> ComposeResult:
        yield Lines(self._theme, id="terminal-title")
        yield self.view

    async def on_unmount(self) -> None:
        """Hang up the shell when the application ends."""
        await self.close()

    @property
    def link(self) -> ShellLink | None:
        """The open shell; None: there is none."""
        return self.view.link

    def open(self, title: str, session: ShellSession, emulator: Emulator, notice: str) -> None:
        """Show this shell below the lines of the notice, and give it the keys."""
        self.title = title
        view = self.view
        emulator.feed("".join(f"{each}\r\n" for each in notice.split("\n")).encode())
        view.link = ShellLink(session, emulator, view.redraw, self._ended)
        view.in_menu = False
        view.link.start()
        self.draw()

    async def close(self) -> int | None:
        """Hang up. Returns the exit code of a shell that has ended; None: it had not."""
        link, self.view.link = self.view.link, None
        return None if link is None else await link.close()

    def draw(self) -> None:
        """Draw the line above the terminal."""
        link = self.link
        if link is None:
            return
        title = self.query_one("#terminal-title", Lines)
        name = line(*self._about())
        # The menu has the line for itself where both do not fit.
        shown = spread(name, self._hints(), title.size.width)
        title.show([self._hints() if self.view.in_menu and shown == name else shown])

    def _about(self) -> list[Span]:
        link = self.link
        shown = [Span(f" {self.title}", STRONG if self.view.has_focus else MUTED)]
        if link is not None and link.recording is not None:
            shown.append(Span(f"  ● recording {safe(link.recording.path)}", "error"))
        if link is not None and (back := link.emulator.scrolled_back()):
            shown.append(Span(f"  {back} lines back", ACCENT))
        return shown

    def _hints(self) -> Line:
        if self.view.in_menu:
            pairs = [*MENU, (MENU_KEY_NAME, "send it")]
            return line(*(span for key, label in pairs for span in (Span(key, ACCENT), Span(f" {label}  ", MUTED))))
        return line(Span(MENU_KEY_NAME, ACCENT), Span(" menu ", MUTED))

    # What happens

    def _ended(self) -> None:
        self.post_message(self.Ended())

    @on(TerminalView.Scrolled)
    def _scrolled(self) -> None:
        self.draw()

    def on_descendant_focus(self) -> None:
        self.draw()

    def on_descendant_blur(self) -> None:
        self.view.in_menu = False
        self.draw()

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    @on(TerminalView.MenuKey)
    def _menu_key(self, message: TerminalView.MenuKey) -> None:
        """Open the menu with `MENU_KEY`, or do what the key after it stands for. An unknown key closes the menu."""
        message.stop()
        view = self.view
        if not view.in_menu:
            view.in_menu = True
        else:
            view.in_menu = False
            if message.key == MENU_KEY and view.link is not None:
                view.type(key_bytes(MENU_KEY, None, view.link.emulator.modes()))
            elif message.key == LIST or message.key in ACTION_OF_KEY:
                self.post_message(self.Asked(message.key))
        view.redraw(())
        view.refresh()
        self.draw()
