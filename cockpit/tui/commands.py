"""The command line: actions by name, a view, a theme, a filter, a job's number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.nearest import nearest
from cockpit.present.safe import safe
from cockpit.tui.actions import ACTIONS, called, command_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.tui.face import Face

VI_WORDS = {"q": "quit", "q!": "quit", "wq": "quit", "h": "help"}
"""Short words that people's fingers know; none of them destroys."""


def completions(app: Face) -> Sequence[str]:
    """What Tab completes; the shortest of several."""
    names = sorted((command_name(action.id) for action in ACTIONS), key=len)
    return [*names, *(f"theme {name}" for name in app.themes)]


def run_command(app: Face, text: str) -> None:
    """Do what was typed, or say what is near it."""
    words = VI_WORDS.get(text.strip(), text.strip())
    name, _, rest = words.partition(" ")
    if name == "theme" and rest:
        _theme(app, rest.strip())
    elif name == "filter" and rest:
        app.main_view.filter(rest.strip())
    elif words.isdigit():
        app.go_to(int(words))
    elif (action := called(words)) is not None:
        app.perform(action.id)
    elif words:
        _unknown(app, words, [command_name(each.id) for each in ACTIONS], "action")


def _theme(app: Face, name: str) -> None:
    if name in app.themes:
        app.use_theme(name)
    else:
        _unknown(app, name, list(app.themes), "theme")


def _unknown(app: Face, word: str, known: Sequence[str], what: str) -> None:
    hint = nearest(word, known)
    more = f"did you mean {hint}?" if hint else "Tab completes, ? lists them."
    app.notify(f"There is no {what} {safe(word)}; {more}", severity="warning", markup=False)
