"""The entries of the palette: every action with its key or the reason why it is refused, and what can be gone to by
name."""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from cockpit.present.folding import id_text
from cockpit.present.saved import SAVED
from cockpit.present.tables.queues import row_id
from cockpit.tui.actions.all import command_name
from cockpit.tui.keymap import key_name
from cockpit.tui.parts import PaletteEntry
from cockpit.tui.views.all import NODES, QUEUES, VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cockpit.model.jobrow import JobRow
    from cockpit.tui.action import Action, ActionContext
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.views.view import View

MOST_JOBS: Final = 50
"""Largest number of jobs that the palette lists for a text: who wants more of them filters the list."""


def palette_entries(app: Cockpit, actions: Sequence[Action], context: ActionContext) -> Iterator[PaletteEntry]:
    """Yield the actions in the order of their table, then filters, themes, clusters, nodes and queues."""
    for action in actions:
        yield _of_action(app, action, context)
    for name, text in sorted(app.state.saved_filters(app.selection.view_name).items()):
        saved = f"{SAVED}{name}"
        yield PaletteEntry(f"filter:{name}", f"filter {saved}", text, partial(app.main_screen.entry_line.filter, saved))
    for name, theme in sorted(app.options.themes.items()):
        yield PaletteEntry(f"theme:{name}", f"theme {name}", theme.title, partial(app.use_theme, name))
    for name, about in app.options.clusters.items():
        yield PaletteEntry(f"cluster:{name}", f"cluster {name}", about, partial(app.go_to_cluster, name))
    state = app.state
    yield from _of_rows(app, NODES, "node", {row.node.name: row.node.name for row in state.node_rows.rows()})
    yield from _of_rows(app, QUEUES, "queue", {row_id(row): row.path for row in state.queue_rows.rows()})


def _of_action(app: Cockpit, action: Action, context: ActionContext) -> PaletteEntry:
    is_elsewhere = context.view not in action.views
    where = ", ".join(dict.fromkeys(view.title for view in VIEWS.values() if view.id in action.views))
    return PaletteEntry(
        f"action:{action.id}",
        command_name(action.id).replace("-", " "),
        action.help,
        partial(app.dispatcher.perform, action.id),
        tuple(map(key_name, action.keys)),
        # An action of the pages alone is in no view of the row of views.
        f"Only in {where or 'the page of a job or node'}." if is_elsewhere else action.refusal(context),
        is_elsewhere,
    )


def _of_rows(app: Cockpit, view: View, noun: str, names: Mapping[str, str]) -> Iterator[PaletteEntry]:
    """Yield the rows of a view by their names; Enter goes to them. `names`: the names by row id."""

    def go_to(place: str) -> None:
        app.dispatcher.perform(view.action)
        app.main_screen.entry_line.show_row(place)

    for place, name in names.items():
        yield PaletteEntry(f"{noun}:{place}", f"{noun} {name}", f"Go to this {noun}", partial(go_to, place))


def jobs_named(app: Cockpit, text: str) -> Iterator[PaletteEntry]:
    """Yield the jobs that the text names; Enter goes to them."""
    for row in rows_named(app, text):
        yield PaletteEntry(
            f"job:{row.id}",
            f"job {id_text(row)} {row.name}",
            f"{row.state} · {row.user}",
            partial(app.dispatcher.run_command, str(int(row.id))),
        )


def rows_named(app: Cockpit, text: str) -> Sequence[JobRow]:
    """Return the first jobs whose id begins with the text, or whose name contains it."""
    wanted = text.strip().casefold()
    if not wanted:
        return ()
    rows = app.state.job_rows.list.rows()
    # Written out in the loops: a hundred thousand jobs are searched at each letter. An id's text is costly to make, and
    # differs from its number only in arrays.
    by_id: Iterable[JobRow] = ()
    if wanted[0].isdigit():
        by_id = (row for row in rows if (id_text(row) if row.array is not None else str(row.id)).startswith(wanted))
    by_name = (row for row in rows if wanted in row.name.casefold())
    found = {row.id: row for row in chain(islice(by_id, MOST_JOBS), islice(by_name, MOST_JOBS))}
    return list(islice(found.values(), MOST_JOBS))
