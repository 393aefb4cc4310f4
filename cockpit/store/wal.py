"""Verifies SQLite's write-ahead log, which SQLite itself reads only up to the first damaged frame, silently.

The log is a header and frames of one page each. Header and frames carry two salts, which change whenever a new log
begins, and a checksum that continues that of the frame before. A transaction's last frame is marked as its commit. When
a store is opened after a crash, SQLite ignores the first frame that does not match and all later ones.

A frame that does not match is no damage by itself, since a crash can leave an unfinished transaction, frames of an
older log, or frames of a transaction that was rolled back because the disk refused to sync it. Which frames count is in
the index of the log (`-shm`): SQLite writes the number of committed frames into it, as the last step of a commit. The
index is shared memory in a file, so that it survives the process, and SQLite makes a new one when it opens the store.
So the log is verified before that:

1. If the index is whole and of this log, a frame is damaged if it does not match and is not after the committed ones.
2. Otherwise (a copy of the folder without the index) it is damaged if a commit with the log's own salts follows: a
   process writes frames in order, so that the frame was whole once.

Only a power cut can leave such a log too, with events that were not yet answered as durable.

Formats: https://www.sqlite.org/fileformat2.html#the_write_ahead_log, https://www.sqlite.org/walformat.html#walidxfmt
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from cockpit.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = struct.Struct(">8I")
"""Magic number, version, page size, checkpoint number, two salts, two checksums."""
_FRAME = struct.Struct(">6I")
"""Page number, pages of the database after a commit (else 0), two salts, two checksums."""
_MAGIC = 0x377F0682
"""The magic number; its last bit is set where checksums are of big-endian words."""
_INDEX = struct.Struct("=3I2BH6I2I")
"""The index's header, of which there are two copies, in the machine's byte order: version, unused, change counter,
initialized, byte order of the log's checksums, page size, committed frames, pages of the database, two checksums of the
last committed frame, two salts, two checksums of the 40 bytes before."""
_INDEX_SALTS_AT, _INDEX_SUMS_AT = 32, 40
_MASK = 0xFFFFFFFF
_TRIES = 5
_KERNEL_STATISTICS = Path("/proc/stat")

_Order = Literal["big", "little"]

_LOST = (
    "{log} is damaged: {damage}. SQLite ignores what follows there, the last events among it. Nothing was accepted or "
    "changed. Keep a copy of the state folder, then restore it from a backup; or, to start without the lost events, "
    "run `sqlite3 {file} 'PRAGMA wal_checkpoint'` first."
)


class LogDamage(NamedTuple):
    """A damaged place of the log, at or after which there are committed transactions."""

    frame: int
    """The first frame that is missing or does not match its checksum, counted from 1; 0: the header."""

    def __str__(self) -> str:
        place = f"frame {self.frame}" if self.frame else "its header"
        return f"{place} is missing or does not match its checksum, although it belongs to stored transactions"


class _Committed(NamedTuple):
    """The committed part of the log, as its index records it."""

    frames: int
    salts: bytes


def log_of(file: Path) -> Path:
    """Return the write-ahead log of a store."""
    return file.with_name(f"{file.name}-wal")


def index_of(file: Path) -> Path:
    """Return the index of a store's write-ahead log."""
    return file.with_name(f"{file.name}-shm")


def find_damage(file: Path) -> LogDamage | None:
    """Return the first damage of the store's write-ahead log, also while an engine writes it; None: there is none.

    Call it before SQLite opens a store that no process has open, because SQLite then makes a new index.
    """
    log = log_of(file)
    for _ in range(_TRIES):
        committed = _committed(file)
        try:
            data = log.read_bytes()
            with log.open("rb") as again:
                header = again.read(_HEADER.size)
        except FileNotFoundError:
            # A proper end deletes the index before the log.
            return LogDamage(0) if committed and committed.frames and committed == _committed(file) else None
        if header == data[: _HEADER.size]:  # else a new log has begun meanwhile
            return _damage(data, committed)
    return None


