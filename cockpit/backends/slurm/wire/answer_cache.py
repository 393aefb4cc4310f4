"""Folders in which the cockpits of one machine share the answers of Slurm's commands, so that each runs only once.

A user's own folder serves that user's cockpits. One folder for all users (`/run/cockpit-cluster/slurm`, created by
root) is readable by every user and written only by users that all others trust anyway: root, and the user that Slurm
runs as. A file of any other owner is ignored, whatever the folder's mode. The folder for all users is used only for
clusters on which every user may see all jobs (PrivateData).

`UserAnswerCache.get` works in these steps:

1. Use the file of the question if it is fresh.
2. Else take the lock of the question. While another cockpit holds it, that one is running the command: wait.
3. With the lock, look at the file once more: the other cockpit has probably just written it.
4. If it is still not fresh, run the command and write the file.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.model.ids import Millis

FOR_ALL = Path("/run/cockpit-cluster/slurm")
NEVER = Millis(-1)
LOOK_SECONDS = 0.05
SHARED_FACTOR = 2
"""Ordinary users accept a shared answer of this many times the wanted age: a trusted cockpit renews it at that age."""
PATIENCE_SECONDS = 45.0
"""Longest time to wait for another cockpit that runs the same command."""


class CachedAnswer(msgspec.Struct, frozen=True):
    """Content of one cache file: an answer and its time in milliseconds."""

    at: int
    stdout: str
    separator: str
    records: tuple[Record, ...] | None = None


class UserAnswerCache:
    """Shares answers among one user's cockpits; implements `wire.answers.AnswerCache`.

    Errors of the folder are ignored: the command is run as if there were no cache.
    """

    def __init__(self, folder: Path, now: Callable[[], Millis]) -> None:
        """`folder`: the user's own folder for this cluster, which no other user can write to."""
        self._folder, self._now = folder, now

    def outdate(self, program: str) -> None:
        # written aside and renamed, so that no reader finds half a number
        draft = self._folder / f"{program}.changed.{os.getpid()}"
        with suppress(OSError):
            draft.write_text(str(self._now()), encoding="ascii")
            draft.replace(self._folder / f"{program}.changed")

    def outdated_at(self, program: str) -> Millis:
        try:
            at = int((self._folder / f"{program}.changed").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return NEVER
        return Millis(at) if at <= self._now() else NEVER  # a clock that was set back must not outdate every answer

    async def get(
        self, question: str, fresh_ms: int, fetch: Callable[[], Awaitable[Printed]]
    ) -> tuple[Printed, Millis]:
        # A question is an argument vector joined by NUL bytes, which no argument can contain.
        path, program = self._folder / _name(question), question.partition("\0")[0]
        kept = self._fresh(path, fresh_ms, program)  # step 1
        if kept is not None:
            return kept
        lock = await self._lock_question(path)  # step 2
        try:
            kept = self._fresh(path, fresh_ms, program)  # step 3
            return kept if kept is not None else await self._fetch(path, fetch)  # step 4
        finally:
            # closing releases the lock, and so does the end of a killed cockpit; the file stays, since a removal would
            # let two cockpits hold locks of different files
            if lock is not None:
                os.close(lock)

    def _fresh(self, path: Path, fresh_ms: int, program: str) -> tuple[Printed, Millis] | None:
        kept = _read(path, frozenset({os.geteuid()}), self._now(), fresh_ms)
        return kept if kept is not None and kept[1] > self.outdated_at(program) else None

    async def _fetch(self, path: Path, fetch: Callable[[], Awaitable[Printed]]) -> tuple[Printed, Millis]:
        # the time before the command: a change that another cockpit makes meanwhile must outdate this answer
        at = self._now()
        printed = await fetch()
        _write(path, CachedAnswer(at, printed.stdout, printed.separator, printed.records), 0o600)
        return printed, at

    async def _lock_question(self, path: Path) -> int | None:
        """Take the question's lock and return its descriptor; None when the folder has no place for it.

        After `PATIENCE_SECONDS` it returns without the lock: two equal commands are better than a cockpit that hangs.
        """
        try:
            lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        for _ in range(int(PATIENCE_SECONDS / LOOK_SECONDS)):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(LOOK_SECONDS)
            else:
                break
        return lock


class SharedAnswerCache:
    """Uses a folder for all users before the user's own one; implements `wire.answers.AnswerCache`."""

    def __init__(
        self, folder: Path, trusted: frozenset[int], own: UserAnswerCache | None, now: Callable[[], Millis]
    ) -> None:
        """`trusted`: ids of the users whose files are believed."""
        self._folder, self._trusted, self._own, self._now = folder, trusted, own, now
        self._writes_for_all = os.geteuid() in trusted

    def outdate(self, program: str) -> None:
        """Record the change in the user's own folder: a user cannot outdate the answers that others use."""
        if self._own is not None:
            self._own.outdate(program)

    def outdated_at(self, program: str) -> Millis:
        return self._own.outdated_at(program) if self._own is not None else NEVER

    async def get(
        self, question: str, fresh_ms: int, fetch: Callable[[], Awaitable[Printed]]
    ) -> tuple[Printed, Millis]:
        path = self._folder / _name(question)
        factor = 1 if self._writes_for_all else SHARED_FACTOR
        kept = _read(path, self._trusted, self._now(), factor * fresh_ms) if self._is_safe() else None
        if kept is not None and kept[1] > self.outdated_at(question.partition("\0")[0]):
            return kept
        if self._own is None:
            at = self._now()
            printed = await fetch()
        else:
            printed, at = await self._own.get(question, fresh_ms, fetch)
        if self._writes_for_all and _make_folder(self._folder, 0o755) and self._is_safe():
            _write(path, CachedAnswer(at, printed.stdout, printed.separator, printed.records), 0o644)
        return printed, at

    def _is_safe(self) -> bool:
        """Return whether only trusted users can put a file into the folder."""
        return _belongs_to(self._folder, self._trusted)


def _name(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()[:32]


def _read(path: Path, owners: frozenset[int], now: Millis, fresh_ms: int) -> tuple[Printed, Millis] | None:
    """Return the answer and its time if the file is fresh, belongs to one of `owners` and others cannot write to it."""
    try:
        # O_NONBLOCK: a FIFO that another user has put there must not block the cockpit.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            # of the open file: the path may name another one by now
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid not in owners or status.st_mode & 0o022:
                return None
            kept = msgspec.msgpack.decode(file.read(), type=CachedAnswer)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not 0 <= now - kept.at < fresh_ms:
        return None
    # Records are slurmrestd's, whose answers are known to be complete.
    verified = kept.records is not None
    return Printed(kept.stdout, "", 0, kept.separator, verified, kept.records), Millis(kept.at)


def _write(path: Path, kept: CachedAnswer, mode: int) -> None:
    """Write the file atomically; errors are ignored, since the cache may do without it."""
    draft = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        draft.unlink(missing_ok=True)
        # O_EXCL: a file or link that another user has put there is never written to
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.msgpack.encode(kept))
            os.fchmod(descriptor, mode)
        draft.replace(path)


def answer_cache_for(
    cluster: str, own: Path, now: Callable[[], Millis], *, shared: str = "", trusted: frozenset[int] = frozenset()
) -> UserAnswerCache | SharedAnswerCache | None:
    """Return the cache for a cluster's answers; None when no folder can be used.

    `cluster` identifies cluster and user in the user's own folder. `shared` identifies the cluster in the folder for
    all users; empty: its answers are not shared with other users. `trusted`: users whose shared answers are believed.
    """
    mine = _make_folder(own / _name(cluster)[:16], 0o700) if _make_folder(own, 0o700) else None
    cache = UserAnswerCache(mine, now) if mine is not None else None
    if shared and _belongs_to(FOR_ALL, frozenset({0}), sticky=True):
        return SharedAnswerCache(FOR_ALL / _name(shared)[:16], trusted, cache, now)
    return cache


def _belongs_to(folder: Path, owners: frozenset[int], *, sticky: bool = False) -> bool:
    """Return whether it is a folder of one of `owners` that other users cannot change.

    `sticky`: a folder with the sticky bit, such as /tmp, is accepted too: others can only add to it.
    """
    try:
        status = folder.lstat()
    except OSError:
        return False
    closed = not status.st_mode & 0o022 or (sticky and bool(status.st_mode & stat.S_ISVTX))
    return stat.S_ISDIR(status.st_mode) and status.st_uid in owners and closed


def _make_folder(folder: Path, mode: int) -> Path | None:
    """Create the folder with this mode if it is missing; None when it cannot be, or belongs to another user."""
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the local engine requires this mode
        with suppress(FileExistsError):
            # chmod too, since the process's umask takes bits from the mode of mkdir
            folder.mkdir(mode=0o700)
            folder.chmod(mode)
        status = folder.lstat()
    except OSError:
        return None
    return folder if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() else None
