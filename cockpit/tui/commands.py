"""The command line: actions by name, a view, a theme, a filter, a job's number."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cockpit.formats.typed_values import LIMIT_EXPECTED, read_limit, read_priority, read_weights
from cockpit.model.ids import JobId, job_words
from cockpit.model.spec import PriorityWord
from cockpit.model.text import is_whole
from cockpit.present.filters import compile_filter
from cockpit.present.folding import group_of, id_text
from cockpit.present.nearest import nearest
from cockpit.present.references import parse_reference
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED
from cockpit.tui.action import NO_JOB, ActionContext
from cockpit.tui.actions.all import ACTIONS, action_named, command_name
from cockpit.tui.controllers import accounts, catalogue, directives, lab, nodes, panes
from cockpit.tui.controllers.jobs import SCALE, TIME_LIMIT, prioritise, scale, set_limit
from cockpit.tui.views.all import VIEWS
from cockpit.tui.views.jobs import JOBS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from cockpit.tui.action import Action
    from cockpit.tui.cockpit import Cockpit

VI_WORDS = {"ctx": "cluster", "q": "quit", "q!": "quit", "wq": "quit", "h": "help"}
"""Short commands that users of vi and k9s type; none of them destroys anything."""


MOST_COMPARED: Final = 500
"""Largest number of names with which a wrong one is compared: all of a long list would take seconds."""
MOST_NAMED: Final = 5
"""Largest number of ids that a sentence about jobs of one name lists."""


def run_command(app: Cockpit, text: str) -> None:
    """Run the typed command, or show a toast with the nearest known one."""
    # Commands with words come first: `priority` and others are also actions, which ask for the words. Jobs come before
    # actions, as no action has the form of a job's id; a job with the name of an action is left to its number.
    words = VI_WORDS.get(text.strip(), text.strip())
    name, _, rest = words.partition(" ")
    if rest.strip() and name in _WITH_WORDS:
        _WITH_WORDS[name](app, rest.strip())
    elif is_whole(words):
        _go_to(app, int(words))
    elif (job := _job_named(app, words)) is not None:
        _go_to(app, job)
    elif (action := action_named(words)) is not None:
        app.dispatcher.perform(action.id)
    elif (about := action_named(name)) is not None and is_about_jobs(about):
        _perform_on(app, about, rest.strip())
    elif words:
        _unknown(app, words, [command_name(each.id) for each in ACTIONS], "action")


def _job_named(app: Cockpit, words: str) -> int | None:
    """Return the job with this id as lists show it, or the only one of this name: `34_1`, `34_[0-3]`, `train`.

    For an array this is its first task. An action of the same name takes precedence: None.
    """
    if action_named(words) is not None:
        return None
    rows = app.state.job_rows.list.rows()
    ref = parse_reference(words)
    shown = f"{ref.job}_{ref.tasks[0]}" if ref is not None and ref.tasks else words
    if (named_id := next((row.id for row in rows if id_text(row) == shown), None)) is not None:
        return named_id
    # By group: the tasks of an array have one name, and are one job to the user.
    named: dict[JobId, JobId] = {}
    for row in rows:
        if row.name == words:
            named.setdefault(group_of(row) or row.id, row.id)
    return next(iter(named.values())) if len(named) == 1 else None


def _go_to(app: Cockpit, number: int) -> None:
    """Put the cursor on the job with this number, or show a toast where the list lacks it."""
    job, rows = JobId(number), app.state.job_rows
    row_id = rows.folds.shown_as(job)
    if rows.place(row_id) is None:
        hidden = "is filtered out; Esc shows them all" if rows.row(job) else "is not on the list"
        app.notify(f"Job {job_words(number)} {hidden}.", severity="warning")
        return
    app.dispatcher.perform("jobs")
    app.main_screen.tables.jobs.move_to(row_id)


def is_about_jobs(action: Action) -> bool:
    """Return whether the action needs jobs, so that the command line may name one: `cancel 4711`, `logs train`."""
    # Asked of the action itself, with no job chosen, rather than written down a second time.
    return JOBS.id in action.views and action.why_not(ActionContext(JOBS.id, (), "")) == NO_JOB


def job_words_known(app: Cockpit) -> Sequence[str]:
    """Return names of jobs with which a wrong one is compared."""
    names = dict.fromkeys(row.name for row in app.state.job_rows.list.rows())
    return list(islice(names, MOST_COMPARED))


def _perform_on(app: Cockpit, action: Action, name: str) -> None:
    """Go to the job of this id or name, and perform the action on it alone."""
    number = int(name) if is_whole(name) else _job_named(app, name)
    rows = app.state.job_rows
    if number is None:
        if named := [id_text(row) for row in rows.list.rows() if row.name == name]:
            ids = ", ".join(named[:MOST_NAMED])
            app.notify(f"{len(named)} jobs are called {safe(name)}; type the id of one: {ids}.", severity="warning")
        else:
            _unknown(app, name, job_words_known(app), "job")
        return
    if (
        rows.place(JobId(number)) is None
        and rows.row(JobId(number)) is not None
        and rows.place(rows.folds.shown_as(JobId(number))) is not None
    ):
        # The folded row stands for the whole array: the action would concern more than what was named.
        app.notify(
            f"Job {safe(name)} is part of a folded array: go there and press z to unfold it.", severity="warning"
        )
        return
    _go_to(app, number)
    if app.main_screen.tables.jobs.cursor_id == number:
        # Marks of other jobs would come before the one that was named.
        app.main_screen.tables.jobs.clear_marks()
        app.dispatcher.perform(action.id)


def _sort(app: Cockpit, column: str) -> None:
    """Sort the present view by this column; by the present one again: reverse the order."""
    view = app.main_screen.tables.view
    known = [each.id for each in view.table.columns]
    if view.is_sorted and column not in known:
        _unknown(app, column, known, "column")
    else:
        app.dispatcher.perform("sort", lambda app: app.main_screen.arrangement.sort_by(column))


def _save_filter(app: Cockpit, name: str) -> None:
    """Save the present filter under this name. Raises `FilterError` where it names itself: it could never be read."""
    name = name.removeprefix(SAVED)
    view, text = VIEWS.get(app.selection.view_name), app.main_screen.entry_line.filter_text
    # The action says why: that this is no list, or that nothing is filtered.
    if view is None or not text:
        app.dispatcher.perform("save_filter")
        return
    # Compiled as if it were saved already, so that a filter that would contain itself is refused.
    known = {**app.options.filters.of(view.id), name: text}
    compile_filter(text, view.table, saved=lambda _: known)
    app.options.filters.save(view.id, name, text)
    app.notify(f"saved as {SAVED}{name}")


def _delete_filter(app: Cockpit, name: str) -> None:
    name = name.removeprefix(SAVED)
    known = app.options.filters.of(app.selection.view_name)
    if name in known:
        app.options.filters.delete(app.selection.view_name, name)
        app.notify(f"deleted {SAVED}{name}: {safe(known[name])}")
    else:
        _unknown(app, name, list(known), "saved filter")


def _cluster(app: Cockpit, name: str) -> None:
    if name in app.options.clusters:
        app.go_to_cluster(name)
    else:
        _unknown(app, name, list(app.options.clusters), "cluster")


def _priority(app: Cockpit, text: str) -> None:
    """Set the priority of the chosen jobs: a word, or an administrator's number or addition."""
    if (wanted := read_priority(text)) is None:
        _unknown(app, text, list(PriorityWord), "priority")
        return
    app.dispatcher.perform("priority", lambda app: prioritise(app, app.selection.chosen_rows(), wanted))


