"""Verifies a whole store without changing it, that of a running engine too (`cockpit doctor --journal`).

In this order: SQLite's write-ahead log and structure, snapshots, archive files, events, answers to requests,
records and usage of ended jobs, and promised starts.
"""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from cockpit.errors import StoreError
from cockpit.store import accounting, archive, codec, snapshots, wal
from cockpit.store.faults import store_errors
from cockpit.store.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

MOST_SHOWN = 20
"""The most damages that a result names; further ones are counted."""
_PAGE = 5_000
_EVENTS = f"SELECT {', '.join(codec.COLUMNS)} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - constants
_ANSWERS = f"SELECT {', '.join(codec.ANSWER_COLUMNS)} FROM answers"  # noqa: S608 - constants
_PROMISES = f"SELECT {', '.join(codec.PROMISE_COLUMNS)} FROM promised_starts"  # noqa: S608 - constants
_SPANS = f"SELECT {', '.join(accounting.SPAN_COLUMNS)} FROM spans"  # noqa: S608 - constants
_ENDED = f"SELECT {', '.join(accounting.COLUMNS)} FROM ended_jobs"  # noqa: S608 - constants


class Damage(NamedTuple):
    """One damaged part of the store."""

    where: str
    """The damaged part, such as `event 4711`."""
    what: str
    """What is wrong with it, as a sentence."""
    needed: bool = True
    """Whether the engine cannot start, or has lost data, without this part."""


class Verified(NamedTuple):
    """The result of a verification: how much was checked, and what is damaged."""

    events: int
    """The number of events in the table."""
    archived: int
    """The number of events in archive files."""
    unchecked: int
    """The number of events, of both kinds, without a checksum because an older cockpit wrote them: they can be read."""
    snapshots: int
    answers: int
    """The number of stored answers to requests."""
    ended: int
    """The number of records of ended jobs."""
    damages: tuple[Damage, ...]
    more: int
    """The number of damages beyond `damages`."""


def verify(file: Path, archive_folder: Path) -> Verified:
    """Verify a store. Raises `StoreError` if there is no readable store of the current schema."""
    with store_errors(file):
        damage = wal.find_damage(file)
        with closing(_opened_or_explained(file, damage)) as connection:
            _check_version(connection, file, damage)
            return _Verification(connection, file, archive_folder, damage).run()


def first_structural_damage(file: Path) -> str:
    """Return what SQLite says of the first damage of the file's structure; empty: it has none.

    It reads pages, not events, and accepts stores of any version. Raises `StoreError` if the file cannot be opened.
    """
    with store_errors(file), closing(_opened_or_explained(file, wal.find_damage(file))) as connection:
        try:
            ((answer,),) = connection.execute("PRAGMA quick_check(1)")
        except sqlite3.DatabaseError as error:
            return str(error)
        # SQLite writes a heading and one line for each page.
        return "" if answer == "ok" else str(answer).splitlines()[-1]


def _opened_or_explained(file: Path, damage: wal.LogDamage | None) -> sqlite3.Connection:
    """Open the file. Where a damaged write-ahead log hides the whole store, the error says so."""
    try:
        return _opened(file)
    except (StoreError, sqlite3.DatabaseError):
        if damage is None:
            raise
        raise _hidden_by(damage, file) from None


def _hidden_by(damage: wal.LogDamage, file: Path) -> StoreError:
    """Return the error for a store of which nothing can be read because of its write-ahead log."""
    return StoreError(
        f"The write-ahead log {wal.log_of(file).name} of {file} is damaged: {damage}. Nothing of the store "
        "can be read without it. Keep a copy of the state folder, then restore it from a backup."
    )


def _opened(file: Path) -> sqlite3.Connection:
    """Open the file for reading.

    1. With the index of the write-ahead log as it is: a start of the engine needs what a killed one wrote there.
    2. If there is no index, SQLite makes one.
    3. On a read-only disk it cannot. There can be no writer then, so that the file is opened as immutable.
    """
    if not file.exists():
        raise StoreError(f"There is no journal {file}: no engine has run in this state folder yet.")
    for how in ("mode=ro&readonly_shm=1", "mode=ro"):
        with suppress(sqlite3.OperationalError):
            return _in_transaction(_connected(file, how))
    return _in_transaction(_connected(file, "immutable=1"))


