"""Make copies of images and datasets, share them between jobs, and keep the disk from being filled (JT-50).

How a job gets its copy:

1. `measured` reads the source with the submitter's rights, and returns the hash of its content: the copy's key. So a
   job gets a copy only if its user can read the source, and equal sources share one copy.
2. `have` waits until there is a finished copy with this key. If another job is making it, it waits for that; if not, it
   starts to copy, after checking that the disk stays below its limit together with all other unfinished copies.
3. `have` notes that the replica uses the copy. A copy in use is never removed.
4. `leave` removes the note. `tidy` removes copies that no replica has used for the configured time.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cockpit.model.ids import Millis
from cockpit.model.staging import FULL_PERCENT, WEEK_SECONDS, Progress, StagedCopy, Staging
from cockpit.present import units
from cockpit.runtime.containers.staging.cache_store import CacheStore, new_record
from cockpit.runtime.containers.staging.fetching import DiskFull, FetchFailed, FetchKind, MeasuredSource, StagingSource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cockpit.engine.ports import Clock, Observer
    from cockpit.model.job import Submitter
    from cockpit.runtime.containers.staging.fetching import Fetcher


Params = ParamSpec("Params")
Result = TypeVar("Result")

_RATE_MS = 10_000
"""Time span over which the copying rate is averaged."""
_KINDS = {FetchKind.TREE: "dataset", FetchKind.TAR: "image", FetchKind.NAMED: "image"}


class Copying:
    """One copy in progress, for all replicas that wait for it."""

    def __init__(self, wanted: StagingSource, measured: MeasuredSource, began_at: Millis) -> None:
        self.wanted = wanted
        self.measured = measured
        self.began_at = began_at
        self.task: asyncio.Task[None] | None = None
        self.waiting: list[Callable[[Progress], None]] = []
        self.done = 0
        self._progress: deque[tuple[Millis, int]] = deque([(began_at, 0)])

    def note_progress(self, done: int, now: Millis) -> None:
        """Note that `done` bytes are copied, and report the progress to all that wait."""
        self.done = min(done, self.measured.size)  # podman may understate an image's size
        self._progress.append((now, self.done))
        while len(self._progress) > 2 and self._progress[0][0] < now - _RATE_MS:
            self._progress.popleft()
        for tell in list(self.waiting):
            tell(self.progress)

    @property
    def progress(self) -> Progress:
        (first, before), (last, after) = self._progress[0], self._progress[-1]
        return Progress(self.done, max(self.measured.size, 1), (after - before) * 1000 // max(1, last - first))


class StagingCache:
    """The staged copies on this machine.

    `rules` returns the administrator's settings for staging, or None; then copies of images are in `state`, the
    engine's state folder.
    """

    def __init__(self, state: Path, rules: Callable[[], Staging | None], clock: Clock, fetcher: Fetcher) -> None:
        self._state = state
        self._rules = rules
        self._clock = clock
        self._fetcher = fetcher
        self._making: dict[str, Copying] = {}
        self._closed = False
        self._changing = asyncio.Lock()

    @property
    def _staging(self) -> Staging:
        own = Staging(folder=str(self._state), keep_seconds=WEEK_SECONDS, full_percent=FULL_PERCENT)
        return self._rules() or own

    @property
    def _store(self) -> CacheStore:
        return CacheStore(Path(self._staging.folder), self._state)

    async def measured(self, wanted: StagingSource, who: Submitter) -> tuple[MeasuredSource, bool]:
        """Measure a source, and return whether it must still be copied. Raises FetchFailed."""
        measured = await self._fetcher.measure(wanted, who)
        return measured, not measured.podman and not await asyncio.to_thread(self._store.has, measured.key)

    async def have(
        self,
        wanted: StagingSource,
        measured: MeasuredSource,
        who: Submitter,
        replica: str,
        tell: Callable[[Progress], None],
    ) -> str:
        """Return the path of a copy, after making it if necessary; it stays until `leave` is called for the replica.

        `tell` is called with the progress. Raises FetchFailed, with a complete sentence. If it is cancelled, the
        unfinished copy is removed, unless other replicas wait for it.
        """
        store = self._store
        try:
            await asyncio.to_thread(store.open)
            # Repeated, since the copying that this waits for may fail or be cancelled, and the next try is this
            # replica's own.
            while not await asyncio.to_thread(store.has, measured.key):
                await self._copy_or_wait(store, wanted, who, measured, tell)
            await self._alone(store.use, measured.key, replica, who.name, self._clock.now())
        except OSError as error:
            where = error.filename or store.folder
            raise FetchFailed(f"{wanted.what}: no copy can be made in {where}: {error.strerror or error}") from None
        return str(store.content(measured.key))

    async def leave(self, replica: str) -> None:
        """Note that the replica uses no copy any more."""
        await self._alone(self._store.leave, replica, self._clock.now())

    async def forget_others(self, named: Collection[str]) -> None:
        """Note, after an engine start, that only the replicas in `named` still exist."""
        store = self._store
        for replica in await asyncio.to_thread(store.users_besides, named):
            await self._alone(store.leave, replica, self._clock.now())

    async def copies(self) -> list[StagedCopy]:
        """List the finished copies and those in progress."""
        store, now = self._store, self._clock.now()
        finished = await self._alone(lambda: list(store.copies(now)))
        return [*finished, *(_copy_in_progress(key, copying, now) for key, copying in self._making.items())]

    async def remove(self, key: str) -> bool:
        """Remove a copy. Returns False if a replica uses it or it is being made."""
        return key not in self._making and await self._alone(self._store.remove, key)

    async def tidy(self) -> None:
        """Remove copies that were not used for the configured time, and unfinished copies that no task makes."""
        now, keep = self._clock.now(), self._staging.keep_seconds
        store, before = self._store, Millis(now - keep * 1000)
        await self._alone(lambda: store.tidy(set(self._making), before, now))

    async def trouble(self) -> str:
        """Return why no further job should start on this machine: its staging disk is too full. Empty: it is not."""
        rules = self._rules()
        if rules is None:
            return ""
        try:
            used = await asyncio.to_thread(self._store.percent_used)
        except OSError:  # a job that needs a copy there gets the error
            return ""
        full = rules.full_percent
        return f"{rules.folder} is filled to {used:.0f} %, beyond {full} %" if used > full else ""

    def close(self) -> None:
        """Keep unfinished copies from now on: the next engine process continues them."""
        self._closed = True

    async def _alone(self, change: Callable[Params, Result], *given: Params.args, **named: Params.kwargs) -> Result:
        """Run `change` in a thread while no other change of the store's records is running."""
        async with self._changing:
            return await asyncio.to_thread(change, *given, **named)

    async def _copy_or_wait(
        self,
        store: CacheStore,
        wanted: StagingSource,
        who: Submitter,
        measured: MeasuredSource,
        tell: Callable[[Progress], None],
    ) -> None:
        """Copy the source, or wait until another replica's copying of it has ended, successfully or not.

        The caller tries again if there is no copy then: the other replica's user may have lost the right to read the
        source, or its job may have been cancelled. If the last waiting replica is cancelled, the copying ends.
        """
        # No await from here to the entry in `_making`: two tasks must not both begin the same copy.
        others = self._making.get(measured.key)
        making = others or self._begin(store, wanted, who, measured)
        making.waiting.append(tell)
        tell(making.progress)
        task = making.task
        assert task is not None
        try:
            # shielded: the cancellation of one waiting replica must not end the copying for the others
            await asyncio.shield(task)
        except FetchFailed:
            if others is None:
                raise
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is None or own.cancelling():  # this task is cancelled; otherwise only the copying was
                raise
        finally:
            making.waiting.remove(tell)
            if not making.waiting and not task.done():
                task.cancel()
                # its files are removed before the next try begins in the same folder
                await asyncio.wait([task])

    def _begin(self, store: CacheStore, wanted: StagingSource, who: Submitter, measured: MeasuredSource) -> Copying:
        making = self._making[measured.key] = Copying(wanted, measured, self._clock.now())
        making.task = asyncio.get_running_loop().create_task(self._copy(store, making, who))
        return making

    async def _copy(self, store: CacheStore, making: Copying, who: Submitter) -> None:
        wanted, measured, key = making.wanted, making.measured, making.measured.key
        full = self._staging.full_percent
        try:
            if await asyncio.to_thread(store.has, key):  # another task finished it between the caller's check and now
                return
            await self._check_disk(store, full)
            part = await self._alone(store.begin, key)
            copied = await self._fetcher.copy(
                wanted, who, measured, str(part), full, lambda done: making.note_progress(done, self._clock.now())
            )
            record = new_record(_KINDS[wanted.kind], wanted.source, copied, self._clock.now())
            await asyncio.to_thread(store.publish, key, record)
        except DiskFull:
            raise FetchFailed(await self._disk_full(store, wanted, measured, full)) from None
        finally:
            # A closing engine leaves its files to the next one.
            if not self._closed:
                await asyncio.to_thread(store.give_up, key)
            # last: until then another job waits for this copying instead of beginning its own
            del self._making[key]

    async def _check_disk(self, store: CacheStore, full: int) -> None:
        """Check that all copies in progress together do not fill the disk beyond `full` %. Raises DiskFull."""
        remaining = sum(copying.measured.size - copying.done for copying in self._making.values())
        if await asyncio.to_thread(store.percent_used, remaining) > full:
            raise DiskFull

    async def _disk_full(self, store: CacheStore, wanted: StagingSource, measured: MeasuredSource, full: int) -> str:
        used = await asyncio.to_thread(store.percent_used)
        place, size = os.fspath(store.folder.parent), units.memory(measured.size >> 20)
        return (
            f"{wanted.what}: {wanted.source} ({size}) would fill {place} beyond {full} %, and {used:.0f} % are used; "
            "an administrator can free space with `cockpit staged`"
        )


def _copy_in_progress(key: str, making: Copying, now: Millis) -> StagedCopy:
    return StagedCopy(
        key=key,
        what=_KINDS[making.wanted.kind],
        source=making.wanted.source,
        size=making.measured.size,
        users=(),
        made_at=making.began_at,
        used_at=now,
        jobs=(),
        progress=making.progress,
    )


LOOK_SECONDS = 30.0
"""Interval between two checks of the disk."""


async def watch_disk(cache: StagingCache, observer: Observer, *, every: float = LOOK_SECONDS) -> None:
    """Check the disk every `every` seconds, until cancelled.

    The first removal comes only after one interval: by then the jobs that were recovered have taken up their unfinished
    copies, which would otherwise be removed.
    """
    before: bool | None = None
    while True:
        trouble = await cache.trouble()
        # Only changes are reported: each becomes an event in the journal.
        if bool(trouble) != before:
            observer.disk_filled(trouble)
        before = bool(trouble)
        await asyncio.sleep(every)
        await cache.tidy()
