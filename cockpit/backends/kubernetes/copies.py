"""The copies of all kinds of objects that are read: a reflector for each kind and namespace.

Which kinds a cluster serves, and which namespaces the user may see, changes while cockpit runs. `follow` begins to read
what is new and forgets what is gone; of a kind that is served in another version from now on, or read in one namespace
instead of all, no object is lost meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import REQUEST_SECONDS
from cockpit.backends.kubernetes.wire.reflector import Pace, Reflector
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from random import Random

    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.errors import CockpitError


class Reading(NamedTuple):
    """What is read of a kind of object."""

    resource: Resource
    struct: type
    """The needed fields."""
    changed: Callable[..., None]
    """Receives an object before and after each change; None: it was not there, or is gone."""
    namespace: str
    """Empty: the whole cluster."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Equal for the versions of one kind."""
        return self.resource.group, self.resource.kind, self.namespace


class _Copy(NamedTuple):
    resource: Resource
    reflector: Reflector[Any]
    task: asyncio.Task[None]
    is_first: bool
    """Whether it has been read from the beginning."""

    def is_of_kind(self, reading: Reading) -> bool:
        return self.resource.group == reading.resource.group and self.resource.kind == reading.resource.kind


class Copies:
    """The reflectors of one cluster."""

    def __init__(self, api: Api, random: Random, moved: Callable[[], None]) -> None:
        """`moved` is called when `synced`, `trouble` or `absent` may have changed."""
        self._api, self._told = api, moved
        self.synced = False
        """Whether everything has been listed once that is read from the beginning, but what cannot be listed."""
        self._pace = Pace(asyncio.Semaphore(1), random)
        self._tasks = Tasks()
        self._copies: dict[tuple[str, str, str], _Copy] = {}

    def follow(self, readings: Iterable[Reading]) -> None:
        """Read these kinds from now on, in this order, and no others.

        1. What is read stays as it is.
        2. The objects of a kind that is read in another version or in other namespaces are taken over: a job whose
           objects were gone even for a moment would count as stopped.
        3. What is not taken over is gone.
        """
        wanted = {each.place: each for each in readings}
        is_first = not self._copies
        stay = {place for place, each in wanted.items() if self._has(place, each.resource)}  # step 1
        ended = [self._copies.pop(place) for place in self._copies.keys() - stay]
        for copy in ended:
            copy.task.cancel()
        for place, reading in wanted.items():
            if place in stay:
                continue
            made = Reflector(
                self._api,
                reading.resource,
                reading.struct,
                changed=reading.changed,
                # Without pods there are no jobs: theirs are waited for as long as for any answer.
                pace=self._pace._replace(patience=REQUEST_SECONDS if reading.resource == PODS else None),
                namespace=reading.namespace,
                moved=self._moved,
            )
            of_kind = [each for each in ended if each.is_of_kind(reading)]
            for copy in of_kind:  # step 2
                made.take_over(copy.reflector)
            self._copies[place] = self._started(made, is_first=is_first or any(each.is_first for each in of_kind))
        for copy in ended:  # step 3
            copy.reflector.forget()

    def look_again(self, concerns: Callable[[Resource, str], bool]) -> None:
        """List anew what this is true of, by kind and namespace: the user's rights have changed."""
        for place, copy in self._copies.items():
            if concerns(copy.resource, copy.reflector.namespace):
                copy.task.cancel()
                copy.reflector.begin_anew()
                self._copies[place] = self._started(copy.reflector, is_first=copy.is_first)

    @property
    def trouble(self) -> CockpitError | None:
        """Why the copies are old at present, or why there are none; None: they are new, or are still being read."""
        listed = [each for each in self._reflectors() if each.synced]
        unlisted = [each.reflector for each in self._copies.values() if each.is_first and not each.reflector.synced]
        # A single kind that fails is no trouble of the server's; when all fail, it is.
        is_silent = not self.synced and not any(map(_is_in_order, listed)) and all(each.trouble for each in unlisted)
        troubles = (each.trouble for each in (*listed, *(unlisted if is_silent else ())))
        return next((each for each in troubles if each is not None), None)

    @property
    def absent(self) -> dict[Resource, str]:
        """Why objects of a kind are not there for this user, in the server's words."""
        absent = {each.resource: why.message for each in self._reflectors() if (why := each.absent) is not None}
        if not self.synced:
            return absent
        return absent | {each.resource: _why(error) for each in self._reflectors() if (error := each.unlisted)}

    def _moved(self) -> None:
        """Take over a change of a reflector's state.

        What has been listed once stays known while the server is silent.
        """
        if not self.synced:
            # A kind that is installed now may not answer for a while: its webhook is starting, for example.
            first = [each.reflector for each in self._copies.values() if each.is_first]
            self.synced = any(map(_is_in_order, first)) and all(each.synced or each.unlisted for each in first)
        self._told()

    async def stop(self) -> None:
        await self._tasks.cancel_all()

    def _has(self, place: tuple[str, str, str], resource: Resource) -> bool:
        return place in self._copies and self._copies[place].resource == resource

    def _started(self, reflector: Reflector[Any], *, is_first: bool) -> _Copy:
        task = self._tasks.start(reflector.run(), f"the watch of {reflector.resource.shown}")
        return _Copy(reflector.resource, reflector, task, is_first)

    def _reflectors(self) -> Iterator[Reflector[Any]]:
        return (each.reflector for each in self._copies.values())


def _is_in_order(reflector: Reflector[Any]) -> bool:
    return reflector.synced and reflector.trouble is None


def _why(error: CockpitError) -> str:
    """Return why a kind is not listed, for after its name and a colon."""
    said = (
        f"the server answers ({error.code} {error.reason}): {error.message}"
        if isinstance(error, ApiError)
        else str(error)
    )
    return f"{said.rstrip('.')}. Cockpit asks again."
