"""What the command line offers while the user types: actions with their reasons, and the arguments of commands.

Commands that the shell has too are completed by the parser that reads them there (`completing.py`); the values are
those on the screen, so that nothing is fetched for a letter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cockpit.headless import catalogue_words, node_words, typed_line
from cockpit.headless.completing import Completion, place_behind
from cockpit.headless.registry import VERBS
from cockpit.model.spec import PriorityWord
from cockpit.present.filter_words import filter_words
from cockpit.present.folding import id_text
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED
from cockpit.tui.actions.all import action_named, command_name
from cockpit.tui.commands import COMMAND_HELP, is_about_jobs, job_words_known, unknown_sentence
from cockpit.tui.controllers import directives
from cockpit.tui.controllers.jobs import SCALE, TIME_LIMIT
from cockpit.tui.palette_entries import rows_named
from cockpit.tui.views.all import NODES, QUEUES
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.widgets.entry import Candidate, Suggestions

if TYPE_CHECKING:
    from argparse import Action as Argument
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cockpit.model.jobrow import JobRow
    from cockpit.tui.action import Action, ActionContext
    from cockpit.tui.cockpit import Cockpit

_OWN_CLUSTER: Final = frozenset({"--cluster", "--show-commands", "--request-id", "--help"})
"""Options of the shell's commands that have no use here: the screen is about one cluster, and asks by itself."""
_SHELL_NOUNS: Final = (node_words.NODES, node_words.RESERVATIONS, "reclaim")
_NAMED_NOUNS: Final = (typed_line.NOUN, catalogue_words.NOUN)


def command_offer(app: Cockpit, actions: Sequence[Action], context: ActionContext, text: str) -> Suggestions:
    """Return what may complete the typed command, the likeliest first; else the sentence about the wrong word."""
    line = text.lstrip()
    name, blank, rest = line.partition(" ")
    if not blank:
        return _first_words(app, actions, context, line)
    if name in _NAMED_NOUNS:
        return _offer(line, _named(app, line), "word")
    if name in _SHELL_NOUNS:
        return _offer(line, _of_shell(app, line), "word")
    if name == "filter":
        return Suggestions([each._replace(line=f"filter {each.line}") for each in filter_candidates(app, rest)])
    if name in _VALUES:
        what, known = _VALUES[name]
        return _offer(line, known(app), what, head=f"{name} ")
    action = action_named(name)
    return _of_jobs(app, action, context, rest) if action is not None and is_about_jobs(action) else Suggestions([])


def _of_jobs(app: Cockpit, action: Action, context: ActionContext, text: str) -> Suggestions:
    """Return the jobs that the text names, for an action about jobs: first those for which it is possible."""

    def refusal(row: JobRow) -> str:
        able = app.backend.capabilities_for([row.id])
        return action.refusal(context._replace(chosen=(row,), capabilities=able))

    found = sorted(_jobs(app, command_name(action.id), text, refusal), key=_is_refused)
    known = job_words_known(app) if text.strip() and not found else []
    return Suggestions(found, unknown_sentence(text, known, "job") if nearest(text, known) else "")


def filter_candidates(app: Cockpit, text: str) -> list[Candidate]:
    """Return what may complete a filter of the present view."""
    view, state = app.main_screen.tables.view, app.state
    rows: dict[str, Sequence[Any]] = {
        JOBS.id: list(state.job_rows.list.rows()),
        NODES.id: state.node_rows.rows(),
        QUEUES.id: state.queue_rows.rows(),
    }
    words = filter_words(text, view.table, rows.get(view.id, ()), state.saved_filters(view.id))
    return [Candidate(each.line, safe(each.word), safe(each.about)) for each in words]


def _first_words(app: Cockpit, actions: Sequence[Action], context: ActionContext, text: str) -> Suggestions:
    """Return the actions and commands that begin with the text, then those with such a word in their names, then
    jobs."""
    known = {
        command_name(each.id): Candidate(command_name(each.id), command_name(each.id), each.help, each.refusal(context))
        for each in actions
    }
    known |= {name: Candidate(name, name, about) for name, about in COMMAND_HELP.items()}
    begun = text.casefold()
    whole = [each for each in known.values() if each.word.startswith(begun)]
    parts = [
        each
        for each in known.values()
        if each not in whole and any(part.startswith(begun) for part in each.word.split("-"))
    ]
    # What can be used now first, then the shortest name. Without a text the table's order is the better one.
    order = _usable_and_short if begun else _is_refused
    found = [*sorted(whole, key=order), *sorted(parts, key=order)]
    jobs = list(_jobs(app, "", text)) if text.strip() else []
    return Suggestions(
        [*found, *jobs], "" if found or jobs or not text.strip() else unknown_sentence(text, known, "action")
    )


def _is_refused(candidate: Candidate) -> tuple[bool, int]:
    return bool(candidate.refusal), 0


def _usable_and_short(candidate: Candidate) -> tuple[bool, int]:
    return bool(candidate.refusal), len(candidate.word)


