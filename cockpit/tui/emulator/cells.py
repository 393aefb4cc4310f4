"""Cells of an emulator as Rich's styles and as text of a certain width."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.color import Color
from rich.style import Style

from cockpit.present.safe import VARIATION_SELECTOR, is_harmful

REPLACEMENT: Final = "\ufffd"
"""What is shown in place of a character that cannot be shown in its columns."""

PaletteOrRgb = int | tuple[int, int, int] | None
"""A colour: its number in the palette of 256, its red, green and blue, or the default."""


class Look(NamedTuple):
    """The colours and weights of a cell."""

    fg: PaletteOrRgb = None
    bg: PaletteOrRgb = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False
    hidden: bool = False


@lru_cache(4096)
def cell_style(look: Look) -> Style:
    """Return the style. Nothing blinks in the cockpit, so that blinking text is drawn steadily."""
    return Style(
        color=_colour(look.fg),
        bgcolor=_colour(look.bg),
        # None, not False: the style is laid over that of the pane.
        bold=look.bold or None,
        dim=look.dim or None,
        italic=look.italic or None,
        underline=look.underline or None,
        reverse=look.reverse or None,
        strike=look.strike or None,
        conceal=look.hidden or None,
    )


def _colour(colour: PaletteOrRgb) -> Color | None:
    if colour is None:
        return None
    return Color.from_ansi(colour) if isinstance(colour, int) else Color.from_rgb(*colour)


@lru_cache(4096)
def cell_text(text: str, columns: int) -> str:
    """Return the character of a cell in exactly as many columns, without what a terminal might obey or hide.

    `text` may have combining marks. Characters whose width terminals disagree about would shift the rest of the line.
    """
    # A joiner or a variation selector changes the width of what stands before it on some terminals and not on others.
    kept = "".join(char for char in text if not is_harmful(char) and char != VARIATION_SELECTOR)
    if not kept:
        kept = REPLACEMENT if text.strip() else ""
    width = cell_len(kept)
    if width > columns:
        kept, width = REPLACEMENT, 1
    return kept + " " * (columns - width)
