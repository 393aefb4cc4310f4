"""Access to one SQLite file through one connection: one transaction at a time, and errors as readable `StoreError`s."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import aiosqlite

from cockpit.store import wal
from cockpit.store.faults import store_errors
from cockpit.store.schema import migrate, version_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

_KEPT_WAL_BYTES = 16 * 1024 * 1024
"""The size to which the write-ahead log is truncated after a checkpoint."""
_PAGE_BYTES = 4096
_SPARE_BYTES = 400 * _PAGE_BYTES
"""The size of the spare space: enough for some hundreds of events. The write-ahead log is checkpointed when it has
three quarters of it."""
_SPARE_PART = 8
"""The divisor of a small disk's size: at most this part of it becomes spare space."""
_SPARE_TIMES = 3
"""How many times the spare space must be free to reserve it: pages and log take it twice."""


class Database:
    """An open store of the current schema. Every method raises `StoreError`.

    Close it: the connection's thread keeps the process alive.
    """

    def __init__(self, file: Path, connection: aiosqlite.Connection) -> None:
        self.file = file
        self._connection = connection
        self._turn = asyncio.Lock()
        self._level = ""

    @classmethod
    async def open(cls, file: Path, *, busy_seconds: float) -> Database:
        """Open or create the file, and migrate it to the current schema.

        `busy_seconds`: how long to wait for another process's lock before raising `StoreError`. The file is not checked
        as a whole, which would take minutes for a big one: a damaged page is detected when it is read. Only what a
        crash left of the write-ahead log is, since SQLite would drop its damaged end silently.
        """
        with store_errors(file):
            # the log is verified first: opening the store makes SQLite drop what it does not believe
            _make_private(file)
            wal.refuse_lost_commits(file)
            # isolation_level None: transactions are begun by hand, since sqlite3 would begin them without IMMEDIATE
            connection = await aiosqlite.connect(file, timeout=busy_seconds, isolation_level=None)
            try:
                await _prepare(connection, file)
            except BaseException:
                await connection.close()
                raise
        return cls(file, connection)

    async def close(self) -> None:
        """Close the connection, after the transaction under way. A second call does nothing."""
        async with self._turn:
            with store_errors(self.file):
                await self._connection.close()

    async def fetch(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Sequence[Any]]:
        """Return all rows of a query, which sees only committed data."""
        async with self._turn:
            with store_errors(self.file):
                return list(await self._connection.execute_fetchall(sql, parameters))

    @asynccontextmanager
    async def transaction(self, *, durable: bool) -> AsyncIterator[aiosqlite.Connection]:
        """Run the block in a transaction, which is rolled back if the block raises.

        `durable`: the changes are on the disk when the block has been left; otherwise a power cut may undo them.

        Statements already handed to the connection's thread run in order even if the waiting task is cancelled, so
        the rollback always comes last and the connection stays usable.
        """
        async with self._turn:
            with store_errors(self.file):
                try:
                    await self._synchronous("FULL" if durable else "NORMAL")
                    # IMMEDIATE takes the write lock now: a lock of another program fails here, before anything is
                    # changed.
                    await self._connection.execute("BEGIN IMMEDIATE")
                    yield self._connection
                    await self._commit()
                except BaseException:
                    await self._connection.rollback()
                    raise

    async def _commit(self) -> None:
        """Commit the transaction.

        If the disk refuses to sync it, it stays in the write-ahead log as a whole transaction, which SQLite does not
        count but would after a crash, although its change was refused. A small transaction replaces its beginning.
        """
        try:
            await self._connection.commit()
        except sqlite3.Error:
            await self._connection.rollback()
            with suppress(sqlite3.Error):  # the next transaction does it otherwise
                await self._synchronous("NORMAL")
                await self._connection.execute("INSERT OR REPLACE INTO probe VALUES (3, 0, zeroblob(16))")
            raise

    async def keep_spare(self) -> None:
        """Reserve unused pages in the file and in its write-ahead log, which take what must be written on a full disk.

        Every opening creates a new log; the pages stay. Nothing is reserved on a disk that is nearly full
        already.
        """
        # Storing a large value and then an empty one leaves free pages in the file and the log at its full length.
        disk = os.statvfs(self.file.parent)
        spare = min(_SPARE_BYTES, disk.f_blocks * disk.f_frsize // _SPARE_PART)
        if disk.f_bavail * disk.f_frsize < _SPARE_TIMES * spare:
            return
        await self.fetch(f"PRAGMA wal_autocheckpoint = {spare // _PAGE_BYTES * 3 // 4}")
        for size in (spare, 0):
            async with self.transaction(durable=False) as connection:
                await connection.execute("INSERT OR REPLACE INTO probe VALUES (1, 0, zeroblob(?))", (size,))

    async def _synchronous(self, level: str) -> None:
        # With a write-ahead log NORMAL syncs only at checkpoints, FULL after each commit: after a power cut the last
        # NORMAL transactions may be missing, but the file is whole (sqlite.org/pragma.html#pragma_synchronous).
        # Most transactions follow one of the same level; the pragma is a call of the connection's thread.
        if level != self._level:
            await self._connection.execute(f"PRAGMA synchronous={level}")
            self._level = level


def _make_private(file: Path) -> None:
    """Create the file with access for its owner only, and raise `OSError` before the connection's thread is started."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


async def _prepare(connection: aiosqlite.Connection, file: Path) -> None:
    """Prepare a new connection: pragmas, then the migration. Raises `StoreError` for a file of another program."""
    # before any pragma changes the file: a store of a newer version is refused as it is
    version = await version_of(connection, file)
    for pragma in (
        "PRAGMA journal_mode=WAL",  # another process, such as `cockpit doctor`, can read while the engine writes
        f"PRAGMA journal_size_limit={_KEPT_WAL_BYTES}",
        "PRAGMA recursive_triggers=ON",  # else INSERT OR REPLACE deletes past the triggers
        "PRAGMA trusted_schema=OFF",  # functions that a tampered file names in its schema do not run
    ):
        await connection.execute_fetchall(pragma)
    await migrate(connection, version)
