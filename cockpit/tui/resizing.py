"""Keeps Textual from laying out a screen without end while messages of two of its sizes are under way.

Each layout sends the screen its size. If the terminal is resized while a screen opens, or Textual and Rich differ about
its size, the messages of both sizes cause each other's layout. Here a screen ignores sizes that the application has no
more.
"""

from __future__ import annotations

from textual.events import Resize
from textual.screen import Screen

_lay_out = Screen._on_resize  # noqa: SLF001 - Textual keeps it there


async def _lay_out_at_present_size(screen: Screen[object], event: Resize) -> None:
    if event.size == screen.app.size:
        await _lay_out(screen, event)
    else:
        event.stop()


def ignore_old_sizes() -> None:
    """Change it for all screens."""
    Screen._on_resize = _lay_out_at_present_size  # type: ignore[method-assign,assignment]  # noqa: SLF001 - as above
