"""The owners of pods with cards, as far as they are of kinds that are not watched.

Cards are also held by Deployments, StatefulSets, RayClusters and whatever else a cluster has. To watch all of these
would cost much for the few that have cards. So the owner of a pod with cards is read once, and its own owner, and so
on: a ReplicaSet's pods belong to its Deployment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cockpit.backends.kubernetes.objects.meta import ObjectMeta, OwnerReference
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.discovery import resource_of
from cockpit.errors import CockpitError
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.wire.api import Api

_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
"""Asks for an object without what it is to be and is: nothing else than its metadata is needed."""
_AT_ONCE = 8


class Owner(NamedTuple):
    """The owner of pods."""

    kind: str
    resource: Resource | None
    """None: the server does not show such a kind to this user, so that nothing can be done with the owner."""
    meta: ObjectMeta


class _Object(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class Owners:
    """The owners that were read, by their uids."""

    def __init__(self, api: Api, found: Callable[[Owner], None]) -> None:
        """`found` is called with each owner as soon as it is known."""
        self._api, self._found = api, found
        self._known: dict[str, Owner] = {}
        self._sought: set[str] = set()
        self._resources: dict[tuple[str, str], Resource] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._tasks = Tasks()

    @property
    def settled(self) -> bool:
        """Whether nothing is being read."""
        return not self._sought

    def get(self, uid: str) -> Owner | None:
        return self._known.get(uid)

    def seek(self, reference: OwnerReference, below: ObjectMeta) -> None:
        """Read the owner of an object, unless it is known or being read. `below`: the object's metadata."""
        if reference.uid in self._known or reference.uid in self._sought:
            return
        self._sought.add(reference.uid)
        self._tasks.start(self._read(reference, below), f"the owner {reference.name}")

    async def stop(self) -> None:
        await self._tasks.cancel_all()

    async def _read(self, reference: OwnerReference, below: ObjectMeta) -> None:
        try:
            async with self._at_once:
                owner = await self._owner(reference, below)
        except CockpitError:
            # The next change of a pod asks again.
            self._sought.discard(reference.uid)
            return
        self._known[reference.uid] = owner
        # Before it is no longer sought: its own owner may be sought next.
        self._found(owner)
        self._sought.discard(reference.uid)

    async def _owner(self, reference: OwnerReference, below: ObjectMeta) -> Owner:
        """Return the owner; what the reference says of one that is gone already, or that the user may not read."""
        resource = await self._resource(reference)
        said = ObjectMeta(
            name=reference.name,
            namespace=below.namespace,
            uid=reference.uid,
            creation_timestamp=below.creation_timestamp,
        )
        if resource is None:
            return Owner(reference.kind, None, said)
        path = resource.path(below.namespace if resource.namespaced else "", reference.name)
        try:
            meta = msgspec.json.decode(await self._api.get(path, accept=_METADATA_ONLY), type=_Object).metadata
        except ApiError as error:
            if not (error.is_absent or error.is_forbidden):
                raise
            return Owner(reference.kind, resource, said)
        except msgspec.DecodeError:
            return Owner(reference.kind, resource, said)
        # Another object of the name, made after the owner was deleted.
        return Owner(reference.kind, resource, meta if meta.uid == reference.uid else said)

    async def _resource(self, reference: OwnerReference) -> Resource | None:
        key = (reference.api_version, reference.kind)
        if key not in self._resources:
            resource = await resource_of(self._api, *key)
            if resource is None:
                return None
            self._resources[key] = resource
        return self._resources[key]
