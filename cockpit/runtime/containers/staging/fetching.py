"""Run the program that measures and copies sources (`shim.fetch`): one process per request, ended with the engine."""

from __future__ import annotations

import asyncio
import signal
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.runtime.containers.spawning import shim_command, shim_environment
from cockpit.runtime.tasks import signal_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.job import Submitter

MOST_UNPACKED = 1 << 40
"""Largest size of an unpacked archive, in bytes."""
_LINE_BYTES = 1 << 20
"""Longest line of the program's output, in bytes; an image's settings are on one line."""
_MOST_KNOWN = 100
"""Most files whose keys are remembered."""
_END_SECONDS = 10
"""Time for the program to clean up in podman before it is killed."""


class FetchKind(StrEnum):
    TREE = "tree"
    """A folder with its whole content."""
    TAR = "tar"
    """A root file system in a tar file."""
    NAMED = "named"
    """An image that podman or docker has under this name."""


class StagingSource(msgspec.Struct, frozen=True):
    """A source of which a job needs a copy."""

    what: str
    """The field of the spec, for error messages."""
    kind: FetchKind
    source: str


class MeasuredSource(msgspec.Struct, frozen=True):
    """The size and properties of a source, measured before or after copying it."""

    key: str
    """Hash of the content; copies with equal keys are shared."""
    size: int
    """Bytes."""
    env: dict[str, str] = {}
    """The image's environment variables (`ENV`)."""
    entrypoint: tuple[str, ...] = ()
    """The image's `ENTRYPOINT`."""
    cmd: tuple[str, ...] = ()
    """The image's `CMD`: the arguments if a job gives none."""
    workdir: str = ""
    """The image's `WORKDIR`."""
    podman: bool = False
    """Whether podman itself makes containers of the image, so that nothing is copied."""


class FetchFailed(Exception):
    """The copy could not be made; the text says why."""


class DiskFull(Exception):
    """The copy would fill the disk beyond its limit."""


class Fetcher:
    """Measures and copies sources with the submitters' rights.

    `rootless`: the engine's user is not root, and copies with that user's rights. `podman`: podman may make the
    containers of images that it has.
    """

    def __init__(self, *, rootless: bool, podman: bool = True, python: str = sys.executable) -> None:
        self._hashed: dict[str, str] = {}
        """Keys of files that were hashed before, by what identifies an unchanged file."""
        self._rootless = rootless
        self._podman = podman and not rootless
        self._python = python

    async def measure(self, wanted: StagingSource, who: Submitter) -> MeasuredSource:
        """Read the whole source with the submitter's rights and return its key and size. Raises FetchFailed."""
        order = {**self._order("measure", wanted, who), "known": self._hashed}
        return await self._run(order, lambda _: None)

    async def copy(
        self,
        wanted: StagingSource,
        who: Submitter,
        measured: MeasuredSource,
        target: str,
        full: int,
        tell: Callable[[int], None],
    ) -> MeasuredSource:
        """Copy the source into the folder `target`, which may contain part of it from an earlier try.

        `full`: percentage to which the disk may be filled. `tell` is called with the number of bytes copied so far.
        Raises FetchFailed or DiskFull. Cancelling it kills the program.
        """
        order = self._order("copy", wanted, who)
        return await self._run({**order, "target": target, "key": measured.key, "full_percent": full}, tell)

    def _order(self, do: str, wanted: StagingSource, who: Submitter) -> dict[str, Any]:
        user = {"user": who.name, "uid": who.uid, "gid": who.gid, "groups": who.groups, "rootless": self._rootless}
        what = {"do": do, "kind": wanted.kind, "what": wanted.what, "source": wanted.source, "podman": self._podman}
        return {**what, **user, "target": "", "key": "", "full_percent": 100, "most_bytes": MOST_UNPACKED, "known": {}}

    async def _run(self, order: dict[str, Any], tell: Callable[[int], None]) -> MeasuredSource:
        # A process of its own: a damaged archive may end it, and ids are switched for a whole process at once.
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
            return await self._result(process, order, tell)
        finally:
            # shielded, since the program must end also when this task is cancelled
            await asyncio.shield(_end(process))

    async def _result(
        self, process: asyncio.subprocess.Process, order: dict[str, Any], tell: Callable[[int], None]
    ) -> MeasuredSource:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        # The docstring of `shim.fetch` lists the lines.
        async for line in process.stdout:
            message = msgspec.json.decode(line)
            if "done" in message:
                tell(message["done"])
            elif "key" in message:
                self._remember(message.get("seen", ""), message["key"])
                return msgspec.convert(message, MeasuredSource)
            elif "full" in message:
                raise DiskFull
            else:
                raise FetchFailed(message["failed"])
        raise FetchFailed(
            f"{order['what']}: the program that copies {order['source']} ended without a result; submit the job again"
        )

    def _remember(self, seen: str, key: str) -> None:
        if seen:
            self._hashed[seen] = key
        # A dict keeps the order of insertion, so this is the oldest key.
        if len(self._hashed) > _MOST_KNOWN:
            del self._hashed[next(iter(self._hashed))]


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program: by SIGTERM first, since it may have to clean up elsewhere; SIGCONT in case it is stopped."""
    signal_process(process, signal.SIGTERM)
    signal_process(process, signal.SIGCONT)
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        signal_process(process, signal.SIGKILL)
        await process.wait()
