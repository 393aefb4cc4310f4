"""Logs of pods by byte offsets.

Kubernetes has no offsets: a log is read from its beginning or from its last lines. So each log that is read is
copied into a temporary file, and followed there until the container ends or the cockpit does. Of a log that grows
beyond a bound the older half of the copy is dropped.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from typing import IO, TYPE_CHECKING

from cockpit.backends.kubernetes.resources import PODS
from cockpit.errors import CockpitError
from cockpit.model.asking import LogChunk
from cockpit.present.log_lines import left_out_line
from cockpit.runtime.log_search import search_file
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.asking import LogMatches, LogSearch
    from cockpit.runtime.log_search import Part

SILENCE_SECONDS = 4 * 3600.0
"""Longest time without a line: a training may print nothing for hours, and the connection is checked by others."""
FIRST_SECONDS = 2.0
"""How long a reader waits at first for the part of a running container's log that exists already."""
COPY_BYTES = 1 << 20
"""Bytes that are moved at a time."""
MOST_LOGS = 8
"""Most logs that are copied at the same time; the one that was not read for longest is dropped."""
MOST_BYTES = 1 << 30
"""Largest copy of one log. Then its older half is dropped."""
LEAST_BYTES, DISK_SHARE = 64 << 20, 4
"""Size that a copy may have on any disk, and the part of the free disk (one in so many) that a larger one may take."""


class _Copy:
    """The copy of one container's log. A byte has the same offset in the file as in the log: what is dropped of the
    beginning becomes a hole."""

    def __init__(self) -> None:
        self.file = _temporary()
        self.most = max(LEAST_BYTES, min(MOST_BYTES, shutil.disk_usage(tempfile.gettempdir()).free // DISK_SHARE))
        """Bytes that are copied at most."""
        self.first = 0
        """Offset of the first byte that is still there."""
        self.size = 0
        """Bytes that have come, those that were dropped included."""
        self.ended = False
        self.failure: CockpitError | None = None
        self.grown = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def add(self, data: bytes) -> None:
        self.file.seek(0, 2)
        self.file.write(data)
        self.size += len(data)
        if self.size - self.first > self.most:
            self._halve()
        self._wake()

    def end(self, failure: CockpitError | None = None) -> None:
        self.ended, self.failure = True, failure
        self._wake()

    def piece(self, start: int, limit: int) -> LogChunk:
        """Return the bytes from `start` on.

        In the place of the last of those that were dropped a line says how many they are, so that offsets stay.
        """
        line = f"{left_out_line(self.first, 'kubectl logs has them')}\n".encode() if start < self.first else b""
        at = max(start, self.first - len(line))
        skipped = max(start, self.first)
        self.file.seek(skipped)
        data = line[len(line) - (skipped - at) :] + self.file.read(limit)
        ended = self.ended and at + len(data) >= self.size
        return LogChunk(data, at, ended, left_out=at if line else 0, size=self.size)

    async def search(self, request: LogSearch) -> LogMatches:
        """Search a part of what was copied."""
        self.file.flush()
        # Opened anew, since the program moves the file's position.
        fd = os.open(f"/proc/self/fd/{self.file.fileno()}", os.O_RDONLY)
        try:
            return await search_file(fd, request, self._kept)
        finally:
            os.close(fd)

    def _kept(self, part: Part) -> Part:
        return part._replace(begin=max(part.begin, self.first), end=max(part.end, self.first))

    async def wait(self) -> None:
        """Wait for the next growth or the end."""
        if not self.ended:
            await self.grown.wait()

    def drop(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self.file.close()

    def _halve(self) -> None:
        """Drop the older half, up to the next line if one begins soon."""
        self.file.seek(self.size - self.most // 2)
        begin = self.file.tell()
        newline = self.file.read(COPY_BYTES).find(b"\n")
        self.first = begin + newline + 1
        self.file.seek(self.first)
        kept = _temporary()
        kept.seek(self.first)
        shutil.copyfileobj(self.file, kept, COPY_BYTES)
        self.file.close()
        self.file = kept

    def _wake(self) -> None:
        # Wakes those who wait now; the next ones wait for an event of their own.
        self.grown.set()
        self.grown = asyncio.Event()


def _temporary() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="cockpit-log-")


class PodLogs:
    """The logs that this cockpit reads."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._copies: dict[tuple[str, str, int], _Copy] = {}
        self._tasks = Tasks()

    async def read(self, pod: Pod, offset: int, limit: int, *, wait: bool, previous: bool = False) -> LogChunk:
        """Return a piece of the log of the pod's first container. A negative offset counts from the end.

        `previous`: the log of the container's run before its restart. Raises `CockpitError` where there is no log.
        """
        copy = self._copy(pod, previous=previous)
        # The end is known only once everything that exists has come.
        if offset < 0 and not copy.size:
            await self._first(copy)
        start = max(0, copy.size + offset) if offset < 0 else offset
        while start >= copy.size and not copy.ended and (wait or not copy.size):
            if not wait:
                await self._first(copy)
                break
            await copy.wait()
        if copy.failure is not None and not copy.size:
            self._forget(copy)
            raise copy.failure
        if start >= copy.size:
            return LogChunk(b"", start, ended=copy.ended, size=copy.size)
        return copy.piece(start, limit)

    async def search(self, pod: Pod, request: LogSearch, *, previous: bool = False) -> LogMatches:
        """Search a part of the log of the pod's first container. Raises `CockpitError` where there is no log."""
        copy = self._copy(pod, previous=previous)
        if not copy.size:
            await self._first(copy)
        if copy.failure is not None and not copy.size:
            self._forget(copy)
            raise copy.failure
        return await copy.search(request)

    async def close(self) -> None:
        await self._tasks.cancel_all()
        for each in self._copies.values():
            each.drop()
        self._copies = {}

    def _copy(self, pod: Pod, *, previous: bool) -> _Copy:
        container = pod.spec.containers[0].name if pod.spec.containers else ""
        # Each start of the container has a log of its own, which becomes the previous one with the next start.
        starts = next((each.restart_count for each in pod.now.container_statuses or () if each.name == container), 0)
        key = (pod.metadata.uid, container, starts - previous)
        copy = self._copies.pop(key, None)
        if copy is None:
            copy = _Copy()
            path = PODS.path(pod.metadata.namespace, pod.metadata.name, "log")
            query = [("container", container), ("previous" if previous else "follow", "true")]
            copy.task = self._tasks.start(self._follow(copy, path, query), f"the log of {pod.metadata.name}")
        # The last one in the dictionary was read last.
        self._copies[key] = copy
        while len(self._copies) > MOST_LOGS:
            self._copies.pop(next(iter(self._copies))).drop()
        return copy

    async def _follow(self, copy: _Copy, path: str, query: list[tuple[str, str]]) -> None:
        try:
            async with self._api.pieces(path, query, SILENCE_SECONDS) as pieces:
                async for data in pieces:
                    copy.add(data)
        except CockpitError as error:
            copy.end(error)
        else:
            copy.end()

    async def _first(self, copy: _Copy) -> None:
        """Wait until the existing part has come: until nothing follows for a moment, or the log ends."""
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                while not copy.ended:
                    before = copy.size
                    try:
                        async with asyncio.timeout(QUIET_SECONDS if before else FIRST_SECONDS):
                            await copy.wait()
                    except TimeoutError:
                        if before:
                            return
        except TimeoutError:
            return

    def _forget(self, copy: _Copy) -> None:
        for key, each in list(self._copies.items()):
            if each is copy:
                del self._copies[key]
                copy.drop()


QUIET_SECONDS = 0.2
"""After so long without a further piece the existing part of a log has come."""