def refuse_lost_commits(file: Path) -> None:
    """Raise `StoreError` if the write-ahead log is damaged, before SQLite ignores what follows the damage.

    A log that was last written before the machine was started is accepted: a power cut explains its damage.
    """
    times = [part.stat().st_mtime for part in (log_of(file), index_of(file)) if part.exists()]
    damage = find_damage(file) if max(times, default=0) > booted_at() else None
    if damage is not None:
        raise StoreError(_LOST.format(log=log_of(file), damage=damage, file=file))


def booted_at() -> float:
    """Return when the machine was started, in seconds UTC; 0: unknown."""
    try:
        lines = _KERNEL_STATISTICS.read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith("btime ")), 0.0)


def _committed(file: Path) -> _Committed | None:
    """Return what the index says.

    None: there is no index, or it is damaged or of before the machine's start, or SQLite has made it from the log, and
    so it says nothing more than the log: then its counter of changes is zero.
    """
    index = index_of(file)
    try:
        if index.stat().st_mtime <= booted_at():
            return None
        with index.open("rb") as opened:
            data = opened.read(2 * _INDEX.size)
    except OSError:
        return None
    # SQLite writes the second copy first: after a kill between the two, the first is older, and no less true.
    for copy in (data[: _INDEX.size], data[_INDEX.size :]):
        if len(copy) == _INDEX.size and all((fields := _INDEX.unpack(copy))[2:4]):
            plain, salts = copy[:_INDEX_SUMS_AT], copy[_INDEX_SALTS_AT:_INDEX_SUMS_AT]
            if _checksum(plain, sys.byteorder, (0, 0)) == fields[-2:]:
                return _Committed(fields[6], salts)
    return None


def _damage(data: bytes, committed: _Committed | None) -> LogDamage | None:
    """Return the damage of the log `data`, in the order of the frames."""
    if len(data) < _HEADER.size:
        return LogDamage(0) if committed is not None and committed.frames else None
    if committed is not None and committed.salts != data[16:24]:
        committed = None  # the index is of another log, or the header is damaged
    magic, _, page, _, *salts, first, second = _HEADER.unpack_from(data)
    order: _Order = "big" if magic & 1 else "little"
    sums = _checksum(data[: _HEADER.size - 8], order, (0, 0))
    if magic & ~1 != _MAGIC or sums != (first, second):
        # The page size cannot be trusted; any frame behind a header that SQLite refuses is lost.
        return LogDamage(0) if any(data[_HEADER.size :]) else None
    size = _FRAME.size + page
    places = range(_HEADER.size, len(data) - size + 1, size)
    for number, at in enumerate(places, 1):
        # Step 1: frames behind the committed ones may be unfinished or old, and count as no damage.
        if committed is not None and number > committed.frames:
            return None
        _, _, *own_salts, first, second = _FRAME.unpack_from(data, at)
        if own_salts == salts:
            # A frame's checksum covers its page number and size, then the page, and continues the sum of the frame
            # before. Its salts and the checksum itself are not covered.
            sums = _checksum(data[at : at + 8], order, sums)
            sums = _checksum(data[at + _FRAME.size : at + size], order, sums)
            if sums == (first, second):
                continue
        # Step 1, or step 2: without the index only a later commit of this log proves that the frame was whole once.
        if committed is not None or any(_is_commit(data, later, salts) for later in places[number:]):
            return LogDamage(number)
        return None
    return LogDamage(len(places) + 1) if committed is not None and len(places) < committed.frames else None


def _is_commit(data: bytes, at: int, salts: Sequence[int]) -> bool:
    """Tell whether the frame at this offset ends a transaction of the log with these salts."""
    _, pages, *own_salts, _, _ = _FRAME.unpack_from(data, at)
    return bool(pages) and own_salts == salts


def _checksum(data: bytes, order: _Order, sums: tuple[int, int]) -> tuple[int, int]:
    """Return the checksum of `data`, continued from `sums`: two sums over pairs of words, modulo 2^32."""
    words = struct.unpack(f"{'>' if order == 'big' else '<'}{len(data) // 4}I", data)
    first, second = sums
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
