"""The folder that holds the staged copies, and the records about each copy. All functions block.

<key>/content      the copy; an unfinished one is in <key>.part
<key>/copy.json    the source, the size, and when and by which users it was used
<key>/uses/REPLICA one file per running or held container that uses the copy, also while no engine runs
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cockpit.model.ids import JobId, Millis, replica_id_from_folder
from cockpit.model.staging import StagedCopy
from cockpit.runtime.containers.removal import remove_tree
from cockpit.runtime.containers.shim.metering import percent_used

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cockpit.runtime.containers.staging.fetching import MeasuredSource

_RECORD, _CONTENT, _USES, _PART = "copy.json", "content", "uses", ".part"
_MOST_USERS = 100
"""Most users that a copy's record names, the latest ones."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one copy."""

    what: str
    """`dataset` or `image`."""
    source: str
    size: int
    """Bytes."""
    users: tuple[str, ...]
    made_at: Millis
    used_at: Millis


class CacheStore:
    """The copies of one engine, in its own folder below `place`, since several engines may share one disk.

    `state`: the engine's state folder, whose hash is part of the folder's name.
    """

    def __init__(self, place: Path, state: Path) -> None:
        self.folder = place / f"cockpit-{hashlib.sha256(str(state).encode()).hexdigest()[:8]}"

    def open(self) -> None:
        """Make the folder, readable by the engine's user only. Raises OSError."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        # `place` may be writable for all users, so one of them could have made the folder before the engine.
        if self.folder.lstat().st_uid != os.geteuid() or not self.folder.is_dir() or self.folder.is_symlink():
            raise PermissionError(1, "belongs to another user", str(self.folder))

    def percent_used(self, more: int = 0) -> float:
        """Return how full the disk is, in percent, or would be with `more` bytes added."""
        existing = self.folder if self.folder.exists() else self.folder.parent
        return percent_used(str(existing), more)

    def content(self, key: str) -> Path:
        return self.folder / key / _CONTENT

    def has(self, key: str) -> bool:
        return self.content(key).is_dir()

    def begin(self, key: str) -> Path:
        """Return the folder in which a copy is made; it may contain part of the content from an earlier try."""
        part = self.folder / f"{key}{_PART}" / _CONTENT
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
        return part

    def publish(self, key: str, record: Record) -> None:
        """Make a finished copy available, in one step."""
        part = self.folder / f"{key}{_PART}"
        # the record first, so that each published copy has one
        _write(part / _RECORD, record)
        part.rename(self.folder / key)

    def give_up(self, key: str) -> None:
        """Remove an unfinished copy."""
        remove_tree(self.folder / f"{key}{_PART}")

    def use(self, key: str, replica: str, user: str, now: Millis) -> None:
        """Note that a replica of the user uses the copy from now on. It may be noted already."""
        uses = self.folder / key / _USES
        uses.mkdir(mode=0o700, exist_ok=True)
        # the note before the record: after a crash in between the copy counts as used, and is not removed
        (uses / replica).touch()
        record = self._record(key)
        users = (user, *(other for other in record.users if other != user))[:_MOST_USERS]
        _write(self.folder / key / _RECORD, msgspec.structs.replace(record, users=users, used_at=now))

    def leave(self, replica: str, now: Millis) -> None:
        """Note that a replica uses no copy any more."""
        for use in self.folder.glob(f"*/{_USES}/{replica}"):
            key = use.parent.parent.name
            use.unlink(missing_ok=True)
            _write(self.folder / key / _RECORD, msgspec.structs.replace(self._record(key), used_at=now))

    def users_besides(self, named: Collection[str]) -> set[str]:
        """Return the replicas that use a copy, without those in `named`."""
        return {use.name for use in self.folder.glob(f"*/{_USES}/*")} - set(named)

    def copies(self, now: Millis) -> Iterator[StagedCopy]:
        """Return the finished copies, sorted by key."""
        for path in sorted(self.folder.glob(f"*/{_RECORD}")):
            key = path.parent.name
            if not key.endswith(_PART) and self.has(key):
                yield self._staged_copy(key, now)

    def remove(self, key: str) -> bool:
        """Remove a copy that no replica uses. Returns False if one does."""
        # The folder of uses is the truth: a container of an earlier engine may still have the copy mounted.
        if any((self.folder / key / _USES).glob("*")):
            return False
        doomed = self.folder / f"{key}.gone{_PART}"  # renamed first: no job may start to use a half-removed copy
        try:
            (self.folder / key).rename(doomed)
        except FileNotFoundError:
            return True
        remove_tree(doomed)
        return True

    def tidy(self, making: Collection[str], before: Millis, now: Millis) -> None:
        """Remove copies not used since `before`, and unfinished copies except those with keys in `making`."""
        for part in self.folder.glob(f"*{_PART}"):
            if part.name.removesuffix(_PART) not in making:
                remove_tree(part)
        for copy in self.copies(now):
            if not copy.jobs and copy.used_at <= before:
                self.remove(copy.key)

    def _staged_copy(self, key: str, now: Millis) -> StagedCopy:
        record = self._record(key)
        replicas = [replica_id_from_folder(use.name) for use in (self.folder / key / _USES).glob("*")]
        jobs: list[JobId] = sorted({replica.job for replica in replicas if replica is not None})
        return StagedCopy(
            key=key,
            what=record.what,
            source=record.source,
            size=record.size,
            users=record.users,
            made_at=record.made_at,
            # A copy in use was used just now, however long ago its last job began.
            used_at=now if jobs else record.used_at,
            jobs=tuple(jobs),
        )

    def _record(self, key: str) -> Record:
        return msgspec.json.decode((self.folder / key / _RECORD).read_bytes(), type=Record)


def new_record(what: str, source: str, measured: MeasuredSource, now: Millis) -> Record:
    """Return the record of a copy that was just made."""
    return Record(what=what, source=source, size=measured.size, users=(), made_at=now, used_at=now)


def _write(path: Path, record: Record) -> None:
    draft = path.with_suffix(".new")
    draft.write_bytes(msgspec.json.encode(record))
    draft.rename(path)
