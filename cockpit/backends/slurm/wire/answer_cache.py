"""Folders where the cockpits of one machine leave each other their answers, so that many of them ask once.

A user's own folder serves that user's cockpits. One folder for all (`/run/cockpit-cluster/slurm`, made by root) is read
by everybody and written by those alone whom everybody believes anyway: root, and the user that the cluster runs as. A
file of anybody else is not read, whatever the folder's mode. It is used only for clusters whose jobs everybody may see
(PrivateData).
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

from cockpit.backends.slurm.wire.calls import Printed
from cockpit.model.ids import Millis

FOR_ALL = Path("/run/cockpit-cluster/slurm")
NEVER = Millis(-1)
LOOK_SECONDS = 0.05
SHARED_FACTOR = 2
"""An answer for all may be so many times as old as one that is asked for: it is asked for again just then."""
PATIENCE_SECONDS = 45.0
"""So long another cockpit's question is waited for."""


class Kept(msgspec.Struct, frozen=True):
    """One file: an answer and when it was given."""

    at: int
    stdout: str
    separator: str


class UserAnswerCache:
    """Implements `wire.answers.AnswerCache`. A folder that cannot be used is none: the question is asked."""

    def __init__(self, folder: Path, now: Callable[[], Millis]) -> None:
        """`folder`: the user's own for this cluster, which no other user can write to."""
        self._folder, self._now = folder, now

    def outdate(self, program: str) -> None:
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
        path, program = self._folder / _name(question), question.partition("\0")[0]
        kept = self._fresh(path, fresh_ms, program)
        if kept is not None:
            return kept
        lock = await self._locked(path)
        try:
            kept = self._fresh(path, fresh_ms, program)
            return kept if kept is not None else await self._fetched(path, fetch)
        finally:
            if lock is not None:
                os.close(lock)

    def _fresh(self, path: Path, fresh_ms: int, program: str) -> tuple[Printed, Millis] | None:
        kept = _read(path, frozenset({os.geteuid()}), self._now(), fresh_ms)
        return kept if kept is not None and kept[1] > self.outdated_at(program) else None

    async def _fetched(self, path: Path, fetch: Callable[[], Awaitable[Printed]]) -> tuple[Printed, Millis]:
        at = self._now()
        printed = await fetch()
        _write(path, Kept(at, printed.stdout, printed.separator), 0o600)
        return printed, at

    async def _locked(self, path: Path) -> int | None:
        """Whoever has it asks; the others wait for that answer, but not for ever."""
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
    """Implements `wire.answers.AnswerCache` over a folder for all users, and the user's own behind it."""

    def __init__(
        self, folder: Path, trusted: frozenset[int], own: UserAnswerCache | None, now: Callable[[], Millis]
    ) -> None:
        """`trusted`: the users whose answers everybody believes."""
        self._folder, self._trusted, self._own, self._now = folder, trusted, own, now
        self._asks_for_all = os.geteuid() in trusted

    def outdate(self, program: str) -> None:
        """In the user's own folder: what others are told by the one that asks for all is not for a user to say."""
        if self._own is not None:
            self._own.outdate(program)

    def outdated_at(self, program: str) -> Millis:
        return self._own.outdated_at(program) if self._own is not None else NEVER

    async def get(
        self, question: str, fresh_ms: int, fetch: Callable[[], Awaitable[Printed]]
    ) -> tuple[Printed, Millis]:
        path = self._folder / _name(question)
        patience = 1 if self._asks_for_all else SHARED_FACTOR
        kept = _read(path, self._trusted, self._now(), patience * fresh_ms) if self._is_safe() else None
        if kept is not None and kept[1] > self.outdated_at(question.partition("\0")[0]):
            return kept
        if self._own is None:
            at = self._now()
            printed = await fetch()
        else:
            printed, at = await self._own.get(question, fresh_ms, fetch)
        if self._asks_for_all and _made(self._folder, 0o755) and self._is_safe():
            _write(path, Kept(at, printed.stdout, printed.separator), 0o644)
        return printed, at

    def _is_safe(self) -> bool:
        """No one but those trusted can put a file there."""
        return _belongs_to(self._folder, self._trusted)


def _name(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()[:32]


def _read(path: Path, owners: frozenset[int], now: Millis, fresh_ms: int) -> tuple[Printed, Millis] | None:
    """The answer, where one of these users wrote it, nobody else can have, and it is not older than that."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in owners or found.st_mode & 0o022:
                return None
            kept = msgspec.msgpack.decode(file.read(), type=Kept)
    except (OSError, msgspec.DecodeError):
        return None
    return (Printed(kept.stdout, "", 0, kept.separator), Millis(kept.at)) if 0 <= now - kept.at < fresh_ms else None


def _write(path: Path, kept: Kept, mode: int) -> None:
    """Whole or not at all; a folder that cannot be written to keeps nothing."""
    draft = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.msgpack.encode(kept))
            os.fchmod(descriptor, mode)
        draft.replace(path)


def answer_cache_for(
    cluster: str, own: Path, now: Callable[[], Millis], *, shared: str = "", trusted: frozenset[int] = frozenset()
) -> UserAnswerCache | SharedAnswerCache | None:
    """Where answers of this cluster lie. `cluster` tells it and the asker from others in the user's own folder;
    `shared` tells it from others in the folder for all; empty: its answers are not for others. None: nowhere."""
    mine = _made(own / _name(cluster)[:16], 0o700) if _made(own, 0o700) else None
    cache = UserAnswerCache(mine, now) if mine is not None else None
    if shared and _belongs_to(FOR_ALL, frozenset({0}), sticky=True):
        return SharedAnswerCache(FOR_ALL / _name(shared)[:16], trusted, cache, now)
    return cache


def _belongs_to(folder: Path, owners: frozenset[int], *, sticky: bool = False) -> bool:
    """It is a folder of one of these, which others cannot change; `sticky`: or can only add to, as to /tmp."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    closed = not found.st_mode & 0o022 or (sticky and bool(found.st_mode & stat.S_ISVTX))
    return stat.S_ISDIR(found.st_mode) and found.st_uid in owners and closed


def _made(folder: Path, mode: int) -> Path | None:
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # this user's, whose engine wants it so
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            folder.chmod(mode)
        found = folder.lstat()
    except OSError:
        return None
    return folder if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() else None
