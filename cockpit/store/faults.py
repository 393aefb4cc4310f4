"""Turns errors of SQLite and the operating system into sentences that name the file and what to do next."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cockpit.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NEARLY_NOTHING = 256 * 1024
"""The number of free bytes below which a disk counts as full."""

_FULL = (
    "The disk that holds {file} is full, or your quota is used up. Nothing was accepted. "
    "Free some space; cockpit continues by itself."
)
_LOCKED = (
    "{file} is locked by another process. Nothing was accepted. "
    "See which one with `fuser -v {file}`, let it finish or end it, then try again."
)
_READ_ONLY = (
    "{file} cannot be written: the folder is missing or not yours, or the disk is mounted read-only. Nothing was "
    "accepted. Make it writable, or set `state_folder` in config.toml (COCKPIT_STATE_FOLDER)."
)
_DAMAGED = (
    "{file} is damaged ({error}). Nothing was accepted. Stop the engine and keep a copy of the folder, "
    "then restore it from a backup. `cockpit doctor --journal` lists the damage."
)
_REFUSED = (
    "{file} refused a change ({error}). Nothing was accepted. "
    "If another program writes to this file, end it; then restart the engine."
)
_OTHER = "{file} cannot be read or written ({error}, {name}). Nothing was accepted. Check the disk: `dmesg | tail`."

_PASSING = frozenset({_FULL, _LOCKED})
"""Errors that end without a repair of the store."""

_SENTENCES = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _READ_ONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: _REFUSED,
}
"""The sentence for each primary result code of SQLite."""
_PERHAPS_FULL = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
"""Codes that SQLite returns on a full disk too, where the free space must be checked."""

_SYSTEM_SENTENCES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
}


@contextmanager
def store_errors(file: Path) -> Iterator[None]:
    """Turn every SQLite and system error inside into a `StoreError` about `file`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _of_sqlite(error, file) from error
    except OSError as error:
        raise _of_system(error, file) from error
    except UnicodeDecodeError as error:  # from what SQLite says about a damaged schema, which it quotes
        raise StoreError(_DAMAGED.format(file=file, error="text that is not UTF-8")) from error


def check_room(file: Path) -> None:
    """Raise `StoreError` if the disk of the file is full or nearly so."""
    with store_errors(file):
        if _free_bytes(file) < _NEARLY_NOTHING:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _of_sqlite(error: sqlite3.Error, file: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _PERHAPS_FULL and _free_bytes(file) < _NEARLY_NOTHING:
        code = sqlite3.SQLITE_FULL
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    sentence = _SENTENCES.get(code, _OTHER)
    return StoreError(sentence.format(file=file, error=error, name=name), passing=sentence in _PASSING)


def _of_system(error: OSError, file: Path) -> StoreError:
    where = file if error.filename is None else error.filename
    sentence = _SYSTEM_SENTENCES.get(error.errno or 0, _OTHER)
    text = sentence.format(file=where, error=error.strerror or error, name=type(error).__name__)
    return StoreError(text, passing=sentence in _PASSING)


def _free_bytes(file: Path) -> int:
    try:
        disk = os.statvfs(file.parent)
    except OSError:
        return _NEARLY_NOTHING
    return disk.f_bavail * disk.f_frsize
