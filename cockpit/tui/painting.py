"""Writes to the terminal only the pieces of text that differ from what it shows already.

Textual repaints from the left edge of a widget's line up to the changed cell, and writes a frame even if nothing in it
differs. The `Painter` remembers what was written and drops the rest, which matters over a slow SSH connection. The
environment variable `COCKPIT_PLAIN_PAINT=1` switches it off.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.control import Control
from rich.segment import Segment
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console, RenderableType

RESET_MODES = "\x1b[r\x1b[?6l\x1b[4l\x1b(B\x0f\x1b[0m"
"""Control sequences that undo what another program may have set: scroll region, origin mode, insert mode, character
set, colours. Lines would scroll away under what is drawn otherwise."""
PLAIN_VARIABLE = "COCKPIT_PLAIN_PAINT"


class Piece(NamedTuple):
    """A piece of text in one style, with the columns of its line that it takes."""

    start: int
    end: int
    segment: Segment


class TerminalContent:
    """The known content of the terminal: whole pieces, by line and first column."""

    def __init__(self) -> None:
        self._lines: dict[int, dict[int, Piece]] = {}

    def forget(self) -> None:
        """Forget everything, as another program may have written on the terminal."""
        self._lines.clear()

    def differing(self, y: int, pieces: Iterable[Piece]) -> list[Piece]:
        """Return those of the pieces that the terminal does not show already."""
        known = self._lines.get(y, {})
        return [piece for piece in pieces if known.get(piece.start) != piece]

    def put(self, y: int, pieces: list[Piece]) -> None:
        """Remember that these neighbouring pieces were written, and forget all pieces that they cover even in part."""
        if not pieces:
            return
        # Half a piece may be half a wide character, so that a piece that is covered in part counts as gone.
        start, end = pieces[0].start, pieces[-1].end
        kept = {x: old for x, old in self._lines.get(y, {}).items() if old.end <= start or x >= end}
        self._lines[y] = kept | {piece.start: piece for piece in pieces}


class WholeUpdate(CompositorUpdate):
    """Textual's update of the whole screen, which is remembered when it is written."""

    def __init__(self, update: LayoutUpdate, shown: TerminalContent) -> None:
        self._update = update
        self._content = shown

    def render_segments(self, console: Console) -> str:
        """Return the text to write. Only now it counts as shown: Textual may drop an update before it is written."""
        self._content.forget()
        region = self._update.region
        for y, strips in enumerate(self._update.strips, region.y):
            self._content.put(y, list(_pieces(region.x, strips)))
        return self._update.render_segments(console)


class DifferingUpdate(CompositorUpdate):
    """The pieces of a partial update that differ from what is shown."""

    def __init__(self, update: ChopsUpdate, shown: TerminalContent) -> None:
        self._content = shown
        self._drawn = list(_chops(update))
        self._line_text = [(y, shown.differing(y, pieces)) for y, pieces in self._drawn]

    def __bool__(self) -> bool:
        # An empty update is dropped by the painter: Textual would write a frame of control sequences around nothing.
        return any(pieces for _, pieces in self._line_text)

    def render_segments(self, console: Console) -> str:
        """Return the text to write. Only now it counts as shown."""
        for y, pieces in self._drawn:
            self._content.put(y, pieces)
        return "".join(_line_text(y, pieces, console) for y, pieces in self._line_text)


def _chops(update: ChopsUpdate) -> Iterator[tuple[int, list[Piece]]]:
    """Yield each drawn part that overlaps a span to update, with its line; once, even if several spans overlap it."""
    spans = update.spans
    # A chop is a part of a line that one widget draws; a span is the range of columns that changed in a line.
    met = dict.fromkeys((y, x) for y, first, last in spans for x, end in _parts(update, y) if x < last and end > first)
    for y, x in met:
        strip = update.chops[y][x]
        if strip is not None:
            yield y, list(_pieces(x, (strip,)))


def _parts(update: ChopsUpdate, y: int) -> Iterable[tuple[int, int]]:
    return zip(update.chops[y], update.chop_ends[y], strict=True)


def _pieces(x: int, strips: Iterable[Strip]) -> Iterator[Piece]:
    for strip in strips:
        for segment in strip:
            # Control segments take no cells and are not text on the screen.
            if size := segment.cell_length:
                yield Piece(x, x + size, segment)
                x += size


def _line_text(y: int, pieces: list[Piece], console: Console) -> str:
    """Return the text of one line: the cursor moves only to a piece that does not follow the one before it."""
    return "".join(
        Control.move_to(run[0].start, y).segment.text
        + Strip(Segment.simplify(piece.segment for piece in run)).render(console)
        for run in _runs(pieces)
    )


def _runs(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces in groups without a gap."""
    # Moving the cursor takes up to ten bytes, more than many a piece: neighbours are written in one go.
    run: list[Piece] = []
    for piece in pieces:
        if run and piece.start != run[-1].end:
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _textual_is_as_expected() -> bool:
    """Return whether Textual's updates have the fields that are read here; another release may have changed them."""
    # Both classes are private to Textual. If another release changes them, the painter is off and all works but slower.
    partial, whole = ChopsUpdate.__init__.__code__, LayoutUpdate.__init__.__code__
    known = (
        partial.co_varnames[: partial.co_argcount] == ("self", "chops", "spans", "chop_ends"),
        whole.co_varnames[: whole.co_argcount] == ("self", "strips", "region"),
        hasattr(App, "_display"),
    )
    return all(known)


class Painter:
    """Replaces each update that Textual would write by the pieces of it that differ from what the terminal shows."""

    def __init__(self) -> None:
        self._content = TerminalContent()
        self._is_on = _textual_is_as_expected() and os.environ.get(PLAIN_VARIABLE) != "1"

    def forget(self) -> None:
        """Write everything at the next update: another program may have written on the terminal."""
        # A new layout: nothing that was there before counts.
        self._content.forget()

    def differing(self, renderable: RenderableType | None) -> RenderableType | None:
        """Return what is to be written in place of this update of Textual's; None: nothing differs."""
        update: Any = renderable  # Textual passes its updates as renderables, which they are not by their types
        if self._is_on and isinstance(update, LayoutUpdate):
            update = WholeUpdate(update, self._content)
        elif self._is_on and isinstance(update, ChopsUpdate):
            # Textual writes nothing for None.
            update = DifferingUpdate(update, self._content) or None
        return update  # type: ignore[no-any-return]  # as above
