"""Ended jobs: a few columns worth querying, and the whole job beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import StoreError
from cockpit.model.job import Job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cockpit.model.ids import JobId
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
_NEWEST = "SELECT job FROM ended_jobs ORDER BY ended_at DESC, id DESC LIMIT ?"
_NEWEST_OF_USER = "SELECT job FROM ended_jobs WHERE user = ? ORDER BY ended_at DESC, id DESC LIMIT ?"


async def record(database: Database, jobs: Sequence[Job]) -> None:
    rows = [_row(job) for job in jobs]
    async with database.transaction(durable=False) as connection:
        await connection.executemany(_INSERT, rows)


async def find(database: Database, job: JobId) -> Job | None:
    if not 0 < job <= LARGEST_ID:
        return None
    rows = await database.fetch("SELECT job FROM ended_jobs WHERE id = ?", (job,))
    return _job(rows[0][0]) if rows else None


async def newest(database: Database, *, limit: int, user: str | None) -> list[Job]:
    if user is None:
        rows = await database.fetch(_NEWEST, (max(0, limit),))
    else:
        rows = await database.fetch(_NEWEST_OF_USER, (user, max(0, limit)))
    return [_job(text) for (text,) in rows]


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


def _job(text: str) -> Job:
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError as error:
        raise StoreError(f"The record of an ended job cannot be read: {error}. A newer cockpit wrote it.") from error
