"""Textual's names of keys as people write them."""

from __future__ import annotations

import unicodedata

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
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
}


_WRITTEN = {"esc": "escape", "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown"}


def textual_key(written: str) -> str:
    """The other way round, for one key of a script: `Ctrl-d`, `Esc`, `PageDown`, `?`."""
    if len(written) == 1:
        return written
    *modifiers, key = written.replace("+", "-").split("-")
    name = _WRITTEN.get(key.lower(), key if len(key) == 1 else key.lower())
    return "+".join([*(each.lower() for each in modifiers), name])


def key_of(letter: str) -> str:
    """Textual's name of the key that types this letter."""
    if letter.isalnum():
        return letter
    return next((key for key, shown in _SHOWN.items() if shown == letter), _unicode_name(letter))


def _unicode_name(letter: str) -> str:
    return unicodedata.name(letter, "control").lower().replace("-", "_").replace(" ", "_")


def key_name(key: str) -> str:
    """`Ctrl-c`, `?`, `F1`, `n`."""
    if key in _SHOWN:
        return _SHOWN[key]
    if key.startswith("ctrl+"):
        return f"Ctrl-{key_name(key.removeprefix('ctrl+'))}"
    return key.upper() if key[:1] == "f" and key[1:].isdigit() else key
