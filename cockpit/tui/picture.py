"""Writes the present screen as text and as an SVG picture."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from rich.color import Color, blend_rgb
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from textual.strip import Strip

from cockpit.tui.widgets.entry import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.app import App

LETTER, LINE, FONT, BASE = 8.43, 18, 14, 13.5
"""Width and height of a cell, size of the font, height of the baseline, in pixels; letters are 0.602 em wide."""
DIM = 0.5
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" xml:space="preserve">
<style>text{{font:{font}px "DejaVu Sans Mono",Menlo,Consolas,monospace}}{classes}</style>
<rect width="100%" height="100%" fill="{ground}"/>
{rows}
</svg>
"""
"""The template. It names fonts but loads none, so that it looks the same without a network."""


class Run(NamedTuple):
    """A piece of text in one style, with the columns that it fills."""

    text: str
    x: int
    columns: int
    look: str
    """The CSS declarations of its style."""
    ground: str


def screen_text(app: App[Any]) -> str:
    """Return the screen as text, a line for each row, without blanks at the ends of lines."""
    return "\n".join(strip.text.rstrip() for strip in _painted(app))


def screen_svg(app: App[Any]) -> str:
    """Return the screen as SVG, in its colours."""
    rows = [list(_runs(strip)) for strip in _painted(app)]
    grounds = Counter[str]()
    for run in (run for row in rows for run in row):
        grounds[run.ground] += run.columns
    # The colour behind most cells is drawn once for the whole picture, and only the other ones cell by cell.
    ((ground, _),) = grounds.most_common(1)
    # Sorted, so that the same screen gives the same file.
    looks = {look: f"l{number}" for number, look in enumerate(sorted({run.look for row in rows for run in row}))}
    return SVG.format(
        width=app.size.width * LETTER,
        height=app.size.height * LINE,
        font=FONT,
        classes="".join(f".{name}{{{look}}}" for look, name in looks.items()),
        ground=ground,
        rows="\n".join(piece for y, row in enumerate(rows) for piece in _drawn(row, y, ground, looks)),
    )


def _painted(app: App[Any]) -> list[Strip]:
    """Return every row as drawn.

    This does as Textual's `export_screenshot`, whose SVG is four times as large and loads fonts.
    """
    # The field with the focus shows secrets, but not in a picture.
    fields = [screen.focused for screen in app.screen_stack if isinstance(screen.focused, Field)]
    fields = [field for field in fields if field.has_secret]
    for field in fields:
        field.is_pictured = True
    try:
        return _rendered(app)
    finally:
        for field in fields:
            field.is_pictured = False


def _rendered(app: App[Any]) -> list[Strip]:
    compositor, below = app.screen._compositor, app._background_screens  # noqa: SLF001 - pinned below Textual's next major
    compositor.render_update(full=True, screen_stack=below)
    return [Strip.join(row).simplify() for row in compositor.render_full_update(simplify=True).strips]


def _runs(strip: Strip) -> Iterator[Run]:
    x = 0
    for text, style, _ in strip:
        columns = cell_len(text)
        front, ground = _colours(style or Style.null())
        yield Run(text, x, columns, f"fill:{front}{_weight(style or Style.null())}", ground)
        x += columns


def _colours(style: Style) -> tuple[str, str]:
    theme = DIMMED_MONOKAI
    front = (style.color or Color.default()).get_truecolor(theme)
    ground = (style.bgcolor or Color.default()).get_truecolor(theme, foreground=False)
    # In the order of a terminal: reverse swaps the colours, then dim fades the letters towards what is behind them.
    if style.reverse:
        front, ground = ground, front
    if style.dim:
        front = blend_rgb(front, ground, DIM)
    return front.hex, ground.hex


def _weight(style: Style) -> str:
    parts = [(style.bold, "font-weight:bold"), (style.italic, "font-style:italic")]
    parts += [(style.underline, "text-decoration:underline"), (style.strike, "text-decoration:line-through")]
    return "".join(f";{css}" for on, css in parts if on)


def _drawn(row: Sequence[Run], y: int, ground: str, looks: dict[str, str]) -> Iterator[str]:
    """Yield the row's backgrounds, then its letters; blanks on the picture's own background are left out."""
    for x, columns, colour in _grounds(row):
        if colour != ground:
            yield (
                f'<rect x="{x * LETTER:.1f}" y="{y * LINE}" width="{columns * LETTER:.1f}" height="{LINE}" '
                f'fill="{colour}"/>'
            )
    pieces = "".join(_letters(run, looks[run.look]) for run in row if run.text.strip())
    if pieces:
        yield f'<text y="{y * LINE + BASE:g}">{pieces}</text>'


def _grounds(row: Sequence[Run]) -> list[tuple[int, int, str]]:
    """Return the backgrounds as (column, columns, colour), neighbours of one colour merged."""
    merged: list[tuple[int, int, str]] = []
    for run in row:
        if merged and merged[-1][2] == run.ground:
            x, columns, colour = merged.pop()
            merged.append((x, columns + run.columns, colour))
        else:
            merged.append((run.x, run.columns, run.ground))
    return merged


def _letters(run: Run, look: str) -> str:
    """Return the text as SVG with its length, so that columns are aligned in every font."""
    # Blanks at the ends are not drawn, and so the text begins further to the right.
    text = run.text.strip()
    x = run.x + len(run.text) - len(run.text.lstrip())
    width = f' textLength="{cell_len(text) * LETTER:.1f}"' if len(text) > 1 else ""
    return f'<tspan x="{x * LETTER:.1f}"{width} class="{look}">{escape(text, quote=False)}</tspan>'
