"""The folder that copies lie in, and what is known of each. Everything in it blocks.

<key>/content      the copy; what lies in <key>.part is not whole yet
<key>/copy.json    what it is of, its size, and when and by whom it was used
<key>/uses/REPLICA who uses it now: containers that run or are kept, also while no engine does
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

    from cockpit.runtime.containers.staging.fetching import Measured

_RECORD, _CONTENT, _USES, _PART = "copy.json", "content", "uses", ".part"
_MOST_USERS = 100


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Of one copy."""

    what: str
    source: str
    size: int
    users: tuple[str, ...]
    made_at: Millis
    used_at: Millis


class CacheStore:
    """Below `place`, in a folder of the engine that keeps its state in `state`: several may share one disk."""

    def __init__(self, place: Path, state: Path) -> None:
        self.folder = place / f"cockpit-{hashlib.sha256(str(state).encode()).hexdigest()[:8]}"

    def open(self) -> None:
        """Make the folder, for nobody but the engine. Raises OSError."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        found = self.folder.lstat()
        if found.st_uid != os.geteuid() or not self.folder.is_dir() or self.folder.is_symlink():
            raise PermissionError(1, "belongs to somebody else", str(self.folder))

    def percent_used(self, more: int = 0) -> float:
        """Of its disk, with so many bytes more."""
        there = self.folder if self.folder.exists() else self.folder.parent
        return percent_used(str(there), more)

    def content(self, key: str) -> Path:
        return self.folder / key / _CONTENT

    def has(self, key: str) -> bool:
        return self.content(key).is_dir()

    def begin(self, key: str) -> Path:
        """Where the content of a copy is made; there may be a part of it."""
        part = self.folder / f"{key}{_PART}" / _CONTENT
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
        return part

    def publish(self, key: str, record: Record) -> None:
        """What was begun is whole."""
        part = self.folder / f"{key}{_PART}"
        _write(part / _RECORD, record)
        part.rename(self.folder / key)

    def give_up(self, key: str) -> None:
        """Leave nothing of what was begun."""
        remove_tree(self.folder / f"{key}{_PART}")

    def use(self, key: str, replica: str, user: str, now: Millis) -> None:
        """Somebody uses it from now on, who may have said so already."""
        uses = self.folder / key / _USES
        uses.mkdir(mode=0o700, exist_ok=True)
        (uses / replica).touch()
        record = self._record(key)
        users = (user, *(each for each in record.users if each != user))[:_MOST_USERS]
        _write(self.folder / key / _RECORD, msgspec.structs.replace(record, users=users, used_at=now))

    def leave(self, replica: str, now: Millis) -> None:
        """This one uses nothing any more."""
        for use in self.folder.glob(f"*/{_USES}/{replica}"):
            key = use.parent.parent.name
            use.unlink(missing_ok=True)
            _write(self.folder / key / _RECORD, msgspec.structs.replace(self._record(key), used_at=now))

    def users_besides(self, named: Collection[str]) -> set[str]:
        """Replicas that use something and are none of these."""
        return {use.name for use in self.folder.glob(f"*/{_USES}/*")} - set(named)

    def copies(self, now: Millis) -> Iterator[StagedCopy]:
        """The whole ones, by their keys."""
        for path in sorted(self.folder.glob(f"*/{_RECORD}")):
            key = path.parent.name
            if not key.endswith(_PART) and self.has(key):
                yield self._shown(key, now)

    def remove(self, key: str) -> bool:
        """False where somebody uses it. It is nobody's at once, and gone a little later."""
        if any((self.folder / key / _USES).glob("*")):
            return False
        doomed = self.folder / f"{key}.gone{_PART}"
        try:
            (self.folder / key).rename(doomed)
        except FileNotFoundError:
            return True
        remove_tree(doomed)
        return True

    def tidy(self, making: Collection[str], before: Millis, now: Millis) -> None:
        """Remove what was not used since `before`, and parts of copies that nobody makes."""
        for part in self.folder.glob(f"*{_PART}"):
            if part.name.removesuffix(_PART) not in making:
                remove_tree(part)
        for copy in self.copies(now):
            if not copy.jobs and copy.used_at <= before:
                self.remove(copy.key)

    def _shown(self, key: str, now: Millis) -> StagedCopy:
        record = self._record(key)
        replicas = [replica_id_from_folder(use.name) for use in (self.folder / key / _USES).glob("*")]
        jobs: list[JobId] = sorted({each.job for each in replicas if each is not None})
        return StagedCopy(
            key=key,
            what=record.what,
            source=record.source,
            size=record.size,
            users=record.users,
            made_at=record.made_at,
            used_at=now if jobs else record.used_at,
            jobs=tuple(jobs),
        )

    def _record(self, key: str) -> Record:
        return msgspec.json.decode((self.folder / key / _RECORD).read_bytes(), type=Record)


def fresh(what: str, source: str, measured: Measured, now: Millis) -> Record:
    """Of a copy that was just made."""
    return Record(what=what, source=source, size=measured.size, users=(), made_at=now, used_at=now)


def _write(path: Path, record: Record) -> None:
    draft = path.with_suffix(".new")
    draft.write_bytes(msgspec.json.encode(record))
    draft.rename(path)
