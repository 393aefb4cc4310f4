"""Writes to the terminal only the pieces of text that differ from what stands there.

Textual repaints from the left edge of a widget's line up to the changed cell, and writes a frame also where nothing
differs. Here the app remembers what it wrote, and compares. `COCKPIT_PLAIN_PAINT=1` leaves it all to Textual.
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
    from textual.screen import Screen

AS_USUAL = "\x1b[r\x1b[?6l\x1b[4l\x1b(B\x0f\x1b[0m"
"""The whole screen scrolls, places count from its corner, letters overwrite, the usual letters, no colour."""
PLAIN_VARIABLE = "COCKPIT_PLAIN_PAINT"


class Piece(NamedTuple):
    """Text in one style, and the columns of its line that it takes."""

    start: int
    end: int
    segment: Segment


class Shown:
    """What the terminal shows, as far as it is known: whole pieces by line and first column."""

    def __init__(self) -> None:
        self._lines: dict[int, dict[int, Piece]] = {}

    def forget(self) -> None:
        """Somebody else may have written there."""
        self._lines.clear()

    def differing(self, y: int, pieces: Iterable[Piece]) -> list[Piece]:
        """Those that do not stand there already."""
        known = self._lines.get(y, {})
        return [piece for piece in pieces if known.get(piece.start) != piece]

    def put(self, y: int, pieces: list[Piece]) -> None:
        """They have been written; nothing that they cover, even in part, is there any more. They follow each other."""
        if not pieces:
            return
        start, end = pieces[0].start, pieces[-1].end
        kept = {x: old for x, old in self._lines.get(y, {}).items() if old.end <= start or x >= end}
        self._lines[y] = kept | {piece.start: piece for piece in pieces}


class WholeUpdate(CompositorUpdate):
    """The whole screen as Textual writes it, remembered."""

    def __init__(self, update: LayoutUpdate, shown: Shown) -> None:
        self._update = update
        self._shown = shown

    def render_segments(self, console: Console) -> str:
        """What is written; only now does it count as shown."""
        self._shown.forget()
        region = self._update.region
        for y, strips in enumerate(self._update.strips, region.y):
            self._shown.put(y, list(_pieces(region.x, strips)))
        return self._update.render_segments(console)


class DifferingUpdate(CompositorUpdate):
    """The pieces of a partial update that differ from what is shown."""

    def __init__(self, update: ChopsUpdate, shown: Shown) -> None:
        self._shown = shown
        self._drawn = list(_chops(update))
        self._written = [(y, shown.differing(y, pieces)) for y, pieces in self._drawn]

    def __bool__(self) -> bool:
        return any(pieces for _, pieces in self._written)

    def render_segments(self, console: Console) -> str:
        """What is written; only now does it count as shown."""
        for y, pieces in self._drawn:
            self._shown.put(y, pieces)
        return "".join(_written(y, pieces, console) for y, pieces in self._written)


def _chops(update: ChopsUpdate) -> Iterator[tuple[int, list[Piece]]]:
    """By line, each drawn part of it that holds something to update: once, however many spans meet in it."""
    spans = update.spans
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
            if size := segment.cell_length:
                yield Piece(x, x + size, segment)
                x += size


def _written(y: int, pieces: list[Piece], console: Console) -> str:
    """Moves only where a piece does not follow the one before it."""
    return "".join(
        Control.move_to(run[0].start, y).segment.text
        + Strip(Segment.simplify(piece.segment for piece in run)).render(console)
        for run in _runs(pieces)
    )


def _runs(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces without a gap."""
    run: list[Piece] = []
    for piece in pieces:
        if run and piece.start != run[-1].end:
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _textual_is_as_expected() -> bool:
    """Another release may make its updates of something else; then it is left alone."""
    partial, whole = ChopsUpdate.__init__.__code__, LayoutUpdate.__init__.__code__
    known = (
        partial.co_varnames[: partial.co_argcount] == ("self", "chops", "spans", "chop_ends"),
        whole.co_varnames[: whole.co_argcount] == ("self", "strips", "region"),
        hasattr(App, "_display"),
    )
    return all(known)


class TightPainting(App[int]):
    """An app that writes no more than it must."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(**options)
        self._shown = Shown()
        self._paints_tightly = _textual_is_as_expected() and os.environ.get(PLAIN_VARIABLE) != "1"

    def on_mount(self) -> None:
        """Textual calls this besides the `on_mount` of whoever derives from this."""
        self.app_suspend_signal.subscribe(self, lambda _: self._shown.forget(), immediate=True)
        self.app_resume_signal.subscribe(self, lambda _: self._undo_what_others_set(), immediate=True)

    def _undo_what_others_set(self) -> None:
        """A program that had the terminal may have left it so that lines scroll away under what is drawn."""
        if self._driver is not None:
            self._driver.write(AS_USUAL)

    def on_resize(self) -> None:
        """The terminal may have wrapped or cut what stood there."""
        self._shown.forget()

    def repaint(self) -> None:
        """Draw everything anew: somebody else may have written on the terminal."""
        self._shown.forget()
        self.screen.refresh(layout=True)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Textual's way to the terminal: every frame passes here."""
        update: Any = renderable
        if self._paints_tightly and isinstance(update, LayoutUpdate):
            update = WholeUpdate(update, self._shown)
        elif self._paints_tightly and isinstance(update, ChopsUpdate):
            update = DifferingUpdate(update, self._shown) or None
        super()._display(screen, update)
