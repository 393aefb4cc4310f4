"""Has copies made, shares them between jobs, and keeps its disk from being filled (JT-50)."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cockpit.model.ids import Millis
from cockpit.model.staging import FULL_PERCENT, WEEK_SECONDS, Progress, StagedCopy, Staging
from cockpit.present import units
from cockpit.runtime.containers.staging.cache_store import CacheStore, fresh
from cockpit.runtime.containers.staging.fetching import FetchFailed, FetchKind, Measured, NoRoom, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cockpit.engine.ports import Clock
    from cockpit.model.job import Submitter
    from cockpit.runtime.containers.staging.fetching import Fetcher

Given = ParamSpec("Given")
Told = TypeVar("Told")

_RATE_MS = 10_000
"""The rate is that of so long a time."""
_KINDS = {FetchKind.TREE: "dataset", FetchKind.TAR: "image", FetchKind.NAMED: "image"}


class Copying:
    """One copy that is being made, for all who wait for it."""

    def __init__(self, wanted: Wanted, measured: Measured, began_at: Millis) -> None:
        self.wanted = wanted
        self.measured = measured
        self.began_at = began_at
        self.task: asyncio.Task[None] | None = None
        self.waiting: list[Callable[[Progress], None]] = []
        self.done = 0
        self._seen: deque[tuple[Millis, int]] = deque([(began_at, 0)])

    def came_to(self, done: int, now: Millis) -> None:
        """So many bytes are there; of an image more may come than podman says that it has."""
        self.done = min(done, self.measured.size)
        self._seen.append((now, self.done))
        while len(self._seen) > 2 and self._seen[0][0] < now - _RATE_MS:
            self._seen.popleft()
        for tell in list(self.waiting):
            tell(self.progress)

    @property
    def progress(self) -> Progress:
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return Progress(self.done, max(self.measured.size, 1), (after - before) * 1000 // max(1, last - first))


class StagingCache:
    """`rules`: where the administrator wants staged copies; images have a place also without one, in `state`."""

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
    def _shelf(self) -> CacheStore:
        return CacheStore(Path(self._staging.folder), self._state)

    async def measured(self, wanted: Wanted, who: Submitter) -> tuple[Measured, bool]:
        """What there is to be copied, and whether it still has to be. Raises FetchFailed."""
        measured = await self._fetcher.measure(wanted, who)
        return measured, not measured.podman and not await asyncio.to_thread(self._shelf.has, measured.key)

    async def have(
        self, wanted: Wanted, measured: Measured, who: Submitter, replica: str, tell: Callable[[Progress], None]
    ) -> str:
        """The path of a copy that stays while the replica is there. `tell` is told how it comes on while it is being
        made. Raises FetchFailed, with a sentence that needs nothing beside it. Cancelled, it leaves nothing half,
        unless others wait for the same."""
        shelf = self._shelf
        try:
            await asyncio.to_thread(shelf.open)
            while not await asyncio.to_thread(shelf.has, measured.key):
                await self._made(shelf, wanted, who, measured, tell)
            await self._alone(shelf.use, measured.key, replica, who.name, self._clock.now())
        except OSError as error:
            where = error.filename or shelf.folder
            raise FetchFailed(f"{wanted.what}: no copy can be made in {where}: {error.strerror or error}") from None
        return str(shelf.content(measured.key))

    async def leave(self, replica: str) -> None:
        """The replica is gone."""
        await self._alone(self._shelf.leave, replica, self._clock.now())

    async def forget_others(self, named: Collection[str]) -> None:
        """After an engine start: only these replicas are there."""
        shelf = self._shelf
        for each in await asyncio.to_thread(shelf.users_besides, named):
            await self._alone(shelf.leave, each, self._clock.now())

    async def copies(self) -> list[StagedCopy]:
        """Whole ones and those that are being made."""
        shelf, now = self._shelf, self._clock.now()
        whole = await self._alone(lambda: list(shelf.copies(now)))
        return [*whole, *(_half(key, each, now) for key, each in self._making.items())]

    async def remove(self, key: str) -> bool:
        """False where somebody uses it, or it is being made."""
        return key not in self._making and await self._alone(self._shelf.remove, key)

    async def tidy(self) -> None:
        """Remove what was not used for as long as it is kept."""
        now, keep = self._clock.now(), self._staging.keep_seconds
        shelf, before = self._shelf, Millis(now - keep * 1000)
        await self._alone(lambda: shelf.tidy(set(self._making), before, now))

    async def trouble(self) -> str:
        """Why nothing more should start here; empty: nothing speaks against it."""
        rules = self._rules()
        if rules is None:
            return ""
        try:
            used = await asyncio.to_thread(self._shelf.percent_used)
        except OSError:  # who wants a copy there hears of it
            return ""
        full = rules.full_percent
        return f"{rules.folder} is filled to {used:.0f} %, beyond {full} %" if used > full else ""

    def close(self) -> None:
        """The engine ends: what has been copied of anything is for the next one to go on with."""
        self._closed = True

    async def _alone(self, change: Callable[Given, Told], *given: Given.args, **named: Given.kwargs) -> Told:
        """In a thread, and nothing else of the shelf's records changes meanwhile."""
        async with self._changing:
            return await asyncio.to_thread(change, *given, **named)

    async def _made(
        self, shelf: CacheStore, wanted: Wanted, who: Submitter, measured: Measured, tell: Callable[[Progress], None]
    ) -> None:
        """Have it copied, or wait for whoever does: that may fail by that one's rights, or be given up just then. The
        last one who waits, and is cancelled, ends it."""
        others = self._making.get(measured.key)
        making = others or self._begin(shelf, wanted, who, measured)
        making.waiting.append(tell)
        tell(making.progress)
        task = making.task
        assert task is not None
        try:
            await asyncio.shield(task)
        except FetchFailed:
            if others is None:
                raise
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is None or own.cancelling():
                raise
        finally:
            making.waiting.remove(tell)
            if not making.waiting and not task.done():
                task.cancel()
                await asyncio.wait([task])

    def _begin(self, shelf: CacheStore, wanted: Wanted, who: Submitter, measured: Measured) -> Copying:
        making = self._making[measured.key] = Copying(wanted, measured, self._clock.now())
        making.task = asyncio.get_running_loop().create_task(self._copy(shelf, making, who))
        return making

    async def _copy(self, shelf: CacheStore, making: Copying, who: Submitter) -> None:
        wanted, measured, key = making.wanted, making.measured, making.measured.key
        full = self._staging.full_percent
        try:
            if await asyncio.to_thread(shelf.has, key):  # another's was finished just now
                return
            await self._check_room(shelf, full)
            part = await self._alone(shelf.begin, key)
            copied = await self._fetcher.copy(
                wanted, who, measured, str(part), full, lambda done: making.came_to(done, self._clock.now())
            )
            record = fresh(_KINDS[wanted.kind], wanted.source, copied, self._clock.now())
            await asyncio.to_thread(shelf.publish, key, record)
        except NoRoom:
            raise FetchFailed(await self._no_room(shelf, wanted, measured, full)) from None
        finally:
            if not self._closed:
                await asyncio.to_thread(shelf.give_up, key)
            del self._making[key]

    async def _check_room(self, shelf: CacheStore, full: int) -> None:
        """For all that are being made. Raises NoRoom."""
        coming = sum(each.measured.size - each.done for each in self._making.values())
        if await asyncio.to_thread(shelf.percent_used, coming) > full:
            raise NoRoom

    async def _no_room(self, shelf: CacheStore, wanted: Wanted, measured: Measured, full: int) -> str:
        used = await asyncio.to_thread(shelf.percent_used)
        place, size = os.fspath(shelf.folder.parent), units.memory(measured.size >> 20)
        return (
            f"{wanted.what}: {wanted.source} ({size}) would fill {place} beyond {full} %, and {used:.0f} % are taken; "
            "an administrator makes room with `cockpit staged`"
        )


def _half(key: str, making: Copying, now: Millis) -> StagedCopy:
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
