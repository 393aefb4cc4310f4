"""The command line: actions by name, a view, a theme, a filter, a job's number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from cockpit.formats.typed_values import LIMIT_EXPECTED, read_limit, read_priority, read_weights
from cockpit.headless import account_words, catalogue_words
from cockpit.model.spec import PriorityWord
from cockpit.model.text import is_whole
from cockpit.present.filters import SAVED, compile_filter
from cockpit.present.folding import group_of, id_text
from cockpit.present.nearest import nearest
from cockpit.present.references import parse_reference
from cockpit.present.safe import safe
from cockpit.present.tables.accounting import HOURS
from cockpit.present.tables.accounts import ACCOUNTS
from cockpit.present.tables.cards import CARDS
from cockpit.present.tables.catalogue import CATALOGUE
from cockpit.present.tables.clusters import CLUSTERS
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.nodes import NODES
from cockpit.present.tables.priority import PRIORITY
from cockpit.present.tables.qos import QOS
from cockpit.present.tables.queues import QUEUES
from cockpit.tui.actions.all import ACTIONS, called, command_name
from cockpit.tui.controllers import accounts, catalogue, directives, nodes
from cockpit.tui.controllers.jobs import prioritise
from cockpit.tui.controllers.limits import COMMAND, set_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.ids import JobId
    from cockpit.tui.cockpit_base import CockpitBase

VI_WORDS = {"ctx": "cluster", "q": "quit", "q!": "quit", "wq": "quit", "h": "help"}
"""Short words that people's fingers know; none of them destroys."""
"""Of a number that is taken for a priority at all."""

_FILTERED: Final = {
    each.name: each for each in (JOBS, NODES, CARDS, PRIORITY, ACCOUNTS, QOS, QUEUES, HOURS, CATALOGUE, CLUSTERS)
}
"""Tables whose rows a person filters, by view."""


def completions(app: CockpitBase) -> Sequence[str]:
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


def continuations(app: CockpitBase, text: str) -> Sequence[str]:
    """What a begun command may become: of those about accounts and the catalogue word by word."""
    names = catalogue_words.completions(text, app.catalogue)
    return [*account_words.completions(text, app.accounts), *names]


def run_command(app: CockpitBase, text: str) -> None:
    """Do what was typed, or say what is near it."""
    words = VI_WORDS.get(text.strip(), text.strip())
    name, _, rest = words.partition(" ")
    if rest.strip() and name in _WITH_WORDS:
        _WITH_WORDS[name](app, rest.strip())
    elif is_whole(words):
        app.go_to(int(words))
    elif (job := _named(app, words)) is not None:
        app.go_to(job)
    elif (action := called(words)) is not None:
        app.perform(action.id)
    elif words:
        _unknown(app, words, [command_name(each.id) for each in ACTIONS], "action")


def _named(app: CockpitBase, words: str) -> int | None:
    """The job on the list that has this id as lists show it, or the only one of this name: `34_1`, `34_[0-3]`, `train`.

    Of an array, its first task. An action of the same name goes before it.
    """
    if called(words) is not None:
        return None
    rows = app.job_rows.list.rows()
    ref = parse_reference(words)
    shown = f"{ref.job}_{ref.tasks[0]}" if ref is not None and ref.tasks else words
    if (found := next((row.id for row in rows if id_text(row) == shown), None)) is not None:
        return found
    named: dict[JobId, JobId] = {}
    for row in rows:
        if row.name == words:
            named.setdefault(group_of(row) or row.id, row.id)
    return next(iter(named.values())) if len(named) == 1 else None


def _filter(app: CockpitBase, text: str) -> None:
    app.main_view.filter(text)


def _save_filter(app: CockpitBase, name: str) -> None:
    """Whatever is shown now, under this name. A filter that names itself could never be read again."""
    name = name.removeprefix(SAVED)
    view, text = app.view_name, app.main_view.filter_text
    table = {
        each.name: each for each in (JOBS, NODES, CARDS, PRIORITY, ACCOUNTS, QOS, QUEUES, HOURS, CATALOGUE, CLUSTERS)
    }.get(view)
    if table is None or not text:
        app.perform("save_filter")
        return
    known = {**app.filters.of(view), name: text}
    compile_filter(text, table, saved=lambda _: known)
    app.filters.save(view, name, text)
    app.notify(f"saved as {SAVED}{name}")


def _delete_filter(app: CockpitBase, name: str) -> None:
    name = name.removeprefix(SAVED)
    known = app.filters.of(app.view_name)
    if name in known:
        app.filters.delete(app.view_name, name)
        app.notify(f"deleted {SAVED}{name}: {safe(known[name])}")
    else:
        _unknown(app, name, list(known), "saved filter")


def _cluster(app: CockpitBase, name: str) -> None:
    if name in app.clusters:
        app.go_to_cluster(name)
    else:
        _unknown(app, name, list(app.clusters), "cluster")


def _priority(app: CockpitBase, text: str) -> None:
    """Of the chosen jobs: a word, or an administrator's number or addition."""
    if (wanted := read_priority(text)) is None:
        _unknown(app, text, list(PriorityWord), "priority")
        return
    app.perform("priority", lambda app: prioritise(app, app.chosen_rows(), wanted))


def _bring(app: CockpitBase, path: str) -> None:
    """A file that somebody has already, into the form of a new job."""
    from cockpit.tui.editing import write_brought

    app.perform("new", lambda app: write_brought(app, Path(path).expanduser()))


def _time_limit(app: CockpitBase, text: str) -> None:
    """Of the chosen jobs."""
    if (wanted := read_limit(text)) is None:
        app.notify(f"{safe(text)} is no time limit; write {LIMIT_EXPECTED}.", severity="warning")
        return
    app.perform("time_limit", lambda app: set_limit(app, app.chosen_rows(), wanted))


def _signal(app: CockpitBase, name: str) -> None:
    """To the chosen jobs."""
    app.perform("signal", lambda app: directives.send_signal(app, name))


def _update(app: CockpitBase, text: str) -> None:
    """Of the chosen jobs."""
    app.perform("update", lambda app: directives.update(app, text))


def _submit(app: CockpitBase, file: str) -> None:
    """A job file, or a batch script."""
    app.perform("new", lambda app: directives.submit_file(app, file))


def _weights(app: CockpitBase, text: str) -> None:
    """Tried out in the Priority view."""
    changes = read_weights(text)
    app.perform("priorities")
    app.try_weights(changes)


def _theme(app: CockpitBase, name: str) -> None:
    if name in app.themes:
        app.use_theme(name)
    else:
        _unknown(app, name, list(app.themes), "theme")


def _unknown(app: CockpitBase, word: str, known: Sequence[str], what: str) -> None:
    hint = nearest(word, known)
    more = f"did you mean {hint}?" if hint else "Tab completes, ? lists them."
    app.notify(f"There is no {what} {safe(word)}; {more}", severity="warning")


_WITH_WORDS: Final[dict[str, Callable[[CockpitBase, str], None]]] = {
    "theme": _theme,
    "filter": _filter,
    "save-filter": _save_filter,
    "delete-filter": _delete_filter,
    "accounts": accounts.run_words,
    "catalogue": catalogue.run_words,
    "nodes": nodes.words_of("nodes"),
    "reservations": nodes.words_of("reservations"),
    "new": _bring,
    "priority": _priority,
    COMMAND: _time_limit,
    "signal": _signal,
    directives.UPDATE: _update,
    "submit": _submit,
    "weights": _weights,
    "ctx": _cluster,
}
"""Commands that go on after their name."""
