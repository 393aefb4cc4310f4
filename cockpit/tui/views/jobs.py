"""The Jobs view. The poller follows its rows all the time, whatever view is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.capabilities import Ability
from cockpit.present.empty_views import empty_lines
from cockpit.present.job.answer import answer
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, Line, Span
from cockpit.present.tables.jobs import JOBS as JOB_TABLE
from cockpit.present.tables.overview import capacity
from cockpit.present.units import grouped
from cockpit.tui.views.view import View, ViewContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.jobrow import JobRow
    from cockpit.tui.app_state import AppState


def _panel(row: JobRow, context: ViewContext) -> Iterator[Line]:
    state = context.state
    panel = state.panel_context(context.columns, context.lines)._replace(beside=context.beside)
    yield from answer(row, state.details.get(row.id), panel)


def _note(context: ViewContext) -> Iterator[Span]:
    state, jobs = context.state, context.state.job_rows.list
    if (silent := state.cluster_rows.silent()) and context.capabilities.has(Ability.CLUSTERS):
        yield Span(f"   ⚠ {safe(', '.join(silent))}: no answer", "warning")
    if state.loaded and not state.all_came:
        yield Span(f"   {_progress(state)}", MUTED)
    if jobs.mine:
        yield Span("   mine", ACCENT)
    if jobs.sort_column:
        yield Span(f"   by {jobs.sort_column.replace('_', ' ')}{' ▼' if jobs.descending else ' ▲'}", ACCENT)


def _progress(state: AppState) -> str:
    """Return the progress of a list that is loading: `loading, 12 000 of 100 000 jobs so far`."""
    came, overview = len(state.job_rows.list.rows()), state.overview
    # The overview may be older than the list, and count fewer jobs than have come.
    total = sum(overview.jobs_by_state.values()) if overview is not None else 0
    return f"loading, {grouped(came)} {f'of {grouped(total)} ' if total > came else ''}jobs so far"


def _advice(context: ViewContext) -> Iterator[Line]:
    state = context.state
    hidden, sentence = len(state.job_rows.list.rows()), ""
    if state.overview is not None:
        sentence = f"This machine: {capacity([row.node for row in state.node_rows.rows()], state.overview)}."
    return empty_lines(sentence, hidden, context.keys, demo=state.options.pace is not None)


JOBS = View(
    table=JOB_TABLE,
    title="Jobs",
    rows=lambda state: state.job_rows,
    key="1",
    action="jobs",
    help="Show the list of jobs",
    hint="state:queued user:me cards>=4 wait>2h name~bert !spot",
    help_title="the list of jobs",
    is_sorted=True,
    row=lambda rows, row_id: rows.folds.speaker(row_id),  # a folded array's row shows one of its tasks
    panel=_panel,
    panel_beside=True,
    note=_note,
    advice=_advice,
)
