"""What keys, pastes and the mouse send to the program in the pane, as xterm sends it."""

from __future__ import annotations

import pytest

from cockpit.tui.emulator.base import Modes
from cockpit.tui.emulator.typed import MOVED, RELEASED, WHEEL_UP, key_bytes, mouse_bytes, paste_bytes

pytestmark = pytest.mark.req("UI-12")

PLAIN = Modes()


@pytest.mark.parametrize(
    ("key", "character", "sent"),
    [
        ("a", "a", b"a"),
        ("A", "A", b"A"),
        ("upper_e_acute", "É", "É".encode()),
        ("plus", "+", b"+"),
        ("space", " ", b" "),
        ("enter", "\r", b"\r"),
        ("tab", "\t", b"\t"),
        ("shift+tab", None, b"\x1b[Z"),
        ("escape", "\x1b", b"\x1b"),
        ("backspace", "\x7f", b"\x7f"),
        ("ctrl+c", "\x03", b"\x03"),
        ("ctrl+@", "\x00", b"\x00"),
        ("ctrl+space", None, b"\x00"),
        ("ctrl+backslash", "\x1c", b"\x1c"),
        ("ctrl+right_square_bracket", "\x1d", b"\x1d"),
        ("ctrl+underscore", "\x1f", b"\x1f"),
        ("alt+b", None, b"\x1bb"),
        ("alt+full_stop", None, b"\x1b."),
        ("alt+backspace", None, b"\x1b\x7f"),
        ("up", None, b"\x1b[A"),
        ("shift+left", None, b"\x1b[1;2D"),
        ("ctrl+right", None, b"\x1b[1;5C"),
        ("ctrl+shift+end", None, b"\x1b[1;6F"),
        ("f1", None, b"\x1bOP"),
        ("f5", None, b"\x1b[15~"),
        ("f12", None, b"\x1b[24~"),
        ("delete", None, b"\x1b[3~"),
        ("ctrl+delete", None, b"\x1b[3;5~"),
        ("pageup", None, b"\x1b[5~"),
        ("caps_lock", None, b""),
    ],
)
def test_keys(key: str, character: str | None, sent: bytes) -> None:
    assert key_bytes(key, character, PLAIN) == sent


def test_keys_in_modes_of_the_program() -> None:
    assert key_bytes("up", None, Modes(application_cursor=True)) == b"\x1bOA"
    assert key_bytes("ctrl+up", None, Modes(application_cursor=True)) == b"\x1b[1;5A"
    kitty = Modes(disambiguates_keys=True)
    assert key_bytes("escape", "\x1b", kitty) == b"\x1b[27u"
    assert key_bytes("ctrl+a", "\x01", kitty) == b"\x1b[97;5u"
    assert key_bytes("alt+x", None, kitty) == b"\x1b[120;3u"
    assert key_bytes("enter", "\r", kitty) == b"\r"


def test_a_paste_cannot_end_itself() -> None:
    hostile = "one\r\ntwo\x1b[201~\x03rm -rf /\tx"
    assert paste_bytes(hostile, Modes(bracketed_paste=True)) == b"\x1b[200~one\ntwo[201~rm -rf /\tx\x1b[201~"
    assert paste_bytes("one\ntwo", PLAIN) == b"one\rtwo"


def test_the_mouse_is_reported_as_far_as_the_program_wants_it() -> None:
    clicks, drags, moves = Modes(mouse_clicks=True), Modes(mouse_drags=True), Modes(mouse_moves=True, sgr_mouse=True)
    assert mouse_bytes(0, 4, 2, PLAIN) == b""
    assert mouse_bytes(0, 4, 2, clicks) == b"\x1b[M %#"
    assert mouse_bytes(0, 4, 2, clicks, pressed=False) == b"\x1b[M#%#"
    assert mouse_bytes(0, 300, 2, clicks) == b""
    assert mouse_bytes(MOVED, 4, 2, clicks) == b""
    assert mouse_bytes(MOVED, 4, 2, drags) == b"\x1b[M@%#"
    assert mouse_bytes(MOVED + RELEASED, 4, 2, drags) == b""
    assert mouse_bytes(MOVED + RELEASED, 300, 2, moves) == b"\x1b[<35;301;3M"
    assert mouse_bytes(WHEEL_UP, 0, 0, moves) == b"\x1b[<64;1;1M"
    assert mouse_bytes(2, 0, 0, moves, pressed=False) == b"\x1b[<2;1;1m"
