"""The interface of a terminal emulator.

Nothing that a program writes reaches the user's terminal as it is. The emulator interprets it, and the pane draws the
cells: a program cannot set the clipboard, the title or the palette, and cannot ask for any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.segment import Segment

SCROLLBACK_LINES = 10_000
"""The number of lines that can be scrolled back to."""


class Cursor(NamedTuple):
    """The cell of the cursor on the visible screen, from 0."""

    column: int
    row: int


class Modes(NamedTuple):
    """What the program in the terminal has asked for, as far as input depends on it."""

    application_cursor: bool = False
    """Arrow keys are sent as SS3 (DECCKM)."""
    bracketed_paste: bool = False
    mouse_clicks: bool = False
    """Presses, releases and the wheel are reported."""
    mouse_drags: bool = False
    """Movements with a pressed button are reported, too."""
    mouse_moves: bool = False
    """Every movement is reported."""
    sgr_mouse: bool = False
    """Reports are decimal numbers (1006), which work beyond column 223."""
    alternate_screen: bool = False
    """A full-screen program is shown: there is nothing to scroll back to."""
    disambiguates_keys: bool = False
    """Escape and chords are sent as numbers (the kitty protocol)."""

    @property
    def mouse(self) -> bool:
        """Whether the program wants reports of the mouse at all."""
        return self.mouse_clicks or self.mouse_drags or self.mouse_moves


class Emulator(Protocol):
    """A terminal without a window.

    It is used by one thread. `feed` may be given any bytes, cut anywhere, and never raises for them.
    """

    columns: int
    rows: int

    def feed(self, data: bytes) -> bytes:
        """Interpret what the program wrote, and return what the terminal answers, such as the cursor's position."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; each is at least 1."""
        ...

    def changed(self) -> Sequence[int]:
        """Return the visible rows that differ from what `line` returned before the last call, from 0."""
        ...

    def line(self, row: int) -> Sequence[Segment]:
        """Return the visible row as of the last call of `changed`: as many cells as there are columns or fewer, and no
        control characters."""
        ...

    def cursor(self) -> Cursor | None:
        """Return where the cursor is visible, as of the last call of `changed`; None: it is hidden or out of sight."""
        ...

    def modes(self) -> Modes: ...

    def scroll(self, lines: int) -> None:
        """Show older lines (negative) or newer ones (positive), as far as there are any."""
        ...

    def scrolled_back(self) -> int:
        """Return how many lines the visible screen is above the newest; 0: it shows the newest."""
        ...

    def close(self) -> None:
        """Free its memory; nothing else is called afterwards."""
        ...
