"""The key map: the default keys of the actions, replaced by those that the user chose in config.toml.

Converts between Textual's names of keys and the names that users read and write: `Ctrl-x`, `?`, `F5`, `Enter`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from textual.keys import Keys
from textual.keys import _character_to_key as name_of_character  # Textual has no public function for it

from cockpit.errors import SpecErrors
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe
from cockpit.tui.actions.all import ACTIONS, BY_ID, current_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cockpit.tui.action import Action


def with_keys(chosen: Mapping[str, Sequence[str]]) -> tuple[Action, ...]:
    """Return all actions with the user's keys, which are given by action id and written as in `Ctrl-x`.

    Raises `SpecErrors` with every error: an unknown action or key, a key that moves the cursor, a control chord for a
    destructive action, a key that two actions of one view share.
    """
    errors = [error for name, keys in chosen.items() for error in _errors(name, keys)]
    # First each key by itself, then all together: an unknown key cannot clash.
    if errors:
        raise SpecErrors(errors)
    by_id = {current_id(name): keys for name, keys in chosen.items()} | {
        # An action that is configured by its former id too has the keys of today's.
        name: keys
        for name, keys in chosen.items()
        if name in BY_ID
    }
    actions = tuple(action._replace(keys=_keys(by_id.get(action.id), action.keys)) for action in ACTIONS)
    if clashes := list(_clashes(actions)):
        raise SpecErrors(clashes)
    return actions


def _keys(chosen: Sequence[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    return default if chosen is None else tuple(key for text in chosen if (key := key_of(text)) is not None)


def _errors(name: str, keys: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the keys that the user chose for one action."""
    action = BY_ID.get(current_id(name))
    if action is None:
        hint = nearest(name, BY_ID)
        known = f"did you mean {hint}?" if hint else f"known are {', '.join(BY_ID)}"
        yield f"keys.{safe(name)}: is no action; {known}"
        return
    for text in keys:
        key = key_of(text)
        if key is None:
            yield f'keys.{name}: "{safe(text)}" is no key; write one as x, X, ?, F5, Enter, Space or Ctrl-x'
        elif key in MOVING:
            yield f'keys.{name}: "{safe(text)}" moves the cursor or marks rows in every list; choose another key'
        elif action.danger and key.startswith(CHORD):
            yield f'keys.{name}: "{safe(text)}" is a chord of tmux, vim or the shell, and this destroys; choose another'


def _clashes(actions: Sequence[Action]) -> Iterator[str]:
    """Yield an error for each pair of actions that have the same key in some view."""
    owners: dict[tuple[str, str], str] = {}
    reported: set[tuple[str, str]] = set()
    for action in actions:
        for view, key in ((view, key) for key in action.keys for view in sorted(action.views)):
            # Two actions may share a key if no view has both. One error for each pair: they may share many views.
            other = owners.setdefault((view, key), action.id)
            if other != action.id and (other, action.id) not in reported:
                reported.add((other, action.id))
                yield f'keys: {other} and {action.id} both want "{key_name(key)}"; choose another for one of them'


_SHOWN = {  # Textual's names of keys that users know by another
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "plus": "+",
    "minus": "-",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "equals_sign": "=",
    "percent_sign": "%",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left": "Left",
    "right": "Right",
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "tab": "Tab",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}
# What users write besides the names that are shown.
_WRITTEN = {"esc": "escape", "return": "enter", "pgup": "pageup", "pgdn": "pagedown", "del": "delete"}
# The last character is the key itself, also where it is a hyphen or a plus: `Ctrl--` is control and minus.
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


def names_of_keys(actions: Sequence[Action]) -> dict[str, str]:
    """Return the first key of each action that has one, by action id, as users read it."""
    return {action.id: key_name(action.keys[0]) for action in actions if action.keys}


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
        # A terminal sends the same byte for Ctrl-x and Ctrl-X, and Textual knows only the small letter.
        named = modifiers + name_of_character(name)
        return modifiers + name.lower() if CHORD in modifiers and named not in _NAMED else named
    known = name.lower() in _NAMED or name.lower() in _SHOWN
    return modifiers + name.lower() if known else None