def _connected(file: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(file))}?{how}", uri=True, isolation_level=None)
    # Damaged text must not stop the verification.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


def _in_transaction(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Begin a read transaction and return the connection; on an error close it."""
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection, file: Path, damage: wal.LogDamage | None) -> None:
    """Raise `StoreError` for a schema version other than this program's."""
    ((version,),) = connection.execute("PRAGMA user_version")
    if version != SCHEMA_VERSION:
        # The log may have the pages with the later migrations: the version is then what the damage leaves of it.
        if damage is not None:
            raise _hidden_by(damage, file)
        raise StoreError(
            f"{file} is of store version {version}, and this cockpit verifies version {SCHEMA_VERSION}. "
            + ("Start its engine once, which migrates it." if version < SCHEMA_VERSION else "Use the newer cockpit.")
        )


class _Verification:
    """Verifies a store in one read transaction, so that an engine may write meanwhile."""

    def __init__(
        self, connection: sqlite3.Connection, file: Path, archive_folder: Path, log_damage: wal.LogDamage | None
    ) -> None:
        self._connection, self._file, self._archive = connection, file, archive_folder
        self._log_damage = log_damage
        self._damages: list[Damage] = []
        self._further_damages = 0
        self._unchecked = 0
        self._covered = 0
        """The sequence number of the newest undamaged snapshot; a start needs only later events."""

    def run(self) -> Verified:
        """Verify everything. Snapshots come before events, since they decide which events are needed."""
        self._log()
        self._structure()
        kept = self._snapshots()
        archived, last = self._archives()
        events = self._events(last)
        answers = self._answers()
        ended = self._ended()
        self._spans()
        self._promises()
        return Verified(
            events, archived, self._unchecked, kept, answers, ended, tuple(self._damages), self._further_damages
        )

    def _note(self, damage: Damage) -> None:
        if len(self._damages) < MOST_SHOWN:
            self._damages.append(damage)
        else:
            self._further_damages += 1

    def _log(self) -> None:
        if self._log_damage is not None:
            what = f"{self._log_damage}: after a crash SQLite ignores what follows, the last events among it"
            self._note(Damage(f"write-ahead log {wal.log_of(self._file).name}", what))

    def _structure(self) -> None:
        try:
            for (line,) in self._connection.execute(f"PRAGMA integrity_check({MOST_SHOWN})"):
                if line != "ok":
                    self._note(Damage("file structure", f"SQLite says: {line}"))
        except sqlite3.DatabaseError as error:
            self._note(Damage("file structure", f"SQLite says: {error}"))

    def _snapshots(self) -> int:
        """Verify the snapshots, note the newest undamaged one, and return how many there are."""
        count, wrong = 0, []
        try:
            for row in self._connection.execute(snapshots.SELECT):
                count += 1
                if snapshots.is_whole(row):
                    self._covered = max(self._covered, row[0])
                else:
                    wrong.append(row[0])
        except (sqlite3.DatabaseError, TypeError) as error:
            self._note(Damage("snapshots", f"They cannot be read: {error}"))
        for seq in wrong:
            self._note(
                Damage(
                    f"snapshot after event {seq}",
                    "It does not match its checksum; a start reads the events instead.",
                    needed=False,
                )
            )
        return count

    def _archives(self) -> tuple[int, int]:
        """Verify the archive files, and return the number of their events and the last one's sequence number."""
        count = last = 0
        try:
            files = self._connection.execute(
                "SELECT first_seq, last_seq, file, created_at, checksum FROM archives ORDER BY first_seq"
            ).fetchall()
        except sqlite3.DatabaseError as error:
            self._note(Damage("list of archive files", f"It cannot be read: {error}"))
            return 0, 0
        for first, until, name, created_at, checksum in files:
            if checksum is not None and codec.checksum_of(first, until, name, created_at) != checksum:
                self._note(Damage(f"name of archive file {name}", "It does not match its checksum", needed=False))
            if first != last + 1:
                self._note(self._missing(last + 1, first - 1))
            count += self._archive_file(self._archive / str(name), first, until)
            last = until
        return count, last

    def _archive_file(self, file: Path, first: int, last: int) -> int:
        """Verify one archive file, which should have the events `first` to `last`, and return how many it has."""
        seq = first - 1
        try:
            for line in archive.lines(file):
                seq += 1
                try:
                    record = codec.from_line(line)
                    self._unchecked += b'"checksum":""' in line or b'"checksum"' not in line
                    if record.seq != seq:
                        self._note(self._event(seq, f"{file.name} has event {record.seq} in its place"))
                        seq = record.seq
                except StoreError as error:
                    self._note(self._event(seq, f"{file.name}: {_first_sentence(error)}"))
        except (StoreError, zlib.error) as error:
            self._note(Damage(f"archive file {file.name}", str(error), needed=self._covered < last))
        else:
            if seq != last:
                self._note(self._missing(seq + 1, last))
        return seq - first + 1

    def _events(self, last: int) -> int:
        """Verify the events after number `last`, which are in the table, and return how many there are."""
        count, seq = 0, last
        try:
            for row in self._rows(last):
                count += 1
                if row[0] != seq + 1:
                    self._note(self._missing(seq + 1, row[0] - 1))
                seq = row[0]
                self._unchecked += row[-1] is None
                try:
                    codec.from_row(row)
                except StoreError as error:
                    self._note(self._event(seq, _first_sentence(error)))
        except sqlite3.DatabaseError as error:
            self._note(self._event(seq + 1, f"it and perhaps later ones cannot be read ({error})"))
            return count
        if seq < self._covered:
            self._note(self._missing(seq + 1, self._covered))
        return count

    def _rows(self, seq: int) -> Iterator[Sequence[Any]]:
        while rows := self._connection.execute(_EVENTS, (seq, _PAGE)).fetchall():
            yield from rows
            seq = rows[-1][0]

    def _answers(self) -> int:
        """Verify the answers to requests, and return how many there are."""
        count = 0
        try:
            for row in self._connection.execute(_ANSWERS):
                count += 1
                try:
                    codec.answer_from_row(row)
                except StoreError:
                    self._note(Damage(f"answer to request {row[0]}", "It does not match its checksum", needed=False))
        except (sqlite3.DatabaseError, TypeError) as error:
            self._note(Damage("answers to requests", f"They cannot be read to their end: {error}", needed=False))
        return count

    def _ended(self) -> int:
        """Verify the records of ended jobs, and return how many there are."""
        count = 0
        try:
            for row in self._connection.execute(_ENDED):
                count += 1
                try:
                    accounting.check(row)
                except StoreError as error:
                    self._note(Damage(f"accounting record of job {row[0]}", _first_sentence(error), needed=False))
        except (sqlite3.DatabaseError, TypeError) as error:
            self._note(Damage("accounting", f"It cannot be read to its end: {error}"))
        return count

    def _spans(self) -> None:
        try:
            for row in self._connection.execute(_SPANS):
                if not accounting.is_whole_span(row):
                    where = f"usage of attempt {row[1]} of job {row[0]}"
                    self._note(Damage(where, "It does not match its checksum", needed=False))
        except (sqlite3.DatabaseError, TypeError) as error:
            self._note(Damage("usage of ended jobs", f"It cannot be read to its end: {error}", needed=False))

    def _promises(self) -> None:
        try:
            for row in self._connection.execute(_PROMISES):
                try:
                    codec.promise_from_row(row)
                except StoreError as error:
                    self._note(Damage(f"promised start of job {row[0]}", _first_sentence(error), needed=False))
        except (sqlite3.DatabaseError, TypeError) as error:
            self._note(Damage("promised starts", f"They cannot be read to their end: {error}", needed=False))

    def _event(self, seq: int, what: str) -> Damage:
        return Damage(f"event {seq}", what, needed=seq > self._covered)

    def _missing(self, first: int, last: int) -> Damage:
        where = f"event {first}" if first == last else f"events {first} to {last}"
        return Damage(where, "missing", needed=last > self._covered)


def _first_sentence(error: Exception) -> str:
    return str(error).split(". ", 1)[0].rstrip(".")
