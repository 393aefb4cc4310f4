"""Which kinds of objects a cluster serves. Works with servers of any age: it asks for each API group by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from cockpit.backends.kubernetes.resources import Resource
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.errors import Unreachable


class ServedResource(msgspec.Struct, frozen=True):
    """A kind of object, or a subresource such as `pods/exec`."""

    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class ServedGroup(msgspec.Struct, frozen=True):
    """The kinds of one version of an API group (meta/v1 APIResourceList)."""

    resources: tuple[ServedResource, ...] | None = None


_GROUP = msgspec.json.Decoder(ServedGroup)


async def served_among(api: Api, wanted: Iterable[Resource]) -> frozenset[Resource]:
    """Return those of the kinds that the server serves. Of several versions of one kind the first one counts."""
    kinds = tuple(wanted)
    versions = tuple(dict.fromkeys((each.group, each.version) for each in kinds))
    names = dict(zip(versions, await asyncio.gather(*(_names(api, *each) for each in versions)), strict=True))
    found: dict[tuple[str, str], Resource] = {}
    for each in kinds:
        if each.plural in names[each.group, each.version]:
            found.setdefault((each.group, each.kind), each)
    return frozenset(found.values())


async def resource_of(api: Api, api_version: str, kind: str) -> Resource | None:
    """Return how the server calls the objects of a kind; None: it does not serve or show the kind."""
    group, _, version = api_version.rpartition("/")
    for each in await _resources(api, group, version):
        if each.kind == kind and "/" not in each.name:
            return Resource(group, version, each.name, kind, each.namespaced)
    return None


async def _names(api: Api, group: str, version: str) -> frozenset[str]:
    return frozenset(each.name for each in await _resources(api, group, version))


async def _resources(api: Api, group: str, version: str) -> tuple[ServedResource, ...]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        answer = _GROUP.decode(await api.get(path))
    except ApiError as error:
        # A user without rights at all may not even see the groups; what the lists say then counts.
        if error.is_absent or error.is_forbidden:
            return ()
        raise
    except msgspec.DecodeError as error:
        raise Unreachable(f"The API server's answer about {path} cannot be read: {error}.") from error
    return answer.resources or ()
