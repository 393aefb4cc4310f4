"""What can be done here and now, as the bottom row, the help and the palette list it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.markup import escape

from cockpit.present.frame import Key
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED
from cockpit.tui.actions.all import command_name
from cockpit.tui.cockpit_base import HelpEntry
from cockpit.tui.keys import key_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cockpit.tui.action import Action, Situation
    from cockpit.tui.theme import RoleTheme


def names_of_keys(actions: Sequence[Action]) -> dict[str, str]:
    """The first key of each action that has one, as people read it."""
    return {action.id: key_name(action.keys[0]) for action in actions if action.keys}


def bottom_row(actions: Sequence[Action], situation: Situation) -> Iterator[Key]:
    """The keys of this view that the row has room for; what cannot be done is not enabled."""
    for action in actions:
        if action.in_row and action.keys and situation.view in action.views:
            yield Key(key_name(action.keys[0]), action.label, not action.refusal(situation), action.id)


def help_entries(actions: Sequence[Action], situation: Situation) -> list[HelpEntry]:
    """Every action of this view that has a key."""
    return [
        HelpEntry(tuple(map(key_name, each.keys)), each.label, each.help, each.group, each.refusal(situation))
        for each in actions
        if each.keys and situation.view in each.views
    ]


def palette(
    actions: Sequence[Action],
    situation: Situation,
    themes: Mapping[str, RoleTheme],
    saved: Mapping[str, str],
    perform: Callable[[str], None],
    use_theme: Callable[[str], None],
    use_filter: Callable[[str], None],
) -> Iterator[SystemCommand]:
    """Every action with its key, and why it cannot be done; every theme."""
    for action in actions:
        key = f"{key_name(action.keys[0])} · " if action.keys else ""
        refusal = action.refusal(situation)
        about = escape(f"not now: {refusal}" if refusal else action.help)
        name = command_name(action.id).replace("-", " ")
        yield SystemCommand(name, f"{key}{about}", lambda action=action: perform(action.id))
    for name, text in sorted(saved.items()):
        yield SystemCommand(f"filter {SAVED}{name}", escape(safe(text)), lambda name=name: use_filter(f"{SAVED}{name}"))
    for name, theme in sorted(themes.items()):
        yield SystemCommand(f"theme {name}", escape(safe(theme.title)), lambda name=name: use_theme(name))
