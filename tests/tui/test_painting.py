"""Only what differs is written, and the screen shows the same as if all of it had been."""

from __future__ import annotations

from random import Random

import pyte
import pytest
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from cockpit.tui.painting import PLAIN_VARIABLE, DifferingUpdate, Painter, TerminalContent, WholeUpdate

COLUMNS, LINES = 40, 6
WORDS = ("job", "漢字", "●", "▇▇▇▎", "é", "e\u0301x", " ", "   ", "waits", "42", "👍")
STYLES = (Style(), Style(color="#ff8800"), Style(bgcolor="#202040", bold=True), Style(color="red", bgcolor="#101010"))

CONSOLE = Console(color_system="truecolor", force_terminal=True, width=COLUMNS, legacy_windows=False)
assert CONSOLE._color_system is ColorSystem.TRUECOLOR


class Picture:
    """What an app draws: two widgets beside each other; some of their lines change at a time."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cuts = [0, 13, COLUMNS]
        self.strips = [self._line() for _ in range(LINES)]

    def change(self) -> ChopsUpdate:
        """A partial update as Textual makes it: only the lines with something to update are drawn."""
        spans = []
        for y in sorted(self.random.sample(range(LINES), self.random.randint(1, 3))):
            place = self.random.randrange(2)
            first, end = self.cuts[place : place + 2]
            if self.random.random() < 0.8:
                self.strips[y][place] = self._some(end - first, like=self.strips[y][place])
            spans.append((y, first, end))
        drawn = {y for y, _, _ in spans}
        chops = [
            dict(zip(self.cuts, strips if y in drawn else [None, None], strict=False))
            for y, strips in enumerate(self.strips)
        ]
        return ChopsUpdate(chops, spans, [self.cuts[1:]] * LINES)

    def lay_out_anew(self) -> LayoutUpdate:
        """The border between the two moves."""
        self.cuts = [0, self.random.randint(5, COLUMNS - 5), COLUMNS]
        self.strips = [self._line() for _ in range(LINES)]
        return self.whole()

    def whole(self) -> LayoutUpdate:
        return LayoutUpdate(list(self.strips), Region(0, 0, COLUMNS, LINES))

    def _line(self) -> list[Strip]:
        return [self._some(end - first) for first, end in zip(self.cuts, self.cuts[1:], strict=False)]

    def _some(self, width: int, like: Strip | None = None) -> Strip:
        """Any text; where there was some, with its beginning. The last column is blank: the terminal of the test wraps
        on a combining mark there."""
        kept = [] if like is None else list(like)[: self.random.randrange(5)]
        segments = kept + [Segment(self.random.choice(WORDS), self.random.choice(STYLES)) for _ in range(8)]
        return Strip(segments).adjust_cell_length(width - 1, STYLES[0]).adjust_cell_length(width, STYLES[0])


def cells(written: list[str]) -> list[object]:
    """Every cell with its colours, as a terminal shows them."""
    screen = pyte.Screen(COLUMNS, LINES)
    pyte.Stream(screen).feed("".join(written))
    return [screen.buffer[y][x] for y in range(LINES) for x in range(COLUMNS)]


def written_whole(picture: Picture) -> str:
    return WholeUpdate(picture.whole(), TerminalContent()).render_segments(CONSOLE)


@pytest.mark.req("UI-62")
@pytest.mark.parametrize("seed", range(5))
def test_many_small_updates_show_the_same_as_one_whole_one(seed: int):
    picture, shown = Picture(seed), TerminalContent()
    written = [WholeUpdate(picture.whole(), shown).render_segments(CONSOLE)]
    for number in range(80):
        if number % 30 == 29:
            written.append(WholeUpdate(picture.lay_out_anew(), shown).render_segments(CONSOLE))
        written.append(DifferingUpdate(picture.change(), shown).render_segments(CONSOLE))
        if number % 4 == 0:
            assert cells(written) == cells([written_whole(picture)]), f"after update {number}"


def test_a_screen_overwritten_by_another_program_is_redrawn():
    picture, shown = Picture(1), TerminalContent()
    WholeUpdate(picture.whole(), shown).render_segments(CONSOLE)
    same = ChopsUpdate(
        [dict(zip(picture.cuts, line, strict=False)) for line in picture.strips],
        [(0, 0, COLUMNS)],
        [picture.cuts[1:]] * LINES,
    )
    assert not DifferingUpdate(same, shown)
    shown.forget()
    assert DifferingUpdate(same, shown)


def test_an_unwritten_update_is_not_treated_as_shown():
    picture, shown = Picture(2), TerminalContent()
    change = picture.change()
    assert DifferingUpdate(change, shown)
    assert DifferingUpdate(change, shown)


def test_only_a_changed_word_is_written():
    def line(word: str) -> Strip:
        return Strip([Segment("before ", STYLES[1]), Segment(word, STYLES[2]), Segment(" after", STYLES[1])])

    shown = TerminalContent()
    WholeUpdate(LayoutUpdate([[line("one")]], Region(0, 0, 16, 1)), shown).render_segments(CONSOLE)
    update = DifferingUpdate(ChopsUpdate([{0: line("two")}], [(0, 0, 16)], [[16]]), shown)
    assert update.render_segments(CONSOLE) == "\x1b[1;8H" + Strip([Segment("two", STYLES[2])]).render(CONSOLE)


@pytest.mark.req("UI-62")
def test_a_painter_writes_what_differs_until_the_screen_is_forgotten_or_where_it_is_turned_off(
    monkeypatch: pytest.MonkeyPatch,
):
    picture = Picture(3)
    same = ChopsUpdate(
        [dict(zip(picture.cuts, line, strict=False)) for line in picture.strips],
        [(y, 0, COLUMNS) for y in range(LINES)],
        [picture.cuts[1:]] * LINES,
    )
    painter = Painter()
    whole = painter.differing(picture.whole())
    assert isinstance(whole, WholeUpdate)
    whole.render_segments(CONSOLE)
    assert painter.differing(same) is None
    painter.forget()
    assert isinstance(painter.differing(same), DifferingUpdate)
    monkeypatch.setenv(PLAIN_VARIABLE, "1")
    assert Painter().differing(same) is same
    assert Painter().differing(picture.whole()).__class__ is LayoutUpdate
