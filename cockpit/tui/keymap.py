"""The key map: the default keys of the actions, replaced by those that the user chose in config.toml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.errors import SpecErrors
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe
from cockpit.tui.actions.all import ACTIONS, BY_ID
from cockpit.tui.keys import CHORD, MOVING, key_name, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cockpit.tui.action import Action


def with_keys(chosen: Mapping[str, Sequence[str]]) -> tuple[Action, ...]:
    """Return all actions with the user's keys, which are given by action id and written as in `Ctrl-x`.

    Raises `SpecErrors` with every error: an unknown action or key, a key that moves the cursor, a control chord for a
    destructive action, a key that two actions of one view share.
    """
    errors = [error for name, keys in chosen.items() for error in _errors(name, keys)]
    if errors:
        raise SpecErrors(errors)
    actions = tuple(action._replace(keys=_keys(chosen.get(action.id), action.keys)) for action in ACTIONS)
    if clashes := list(_clashes(actions)):
        raise SpecErrors(clashes)
    return actions


def _keys(chosen: Sequence[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    return default if chosen is None else tuple(key for text in chosen if (key := key_of(text)) is not None)


def _errors(name: str, keys: Sequence[str]) -> Iterator[str]:
    if name not in BY_ID:
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
        elif BY_ID[name].danger and key.startswith(CHORD):
            yield f'keys.{name}: "{safe(text)}" is a chord of tmux, vim or the shell, and this destroys; choose another'


def _clashes(actions: Sequence[Action]) -> Iterator[str]:
    """Yield an error for each pair of actions that have the same key in some view."""
    owners: dict[tuple[str, str], str] = {}
    reported: set[tuple[str, str]] = set()
    for action in actions:
        for view, key in ((view, key) for key in action.keys for view in sorted(action.views)):
            other = owners.setdefault((view, key), action.id)
            if other != action.id and (other, action.id) not in reported:
                reported.add((other, action.id))
                yield f'keys: {other} and {action.id} both want "{key_name(key)}"; choose another for one of them'
