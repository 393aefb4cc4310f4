"""Runs the program that measures and copies, see `shim.fetch`: one process for each, which ends with the engine."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.runtime.containers.spawning import shim_command, shim_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.job import Submitter

MOST_UNPACKED = 1 << 40
_LINE_BYTES = 1 << 20
_MOST_KNOWN = 100
_END_SECONDS = 10


class FetchKind(StrEnum):
    TREE = "tree"
    """A folder with all that is in it."""
    TAR = "tar"
    """A root file system in one file."""
    NAMED = "named"
    """One that podman or docker has under this name."""


class Wanted(msgspec.Struct, frozen=True):
    """What somebody wants to have a copy of."""

    what: str
    """The spec's field, for messages."""
    kind: FetchKind
    source: str


class Measured(msgspec.Struct, frozen=True):
    """What there is to be copied, or was."""

    key: str
    """Of what it holds."""
    size: int
    """Bytes."""
    env: dict[str, str] = {}
    """Of an image: variables that it brings."""
    entrypoint: tuple[str, ...] = ()
    """Of an image: the program that it runs, with its first arguments."""
    cmd: tuple[str, ...] = ()
    """Of an image: the arguments behind that where a job gives none."""
    workdir: str = ""
    """Of an image: the folder that its program begins in."""
    podman: bool = False
    """Of an image: podman makes its containers, so that nothing is copied."""


class FetchFailed(Exception):
    """There is no copy; the text says why."""


class NoRoom(Exception):
    """It would fill the disk beyond its mark."""


class Fetcher:
    """`rootless`: the engine's user is not root, and copies with that user's own rights; `podman`: it may make the
    containers of the images that it has."""

    def __init__(self, *, rootless: bool, podman: bool = True, python: str = sys.executable) -> None:
        self._known: dict[str, str] = {}
        """Digests of files that were looked through, as long as they stay what they are."""
        self._rootless = rootless
        self._podman = podman and not rootless
        self._python = python

    async def measure(self, wanted: Wanted, who: Submitter) -> Measured:
        """Looks through all of it with the submitter's rights. Raises FetchFailed."""
        order = {**self._order("measure", wanted, who), "known": self._known}
        return await self._run(order, lambda _: None)

    async def copy(
        self, wanted: Wanted, who: Submitter, measured: Measured, target: str, full: int, tell: Callable[[int], None]
    ) -> Measured:
        """Into the folder `target`, which is there, perhaps with a part of it; `tell` is told how many bytes are done.
        Raises FetchFailed or NoRoom. Cancelling it kills the program."""
        order = self._order("copy", wanted, who)
        return await self._run({**order, "target": target, "key": measured.key, "full_percent": full}, tell)

    def _order(self, do: str, wanted: Wanted, who: Submitter) -> dict[str, Any]:
        asker = {"user": who.name, "uid": who.uid, "gid": who.gid, "groups": who.groups, "rootless": self._rootless}
        what = {"do": do, "kind": wanted.kind, "what": wanted.what, "source": wanted.source, "podman": self._podman}
        return {**what, **asker, "target": "", "key": "", "full_percent": 100, "most_bytes": MOST_UNPACKED, "known": {}}

    async def _run(self, order: dict[str, Any], tell: Callable[[int], None]) -> Measured:
        process = await asyncio.create_subprocess_exec(
            *shim_command(self._python, "fetch"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env=shim_environment(),
            limit=_LINE_BYTES,
        )
        try:
            return await self._heard(process, order, tell)
        finally:
            await asyncio.shield(_ended(process))

    async def _heard(
        self, process: asyncio.subprocess.Process, order: dict[str, Any], tell: Callable[[int], None]
    ) -> Measured:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        async for line in process.stdout:
            said = msgspec.json.decode(line)
            if "done" in said:
                tell(said["done"])
            elif "key" in said:
                self._remember(said.get("seen", ""), said["key"])
                return msgspec.convert(said, Measured)
            elif "full" in said:
                raise NoRoom
            else:
                raise FetchFailed(said["failed"])
        raise FetchFailed(f"{order['what']}: what copies {order['source']} ended without a word; submit the job again")

    def _remember(self, seen: str, key: str) -> None:
        if seen:
            self._known[seen] = key
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Asked first: it may have begun something elsewhere. One that stands still would not hear it."""
    with suppress(ProcessLookupError):
        process.terminate()
        process.send_signal(signal.SIGCONT)
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
