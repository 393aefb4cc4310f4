"""Moves old events from the table into files `events-<first>-<last>.jsonl.gz` with one `EventRecord` a line.

1. The file is written and synced to the disk.
2. One transaction adds its name to the table `archives` and deletes its rows from the table `events`.

A crash between the two leaves a file that the table does not name; the next run replaces it. Named files never change.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import zlib
from typing import TYPE_CHECKING

from cockpit.errors import StoreError
from cockpit.store import codec, snapshots
from cockpit.store.faults import store_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from cockpit.model.events import EventRecord
    from cockpit.model.ids import Millis
    from cockpit.store.database import Database

FILE_EVENTS = 20_000
"""The most events in one file, which bounds the memory that is needed and the length of a transaction."""

_COLUMNS = ", ".join(codec.COLUMNS)
_SPAN = f"SELECT {_COLUMNS} FROM events WHERE seq <= ? ORDER BY seq LIMIT ?"  # noqa: S608 - constants
_FIRST_KEPT = "SELECT seq FROM events WHERE at >= ? ORDER BY seq LIMIT 1"


async def move_old(database: Database, folder: Path, before: Millis, now: Millis) -> int:
    """Move events older than `before` into files, oldest first, and return how many were moved.

    Events after the oldest stored snapshot stay in the table, so that a start seldom needs the files.
    """
    last = await _last_movable(database, before)
    moved = 0
    # file by file, so that other transactions get their turn in between
    while rows := await database.fetch(_SPAN, (last, FILE_EVENTS)):
        with store_errors(folder):
            # Step 1
            file = await asyncio.to_thread(_write, folder, rows)
        # Step 2
        await _replace_by(database, file, rows, now)
        moved += len(rows)
    return moved


async def events_after(database: Database, folder: Path, seq: int) -> list[Path]:
    """Return the files with events after `seq`, oldest first."""
    rows = await database.fetch("SELECT file FROM archives WHERE last_seq > ? ORDER BY first_seq", (seq,))
    return [folder / name for (name,) in rows]


def read(file: Path) -> Iterator[EventRecord]:
    """Yield every event of an archive file, in order. Raises `StoreError` if the file is missing or damaged."""
    return map(codec.from_line, lines(file))


def lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of an archive file, one for each event. Raises `StoreError` if it is missing or damaged."""
    try:
        with gzip.open(file) as unpacked:
            yield from unpacked
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{file} holds archived events that are needed, but cannot be read: {error}.") from error


async def _last_movable(database: Database, before: Millis) -> int:
    """Return the sequence number of the last event to move."""
    covered = await snapshots.oldest_seq(database)
    kept = await database.fetch(_FIRST_KEPT, (before,))
    return min(covered, kept[0][0] - 1) if kept else covered


async def _replace_by(database: Database, file: Path, rows: Sequence[Sequence[Any]], now: Millis) -> None:
    """Delete the rows from the table, which names the file that has them from now on."""
    first, last = rows[0][0], rows[-1][0]
    row = (first, last, file.name, now)
    async with database.transaction(durable=True) as connection:
        await connection.execute("INSERT INTO archives VALUES (?, ?, ?, ?, ?)", (*row, codec.checksum_of(*row)))
        await connection.execute("DELETE FROM events WHERE seq <= ?", (last,))


def _write(folder: Path, rows: Sequence[Sequence[Any]]) -> Path:
    """Write the rows into a file, and return it once it is complete and on the disk."""
    first, last = rows[0][0], rows[-1][0]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Left by a crash between the two steps. The table never names a file of these events, which are still in it.
    for unnamed in folder.glob(f"events-{first}-*"):
        unnamed.unlink()
    file = folder / f"events-{first}-{last}.jsonl.gz"
    unfinished = file.with_suffix(".unfinished")
    with unfinished.open("wb") as raw:
        # Without name and time, so that the same events always make the same bytes.
        with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
            packed.writelines(map(codec.to_line, rows))
        raw.flush()
        os.fsync(raw.fileno())
    # The content is on the disk before the name, and the name (a change of the folder) before the rows are deleted.
    unfinished.rename(file)
    _sync_folder(folder)
    return file


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