def _open_imported(app: Cockpit, path: str) -> None:
    """Open the form of a new job with the job in this file."""
    from cockpit.tui.controllers.editing import write_imported

    app.dispatcher.perform("new", lambda app: write_imported(app, Path(path).expanduser()))


def _time_limit(app: Cockpit, text: str) -> None:
    """Set or change the time limit of the chosen jobs."""
    if (wanted := read_limit(text)) is None:
        app.notify(f"{safe(text)} is no time limit; write {LIMIT_EXPECTED}.", severity="warning")
        return
    app.dispatcher.perform("time_limit", lambda app: set_limit(app, app.selection.chosen_rows(), wanted))


def _weights(app: Cockpit, text: str) -> None:
    """Show the order under these weights in the Priority view."""
    changes = read_weights(text)
    app.dispatcher.perform("priorities")
    app.poller.try_weights(changes)


def _theme(app: Cockpit, name: str) -> None:
    if name in app.options.themes:
        app.use_theme(name)
    else:
        _unknown(app, name, list(app.options.themes), "theme")


def _unknown(app: Cockpit, word: str, known: Iterable[str], what: str) -> None:
    app.notify(unknown_sentence(word, known, what), severity="warning")


def unknown_sentence(word: str, known: Iterable[str], what: str) -> str:
    """Return the sentence that there is no such action, theme …, with the nearest one that there is."""
    hint = nearest(word, known)
    more = f"did you mean {safe(hint)}?" if hint else "Tab completes, ? lists them."
    return f"There is no {what} {safe(word)}; {more}"


def _performing(
    action_id: str, run: Callable[[Cockpit, str], Awaitable[None] | None]
) -> Callable[[Cockpit, str], None]:
    """Return the command that performs this action with the typed words, which a key would ask for."""
    return lambda app, text: app.dispatcher.perform(action_id, lambda app: run(app, text))


# What changes jobs goes through `perform` or `change`, which check rights, read-only mode and what the cluster can do.
_WITH_WORDS: Final[dict[str, Callable[[Cockpit, str], None]]] = {
    "theme": _theme,
    "sort": _sort,
    "filter": lambda app, text: app.main_screen.entry_line.filter(text),
    "save-filter": _save_filter,
    "delete-filter": _delete_filter,
    "accounts": accounts.run_words,
    "catalogue": catalogue.run_words,
    "nodes": nodes.words_of("nodes"),
    "reservations": nodes.words_of("reservations"),
    "reclaim": nodes.reclaim_words,
    "new": _open_imported,
    "priority": _priority,
    TIME_LIMIT: _time_limit,
    SCALE: _performing("scale", scale),
    "signal": _performing("signal", directives.send_signal),
    directives.DEBUG: _performing("debug", directives.debug),
    directives.UPDATE: _performing("update", directives.update),
    panes.RECORD_COMMAND: _performing("record_terminal", panes.record_to),
    "submit": _performing("new", directives.submit_file),
    "weights": _weights,
    "lab": _performing("lab", lab.show_lab),
    "ctx": _cluster,
}
"""The commands that take words after their name."""

COMMAND_HELP: Final = {
    "accounts": "Add, change or remove accounts, users and QOS",
    "catalogue": "Add, change or remove entries of the catalogue",
    "ctx": "Switch to another cluster",
    "delete-filter": "Delete a saved filter",
    "reservations": "Reserve nodes, or end a reservation",
    "submit": "Submit a job file as it is",
}
"""The commands that are no actions, or take more than the action of their name, and what they do."""
