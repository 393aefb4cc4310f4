"""A folder where the cockpits of one machine leave each other their answers, so that many of them ask once.

A user's own folder serves that user's cockpits. Where an administrator has made one for all, root's and sticky like
/tmp (`/run/cockpit-cluster/slurm`), it serves everybody, and its answers are believed whoever left them there: that is
the administrator's choice, and only for clusters whose jobs everybody may see anyway (PrivateData).
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
PATIENCE_SECONDS = 45.0
"""So long another cockpit's question is waited for."""


class Kept(msgspec.Struct, frozen=True):
    """One file: an answer and when it was given."""

    at: int
    stdout: str
    separator: str


class FolderShelf:
    """Implements `wire.answers.Shelf`. A folder that cannot be used is none: the question is asked."""

    def __init__(self, folder: Path, now: Callable[[], Millis], own: Path | None = None) -> None:
        """`own`: the user's own folder for this cluster, which no other user can write to; None: `folder` is it."""
        self._folder, self._now, self._own = folder, now, own or folder

    def outdate(self, program: str) -> None:
        draft = self._own / f"{program}.changed.{os.getpid()}"
        with suppress(OSError):
            draft.write_text(str(self._now()), encoding="ascii")
            draft.replace(self._own / f"{program}.changed")

    def outdated_at(self, program: str) -> Millis:
        try:
            at = int((self._own / f"{program}.changed").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return NEVER
        return Millis(at) if at <= self._now() else NEVER  # a clock that was set back must not outdate every answer

    async def get(
        self, question: str, fresh_ms: int, fetch: Callable[[], Awaitable[Printed]]
    ) -> tuple[Printed, Millis]:
        path = self._folder / hashlib.sha256(question.encode()).hexdigest()[:32]
        program = question.partition("\0")[0]
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
        try:
            kept = msgspec.msgpack.decode(path.read_bytes(), type=Kept)
        except (OSError, msgspec.DecodeError):
            return None
        if not 0 <= self._now() - kept.at < fresh_ms or kept.at <= self.outdated_at(program):
            return None
        return Printed(kept.stdout, "", 0, kept.separator), Millis(kept.at)

    async def _fetched(self, path: Path, fetch: Callable[[], Awaitable[Printed]]) -> tuple[Printed, Millis]:
        at = self._now()
        printed = await fetch()
        draft = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            draft.write_bytes(msgspec.msgpack.encode(Kept(at, printed.stdout, printed.separator)))
            draft.replace(path)
        return printed, at

    async def _locked(self, path: Path) -> int | None:
        """Whoever has it asks; the others wait for that answer, but not for ever."""
        try:
            lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
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


def folder_for(cluster: str, own: Path, *, private: bool) -> Path | None:
    """Where answers of this cluster (any name for it) lie. `private`: they are not for others' eyes. None: nowhere."""
    if not private and _is_for_all(FOR_ALL):
        return _made(FOR_ALL / hashlib.sha256(cluster.encode()).hexdigest()[:16], 0o1777)
    return own_folder_for(cluster, own)


def own_folder_for(cluster: str, own: Path) -> Path | None:
    """Where this user notes what they changed on this cluster. None: nowhere."""
    name = hashlib.sha256(cluster.encode()).hexdigest()[:16]
    return _made(own / name, 0o700) if _made(own, 0o700) else None


def _is_for_all(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and bool(found.st_mode & stat.S_ISVTX)


def _made(folder: Path, mode: int) -> Path | None:
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # this user's, whose engine wants it so
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(mode)
        found = folder.lstat()
    except OSError:
        return None
    usable = stat.S_ISDIR(found.st_mode) and (mode == 0o1777 or found.st_uid == os.geteuid())
    return folder if usable else None
