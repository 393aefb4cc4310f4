"""Conversion between Textual's names of keys and the names that users read and write: `Ctrl-x`, `?`, `F5`, `Enter`."""

from __future__ import annotations

import re

from textual.keys import Keys
from textual.keys import _character_to_key as name_of_character

_SHOWN = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "plus": "+",
    "minus": "-",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "equals_sign": "=",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "tab": "Tab",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}
_WRITTEN = {"esc": "escape", "return": "enter", "pgup": "pageup", "pgdn": "pagedown", "del": "delete"}
_MODIFIER = re.compile(r"(ctrl|shift|alt)[-+](?=.)", re.IGNORECASE)
_NAMED = {key.value for key in Keys}

MOVING = frozenset(
    {
        "j",
        "k",
        "g",
        "G",
        "V",
        "space",
        "up",
        "down",
        "left",
        "right",
        "home",
        "end",
        "pageup",
        "pagedown",
        "ctrl+d",
        "ctrl+u",
    }
)
"""Keys that move the cursor or mark rows in every list; no action may take them."""
CHORD = "ctrl+"
"""Prefix of the chords that tmux, vim and shells use."""


def key_name(key: str) -> str:
    """Return the name that users read for Textual's name: `Ctrl-c`, `?`, `F1`, `n`."""
    if key in _SHOWN:
        return _SHOWN[key]
    modifier, plus, rest = key.partition("+")
    if plus and rest:
        return f"{modifier.capitalize()}-{key_name(rest)}"
    return key.upper() if re.fullmatch(r"f\d+", key) else key


def key_of(text: str) -> str | None:
    """Return Textual's name for a key as users write it; None where there is no such key."""
    modifiers = ""
    while match := _MODIFIER.match(text):
        modifiers += f"{match[1].lower()}+"
        text = text[match.end() :]
    name = _WRITTEN.get(text.lower(), text)
    if len(name) == 1:
        return modifiers + (name.lower() if CHORD in modifiers else name_of_character(name))
    known = name.lower() in _NAMED or name.lower() in _SHOWN
    return modifiers + name.lower() if known else None
