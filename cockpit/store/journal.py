"""The journal in an SQLite file, which implements `engine.ports.Journal`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cockpit.errors import StoreError
from cockpit.model.events import JobSubmitted
from cockpit.model.ids import JobId
from cockpit.store import accounting, archive, codec, snapshots
from cockpit.store.database import Database
from cockpit.store.faults import check_room

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence
    from pathlib import Path
    from typing import Any

    from cockpit.engine.ports import Clock
    from cockpit.engine.state import ClusterState
    from cockpit.model.accounting import UsageSum
    from cockpit.model.events import EventRecord
    from cockpit.model.forecast import PromisedStart
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job
    from cockpit.model.requests import KeptAnswer

    Apply = Callable[[ClusterState, EventRecord], None]
    """Changes the state as the event says."""

ANSWERS_KEPT_MILLIS = 24 * 3600 * 1000
"""How long the answer to a request is kept for repetitions of the request."""
REFUSALS_KEPT = 10_000
"""The most refusals that are kept, of all users together: more than honest clients cause in a day, yet a bound on what
a flood of requests can store."""
_REFUSALS_BETWEEN = 1_000
"""The number of refusals after which old ones are deleted; a deletion for each would be slow."""
BUSY_SECONDS = 2.0
"""How long a call waits for another process's lock. No other program should write here, so the user soon learns of it.
"""
_PAGE = 5_000
"""The number of events that are read from the file at a time."""
_PROBE_BYTES = 64 * 1024
"""The size of a test write."""

_COLUMNS = ", ".join(codec.COLUMNS)
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES ({', '.join('?' * len(codec.COLUMNS))})"  # noqa: S608 - constants
_ANSWER_COLUMNS = ", ".join(codec.ANSWER_COLUMNS)
_PROMISE_COLUMNS = ", ".join(codec.PROMISE_COLUMNS)
_INSERT_ANSWER = f"INSERT INTO answers ({_ANSWER_COLUMNS}) VALUES ({', '.join('?' * len(codec.ANSWER_COLUMNS))})"  # noqa: S608 - constants
_ANSWER = f"SELECT {_ANSWER_COLUMNS} FROM answers WHERE request = ?"  # noqa: S608 - constants
_FORGET_REFUSALS = """
DELETE FROM answers WHERE refused AND at <= (SELECT at FROM answers WHERE refused ORDER BY at DESC LIMIT 1 OFFSET ?)
"""
_SUBMITTED_BY = """
SELECT job FROM events WHERE type = 'job_submitted' AND request != '' AND request = ? ORDER BY seq
"""
# archiving may have emptied the table, so the files' last number counts too: a number is never given twice
_LAST_SEQ = """
SELECT coalesce((SELECT max(seq) FROM events), (SELECT max(last_seq) FROM archives), 0)
"""


class SqliteJournal:
    """The engine's journal: events, answers to requests, snapshots of the state, and the accounting of ended jobs.

    A method that fails raises `StoreError` and has changed nothing. A task that is cancelled inside a method leaves the
    change made or not made, never in part. Request ids must be unique over all users: put the user's name into those
    that clients make. Close the journal at the end, since its thread keeps the process alive.
    """

    def __init__(self, database: Database, archive_folder: Path, clock: Clock, apply: Apply) -> None:
        self._database = database
        self._archive_folder = archive_folder
        self._clock = clock
        self._apply = apply
        self._refusals = 0
        """The number of refusals that this process has stored."""

    @classmethod
    async def open(
        cls, file: Path, archive_folder: Path, *, clock: Clock, apply: Apply, busy_seconds: float = BUSY_SECONDS
    ) -> SqliteJournal:
        """Open or create `file`, and migrate it to the current schema. `apply` applies an event to a state."""
        database = await Database.open(file, busy_seconds=busy_seconds)
        return cls(database, archive_folder, clock, apply)

    async def close(self) -> None:
        """Close the file, after the transaction under way."""
        await self._database.close()

    async def load(self) -> tuple[ClusterState, int]:
        """Return the state after the last event, and that event's sequence number.

        Takes the newest usable snapshot and applies the events after it, from archive files where they were moved.
        """
        ((last,),) = await self._database.fetch(_LAST_SEQ)
        state, seq = await snapshots.newest(self._database, last)
        async for record in self._history(seq):
            # The numbers have no gaps, so that a lost event is noticed even where the later ones could be applied.
            if record.seq != seq + 1:
                raise StoreError(f"{self._database.file} is damaged: event {record.seq} follows event {seq}.")
            try:
                self._apply(state, record)
            except Exception as error:  # events of one engine never contradict each other: the journal is damaged
                raise self._contradicts(record, error) from error
            seq = record.seq
        return state, seq

    async def append(self, records: Sequence[EventRecord], *, durable: bool, answer: KeptAnswer | None = None) -> None:
        """Append events, and the answer to the request that caused them, in one transaction.

        `durable`: wait until they are on the disk. Raises `StoreError` if the first number does not follow the
        journal's last one, or if the request has an answer already.
        """
        # On a nearly full disk new jobs are refused, so that the remaining space is left to the jobs that run.
        if any(isinstance(record.body, JobSubmitted) for record in records):
            await self.check_room()
        # an event that cannot be encoded fails here, before a transaction has begun
        rows = [codec.to_row(record) for record in records]
        async with self._database.transaction(durable=durable) as connection:
            await connection.executemany(_INSERT, rows)
            if answer is not None:
                await connection.execute(_INSERT_ANSWER, self._answer_row(answer))

    async def answer(self, request: str) -> KeptAnswer | None:
        """Return the stored answer to a request; None: there is none. Raises `StoreError` if it is damaged."""
        rows = await self._database.fetch(_ANSWER, (request,))
        return codec.answer_from_row(rows[0]) if rows else None

    async def remember(self, answer: KeptAnswer) -> None:
        """Store the refusal of a request, unless it has an answer, or the final answer of a change in place of the one
        that was stored with its events. Only the latest refusals are kept (`REFUSALS_KEPT`)."""
        # OR IGNORE: the first answer to a request stays, also if two connections sent it at the same time.
        how = "INSERT OR IGNORE" if answer.refused else "INSERT OR REPLACE"
        async with self._database.transaction(durable=False) as connection:
            await connection.execute(_INSERT_ANSWER.replace("INSERT", how), self._answer_row(answer))
        if answer.refused:
            self._refusals += 1
            if self._refusals % _REFUSALS_BETWEEN == 0:
                await self._forget_refusals()

    async def forget_refusal(self, request: str) -> None:
        """Delete the stored refusal of a request, so that its repetition is tried again."""
        async with self._database.transaction(durable=False) as connection:
            await connection.execute("DELETE FROM answers WHERE refused AND request = ?", (request,))

    async def submitted_by(self, request: str) -> list[JobId]:
        """Return the jobs that a request submitted, in order; events in archive files are not searched."""
        rows = await self._database.fetch(_SUBMITTED_BY, (request,))
        return [JobId(job) for (job,) in rows]

    def _answer_row(self, answer: KeptAnswer) -> tuple[Any, ...]:
        return codec.answer_to_row(answer, self._clock.now())

    async def _forget_refusals(self) -> None:
        async with self._database.transaction(durable=False) as connection:
            await connection.execute(_FORGET_REFUSALS, (REFUSALS_KEPT,))

    async def snapshot(self, state: ClusterState, seq: int) -> None:
        """Store the state after event `seq`, and delete answers older than a day. The previous snapshot is kept too."""
        # two transactions: a snapshot is of use although the deletion fails, and neither needs the other
        now = self._clock.now()
        await snapshots.save(self._database, state, seq, now)
        async with self._database.transaction(durable=False) as connection:
            await connection.execute("DELETE FROM answers WHERE at < ?", (now - ANSWERS_KEPT_MILLIS,))

    async def record_ended(self, jobs: Sequence[Job]) -> None:
        """Store ended jobs in the accounting tables."""
        await accounting.record(self._database, jobs)

    async def ended_job(self, job: JobId) -> Job | None:
        """Return an ended job from the accounting tables; None: it is not there."""
        return await accounting.find(self._database, job)

    async def ended_among(self, first: JobId, last: JobId) -> list[Job]:
        """Return the ended jobs with ids from `first` to `last`."""
        return await accounting.among(self._database, first, last)

    async def ended_jobs(
        self, *, limit: int, user: str | None = None, since: Millis | None = None, until: Millis | None = None
    ) -> list[Job]:
        """Return the last `limit` ended jobs, newest first: of one user, and that ended in [`since`, `until`)."""
        return await accounting.newest(self._database, limit=limit, user=user, since=since, until=until)

    async def spent(self, edges: Sequence[Millis], besides: Collection[JobId]) -> list[list[UsageSum]]:
        """Return the usage of ended jobs in each interval between two `edges`, without the jobs of `besides`."""
        return await accounting.spent(self._database, edges, besides)

    async def promised_starts(self) -> list[PromisedStart]:
        """Return the promised starts. Damaged ones are skipped: they are only shown, and must not stop an engine."""
        promises = []
        for row in await self._database.fetch(f"SELECT {_PROMISE_COLUMNS} FROM promised_starts ORDER BY job"):  # noqa: S608 - constants
            with suppress(codec.Damaged):
                promises.append(codec.promise_from_row(row))
        return promises

    async def save_promised_starts(self, changed: Sequence[PromisedStart], over: Collection[JobId]) -> None:
        """Store changed promises and delete those of the jobs `over`.

        Does not wait for the disk: a power cut may lose the last promises, the end of the process does not.
        """
        async with self._database.transaction(durable=False) as connection:
            rows = [codec.promise_to_row(each) for each in changed]
            insert = f"INSERT OR REPLACE INTO promised_starts ({_PROMISE_COLUMNS}) VALUES (?, ?, ?)"  # noqa: S608 - constants
            await connection.executemany(insert, rows)
            await connection.executemany("DELETE FROM promised_starts WHERE job = ?", [(job,) for job in over])

    async def events(self, *, job: JobId | None, after: int, limit: int) -> list[EventRecord]:
        """Return at most `limit` events after number `after`, or for a negative `after` the last `limit` events.

        `job`: only this job's events; None: all. Events that were moved to archive files are not among them.
        """
        if job is not None and not 0 < job <= accounting.LARGEST_ID:
            return []
        chosen, values = ("TRUE", []) if job is None else ("job = ?", [job])
        order = "DESC" if after < 0 else "ASC"
        rows = await self._database.fetch(
            f"SELECT {_COLUMNS} FROM events WHERE {chosen} AND seq > ? ORDER BY seq {order} LIMIT ?",  # noqa: S608 - constants
            (*values, min(after, accounting.LARGEST_ID), max(0, limit)),
        )
        # the last events were read newest first; the caller gets them in order
        return [codec.from_row(row) for row in (reversed(rows) if after < 0 else rows)]

    async def archive(self, before: Millis) -> int:
        """Move events older than `before` into files of the archive folder, and return how many were moved."""
        return await archive.move_old(self._database, self._archive_folder, before, self._clock.now())

    async def check_room(self) -> None:
        """Raise `StoreError` if the disk is too full for further jobs."""
        check_room(self._database.file)

    async def keep_spare(self) -> None:
        """Reserve disk space inside the file, so that jobs can end and be removed even when the disk is full.

        Without it, nothing could be removed from a full disk, since every removal is an event first.
        """
        await self._database.keep_spare()

    async def probe(self) -> None:
        """Make a small durable test write. Raises `StoreError` while the journal could not store a submission."""
        await self.check_room()
        # durable, as a submission would be
        async with self._database.transaction(durable=True) as connection:
            await connection.execute(
                "INSERT OR REPLACE INTO probe VALUES (1, ?, zeroblob(?))", (self._clock.now(), _PROBE_BYTES)
            )

    def _contradicts(self, record: EventRecord, error: Exception) -> StoreError:
        return StoreError(
            f"{self._database.file} is damaged: event {record.seq} contradicts what went before it ({error}). "
            "Nothing was accepted. Keep a copy of the state folder, then restore it from a backup; "
            "`cockpit doctor --journal` lists the damage."
        )

    async def _history(self, seq: int) -> AsyncIterator[EventRecord]:
        """Yield every event after `seq`: first those in archive files, then those in the table."""
        for file in await archive.events_after(self._database, self._archive_folder, seq):
            for record in archive.read(file):
                if record.seq > seq:
                    yield record
                    seq = record.seq
        # Page by page: the journal may be much larger than the memory.
        while page := await self.events(job=None, after=seq, limit=_PAGE):
            for record in page:
                yield record
            seq = page[-1].seq
