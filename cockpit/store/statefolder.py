"""The folder that one engine owns while it runs: journal, containers, logs and archive."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from cockpit.errors import StoreError
from cockpit.formats.mountinfo import network_filesystem
from cockpit.model.ids import replica_id_from_folder
from cockpit.store.faults import store_errors

_SETTING = "set `state_folder` in config.toml (or COCKPIT_STATE_FOLDER)"


_WITHOUT_JOURNAL = (
    "{journal} is {what}, though beside it there is what jobs left ({left}). Nothing was accepted or changed. "
    "Restore it from a backup; or, to begin anew without these jobs, move {folder} away."
)


class FolderInUse(StoreError):
    """Another engine has the folder; it may be just stopping."""


class StateFolder:
    """A state folder held by this process until `release`, or its end however that comes.

    The lock lives on an open file that children inherit over a bare fork but not over exec.
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def acquire(cls, path: Path) -> StateFolder:
        """Make the folder (mode 0700) if need be and take it. Raises `FolderInUse` when another engine has it,
        another `StoreError` when it is another user's, lies on a network file system, or has lost its journal."""
        _refuse_network(path.absolute())
        path = path.resolve()
        with store_errors(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(path)
            folder = cls(path, _lock(path / "engine.lock"))
            try:
                folder._refuse_without_journal()
                for inner in (folder.containers, folder.logs, folder.archive):
                    inner.mkdir(mode=0o700, exist_ok=True)
            except BaseException:
                folder.release()
                raise
        return folder

    def _refuse_without_journal(self) -> None:
        """An engine that knows of no job would end all that run, and give their ids to others."""
        is_there = self.journal.exists()
        if is_there and self.journal.stat().st_size:
            return
        left = next(self._left_by_jobs(), None)
        if left is not None:
            what = "empty" if is_there else "missing"
            raise StoreError(_WITHOUT_JOURNAL.format(journal=self.journal, what=what, left=left, folder=self.path))

    def _left_by_jobs(self) -> Iterator[Path]:
        """What there is of jobs. A container that an engine only tried containers with, and was killed, is of none."""
        for room in (self.containers, self.logs, self.archive):
            for left in room.iterdir() if room.exists() else ():
                if room != self.containers or replica_id_from_folder(left.name) is not None:
                    yield left

    def release(self) -> None:
        os.close(self._lock)

    @property
    def journal(self) -> Path:
        return self.path / "journal.db"

    @property
    def containers(self) -> Path:
        return self.path / "containers"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def archive(self) -> Path:
        return self.path / "archive"


def _refuse_network(path: Path) -> None:
    kind = network_filesystem(path)
    if kind is not None:
        raise StoreError(
            f"The state folder {path} is on a network file system ({kind}), where locks and durable writes cannot be "
            f"trusted. For a folder on a local disk {_SETTING}."
        )


def _make_private(path: Path) -> None:
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise StoreError(f"The state folder {path} belongs to uid {found.st_uid}. For one of your own {_SETTING}.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o700)


def _lock(file: Path) -> int:
    """An open descriptor with the lock, the file holding this process's id."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise FolderInUse(
            f"Another engine (pid {holder}) uses {file.parent}. See it with `cockpit engine status`, "
            f"stop it with `cockpit engine stop`, or {_SETTING}."
        ) from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
