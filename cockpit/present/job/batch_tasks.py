"""The tasks of a batch and the trials of a sweep, for the page of each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.model.job import JobState
from cockpit.present.folding import id_text
from cockpit.present.job_values import elapsed_seconds, state_text
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT, MUTED, STRONG, Line, Span, line, small_table
from cockpit.present.states import GLYPHS
from cockpit.present.tables.jobs import coarse
from cockpit.present.tables.trials import trials_of, values_text
from cockpit.present.units import counted

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.present.columns import Context


TIME_COLUMN: Final = 2


def batch_lines(detail: JobDetail, context: Context) -> Iterator[Line]:
    """Yield harmless lines: the batch's progress, its output folder, and each task; no lines for a job outside
    batches."""
    if not detail.tasks or detail.batch is None or detail.row.array is None:
        return
    number = detail.row.array.array
    yield line(Span(f"{INDENT}Batch {number}  ", STRONG), progress_words(detail.tasks))
    # Each task has a folder of its own, whose name ends with the task's number.
    folder = f"{detail.batch.output.rstrip('/')}/{detail.batch.name}-"
    yield line(Span(f"{INDENT}Task {number}_0 writes into {safe(folder)}0, the others beside it.", MUTED))
    rows = [
        (
            f"{id_text(row)}{' ◂' if row.id == detail.row.id else ''}",
            f"{GLYPHS[row.state]} {state_text(row, context)}",
            "" if (seconds := elapsed_seconds(row, context)) is None else coarse(seconds),
            safe(row.command),
        )
        for row in detail.tasks
    ]
    yield from small_table(("TASK", "STATE", "TIME", "RUNS"), rows, right={TIME_COLUMN})


def progress_words(tasks: tuple[JobRow, ...]) -> str:
    """Return the progress of the tasks: `1 of 3 tasks has ended: 1 succeeded, 2 running`."""
    counts = Counter(row.state for row in tasks)
    ended = sum(row.ended_at is not None for row in tasks)
    states = ", ".join(f"{counts[state]} {state}" for state in JobState if counts[state])
    return f"{ended} of {counted(len(tasks), 'task')} {'has' if ended == 1 else 'have'} ended: {states}"


def trial_lines(detail: JobDetail, context: Context) -> Iterator[Line]:
    """Yield harmless lines: the sweep's progress and each trial; no lines for a job outside sweeps."""
    sweep = detail.job.spec.sweep
    if sweep is None or not detail.tasks or detail.row.array is None:
        return
    yield line(Span(f"{INDENT}Sweep {detail.row.array.array}  ", STRONG), progress_words(detail.tasks))
    rows = [
        (
            f"{each.trial}{' ◂' if each.row.id == detail.row.id else ''}",
            values_text(each.parameters),
            f"{GLYPHS[each.row.state]} {state_text(each.row, context)}",
            "" if (seconds := elapsed_seconds(each.row, context)) is None else coarse(seconds),
        )
        for each in trials_of(sweep, list(detail.tasks))
    ]
    yield from small_table(("TRIAL", "PARAMETERS", "STATE", "TIME"), rows, right={3})
