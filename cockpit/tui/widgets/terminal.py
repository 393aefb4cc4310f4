"""The widget that draws a terminal emulator's screen and gives it keys, pastes and the mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from cockpit.errors import CockpitError
from cockpit.tui.emulator import typed
from cockpit.tui.widgets.lines import RIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.tui.emulator.base import Cursor
    from cockpit.tui.shell_link import ShellLink
    from cockpit.tui.theme import RoleTheme

MENU_KEY = "ctrl+right_square_bracket"
MENU_KEY_NAME = "Ctrl-]"
MENU_BYTE = b"\x1d"
SCROLL_KEYS = {"shift+pageup": -1, "shift+pagedown": 1}
"""The keys that scroll, each with its direction."""
WHEEL_LINES = 3
REVERSED = Style(reverse=True)
UNDERLINED = Style(underline=True)


class TerminalView(Widget, can_focus=True):
    """A terminal. All keys go to the program in it, except `MENU_KEY` and Shift with Page up and Page down."""

    ALLOW_SELECT = False  # the mouse belongs to the program, and the right button copies a line

    class MenuKey(Message):
        """The message that a key belongs to the pane's menu: `MENU_KEY` itself, or the key after it."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, theme: Callable[[], RoleTheme], *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._theme = theme
        self.link: ShellLink | None = None
        """The shell that is shown; None: none."""
        self.in_menu = False
        """Whether the next key is one of the pane's menu."""
        self._cursor: Cursor | None = None

    # Drawing

    def redraw(self, rows: Sequence[int]) -> None:
        """Draw these rows, and the cursor where it has moved."""
        cursor = None if self.link is None else self.link.emulator.cursor()
        changed = set(rows)
        if cursor != self._cursor:
            changed |= {each.row for each in (cursor, self._cursor) if each is not None}
            self._cursor = cursor
        if changed:
            self.refresh(*(Region(0, row, self.size.width, 1) for row in changed))

    def render_line(self, y: int) -> Strip:
        ground = self._theme().style("text") + self._theme().background("background")
        width = self.size.width
        if self.link is None or y >= self.link.emulator.rows:
            return Strip.blank(width, ground)
        segments = [
            Segment(text, ground if style is None else ground + style) for text, style, _ in self.link.emulator.line(y)
        ]
        strip = Strip(segments).adjust_cell_length(width, ground)
        if self._cursor is not None and self._cursor.row == y and self._cursor.column < width:
            column = self._cursor.column
            look = REVERSED if self.has_focus and not self.in_menu else UNDERLINED
            under = strip.crop(column, column + 1)
            shown = Strip([Segment(text, (style or ground) + look) for text, style, _ in under], under.cell_length)
            strip = Strip.join([strip.crop(0, column), shown, strip.crop(column + 1, width)])
        return strip

    def on_focus(self) -> None:
        self._redraw_cursor()

    def on_blur(self) -> None:
        self._redraw_cursor()

    def _redraw_cursor(self) -> None:
        if self._cursor is not None:
            self.refresh(Region(0, self._cursor.row, self.size.width, 1))

    def on_resize(self) -> None:
        self.fit()

    def fit(self) -> None:
        """Give the emulator and the shell the size of this widget."""
        width, height = self.size
        if self.link is not None and width and height:
            self.link.resize(width, height)

    # Keys

    def takes_directly(self, key: events.Key) -> bool:
        """Whether the key goes to the program, so that no other key has to wait for its effect."""
        return self.link is not None and not self.in_menu and key.key != MENU_KEY

    def on_key(self, event: events.Key) -> None:
        # No key of a view works here: neither `q` nor Ctrl-c may quit the cockpit.
        event.stop()
        event.prevent_default()
        if self.link is None:
            return
        if self.in_menu or event.key == MENU_KEY:
            self.post_message(self.MenuKey(event.key))
        elif event.key in SCROLL_KEYS:
            self.scroll_view(SCROLL_KEYS[event.key] * max(1, self.size.height - 1))
        else:
            self.type(typed.key_bytes(event.key, event.character, self.link.emulator.modes()))

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        if self.link is not None and not self.in_menu:
            self.type(typed.paste_bytes(event.text, self.link.emulator.modes()))

    def type(self, data: bytes) -> None:
        """Send bytes to the program, and show the newest lines."""
        if self.link is None or not data:
            return
        if self.link.emulator.scrolled_back():
            self.scroll_view(self.link.emulator.scrolled_back())
        try:
            self.link.type(data)
        except CockpitError as error:
            self.app.notify(str(error), severity="warning")

    def scroll_view(self, lines: int) -> None:
        """Show older lines (negative) or newer ones."""
        if self.link is not None:
            self.link.emulator.scroll(lines)
            self.link.draw()
            self.post_message(self.Scrolled(self.link.emulator.scrolled_back()))

    class Scrolled(Message):
        """The message that other lines are shown: `lines` above the newest."""

        def __init__(self, lines: int) -> None:
            super().__init__()
            self.lines = lines

    # The mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._report(event, event.button - 1)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self._report(event, event.button - 1, pressed=False)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._report(event, typed.MOVED + (event.button - 1 if event.button else typed.RELEASED))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, typed.WHEEL_DOWN, WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, typed.WHEEL_UP, -WHEEL_LINES)

    def on_click(self, event: events.Click) -> None:
        """Copy the whole line under the right button, where the program does not use the mouse."""
        if self.link is None or event.button != RIGHT or self._is_programs(event):
            return
        line = "".join(segment.text for segment in self.link.emulator.line(event.y)).strip()
        self.app.copy_to_clipboard(line)
        self.app.notify("copied the line")

    def _is_programs(self, event: events.MouseEvent) -> bool:
        """Whether the mouse belongs to the program; with Shift it is the user's, as in other terminals."""
        return self.link is not None and self.link.emulator.modes().mouse and not event.shift

    def _report(self, event: events.MouseEvent, button: int, *, pressed: bool = True) -> None:
        if self.link is not None and self._is_programs(event) and 0 <= button <= typed.MOVED + typed.RELEASED:
            modes = self.link.emulator.modes()
            self.type(typed.mouse_bytes(button, event.x, event.y, modes, pressed=pressed))

    def _wheel(self, event: events.MouseEvent, button: int, lines: int) -> None:
        event.stop()
        if self.link is None:
            return
        modes = self.link.emulator.modes()
        if self._is_programs(event):
            self.type(typed.mouse_bytes(button, event.x, event.y, modes))
        elif modes.alternate_screen:
            # A pager without the mouse scrolls with the arrow keys, as in other terminals.
            key = "down" if lines > 0 else "up"
            self.type(typed.key_bytes(key, None, modes) * abs(lines))
        else:
            self.scroll_view(lines)
