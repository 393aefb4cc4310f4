"""`--watch`: a line of JSON for each row that is new, changed or gone."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, TypeVar

from cockpit.headless.output import chosen_columns, chosen_rows, row_filter
from cockpit.headless.records import JSON_VERSION, encoded_lines, record_type, records
from cockpit.headless.services import Call
from cockpit.model.ids import JobId, member_of
from cockpit.model.jobrow import JobRow
from cockpit.model.view import ClusterState
from cockpit.present.columns import Column, Context, TableView
from cockpit.present.folding import own_ids
from cockpit.present.safe import safe
from cockpit.present.tables.events import EVENTS
from cockpit.present.tables.jobs import JOBS

Row = TypeVar("Row")


async def watch_rows(
    call: Call, table: TableView, fetch: Callable[[], Awaitable[Sequence[Row]]], **context: object
) -> None:
    """Print `{"version": 1, "change": "row", "row": {…}}`, and `{"version": 1, "change": "gone", …}` with the columns
    that identify the row, until interrupted. The rows are fetched again whenever something has happened."""
    watched: PrintedRows[Row] = PrintedRows(call, table, **context)
    silence = ""
    async for delta in call.backend.watch_jobs(anything=True):
        silence = _report_silence(call, silence)
        # Rows of a cluster that does not answer would be old ones.
        if delta.loaded and not silence:
            watched.tell(await fetch())


class PrintedRows(Generic[Row]):
    """The rows as they were last printed."""

    def __init__(self, call: Call, table: TableView, **context: object) -> None:
        self._call, self._table, self._context = call, table, context
        self._identity = [column for column in table.columns if column.id in table.identity]
        self._columns = _columns(call, table)
        self._record = record_type(self._columns)
        self._rows: dict[tuple[object, ...], Row] = {}

    def tell(self, fresh: Sequence[Row]) -> None:
        """Print what differs from the last time."""
        now = self._call.context(**self._context)
        chosen = chosen_rows(self._table, fresh, self._call.args, now)
        keys = zip(*(column.json(chosen, now) for column in self._identity), strict=True)
        rows = dict(zip(keys, chosen, strict=True))
        # Compared as rows, not as text: most have not changed, and are then not even formatted.
        changed = [row for key, row in rows.items() if self._rows.get(key) != row]
        names = [column.id for column in self._identity]
        gone = [dict(zip(names, key, strict=True)) for key in self._rows if key not in rows]
        _print_lines(self._call, records(self._record, self._columns, changed, now), gone)
        self._rows = rows


async def watch_events(call: Call, job: JobId | None, rank: int | None = None) -> None:
    """Print events: the last ones, then each new one; none is ever removed."""
    columns = _columns(call, EVENTS)
    record = record_type(columns)
    # The first call asks for the last events, those after it for everything since.
    last, silence = -1, ""
    async for delta in call.backend.watch_jobs(anything=True):
        silence = _report_silence(call, silence)
        if not delta.loaded or silence:
            continue
        came = await call.backend.events(job=job, after=last, limit=call.args.number, rank=rank)
        last = came[-1].seq if came else last
        now = call.context()
        _print_lines(call, records(record, columns, chosen_rows(EVENTS, came, call.args, now), now), [])


async def watch_jobs(call: Call, context: Context, *, several: bool = False) -> None:
    """Print `{"version": 1, "change": "row", "row": {…}}` or `{"version": 1, "change": "gone", "id": 7}` per change.

    A row that stops passing the filter is gone too. `several`: jobs of all clusters, each with the id that it has in
    its own cluster; what is gone names its clusters, as rows do, and silent clusters are reported on stderr.
    """
    # Commands switch it off, since they end soon; this one may run for days.
    gc.enable()
    columns = _columns(call, JOBS)
    matches = row_filter(JOBS, call.args)
    shown: dict[JobId, dict[str, object]] = {}
    silent: set[str] = set()
    silence = ""
    record = record_type(columns)
    async for delta in call.backend.watch_jobs():
        now = call.context(user=context.user)
        rows = [row for row in delta.changed if matches(row, now)]
        # A row that no longer passes the filter is gone for the reader.
        gone = _removed_rows(shown, delta.changed, rows, delta.removed)
        shown.update((row.id, _name(row, several=several)) for row in rows)
        _print_lines(call, records(record, columns, own_ids(rows) if several else rows, now), gone)
        if several:
            silent = await _report_silent_clusters(call, silent)
        else:
            silence = _report_silence(call, silence)


def _report_silence(call: Call, before: str) -> str:
    """Print why the cluster does not answer, and that it answers again, when that changes; return the reason."""
    now = call.backend.silence
    if now and not before:
        call.streams.say(f"The cluster does not answer; the lines above are older: {safe(now)}")
    elif before and not now:
        call.streams.say("The cluster answers again.")
    return now


async def _report_silent_clusters(call: Call, known: set[str]) -> set[str]:
    """Print which clusters do not answer, when that changes."""
    rows = [row for row in await call.backend.clusters() if row.state is ClusterState.SILENT]
    for row in rows:
        if row.name not in known:
            call.streams.say(f"{safe(row.name)} does not answer: {safe(row.reason)}")
    return {row.name for row in rows}


def _name(row: JobRow, *, several: bool) -> dict[str, object]:
    """Return the value that identifies the row."""
    return {"id": member_of(row.id)[1], "clusters": row.clusters} if several else {"id": row.id}


def _columns(call: Call, table: TableView) -> tuple[Column, ...]:
    return chosen_columns(table, call.args) if call.args.columns else table.columns


def _print_lines(call: Call, rows: Iterable[object], gone: Iterable[dict[str, object]]) -> None:
    lines: list[object] = [{"version": JSON_VERSION, "change": "row", "row": row} for row in rows]
    lines += [{"version": JSON_VERSION, "change": "gone", **place} for place in gone]
    if lines:
        call.streams.write(encoded_lines(lines))
        call.streams.flush()


def _removed_rows(
    shown: dict[JobId, dict[str, object]], changed: tuple[JobRow, ...], rows: list[JobRow], removed: tuple[JobId, ...]
) -> list[dict[str, object]]:
    """Return the rows that were shown and are to be removed; they are taken out of `shown`."""
    passing = {row.id for row in rows}
    gone = (*(row.id for row in changed if row.id not in passing), *removed)
    return [shown.pop(job) for job in gone if job in shown]
