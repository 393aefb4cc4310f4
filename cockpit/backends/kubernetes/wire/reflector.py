"""Keeps a copy of all objects of one kind: lists them once, then follows their changes.

1. List all objects in pages; objects that an earlier list had and this one lacks are gone.
2. Watch from the list's version. Bookmarks move the version forward while nothing changes.
3. A watch that ends is resumed from the last version. The server ends each after some minutes.
4. A version that the server has forgotten (410, as the answer's status or as a line of the watch) means: list anew.
5. What the user may list and not watch is listed again and again.
6. A kind that is refused (403, 404) is gone when it is refused several times: a server that starts refuses what it has
   not read yet.
7. After any other failure wait, longer each time and with jitter, then resume.
8. A kind whose first list fails `ATTEMPTS` times, or does not begin for a while, counts as unlisted until it is there:
   its conversion webhook may be broken, for example, and all other kinds in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from cockpit.backends.kubernetes.wire.answers import ApiError, Status
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.lists import Page, read_pages
from cockpit.errors import CockpitError, Unreachable

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.resources import Resource


class KubeObject(Protocol):
    """Any object of an API server."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=KubeObject)

WATCH_SECONDS = 300
"""How long a watch is asked for; half of it is added at random, so that watches do not all end together."""
SILENCE_SECONDS = 100.0
"""After so long without a line a watch is broken: bookmarks come every minute."""
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 20.0
POLL_SECONDS = 30.0
"""Pause between two lists of objects that may not be watched."""
REFUSALS = 4
"""So often a kind that has objects is refused, in some three seconds, until they count as gone."""
ATTEMPTS = 3
"""So often the first list of a kind fails, in a second or two, until the rest is shown without it."""
SLOW_SECONDS = 10.0
"""How long the rest waits for the first page of a kind that is not answered."""
TURN_SECONDS = 3.0
"""After so long without a first page another list may begin."""
ABSENT_PAUSE_SECONDS = 60.0
"""Pause before a kind is asked for again that the server does not serve, or that the user may not list."""
_GONE = 410


class WatchEvent(msgspec.Struct, frozen=True):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


_EVENT = msgspec.json.Decoder(WatchEvent)
_STATUS = msgspec.json.Decoder(Status)


class _VersionMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Versioned(msgspec.Struct, frozen=True):
    metadata: _VersionMeta = _VersionMeta()


_VERSIONED = msgspec.json.Decoder(_Versioned)

Change = Callable[["T | None", "T | None"], None]
"""Receives an object before and after a change; None: it was not there, or is gone."""


class Pace(NamedTuple):
    """What keeps many reflectors from asking a server all at once."""

    listing: asyncio.Semaphore
    """A server that has just restarted gets one list at a time."""
    random: Random
    """Spreads retries and the ends of watches over time."""
    patience: float | None = None
    """Seconds until a kind whose first list does not begin counts as unlisted; None: `SLOW_SECONDS`."""


