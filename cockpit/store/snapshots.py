"""The cluster's state at a sequence number, so that a start reads a few thousand events instead of all of them."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.state import STATE_VERSION, ClusterState

if TYPE_CHECKING:
    from cockpit.model.ids import Millis
    from cockpit.store.database import Database

_KEPT = 2


async def save(database: Database, state: ClusterState, seq: int, now: Millis) -> None:
    """Keep `state` as of event `seq`; snapshots before the previous one are dropped.

    `state` is read before the first suspension, so it may change while this runs.
    """
    assert state.seq == seq, "the state is not that of this event"
    plain = msgspec.msgpack.encode(state)
    blob = await asyncio.to_thread(zlib.compress, plain, 1)
    row = (seq, STATE_VERSION, now, _checksum(blob), blob)
    async with database.transaction(durable=False) as connection:
        await connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", row)
        await connection.execute(
            "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)", (_KEPT,)
        )


async def newest(database: Database, last_seq: int) -> tuple[ClusterState, int]:
    """The newest snapshot that is whole and not ahead of `last_seq`; where there is none, the state before event 1."""
    candidates = await database.fetch(
        "SELECT seq FROM snapshots WHERE seq <= ? AND version = ? ORDER BY seq DESC", (last_seq, STATE_VERSION)
    )
    for (seq,) in candidates:
        ((checksum, blob),) = await database.fetch("SELECT checksum, state FROM snapshots WHERE seq = ?", (seq,))
        state = _decode(checksum, blob) if isinstance(blob, bytes) else None
        if state is not None:
            return state, seq
    return ClusterState(), 0


async def oldest_seq(database: Database) -> int:
    """Everything up to here is in every snapshot that is kept; 0 without snapshots."""
    ((seq,),) = await database.fetch("SELECT coalesce(min(seq), 0) FROM snapshots")
    return int(seq)


def is_whole(checksum: object, blob: object) -> bool:
    """Whether a start could begin with this snapshot."""
    return isinstance(checksum, bytes) and isinstance(blob, bytes) and _decode(checksum, blob) is not None


def _checksum(blob: bytes) -> bytes:
    return hashlib.sha256(blob).digest()


def _decode(checksum: bytes, blob: bytes) -> ClusterState | None:
    if _checksum(blob) != checksum:
        return None
    try:
        return msgspec.msgpack.decode(zlib.decompress(blob), type=ClusterState)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
