"""One attempt's folder: the files through which engine and shim communicate, also after either has been killed.

plan.json     what to run; written durably before the shim is spawned, never changed
lock          locked (open file description lock) by the one shim of this attempt
shim.json     durable: the identity of the holder (see `identity`), and whether it holds plain processes. If it
              exists, the command may have run, and is never started again
beginning.json  the command may start at any moment; without this file, it has not started
started.json  the command runs: how its limits are enforced
running       exists while the command runs; removing it needs no space on a full disk
exit.json     durable: the command has ended and every process of the container is dead
kept.json     the container is held: whether it keeps its cards, and until when (in milliseconds)
upper work root stage   the file system, see `view`
workspace tmp           folders of plain processes, see `plain`
podman.pid              of a podman container, written by podman
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time

from cockpit.runtime.containers.shim import linux
from cockpit.runtime.containers.shim.identity import open_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    Record = dict[str, Any]

    class MountDict(TypedDict):
        """`plan.Mount` as the shim reads it."""

        what: str
        source: str
        target: str
        writable: bool
        create: bool
        copied: bool

    class ScriptFilesDict(TypedDict):
        """`launch.batchscript.ScriptFiles` as the shim reads it."""

        stdin: str
        stdout: str
        stderr: str
        append: bool

    class PlanDict(TypedDict):
        """`plan.ContainerPlan` as the shim reads it; a test holds the two together."""

        argv: list[str]
        hooks: dict[str, str]
        grace_seconds: int
        env: dict[str, str]
        kept_env: dict[str, str]
        workdir: str
        hostname: str
        user: str
        uid: int
        gid: int
        groups: list[int]
        home: str
        home_access: str
        shared_home: str
        mounts: list[MountDict]
        image: MountDict | None
        podman: str
        devices: list[str]
        network: str
        address: str
        gateway: str
        prefix: int
        hosts: dict[str, str]
        relays: dict[str, str]
        files: dict[str, str]
        script_files: ScriptFilesDict | None
        early_signal: dict[str, Any] | None
        card_limits: str
        cards: list[str]
        cpus: int
        memory_mib: int
        pids: int
        scratch_mib: int
        cgroup: str
        rootless: bool
        may_be_plain: bool
        filtered: bool
        log_limit_mib: int
        state: str
        socket: str
        stdout: str
        stderr: str


_EXIT_BYTES = 4096
"""Size of the exit record: one block of most file systems, reserved before the command starts."""
_MOMENT = 0.01
"""Interval in seconds between two looks at the lock."""
_NOTIFY = "notify"


class Attempt:
    """An attempt's folder, below `<state>/containers/`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self.state = os.path.dirname(os.path.dirname(path))

    def file(self, *parts: str) -> str:
        return os.path.join(self.path, *parts)

    def read(self, name: str) -> Record | None:
        """Read a record; None if there is none, or an incomplete one (records written durably never are)."""
        try:
            with open(self.file(name), "rb") as stream:
                record: Record = json.load(stream)
        except (FileNotFoundError, ValueError):
            return None
        return record

    def plan(self) -> PlanDict:
        with open(self.file("plan.json"), "rb") as stream:
            plan: PlanDict = json.load(stream)
        return plan

    def has_cards(self) -> bool:
        """Return whether the container may use its cards: always, unless it is held without them."""
        kept = self.read("kept.json")
        return kept is None or bool(kept["cards"] == "keep")

    def write(self, name: str, record: Record, *, durable: bool = True) -> None:
        """Replace a record in one step; `durable`: on the disk when this returns."""
        self.write_bytes(name, json.dumps(record).encode(), durable=durable)

    def write_bytes(self, name: str, content: bytes, *, durable: bool = True) -> None:
        draft = self.file(f".{name}.new")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        _write_all(fd, content, durable=durable)
        self._publish(draft, name, durable=durable)

    def forget(self, name: str) -> None:
        """Remove a record, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.file(name))

    def reserve_exit(self) -> None:
        """Reserve the disk space of the exit record, before the job can fill the disk."""
        fd = os.open(self.file(".exit.json.new"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _write_all(fd, b" " * _EXIT_BYTES, durable=False)

    def write_exit(self, record: Record) -> None:
        """Write the exit record into the reserved space, padded with spaces, which JSON allows."""
        draft = self.file(".exit.json.new")
        # without O_TRUNC, which would free the blocks that `reserve_exit` has taken
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _write_all(fd, json.dumps(record).encode().ljust(_EXIT_BYTES), durable=True)
        self._publish(draft, "exit.json", durable=True)

    def _publish(self, draft: str, name: str, *, durable: bool) -> None:
        # rename is atomic: a reader finds the old record or the new one, never a part
        os.rename(draft, self.file(name))
        # the content was synced before; the name is safe only once its folder is synced too (fsync(2))
        if durable:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def take_lock(self) -> int | None:
        """Lock the attempt; return the lock's descriptor, or None if another shim holds it."""
        fd = os.open(self.file("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if linux.try_lock(fd):
            return fd
        os.close(fd)
        return None

    def is_locked(self) -> bool:
        try:
            fd = os.open(self.file("lock"), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return linux.is_locked(fd)
        finally:
            os.close(fd)

    def wait_unlocked(self) -> None:
        """Wait until neither a shim of the attempt nor a process that it has forked holds the lock."""
        while self.is_locked():
            time.sleep(_MOMENT)

    def open_holder(self) -> int | None:
        """Return a pidfd of the living holder, or None."""
        identity = self.read("shim.json")
        return None if identity is None else open_process(identity)

    def holder_pid(self) -> int:
        """Return the pid of the living holder; 0 without one."""
        identity = self.read("shim.json")
        pidfd = open_process(identity) if identity is not None else None
        if identity is None or pidfd is None:
            return 0
        os.close(pidfd)
        return int(identity["pid"])

    def is_served(self) -> bool:
        """Return whether an engine is running."""
        try:  # opening a FIFO for writing fails with ENXIO if no process reads it
            fifo = os.open(os.path.join(self.state, _NOTIFY), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return error.errno not in (errno.ENXIO, errno.ENOENT)
        os.close(fifo)
        return True

    def notify(self) -> bool:
        """Let the engine read this folder's records. Returns False if it must be tried again; no engine is no error."""
        try:
            fifo = os.open(os.path.join(self.state, _NOTIFY), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return error.errno in (errno.ENXIO, errno.ENOENT)
        try:
            os.write(fifo, f"{self.name}\n".encode())
        # the FIFO is full: the engine has not read its earlier notices yet
        except BlockingIOError:
            return False
        finally:
            os.close(fifo)
        return True


def is_disk_full(error: Exception) -> bool:
    """Return whether a write failed for lack of space, which the machine may have again at the next try."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _write_all(fd: int, content: bytes, *, durable: bool) -> None:
    try:
        while content:
            content = content[os.write(fd, content) :]
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
