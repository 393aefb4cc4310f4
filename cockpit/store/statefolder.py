"""The state folder, which one engine owns while it runs: journal, containers, logs and archive."""

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
    "{journal} is {what}, but the folder has files of jobs ({left}). Nothing was accepted or changed. "
    "Restore the journal from a backup; or, to start without these jobs, move {folder} away."
)

_WITHOUT_LAST_EVENTS = (
    "{journal} has lost its last events: the newest job that it knows is {last}, but there is {left}. Nothing was "
    "accepted or changed. Restore the journal from a newer backup; or, to start without these jobs, move their folders "
    "away from {containers}."
)


class FolderInUse(StoreError):
    """Another engine uses the folder; it may be stopping just now."""


class StateFolder:
    """A state folder that this process has locked until `release`, or until the process ends in any way.

    The lock belongs to an open file, which child processes inherit over a fork without exec, but not over exec.
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def acquire(cls, path: Path) -> StateFolder:
        """Create the folder (mode 0700) if it does not exist, and lock it.

        Raises `FolderInUse` if another engine has locked it, and `StoreError` if it belongs to another user, is on a
        network file system, or has files of jobs but no journal.
        """
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
        """Raise `StoreError` if the journal is missing although the folder has files of jobs.

        An engine with an empty journal would end all running jobs, which it does not know, and use their ids again.
        """
        exists = self.journal.exists()
        if exists and self.journal.stat().st_size:
            return
        file = next(self._files_of_jobs(), None)
        if file is not None:
            what = "empty" if exists else "missing"
            raise StoreError(_WITHOUT_JOURNAL.format(journal=self.journal, what=what, left=file, folder=self.path))

    def refuse_unknown_jobs(self, last: int) -> None:
        """Raise `StoreError` if there is a container of a job after `last`, the newest job of the journal.

        A submission is on the disk before its job starts, so that the journal has lost it. An engine would end the
        running job, which it does not know, and use its id again.
        """
        for file in self.containers.iterdir():
            replica = replica_id_from_folder(file.name)
            if replica is not None and replica.job > last:
                raise StoreError(
                    _WITHOUT_LAST_EVENTS.format(journal=self.journal, last=last, left=file, containers=self.containers)
                )

    def _files_of_jobs(self) -> Iterator[Path]:
        """Yield the containers, logs and archive files of jobs.

        A container folder without a replica's id is none: an engine made it to test the runtime, and was killed then.
        """
        for folder in (self.containers, self.logs, self.archive):
            for file in folder.iterdir() if folder.exists() else ():
                if folder != self.containers or replica_id_from_folder(file.name) is not None:
                    yield file

    def release(self) -> None:
        """Unlock the folder."""
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
    """Raise `StoreError` if the path is on a network file system."""
    kind = network_filesystem(path)
    if kind is not None:
        raise StoreError(
            f"The state folder {path} is on a network file system ({kind}), where locks and durable writes cannot be "
            f"trusted. For a folder on a local disk {_SETTING}."
        )


def _make_private(path: Path) -> None:
    """Take away other users' access. Raises `StoreError` if the folder belongs to another user."""
    status = path.stat()
    if status.st_uid != os.geteuid():
        raise StoreError(f"The state folder {path} belongs to uid {status.st_uid}. For one of your own {_SETTING}.")
    if stat.S_IMODE(status.st_mode) & 0o077:
        path.chmod(0o700)


def _lock(file: Path) -> int:
    """Lock the file, write this process's id into it, and return its open descriptor. Raises `FolderInUse`."""
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
