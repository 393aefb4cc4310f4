"""The copies of all kinds of objects that are read: a reflector for each kind and namespace.

Which kinds a cluster serves changes while cockpit runs. `follow` begins to read those that are new and forgets those
that are gone; of a kind that is served in another version from now on no object is lost meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Copies:
    """The reflectors of one cluster."""

    def __init__(self, api: Api, random: Random, moved: Callable[[], None]) -> None:
        """`moved` is called when `synced`, `trouble` or `absent` may have changed."""
        self._api, self._moved = api, moved
        self._pace = Pace(asyncio.Semaphore(1), random)
        self._tasks = Tasks()
        self._copies: dict[tuple[str, str, str], _Copy] = {}

    def follow(self, readings: Iterable[Reading]) -> None:
        """Read these kinds from now on, in this order, and no others.

        1. A kind that is read stays as it is.
        2. The objects of one that is served in another version are taken over: a job whose objects were gone even for a
           moment would count as stopped.
        3. The objects of a kind that is gone are gone.
        """
        wanted = {each.place: each for each in readings}
        is_first = not self._copies
        gone = {place: copy for place, copy in self._copies.items() if place not in wanted}
        for place, reading in wanted.items():
            known = self._copies.get(place)
            if known is not None and known.resource == reading.resource:  # step 1
                continue
            made = Reflector(
                self._api,
                reading.resource,
                reading.struct,
                changed=reading.changed,
                pace=self._pace,
                namespace=reading.namespace,
                moved=self._moved,
            )
            if known is not None:  # step 2
                known.task.cancel()
                made.take_over(known.reflector)
            task = self._tasks.start(made.run(), f"the watch of {reading.resource.shown}")
            self._copies[place] = _Copy(reading.resource, made, task, known.is_first if known is not None else is_first)
        for place, copy in gone.items():  # step 3
            copy.task.cancel()
            del self._copies[place]
            copy.reflector.forget()

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once that is read from the beginning."""
        # A kind that is installed now may not answer for a while: its webhook is starting, for example.
        first = [each.reflector for each in self._copies.values() if each.is_first]
        return bool(first) and all(each.synced for each in first)

    @property
    def trouble(self) -> CockpitError | None:
        """Why the copies are old at present; None: they are not."""
        troubles = (each.reflector.trouble for each in self._copies.values() if each.is_first or each.reflector.synced)
        return next((each for each in troubles if each is not None), None)

    @property
    def absent(self) -> dict[Resource, str]:
        """Why objects of a kind are not there for this user, in the server's words."""
        return {each.resource: why.message for each in self._reflectors() if (why := each.absent) is not None}

    async def stop(self) -> None:
        await self._tasks.cancel_all()

    def _reflectors(self) -> Iterator[Reflector[Any]]:
        return (each.reflector for each in self._copies.values())
