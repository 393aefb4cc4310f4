"""Ended jobs: a few columns worth querying, the whole job beside them, and what each attempt of them held."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.views.spending import divided, merged, spans
from cockpit.errors import StoreError
from cockpit.model.accounting import Span, Spent
from cockpit.model.job import Job

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from cockpit.model.ids import JobId, Millis
    from cockpit.store.database import Database

LARGEST_ID = 2**63 - 1
"""The largest integer that SQLite holds."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Job)

_INSERT = """
INSERT OR REPLACE INTO ended_jobs (
    id, name, user, uid, project, state, end_cause, submitted_at, started_at, ended_at, exit_code,
    nodes, cpus, memory_mib, card_milli, job
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_NEWEST = """
SELECT job FROM ended_jobs WHERE ended_at >= ? AND ended_at < ? ORDER BY ended_at DESC, id DESC LIMIT ?
"""
_NEWEST_OF_USER = """
SELECT job FROM ended_jobs WHERE user = ? AND ended_at >= ? AND ended_at < ? ORDER BY ended_at DESC, id DESC LIMIT ?
"""
_INSERT_SPAN = "INSERT OR REPLACE INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WITHIN = """
SELECT user, account, project, qos, sum(card_milli * (until_at - from_at)), sum(cpus * (until_at - from_at))
FROM spans
WHERE until_at > :begins AND until_at <= :ends AND from_at >= :begins
    AND job NOT IN (SELECT value FROM json_each(:besides))
GROUP BY user, account, project, qos
"""
_INTO = """
SELECT job, attempt, user, account, project, qos, from_at, until_at, cpus, card_milli
FROM spans
WHERE until_at > :begins AND until_at <= :ends AND from_at < :begins
    AND job NOT IN (SELECT value FROM json_each(:besides))
"""
"""What began before the stretch in which it ended: few, but for midnights that everybody works through."""


async def record(database: Database, jobs: Sequence[Job]) -> None:
    rows = [_row(job) for job in jobs]
    held = [msgspec.structs.astuple(span) for job in jobs for span in spans(job, job.state_since)]
    async with database.transaction(durable=False) as connection:
        await connection.executemany(_INSERT, rows)
        await connection.executemany(_INSERT_SPAN, held)


async def find(database: Database, job: JobId) -> Job | None:
    if not 0 < job <= LARGEST_ID:
        return None
    rows = await database.fetch("SELECT job FROM ended_jobs WHERE id = ?", (job,))
    return read(rows[0][0]) if rows else None


async def among(database: Database, first: JobId, last: JobId) -> list[Job]:
    """Those with these ids or between them."""
    rows = await database.fetch("SELECT job FROM ended_jobs WHERE id BETWEEN ? AND ? ORDER BY id", (first, last))
    return [read(text) for (text,) in rows]


async def newest(
    database: Database, *, limit: int, user: str | None, since: Millis | None, until: Millis | None
) -> list[Job]:
    within = (since or 0, LARGEST_ID if until is None else until, max(0, limit))
    if user is None:
        rows = await database.fetch(_NEWEST, within)
    else:
        rows = await database.fetch(_NEWEST_OF_USER, (user, *within))
    return [read(text) for (text,) in rows]


async def spent(database: Database, edges: Sequence[Millis], besides: Collection[JobId]) -> list[list[Spent]]:
    """Queries for each stretch, so that the journal never waits for all of them, and every row is looked at twice."""
    left_out = _encoder.encode(list(besides)).decode()
    within: list[list[Spent]] = []
    crossing: list[Span] = []
    for begins, ends in pairwise((*edges, LARGEST_ID)):
        asked = {"begins": begins, "ends": ends, "besides": left_out}
        within.append([Spent(*row) for row in await database.fetch(_WITHIN, asked)])
        crossing += [Span(*row) for row in await database.fetch(_INTO, asked)]
    return [merged((*both[0], *both[1])) for both in zip(within, divided(crossing, edges), strict=False)]


def _row(job: Job) -> tuple[Any, ...]:
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
    """When the last attempt's first container started; None when none ever did."""
    replicas = job.attempt.replicas if job.attempt else ()
    return min((replica.started_at for replica in replicas if replica.started_at is not None), default=None)


def _resources(job: Job) -> tuple[int, int, int, int]:
    """Nodes, CPUs, MiB and thousandths of a card over all nodes: what was given, else the first of what was asked."""
    if job.attempt:
        given = job.attempt.placement
        return (
            len(given),
            sum(part.cpus for part in given),
            sum(part.memory_mib for part in given),
            sum(part.card_milli for part in given),
        )
    nodes, asked = job.spec.nodes, job.spec.specs[0]
    return nodes, nodes * asked.cpus, nodes * asked.memory_mib, nodes * asked.card_milli


def read(text: str) -> Job:
    """The record of an ended job. Raises `StoreError`."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, TypeError) as error:
        raise StoreError(f"The record of an ended job cannot be read: {error}. A newer cockpit wrote it.") from error
