"""The accounting tables: ended jobs, as columns to query and as whole records, and the usage of their attempts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.views.spending import divided, merged, spans
from cockpit.errors import StoreError
from cockpit.model.accounting import Span, UsageSum
from cockpit.model.job import Job
from cockpit.store.codec import checksum_of, unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from cockpit.model.ids import JobId, Millis
    from cockpit.store.database import Database

LARGEST_ID = 2**63 - 1
"""The largest integer that SQLite holds."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Job)

COLUMNS = (
    *("id", "name", "user", "uid", "project", "state", "end_cause", "submitted_at", "started_at", "ended_at"),
    *("exit_code", "nodes", "cpus", "memory_mib", "card_milli", "job", "checksum"),
)
"""The columns of an ended job's row, in order."""

_INSERT = f"INSERT OR REPLACE INTO ended_jobs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - constants
_NEWEST = """
SELECT job FROM ended_jobs WHERE ended_at >= ? AND ended_at < ? ORDER BY ended_at DESC, id DESC LIMIT ?
"""
_NEWEST_OF_USER = """
SELECT job FROM ended_jobs WHERE user = ? AND ended_at >= ? AND ended_at < ? ORDER BY ended_at DESC, id DESC LIMIT ?
"""
SPAN_COLUMNS = (*Span.__struct_fields__, "checksum")
"""The columns of a span's row, in order."""
_INSERT_SPAN = f"INSERT OR REPLACE INTO spans ({', '.join(SPAN_COLUMNS)}) VALUES ({', '.join('?' * len(SPAN_COLUMNS))})"  # noqa: S608 - constants
_WITHIN = """
SELECT user, account, project, qos, sum(card_milli * (until_at - from_at)), sum(cpus * (until_at - from_at)),
    sum(coalesce(above_min_card_milli, 0) * (until_at - from_at))
FROM spans
WHERE until_at > :begins AND until_at <= :ends AND from_at >= :begins
    AND job NOT IN (SELECT value FROM json_each(:besides))
GROUP BY user, account, project, qos
"""
_INTO = """
SELECT job, attempt, user, account, project, qos, from_at, until_at, cpus, card_milli, above_min_card_milli
FROM spans
WHERE until_at > :begins AND until_at <= :ends AND from_at < :begins
    AND job NOT IN (SELECT value FROM json_each(:besides))
"""
# `_INTO` selects attempts that began before the interval in which they ended: few rows, which Python divides among the
# intervals. `_WITHIN` sums up all others in SQLite.


async def record(database: Database, jobs: Sequence[Job]) -> None:
    """Store ended jobs, and the resources that each of their attempts occupied over time."""
    rows = [(*row, checksum_of(*row)) for row in map(_row, jobs)]
    plain_spans = [msgspec.structs.astuple(span) for job in jobs for span in spans(job, job.state_since)]
    span_rows = [(*row, checksum_of(*row)) for row in plain_spans]
    async with database.transaction(durable=False) as connection:
        await connection.executemany(_INSERT, rows)
        await connection.executemany(_INSERT_SPAN, span_rows)


async def find(database: Database, job: JobId) -> Job | None:
    """Return the ended job of this id; None: there is none."""
    if not 0 < job <= LARGEST_ID:
        return None
    rows = await database.fetch("SELECT job FROM ended_jobs WHERE id = ?", (job,))
    return read(rows[0][0]) if rows else None


async def among(database: Database, first: JobId, last: JobId) -> list[Job]:
    """Return the ended jobs with ids from `first` to `last`, in order."""
    rows = await database.fetch("SELECT job FROM ended_jobs WHERE id BETWEEN ? AND ? ORDER BY id", (first, last))
    return [read(text) for (text,) in rows]


async def newest(
    database: Database, *, limit: int, user: str | None, since: Millis | None, until: Millis | None
) -> list[Job]:
    """Return the last `limit` ended jobs, newest first: of one user, and that ended in [`since`, `until`)."""
    within = (_storable(since or 0), LARGEST_ID if until is None else _storable(until), max(0, limit))
    if user is None:
        rows = await database.fetch(_NEWEST, within)
    else:
        rows = await database.fetch(_NEWEST_OF_USER, (user, *within))
    return [read(text) for (text,) in rows]


async def spent(database: Database, edges: Sequence[Millis], besides: Collection[JobId]) -> list[list[UsageSum]]:
    """Return the usage of ended jobs in each interval between two `edges`, without the jobs of `besides`.

    Each interval has queries of its own, between which the journal can write; one query for all would block it.
    The interval after the last edge is queried too, for attempts that began before it.
    """
    excluded = _encoder.encode(list(besides)).decode()
    within: list[list[UsageSum]] = []
    crossing: list[Span] = []
    for begins, ends in pairwise((*map(_storable, edges), LARGEST_ID)):
        parameters = {"begins": begins, "ends": ends, "besides": excluded}
        within.append([UsageSum(*row) for row in await database.fetch(_WITHIN, parameters)])
        crossing += [Span(*row) for row in await database.fetch(_INTO, parameters)]
    return [merged((*both[0], *both[1])) for both in zip(within, divided(crossing, edges), strict=False)]


def _storable(at: int) -> int:
    """Return the moment, or the nearest one that SQLite holds: those beyond have no job either."""
    return max(-LARGEST_ID, min(at, LARGEST_ID))


def _row(job: Job) -> tuple[Any, ...]:
    """Return the job's row without its checksum."""
    return (
        job.id,
        job.spec.name,
        job.submitter.name,
        job.submitter.uid,
        job.project,
        job.state,
        job.end_cause,
        job.submitted_at,
        _started_at(job),
        job.state_since if job.ended_at is None else job.ended_at,
        None if job.exit is None else job.exit.shell_code,
        *_resources(job),
        _encoder.encode(job).decode(),
    )


def _started_at(job: Job) -> int | None:
    """Return when the first container of the last attempt started; None: none did."""
    replicas = job.attempt.replicas if job.attempt else ()
    return min((replica.started_at for replica in replicas if replica.started_at is not None), default=None)


def _resources(job: Job) -> tuple[int, int, int, int]:
    """Return nodes, CPUs, MiB and thousandths of a card over all nodes: as allocated, else as first requested."""
    if job.attempt:
        placement = job.attempt.placement
        return (
            len(placement),
            sum(part.cpus for part in placement),
            sum(part.memory_mib for part in placement),
            sum(part.card_milli for part in placement),
        )
    nodes, per_node = job.spec.nodes, job.spec.specs[0]
    return nodes, nodes * per_node.cpus, nodes * per_node.memory_mib, nodes * per_node.card_milli


def check(row: Sequence[Any]) -> None:
    """Raise `StoreError` if the row does not match its checksum or cannot be decoded; older rows have no checksum."""
    *plain, text, written = row
    if written is not None and checksum_of(*plain, text) != written:
        raise StoreError(f"The record of the ended job {row[0]} does not match its checksum.")
    read(text)


def is_whole_span(row: Sequence[Any]) -> bool:
    """Tell whether a span's row matches its checksum; older rows have none."""
    *plain, above_min, written = row
    # A row that is older than this column has a checksum without it.
    return written is None or checksum_of(*plain, *([] if above_min is None else [above_min])) == written


def read(text: str) -> Job:
    """Decode the record of an ended job. Raises `StoreError` if it cannot be decoded."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, TypeError) as error:
        raise unreadable("record of an ended job", error) from error
