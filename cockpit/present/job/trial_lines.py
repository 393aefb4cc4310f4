"""The trials of a sweep, for the page of each trial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.present.job.batch_tasks import progress_words
from cockpit.present.job_values import elapsed_seconds, state_text
from cockpit.present.small_table import small_table
from cockpit.present.spans import STRONG, Line, Span, line
from cockpit.present.states import GLYPHS
from cockpit.present.tables.jobs import coarse
from cockpit.present.tables.trials import trials_of, values_text

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail
    from cockpit.present.columns import Context

INDENT: Final = "  "
TIME_COLUMN: Final = 3


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
    yield from small_table(("TRIAL", "PARAMETERS", "STATE", "TIME"), rows, right={TIME_COLUMN})
