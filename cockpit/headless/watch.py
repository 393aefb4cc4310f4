"""`--watch`: a line of JSON for each row that is new, changed or gone."""

from __future__ import annotations

import gc
from typing import Any

from cockpit.headless.output import chosen_columns, row_filter
from cockpit.headless.records import JSON_VERSION, encoded_lines, record_type, records
from cockpit.headless.services import Call
from cockpit.model.ids import JobId
from cockpit.model.view import JobRow
from cockpit.present.columns import Context
from cockpit.present.tables.jobs import JOBS


async def watch_jobs(call: Call, context: Context) -> None:
    """`{"version": 1, "change": "row", "row": {…}}` and `{"version": 1, "change": "gone", "id": 7}` until interrupted.

    A row that stops passing the filter is gone too.
    """
    gc.enable()
    columns = chosen_columns(JOBS, call.args) if call.args.columns else JOBS.columns
    matches = row_filter(JOBS, call.args)
    shown: set[JobId] = set()
    record = record_type(columns)
    async for delta in call.backend.watch_jobs():
        now = call.context(user=context.user)
        rows = [row for row in delta.changed if matches(row, now)]
        gone = _gone(shown, delta.changed, rows, delta.removed)
        shown.update(row.id for row in rows)
        changes: list[Any] = [
            {"version": JSON_VERSION, "change": "row", "row": row} for row in records(record, columns, rows, now)
        ]
        changes += [{"version": JSON_VERSION, "change": "gone", "id": job} for job in gone]
        call.streams.write(encoded_lines(changes))
        call.streams.flush()


def _gone(
    shown: set[JobId], changed: tuple[JobRow, ...], rows: list[JobRow], removed: tuple[JobId, ...]
) -> list[JobId]:
    """Ids that were shown and are not to be shown any more; they leave `shown`."""
    passing = {row.id for row in rows}
    gone = [job for job in (*(row.id for row in changed if row.id not in passing), *removed) if job in shown]
    shown.difference_update(gone)
    return gone
