"""Verifies SQLite's write-ahead log, which SQLite itself reads only up to the first damaged frame, silently.

The log is a header and frames of one page each. Header and frames carry two salts, which change whenever the log begins
anew, and a checksum that continues that of the frame before. A transaction's last frame is marked as its commit. When a
store is opened after a crash, SQLite ignores the first frame that does not match and all later ones.

A frame that does not match is no damage by itself, since a crash can leave an unfinished transaction or frames of an
older log. It is damage if a commit with the log's own salts follows: a process writes frames in order, so that the
frame was whole once. Only a power cut can leave such a log too, with events that were not yet answered as durable.

Format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cockpit.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = struct.Struct(">8I")
"""Magic number, version, page size, checkpoint number, two salts, two checksums."""
_FRAME = struct.Struct(">6I")
"""Page number, pages of the database after a commit (else 0), two salts, two checksums."""
_MAGIC = 0x377F0682
"""The magic number; its last bit is set where checksums are of big-endian words."""
_MASK = 0xFFFFFFFF
_TRIES = 5
_KERNEL_STATISTICS = Path("/proc/stat")

_LOST = (
    "{log} is damaged: {damage}. SQLite ignores what follows there, the last events among it. Nothing was accepted or "
    "changed. Keep a copy of the state folder, then restore it from a backup; or, to start without the lost events, "
    "run `sqlite3 {file} 'PRAGMA wal_checkpoint'` first."
)


class LogDamage(NamedTuple):
    """A damaged place of the log, with commits behind it."""

    frame: int
    """The first frame that does not match its checksum, counted from 1; 0: the header."""

    def __str__(self) -> str:
        place = f"frame {self.frame}" if self.frame else "its header"
        return f"{place} does not match its checksum, although stored transactions follow"


def log_of(file: Path) -> Path:
    """Return the write-ahead log of a store."""
    return file.with_name(f"{file.name}-wal")


def find_damage(file: Path) -> LogDamage | None:
    """Return the first damage of the store's write-ahead log, also while an engine writes it; None: there is none."""
    log = log_of(file)
    for _ in range(_TRIES):
        try:
            data = log.read_bytes()
            with log.open("rb") as again:
                header = again.read(_HEADER.size)
        except FileNotFoundError:
            return None
        if header == data[: _HEADER.size]:  # else the log began anew meanwhile
            return _damage(data)
    return None


def refuse_lost_commits(file: Path) -> None:
    """Raise `StoreError` if the write-ahead log is damaged, before SQLite ignores what follows the damage.

    A log that was last written before the machine was started is accepted: a power cut explains its damage.
    """
    try:
        written = log_of(file).stat().st_mtime
    except FileNotFoundError:
        return
    damage = find_damage(file) if written > booted_at() else None
    if damage is not None:
        raise StoreError(_LOST.format(log=log_of(file), damage=damage, file=file))


def booted_at() -> float:
    """Return when the machine was started, in seconds UTC; 0: unknown."""
    try:
        lines = _KERNEL_STATISTICS.read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith("btime ")), 0.0)


def _damage(data: bytes) -> LogDamage | None:
    if len(data) < _HEADER.size:
        return None
    magic, _, page, _, *salts, first, second = _HEADER.unpack_from(data)
    order = "big" if magic & 1 else "little"
    sums = _checksum(data[: _HEADER.size - 8], order, (0, 0))
    if magic & ~1 != _MAGIC or sums != (first, second):
        # The page size cannot be trusted; any frame behind a header that SQLite refuses is lost.
        return LogDamage(0) if any(data[_HEADER.size :]) else None
    size = _FRAME.size + page
    places = range(_HEADER.size, len(data) - size + 1, size)
    for number, at in enumerate(places, 1):
        _, _, *own_salts, first, second = _FRAME.unpack_from(data, at)
        if own_salts == salts:
            sums = _checksum(data[at : at + 8], order, sums)
            sums = _checksum(data[at + _FRAME.size : at + size], order, sums)
            if sums == (first, second):
                continue
        return LogDamage(number) if any(_is_commit(data, later, salts) for later in places[number:]) else None
    return None


def _is_commit(data: bytes, at: int, salts: Sequence[int]) -> bool:
    """Tell whether the frame at this offset ends a transaction of the log with these salts."""
    _, pages, *own_salts, _, _ = _FRAME.unpack_from(data, at)
    return bool(pages) and own_salts == salts


def _checksum(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """Return the checksum of `data`, continued from `sums`: two sums over pairs of words, modulo 2^32."""
    words = struct.unpack(f"{'>' if order == 'big' else '<'}{len(data) // 4}I", data)
    first, second = sums
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
