"""Stores snapshots of the cluster's state, so that a start applies a few thousand events instead of all of them."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.state import STATE_VERSION, ClusterState
from cockpit.store.codec import checksum_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cockpit.model.ids import Millis
    from cockpit.store.database import Database

_KEPT = 2
"""The number of snapshots kept: the older one serves if the newest is damaged."""

_COLUMNS = ("seq", "version", "created_at", "checksum", "state", "row_checksum")
SELECT = f"SELECT {', '.join(_COLUMNS)} FROM snapshots"  # noqa: S608 - constants
"""The query of whole rows, to which a condition can be added."""
_INSERT = f"INSERT OR REPLACE INTO snapshots ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - constants


async def save(database: Database, state: ClusterState, seq: int, now: Millis) -> None:
    """Store `state`, which is that after event `seq`, and delete all but the last two snapshots.

    `state` is encoded before the first `await`, so that it may change while the snapshot is compressed and written.
    """
    assert state.seq == seq, "the state is not that of this event"
    plain = msgspec.msgpack.encode(state)
    # Level 1, in a thread: the engine serves other requests while a large state is compressed.
    blob = await asyncio.to_thread(zlib.compress, plain, 1)
    plain_row = (seq, STATE_VERSION, now, _checksum(blob))
    row = (*plain_row, blob, checksum_of(*plain_row))
    # not durable: without the snapshot a start only applies more events
    async with database.transaction(durable=False) as connection:
        await connection.execute(_INSERT, row)
        await connection.execute(
            "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)", (_KEPT,)
        )


async def newest(database: Database, last_seq: int) -> tuple[ClusterState, int]:
    """Return the newest usable snapshot's state and sequence number; without one, the empty state and 0.

    A snapshot is usable if it matches its checksum, has today's version and is not newer than event `last_seq`. It can
    be newer after a power cut, since neither it nor every event is written durably.
    """
    # numbers first, then one row at a time: a state may have many megabytes, and mostly the first one is usable
    candidates = await database.fetch(
        "SELECT seq FROM snapshots WHERE seq <= ? AND version = ? ORDER BY seq DESC", (last_seq, STATE_VERSION)
    )
    for (seq,) in candidates:
        (row,) = await database.fetch(f"{SELECT} WHERE seq = ?", (seq,))
        state = _decode(row)
        if state is not None:
            return state, seq
    return ClusterState(), 0


async def oldest_seq(database: Database) -> int:
    """Return the sequence number of the oldest stored snapshot, up to which no start needs events; 0: there is none."""
    ((seq,),) = await database.fetch("SELECT coalesce(min(seq), 0) FROM snapshots")
    return int(seq)


def is_whole(row: Sequence[Any]) -> bool:
    """Tell whether the snapshot of a row of `SELECT` matches its checksums, and can be decoded to its event's state."""
    return _decode(row) is not None


def _checksum(blob: bytes) -> bytes:
    return hashlib.sha256(blob).digest()


def _decode(row: Sequence[Any]) -> ClusterState | None:
    """Return the state of a row of `SELECT`; None: it is damaged. Older rows have no checksum of the whole row."""
    seq, _, _, checksum, blob, row_checksum = row
    if not isinstance(blob, bytes) or _checksum(blob) != checksum:
        return None
    if row_checksum is not None and checksum_of(*row[:4]) != row_checksum:
        return None
    try:
        state = msgspec.msgpack.decode(zlib.decompress(blob), type=ClusterState)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
    # A whole blob in the wrong row: the state would be continued from another event than its own.
    return state if state.seq == seq else None
