"""Keys, pastes and the mouse as the bytes that a terminal sends to the program in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from textual.keys import _character_to_key as name_of_character  # Textual has no public function for it

if TYPE_CHECKING:
    from cockpit.tui.emulator.base import Modes

ESCAPE: Final = "\x1b"
_LETTERS: Final = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_FIRST_FUNCTION_KEYS: Final = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_NUMBERS: Final = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6} | {
    f"f{key}": number
    for key, number in zip(range(5, 21), (15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34), strict=True)
}
_PLAIN: Final = {"enter": "\r", "tab": "\t", "escape": ESCAPE, "backspace": "\x7f", "space": " "}
_CODES: Final = {"enter": 13, "tab": 9, "escape": 27, "backspace": 127, "space": 32}
_BY_NAME: Final = {name_of_character(char): char for char in map(chr, range(33, 127))}
"""Characters by Textual's names of their keys, such as `right_square_bracket`."""
_MODIFIERS: Final = {"shift": 1, "alt": 2, "ctrl": 4}
PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
_NOT_IN_A_PASTE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters other than tabs and line ends: with them a paste could end itself, and act."""
WHEEL_UP, WHEEL_DOWN = 64, 65
RELEASED, MOVED = 3, 32
_LARGEST_BYTE: Final = 223


def key_bytes(key: str, character: str | None, modes: Modes) -> bytes:
    """Return what the key sends, by Textual's name of it (`ctrl+a`, `shift+up`) and its character; empty: nothing."""
    if character is not None and character.isprintable() and "ctrl+" not in key and "alt+" not in key:
        return character.encode()
    *names, base = key.split("+") if key != "+" else ["+"]
    held = sum(_MODIFIERS.get(name, 0) for name in names)
    return _sequence(base, held, modes).encode()


def _sequence(base: str, held: int, modes: Modes) -> str:
    if base in _LETTERS:
        if held:
            return f"{ESCAPE}[1;{held + 1}{_LETTERS[base]}"
        return f"{ESCAPE}{'O' if modes.application_cursor else '['}{_LETTERS[base]}"
    if base in _FIRST_FUNCTION_KEYS:
        letter = _FIRST_FUNCTION_KEYS[base]
        return f"{ESCAPE}[1;{held + 1}{letter}" if held else f"{ESCAPE}O{letter}"
    if base in _NUMBERS:
        return f"{ESCAPE}[{_NUMBERS[base]}{f';{held + 1}' if held else ''}~"
    if base == "tab" and held == _MODIFIERS["shift"]:
        return f"{ESCAPE}[Z"
    return _character(base, held, modes)


def _character(base: str, held: int, modes: Modes) -> str:
    """Return what a key with a character, or a chord of one, sends."""
    char = _PLAIN.get(base) or _BY_NAME.get(base) or (base if len(base) == 1 else "")
    if not char:
        return ""
    is_chord = bool(held & (_MODIFIERS["ctrl"] | _MODIFIERS["alt"]))
    if modes.disambiguates_keys and (is_chord or base == "escape"):
        return f"{ESCAPE}[{_CODES.get(base) or ord(char.lower())}{f';{held + 1}' if held else ''}u"
    if held & _MODIFIERS["ctrl"]:
        char = _control(char)
    return ESCAPE + char if held & _MODIFIERS["alt"] else char


def _control(char: str) -> str:
    """Return the control character of this key's character; the character itself where it has none."""
    if char in " 2":
        return "\0"
    upper = char.upper()
    if "@" <= upper <= "_":
        return chr(ord(upper) - 64)
    return {"/": "\x1f", "3": ESCAPE, "4": "\x1c", "5": "\x1d", "6": "\x1e", "7": "\x1f", "8": "\x7f", "?": "\x7f"}.get(
        char, char
    )


def paste_bytes(text: str, modes: Modes) -> bytes:
    """Return what pasted text sends: without control characters, marked as a paste where the program wants that."""
    harmless = _NOT_IN_A_PASTE.sub("", text.replace("\r\n", "\n"))
    if modes.bracketed_paste:
        return f"{PASTE_START}{harmless}{PASTE_END}".encode()
    return harmless.replace("\n", "\r").encode()


def mouse_bytes(button: int, column: int, row: int, modes: Modes, *, pressed: bool = True) -> bytes:
    """Return the report of a button (0 to 2), of `WHEEL_UP` or `WHEEL_DOWN`, or with `MOVED` added of a movement.

    Empty: the program does not want it. `column` and `row` count from 0.
    """
    if button & MOVED and button < WHEEL_UP:
        is_drag = button & RELEASED != RELEASED
        if not (modes.mouse_moves or (modes.mouse_drags and is_drag)):
            return b""
    elif not modes.mouse:
        return b""
    if modes.sgr_mouse:
        return f"{ESCAPE}[<{button};{column + 1};{row + 1}{'M' if pressed else 'm'}".encode()
    if max(column, row) + 1 > _LARGEST_BYTE:
        return b""
    code = button if pressed else RELEASED
    return b"\x1b[M" + bytes((32 + code, 33 + column, 33 + row))
