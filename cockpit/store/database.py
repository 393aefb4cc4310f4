"""One SQLite file through one connection: whole transactions, one at a time, and errors a person can read."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiosqlite

from cockpit.store.faults import store_errors
from cockpit.store.schema import migrate, version_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

_KEPT_WAL_BYTES = 16 * 1024 * 1024
_PAGE_BYTES = 4096
_SPARE_BYTES = 400 * _PAGE_BYTES
"""Some hundreds of events. The log begins anew after three quarters of it."""
_SPARE_PART = 8
"""Of a small disk only so much."""
_SPARE_TIMES = 3
"""Pages and log take it twice; where there is not even that much more it is too late."""


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
        """`busy_seconds`: how long to wait for another process's lock before saying so.

        The whole file is not checked here, which would take minutes when it is big: a damaged page is found when read.
        """
        with store_errors(file):
            _make_private(file)
            connection = await aiosqlite.connect(file, timeout=busy_seconds, isolation_level=None)
            try:
                await _prepare(connection, file)
            except BaseException:
                await connection.close()
                raise
        return cls(file, connection)

    async def close(self) -> None:
        """After the transaction under way. Closing twice does nothing."""
        async with self._turn:
            with store_errors(self.file):
                await self._connection.close()

    async def fetch(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Sequence[Any]]:
        """All rows of a query; sees committed data only."""
        async with self._turn:
            with store_errors(self.file):
                return list(await self._connection.execute_fetchall(sql, parameters))

    @asynccontextmanager
    async def transaction(self, *, durable: bool) -> AsyncIterator[aiosqlite.Connection]:
        """All or nothing. `durable`: on the disk when the block has been left; otherwise a power cut may undo it.

        Statements already handed to the connection's thread run in order even if the waiting task is cancelled, so
        the rollback always comes last and the connection stays usable.
        """
        async with self._turn:
            with store_errors(self.file):
                try:
                    await self._synchronous("FULL" if durable else "NORMAL")
                    await self._connection.execute("BEGIN IMMEDIATE")
                    yield self._connection
                    await self._connection.commit()
                except BaseException:
                    await self._connection.rollback()
                    raise

    async def keep_spare(self) -> None:
        """Have pages in the file, and room in its log, that are the file's already and that nobody uses: on a full disk
        they take what must be written. The log is made anew with every opening, the pages stay. A disk that is nearly
        full already is left alone."""
        disk = os.statvfs(self.file.parent)
        spare = min(_SPARE_BYTES, disk.f_blocks * disk.f_frsize // _SPARE_PART)
        if disk.f_bavail * disk.f_frsize < _SPARE_TIMES * spare:
            return
        await self.fetch(f"PRAGMA wal_autocheckpoint = {spare // _PAGE_BYTES * 3 // 4}")
        for size in (spare, 0):
            async with self.transaction(durable=False) as connection:
                await connection.execute("INSERT OR REPLACE INTO probe VALUES (1, 0, zeroblob(?))", (size,))

    async def _synchronous(self, level: str) -> None:
        if level != self._level:
            await self._connection.execute(f"PRAGMA synchronous={level}")
            self._level = level


def _make_private(file: Path) -> None:
    """Create it for its owner alone, or fail before there is a thread that would have to be ended."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


async def _prepare(connection: aiosqlite.Connection, file: Path) -> None:
    version = await version_of(connection, file)
    for pragma in (
        "PRAGMA journal_mode=WAL",
        f"PRAGMA journal_size_limit={_KEPT_WAL_BYTES}",
        "PRAGMA recursive_triggers=ON",  # else INSERT OR REPLACE deletes past the triggers
        "PRAGMA trusted_schema=OFF",
    ):
        await connection.execute_fetchall(pragma)
    await migrate(connection, version)
