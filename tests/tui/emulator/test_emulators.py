"""Every emulator behind the one interface: the same output, the same screen."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import pytest
from rich.cells import cell_len
from rich.style import Style

from cockpit.errors import CockpitError
from cockpit.present.safe import is_harmful
from cockpit.tui.emulator.base import Cursor, Emulator
from cockpit.tui.emulator.choice import EMULATORS, NEITHER, new_emulator

pytestmark = pytest.mark.req("UI-12")


@pytest.fixture(params=list(EMULATORS))
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    made = EMULATORS[request.param](20, 4)
    yield made
    made.close()


def screen(emulator: Emulator) -> list[str]:
    emulator.changed()
    return [text_of(emulator, row).rstrip() for row in range(emulator.rows)]


def text_of(emulator: Emulator, row: int) -> str:
    return "".join(segment.text for segment in emulator.line(row))


def style_at(emulator: Emulator, column: int, row: int) -> Style:
    at = 0
    for text, style, _ in emulator.line(row):
        at += cell_len(text)
        if column < at:
            return style or Style.null()
    raise AssertionError(f"there is no column {column} in row {row}")


def test_text_goes_where_the_cursor_is(emulator: Emulator) -> None:
    assert emulator.feed(b"one\r\ntwo\x1b[4;3Hlast\x1b[1;5H!") == b""
    assert screen(emulator) == ["one !", "two", "", "  last"]
    assert emulator.cursor() == Cursor(5, 0)
    emulator.feed(b"\x1b[?25l")
    emulator.changed()
    assert emulator.cursor() is None


def test_only_changed_rows_are_drawn_again(emulator: Emulator) -> None:
    emulator.changed()
    emulator.feed(b"\x1b[3;1Hhere")
    assert 2 in emulator.changed()
    emulator.changed()
    assert list(emulator.changed()) == []


def test_colours_and_weights_of_cells(emulator: Emulator) -> None:
    emulator.feed(b"\x1b[1;31mred\x1b[0m \x1b[38;5;208mo\x1b[48;2;1;2;3mx\x1b[0;3;4;7;9mi\x1b[0m.")
    emulator.changed()
    red, orange, both, worn, plain = (style_at(emulator, column, 0) for column in (0, 4, 5, 6, 7))
    assert red.color is not None
    assert (red.color.number, red.bold) == (1, True)
    assert orange.color is not None
    assert orange.color.get_truecolor() == (255, 135, 0)
    assert both.bgcolor is not None
    assert both.bgcolor.get_truecolor() == (1, 2, 3)
    assert (worn.italic, worn.underline, worn.reverse, worn.strike) == (True,) * 4
    assert plain == Style.null()


def test_wide_characters_and_marks_keep_their_columns(emulator: Emulator) -> None:
    emulator.feed("漢字 e\u0301!".encode())
    emulator.changed()
    assert text_of(emulator, 0).rstrip() in {"漢字 é!", "漢字 e\u0301!"}
    assert cell_len(text_of(emulator, 0).rstrip()) == 7
    assert emulator.cursor() == Cursor(7, 0)


def test_a_character_cut_between_two_pieces_is_whole(emulator: Emulator) -> None:
    for byte in "é\x1b[1m漢".encode():
        emulator.feed(bytes([byte]))
    assert screen(emulator)[0] == "é漢"


def test_scrolling_back_stays_on_its_lines_while_output_arrives(emulator: Emulator) -> None:
    emulator.feed(b"\r\n".join(b"line %d" % number for number in range(30)))
    assert screen(emulator) == ["line 26", "line 27", "line 28", "line 29"]
    emulator.scroll(-3)
    assert emulator.scrolled_back() == 3
    assert screen(emulator) == ["line 23", "line 24", "line 25", "line 26"]
    emulator.feed(b"\r\nnew")
    assert screen(emulator)[0] == "line 23"
    assert emulator.scrolled_back() == 4
    emulator.scroll(-1000)
    assert screen(emulator)[0] == "line 0"
    emulator.scroll(1000)
    assert emulator.scrolled_back() == 0
    assert screen(emulator)[3] == "new"


def test_a_full_screen_program_gives_the_screen_back(emulator: Emulator) -> None:
    emulator.feed(b"prompt")
    emulator.feed(b"\x1b[?1049h\x1b[H\x1b[2Jfull")
    assert emulator.modes().alternate_screen
    assert screen(emulator)[0] == "full"
    emulator.feed(b"\x1b[?1049l")
    assert not emulator.modes().alternate_screen
    assert screen(emulator)[0] == "prompt"
    assert emulator.cursor() == Cursor(6, 0)


def test_modes_that_input_depends_on(emulator: Emulator) -> None:
    assert not any(emulator.modes())
    emulator.feed(b"\x1b[?1;1000;1002;1003;1006;2004h")
    modes = emulator.modes()
    assert modes._replace(disambiguates_keys=True, alternate_screen=True) == type(modes)(*[True] * len(modes))
    emulator.feed(b"\x1b[?1;1000;1002;1003;1006;2004l")
    assert not any(emulator.modes())


def test_a_new_size(emulator: Emulator) -> None:
    emulator.feed(b"abc\r\ndef")
    emulator.resize(30, 6)
    assert list(emulator.changed()) == list(range(6))
    emulator.feed(b"\x1b[6;30H!")
    assert screen(emulator)[0] == "abc"
    assert emulator.cursor() == Cursor(29, 5)
    emulator.resize(1, 1)
    emulator.changed()
    assert len(text_of(emulator, 0)) <= 1


def test_it_answers_where_the_cursor_is(emulator: Emulator) -> None:
    assert emulator.feed(b"\x1b[2;5H\x1b[6n") == b"\x1b[2;5R"


SIDE_EFFECTS = (
    b"\x1b]52;c;cm0gLXJmIC8=\x07",  # sets the clipboard
    b"\x1b]52;c;?\x07",  # asks for it
    b"\x1b]0;title\x07\x1b]2;title\x1b\\\x1b[21t\x1b[20t",  # a title that is to come back as if typed
    b"\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b]9;notice\x07\x1b]777;notify;a;b\x07",
    b"\x1bP+q544e\x1b\\",
    b"\x1b_Ga=T,f=100,t=f;L2V0Yy9wYXNzd2Q=\x1b\\",  # a picture from a file
    b"\x1b^private\x1b\\\x1bXstring\x1b\\",
)


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("sequence", SIDE_EFFECTS)
def test_sequences_with_effects_outside_have_none(emulator: Emulator, sequence: bytes) -> None:
    emulator.feed(b"a")
    reply = emulator.feed(sequence)
    emulator.feed(b"b")
    shown = "".join(screen(emulator))
    assert shown in {"ab", "alinkb"}
    for secret in (b"title", b"root", b"cm0g", b"52;"):
        assert secret not in reply


@pytest.mark.req("TR-05")
def test_any_bytes_give_harmless_cells(emulator: Emulator) -> None:
    rng = random.Random(5)
    pieces = [b"\x1b", b"[", b"]", b"P", b"?", b";", b"9" * 30, b"\x9b", b"\xc2\x9b", b"\xe2\x80\xae", b"m", b"h", b"H"]
    pieces += [
        b"\n",
        b"\r",
        b"\x07",
        b"\xff",
        "漢".encode(),
        "\u0301".encode(),
        b"\x1b[?1049h",
        b"\x1b[3;2r",
        b"L",
        b"x",
    ]
    for _ in range(3000):
        emulator.feed(b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 12))))
        if rng.random() < 0.02:
            emulator.resize(rng.randrange(1, 30), rng.randrange(1, 8))
        if rng.random() < 0.05:
            emulator.scroll(rng.randrange(-5, 5))
        for row in emulator.changed():
            line = text_of(emulator, row)
            assert cell_len(line) <= emulator.columns
            assert not any(map(is_harmful, line)), repr(line)
        cursor = emulator.cursor()
        assert cursor is None or (cursor.column < emulator.columns and cursor.row < emulator.rows)


@pytest.mark.req("TR-05")
def test_a_command_that_never_ends_takes_no_memory(emulator: Emulator) -> None:
    import tracemalloc

    tracemalloc.start()
    emulator.feed(b"\x1b]0;")
    for _ in range(40):
        emulator.feed(b"x" * 100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000
    emulator.feed(b"\x07seen")
    assert screen(emulator)[0] == "seen"


def test_the_fastest_that_is_installed_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(new_emulator(5, 5)).__name__ == "GhosttyEmulator"
    for module in ("pyghostty", "cockpit.tui.emulator.ghostty"):
        monkeypatch.setitem(sys.modules, module, None)
    assert type(new_emulator(5, 5)).__name__ == "PyteEmulator"
    for module in ("pyte", "cockpit.tui.emulator.pyte_emulator"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CockpitError) as refused:
        new_emulator(5, 5)
    assert str(refused.value) == NEITHER