class Reflector(Generic[T]):
    """The copy of one kind of object, of the whole cluster or of one namespace."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        kind: type[T],
        *,
        changed: Change[T],
        pace: Pace,
        namespace: str = "",
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        """`kind`: the struct of the needed fields. `changed` is called for each change, in order. `pace`: shared by all
        reflectors of the server. `moved` is called when `synced`, `trouble`, `absent` or `unlisted` has changed."""
        self.resource, self.namespace = resource, namespace
        self._api, self._changed, self._moved = api, changed, moved
        self._listing, self._random, self._patience = pace
        self._page = msgspec.json.Decoder(Page[kind])  # type: ignore[valid-type] # msgspec takes the class
        self._decoder = msgspec.json.Decoder(kind)
        self.objects: dict[str, T] = {}
        """The objects by their uid."""
        self.synced = False
        """Whether the objects have been listed at least once."""
        self.trouble: CockpitError | None = None
        """Why the copy is old at present; None: it is not."""
        self.absent: ApiError | None = None
        """Why there are no such objects for this user: the kind is not served, or may not be listed."""
        self._version = ""
        self._failures = 0
        self._refusals = 0
        self._is_slow = False
        self._told: tuple[object, ...] = ()
        """The state that `moved` was last called with."""

    @property
    def unlisted(self) -> CockpitError | None:
        """Why the rest is not to wait for these objects, which have never been listed; None: it is (step 8)."""
        gives_up = self._is_slow or self._failures >= ATTEMPTS
        return self.trouble if gives_up and not self.synced else None

    async def run(self) -> None:
        """Keep the copy. Never ends."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
                self._failures = 0
            except ApiError as error:
                await self._failed(error)
            except CockpitError as error:
                await self._pause(error)

    def take_over(self, other: Reflector[T]) -> None:
        """Take the objects of another reflector that has ended, as far as they are in this one's namespace.

        The other one read them in another version of the kind's API, or in other namespaces.
        """
        self.synced = self.synced or other.synced
        for uid, each in list(other.objects.items()):
            if self.namespace in ("", each.metadata.namespace):
                self.objects[uid] = other.objects.pop(uid)
                self._changed(each, each)

    def begin_anew(self) -> None:
        """List anew in the next `run`, and believe a refusal at once: the user's rights have changed."""
        self._version, self._refusals = "", REFUSALS

    def forget(self) -> None:
        """Treat all objects as gone."""
        for uid in list(self.objects):
            self._remove(uid)

    async def _list(self) -> None:
        """Replace the copy by a new list (step 1)."""
        listed: set[str] = set()
        async with self._turn() as answered:
            async for page in read_pages(self._api, self.resource, self._page, self.namespace):
                answered()
                for each in page.items or ():
                    listed.add(each.metadata.uid)
                    self._put(each)
                version = page.metadata.resource_version
        for uid in self.objects.keys() - listed:
            self._remove(uid)
        self._version, self._refusals, self._is_slow = version, 0, False
        self._state(synced=True)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for the turn to list; yield what is called when the server answers.

        A list that does not begin passes its turn on, so that it holds up no other kind.
        """
        await self._listing.acquire()
        loop, is_over = asyncio.get_running_loop(), False

        def pass_on() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._listing.release()

        patience = SLOW_SECONDS if self._patience is None else self._patience
        timers = loop.call_later(TURN_SECONDS, pass_on), loop.call_later(patience, self._slow, patience)

        def answered() -> None:
            for each in timers:
                each.cancel()

        try:
            yield answered
        finally:
            answered()
            pass_on()

    def _slow(self, seconds: float) -> None:
        """Give up waiting for the first page of the first list (step 8)."""
        if not self.synced:
            self._is_slow = True
            why = f"{self.resource.shown} were not listed within {seconds:.0f} s"
            said = f"The API server of the context {self._api.context!r} does not answer: {why}."
            self._state(synced=False, trouble=Unreachable(said))

    async def _follow(self) -> None:
        """Follow the changes until the watch ends, or for a while."""
        try:
            await self._watch()
        except ApiError as error:
            if not error.is_forbidden:
                raise
            # Whether the right to list is lost, too, only a list can tell.
            self._version = ""
            await self._list()
            await asyncio.sleep(POLL_SECONDS)  # step 5
            self._version = ""

    async def _watch(self) -> None:
        """Follow the changes until the watch ends (step 2)."""
        seconds = WATCH_SECONDS + self._random.randrange(WATCH_SECONDS // 2)
        query = (
            ("watch", "true"),
            ("resourceVersion", self._version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(seconds)),
        )
        async with self._api.lines(self.resource.path(self.namespace), query, SILENCE_SECONDS) as lines:
            # The server has accepted the version: the copy is as new as the server.
            self._refusals = 0
            self._state(synced=True)
            async for line in lines:
                self._take(line)

    def _take(self, line: bytes) -> None:
        """Apply one line. Raises `Unreachable` for a line that is cut off, `ApiError` for an error of the server."""
        if not line.strip():
            return
        try:
            event = _EVENT.decode(line)
            if event.type == "ERROR":
                status = _STATUS.decode(event.object)
                raise ApiError(status.code, status.reason, status.message, status.details)
            self._failures = 0
            if event.type == "BOOKMARK":
                self._version = _VERSIONED.decode(event.object).metadata.resource_version
                return
            each = self._decoder.decode(event.object)
        except msgspec.DecodeError as error:
            raise Unreachable(f"The watch of {self.resource.shown} cannot be read: {error}.") from error
        if event.type == "DELETED":
            self._remove(each.metadata.uid)
        else:
            self._put(each)
        self._version = each.metadata.resource_version

    def _put(self, new: T) -> None:
        old = self.objects.get(new.metadata.uid)
        # A watch that is resumed may repeat what the copy has already.
        if old is not None and old.metadata.resource_version == new.metadata.resource_version:
            return
        self.objects[new.metadata.uid] = new
        self._changed(old, new)

    def _remove(self, uid: str) -> None:
        if (old := self.objects.pop(uid, None)) is not None:
            self._changed(old, None)

    async def _failed(self, error: ApiError) -> None:
        if error.code == _GONE:  # step 4
            self._version = ""
            # Not without a pause: a server may answer 410 to each of its new versions while it restarts.
            if self._failures:
                await self._pause(error)
            self._failures += 1
        elif error.is_absent or error.is_forbidden:  # step 6
            self._refusals += 1
            if self.objects and self._refusals < REFUSALS:
                await self._pause(error)
                return
            self.forget()
            self._version = ""
            self._state(synced=True, absent=error)
            await asyncio.sleep(ABSENT_PAUSE_SECONDS)
        else:
            await self._pause(error)

    async def _pause(self, error: CockpitError) -> None:
        """Wait before the next attempt (step 7)."""
        # Load balancers cut watches that are in order: the first failure is none of the server's.
        is_trouble = bool(self._failures) or not self.synced
        longest = min(FIRST_PAUSE_SECONDS * 2**self._failures, LONGEST_PAUSE_SECONDS)
        self._failures += 1
        if is_trouble:
            self._state(synced=self.synced, trouble=error)
        await asyncio.sleep(longest * (0.5 + self._random.random() / 2))

    def _state(self, *, synced: bool, trouble: CockpitError | None = None, absent: ApiError | None = None) -> None:
        self.synced, self.trouble, self.absent = synced, trouble, absent
        state = (self.synced, str(self.trouble), str(self.absent), self.unlisted is not None)
        before, self._told = self._told, state
        if before != state:
            self._moved()


def keep_by_uid(kept: dict[str, T], changed: Callable[[], None], old: T | None, new: T | None) -> None:
    """Keep objects by their uid, and call `changed` after each change."""
    if old is not None:
        kept.pop(old.metadata.uid, None)
    if new is not None:
        kept[new.metadata.uid] = new
    changed()
