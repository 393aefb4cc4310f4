"""Textual's names of keys as people write them."""

from __future__ import annotations

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


def key_name(key: str) -> str:
    """`Ctrl-c`, `?`, `F1`, `n`."""
    if key in _SHOWN:
        return _SHOWN[key]
    if key.startswith("ctrl+"):
        return f"Ctrl-{key_name(key.removeprefix('ctrl+'))}"
    return key.upper() if key[:1] == "f" and key[1:].isdigit() else key
