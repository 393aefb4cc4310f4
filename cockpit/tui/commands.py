"""The command line: actions by name, a view, a theme, a filter, a job's number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.formats.weighttext import read_weights
from cockpit.model.spec import PriorityWord
from cockpit.present.filters import compile_filter
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED
from cockpit.present.tables.cards import CARDS
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.nodes import NODES
from cockpit.present.tables.priority import PRIORITY
from cockpit.tui.actions import ACTIONS, called, command_name
from cockpit.tui.deeds import prioritise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.tui.face import Face

VI_WORDS = {"ctx": "cluster", "q": "quit", "q!": "quit", "wq": "quit", "h": "help"}
"""Short words that people's fingers know; none of them destroys."""
MOST_DIGITS = 12
"""Of a number that is taken for a priority at all."""


def completions(app: Face) -> Sequence[str]:
    """What Tab completes; the shortest of several."""
    names = sorted((command_name(action.id) for action in ACTIONS), key=len)
    saved = (f"filter {SAVED}{name}" for name in app.saved_filters())
    words = (f"priority {word}" for word in PriorityWord)
    return [
        *names,
        *words,
        *(f"theme {name}" for name in app.themes),
        *(f"ctx {name}" for name in app.clusters),
        *saved,
    ]


def run_command(app: Face, text: str) -> None:
    """Do what was typed, or say what is near it."""
    words = VI_WORDS.get(text.strip(), text.strip())
    name, _, rest = words.partition(" ")
    if name == "theme" and rest:
        _theme(app, rest.strip())
    elif name == "filter" and rest:
        app.main_view.filter(rest.strip())
    elif name in {"save-filter", "delete-filter"} and rest:
        (_save_filter if name == "save-filter" else _delete_filter)(app, rest.strip().removeprefix(SAVED))
    elif name == "priority" and rest:
        _priority(app, rest.strip())
    elif name == "weights" and rest:
        _weights(app, rest)
    elif name == "ctx" and rest:
        _cluster(app, rest.strip())
    elif words.isdigit():
        app.go_to(int(words))
    elif (action := called(words)) is not None:
        app.perform(action.id)
    elif words:
        _unknown(app, words, [command_name(each.id) for each in ACTIONS], "action")


def _save_filter(app: Face, name: str) -> None:
    """Whatever is shown now, under this name. A filter that names itself could never be read again."""
    view, text = app.view_name, app.main_view.filter_text
    table = {each.name: each for each in (JOBS, NODES, CARDS, PRIORITY)}.get(view)
    if table is None or not text:
        app.perform("save_filter")
        return
    known = {**app.filters.of(view), name: text}
    compile_filter(text, table, saved=lambda _: known)
    app.filters.save(view, name, text)
    app.notify(f"saved as {SAVED}{name}")


def _delete_filter(app: Face, name: str) -> None:
    known = app.filters.of(app.view_name)
    if name in known:
        app.filters.delete(app.view_name, name)
        app.notify(f"deleted {SAVED}{name}: {safe(known[name])}")
    else:
        _unknown(app, name, list(known), "saved filter")


def _cluster(app: Face, name: str) -> None:
    if name in app.clusters:
        app.go_to_cluster(name)
    else:
        _unknown(app, name, list(app.clusters), "cluster")


def _priority(app: Face, text: str) -> None:
    """Of the chosen jobs: a word, or an administrator's number."""
    if text in set(PriorityWord):
        wanted: PriorityWord | int = PriorityWord(text)
    elif text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS:
        wanted = int(text)
    else:
        _unknown(app, text, list(PriorityWord), "priority")
        return
    app.perform("priority", lambda face: prioritise(face, face.chosen_rows(), wanted))


def _weights(app: Face, text: str) -> None:
    """Tried out in the Priority view."""
    changes = read_weights(text)
    app.perform("priorities")
    app.try_weights(changes)


def _theme(app: Face, name: str) -> None:
    if name in app.themes:
        app.use_theme(name)
    else:
        _unknown(app, name, list(app.themes), "theme")


def _unknown(app: Face, word: str, known: Sequence[str], what: str) -> None:
    hint = nearest(word, known)
    more = f"did you mean {hint}?" if hint else "Tab completes, ? lists them."
    app.notify(f"There is no {what} {safe(word)}; {more}", severity="warning")