def _jobs(app: Cockpit, action: str, text: str, refusal: Callable[[JobRow], str] = lambda _: "") -> Iterator[Candidate]:
    """Yield the jobs that the text names, for the action of this name or (empty) to go to."""
    for row in rows_named(app, text):
        number = id_text(row)
        about = safe(f"{row.name} · {row.state} · {row.user}")
        yield Candidate(f"{action} {number}".strip(), safe(number), about, refusal(row))


def _offer(line: str, known: Iterable[Completion], what: str, *, head: str = "") -> Suggestions:
    """Return the known words that begin with the last one, else the sentence that names the nearest of them.

    `head`: the text before an argument that may contain blanks; empty: words are apart.
    """
    before = head or line[: line.rfind(" ") + 1]
    last = line.removeprefix(head).lstrip() if head else line[line.rfind(" ") + 1 :]
    words = list(known)
    found = [each for each in words if each.word.casefold().startswith(last.casefold())]
    wrong = bool(last and words and not found and what and nearest(last, [each.word for each in words]))
    return Suggestions(
        [Candidate(f"{before}{word}", safe(word), safe(about)) for word, about in found],
        unknown_sentence(last, [each.word for each in words], what) if wrong else "",
    )


def _named(app: Cockpit, line: str) -> list[Completion]:
    """Return the words of `:accounts` and `:catalogue`: verbs, names, settings, options."""
    noun, *words = line[: line.rfind(" ") + 1].split()
    # Without the word that is being typed, so that a wrong one is compared with all of them.
    head = f"{' '.join([noun, *words])} "
    lines = [
        *typed_line.completions(head, app.state.accounts),
        *catalogue_words.completions(head, app.state.catalogue),
    ]
    options = dict(place_behind([noun, *words]).options) if words else {}
    return [
        Completion(word, VERBS.get(f"{noun} {word}", ("", "", options.get(word, "")))[2])
        for word in (each.rpartition(" ")[2] for each in lines)
    ]


def _of_shell(app: Cockpit, line: str) -> list[Completion]:
    """Return the words that the shell's parser takes next, with the values on the screen."""
    words = line[: line.rfind(" ") + 1].split()
    place = place_behind(words)
    if place.verbs:
        return list(place.verbs)
    found = [each for argument in place.arguments for each in _values(app, argument)]
    return [*found, *(each for each in place.options if each.word not in _OWN_CLUSTER)]


def _values(app: Cockpit, argument: Argument) -> list[Completion]:
    if argument.choices is not None:
        return [Completion(str(each)) for each in argument.choices]
    known = _ON_SCREEN.get(str(argument.metavar))
    return known(app) if known is not None else []


def _nodes(app: Cockpit) -> list[Completion]:
    return [Completion(row.node.name, str(row.node.state)) for row in app.state.node_rows.rows()]


def _users(app: Cockpit) -> list[Completion]:
    return [Completion(user) for user in sorted({row.user for row in app.state.job_rows.list.rows()})]


def _accounts(app: Cockpit) -> list[Completion]:
    shown = app.state.accounts
    rows = () if shown is None else shown.rows
    return [Completion(name) for name in dict.fromkeys(row.association.account for row in rows)]


_ON_SCREEN: Final[dict[str, Callable[[Cockpit], list[Completion]]]] = {
    "NODE": _nodes,
    "N1,N2": _nodes,
    "U": _users,
    "U1,U2": _users,
    "A1,A2": _accounts,
}
"""The values of the shell's arguments by their names in its help."""


def _columns(app: Cockpit) -> list[Completion]:
    view = app.main_screen.tables.view
    return [Completion(column.id, column.help) for column in view.table.columns] if view.is_sorted else []


def _filters(app: Cockpit) -> list[Completion]:
    saved = app.state.saved_filters(app.selection.view_name)
    return [Completion(f"{SAVED}{name}", text) for name, text in saved.items()]


def _factors(app: Cockpit) -> list[Completion]:
    from cockpit.formats.typed_values import weights_text

    weights = app.state.priority_rows.weights
    return [] if weights is None else [Completion(each) for each in weights_text(weights).split(",")]


_LIMITS: Final = (
    Completion("+1h", "one hour longer"),
    Completion("-1h", "one hour shorter"),
    Completion("6h", "six hours from its start"),
)
_WORKERS: Final = (Completion("+1", "one worker more"), Completion("-1", "one worker less"))

_VALUES: Final[dict[str, tuple[str, Callable[[Cockpit], Iterable[Completion]]]]] = {
    "theme": ("theme", lambda app: [Completion(name, each.title) for name, each in app.options.themes.items()]),
    "ctx": ("cluster", lambda app: [Completion(*each) for each in app.options.clusters.items()]),
    "save-filter": ("", _filters),
    "delete-filter": ("saved filter", _filters),
    "priority": ("priority", lambda _: [Completion(str(word)) for word in PriorityWord]),
    "signal": ("signal", lambda _: [Completion(*each) for each in directives.SIGNALS.items()]),
    "sort": ("column", _columns),
    "weights": ("", _factors),
    TIME_LIMIT: ("", lambda _: _LIMITS),
    SCALE: ("", lambda _: _WORKERS),
}
"""What commands take after their name: what it is called (empty: other words are right too), and the known values."""
