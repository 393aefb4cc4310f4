"""The actions of the present view, as the bottom row, the help page and the command palette list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.markup import escape

from cockpit.present.frame import Key
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED
from cockpit.tui.actions.all import command_name
from cockpit.tui.keymap import key_name
from cockpit.tui.parts import HelpEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cockpit.tui.action import Action, ActionContext
    from cockpit.tui.theme import RoleTheme


def names_of_keys(actions: Sequence[Action]) -> dict[str, str]:
    """Return the first key of each action that has one, by action id, as users read it."""
    return {action.id: key_name(action.keys[0]) for action in actions if action.keys}


def bottom_row(actions: Sequence[Action], situation: ActionContext) -> Iterator[Key]:
    """Yield the keys of this view for the bottom row; a key whose action is refused now is not enabled."""
    for action in actions:
        if action.in_row and action.keys and situation.view in action.views:
            yield Key(key_name(action.keys[0]), action.label, not action.refusal(situation), action.id)


def help_entries(actions: Sequence[Action], situation: ActionContext) -> list[HelpEntry]:
    """Return every action of this view that has a key, with the reason why it is refused now."""
    return [
        HelpEntry(tuple(map(key_name, action.keys)), action.label, action.help, action.group, action.refusal(situation))
        for action in actions
        if action.keys and situation.view in action.views
    ]


def palette(
    actions: Sequence[Action],
    situation: ActionContext,
    themes: Mapping[str, RoleTheme],
    saved: Mapping[str, str],
    perform: Callable[[str], None],
    use_theme: Callable[[str], None],
    use_filter: Callable[[str], None],
) -> Iterator[SystemCommand]:
    """Yield every action with its key, or why it is refused now; then every saved filter and every theme."""
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
