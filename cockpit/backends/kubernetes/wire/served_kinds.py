"""Which kinds of objects a server serves now, asked again and again: operators come and go while cockpit runs.

A server tells all its kinds in one answer (aggregated discovery, Kubernetes 1.27 and later), and in a few bytes that
nothing has changed (ETag). An older one is asked for each API group, which is done seldom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from cockpit.backends.kubernetes.resources import Resource
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.discovery import served_among
from cockpit.errors import Unreachable

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.wire.api import Api

_AGGREGATED = ";g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
ACCEPT = f"application/json;v=v2{_AGGREGATED},application/json;v=v2beta1{_AGGREGATED},application/json"
LOOKS_WITHOUT_TAG = 30
"""Of so many looks one asks for everything, where the server does not tell in short that nothing has changed."""


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Served(msgspec.Struct, frozen=True):
    resource: str = ""


class _Version(msgspec.Struct, frozen=True):
    version: str = ""
    resources: tuple[_Served, ...] | None = None
    freshness: str = ""


class _Group(msgspec.Struct, frozen=True):
    metadata: _Named = _Named()
    versions: tuple[_Version, ...] | None = None


class _Groups(msgspec.Struct, frozen=True):
    kind: str = ""
    items: tuple[_Group, ...] | None = None


_GROUPS = msgspec.json.Decoder(_Groups)
_AGGREGATED_KIND = "APIGroupDiscoveryList"
_STALE = "Stale"
_Kinds = Mapping[tuple[str, str], Resource]
"""Kinds by group and name."""


class ServedKinds:
    """Which of the kinds that cockpit knows a server serves. Nothing is known before the first `look`."""

    def __init__(self, api: Api, wanted: Iterable[Resource]) -> None:
        """`wanted`: kinds outside the core group; of several versions of one kind the first that is served counts."""
        self._api, self._wanted = api, tuple(wanted)
        self._kinds: _Kinds = {}
        self._missed: frozenset[tuple[str, str]] = frozenset()
        """Kinds that the last look did not find any more."""
        self._seen: _Kinds = {}
        """The kinds of the server's last answer."""
        self._tag = ""
        self._looks = 0

    def among(self, wanted: Iterable[Resource]) -> frozenset[Resource]:
        """Return those of the kinds that the server serves."""
        return frozenset(self._kinds.values()).intersection(wanted)

    def claims(self, path: str) -> bool:
        """Return whether the path is about a kind that counts as served."""
        _, _, group, version, *rest = path.split("/")
        return any(
            (each.group, each.version) == (group, version) and each.plural in rest for each in self._kinds.values()
        )

    async def look(self, *, whole: bool = False) -> bool:
        """Ask the server, and return whether it serves other kinds than before. Raises `CockpitError`.

        Each look is one request, but the first one to an old server, one in `LOOKS_WITHOUT_TAG` later ones, and a
        `whole` one, for which there is a cause.
        """
        if whole or self._tag or self._looks % LOOKS_WITHOUT_TAG == 0:
            self._seen = await self._answer()
        else:
            # A sign of life all the same.
            await self._api.get("/version")
        self._looks += 1
        # Behind one address there may be several servers, which learn of a new kind one after the other.
        missed = self._kinds.keys() - self._seen.keys()
        kept = {key: self._kinds[key] for key in missed - self._missed}
        before, self._kinds, self._missed = self._kinds, {**self._seen, **kept}, frozenset(kept)
        return before != self._kinds

    async def _answer(self) -> _Kinds:
        try:
            answer = await self._api.get_unless(self._tag, "/apis", accept=ACCEPT)
        except ApiError as error:
            if not (error.is_forbidden or error.is_absent):
                raise
            self._tag = ""
            return await self._group_by_group()
        if answer is None:
            return self._seen
        try:
            groups = _GROUPS.decode(answer.body)
        except msgspec.DecodeError as error:
            raise Unreachable(f"The API server's answer about its kinds cannot be read: {error}.") from error
        if groups.kind != _AGGREGATED_KIND:
            self._tag = ""
            return await self._group_by_group()
        self._tag = answer.tag
        return self._of(groups)

    def _of(self, groups: _Groups) -> _Kinds:
        served: set[tuple[str, str, str]] = set()
        # What an extension server served counts until it is known again what it serves.
        stale: set[tuple[str, str]] = set()
        for group in groups.items or ():
            for version in group.versions or ():
                served |= {(group.metadata.name, version.version, kind.resource) for kind in version.resources or ()}
                if version.freshness == _STALE:
                    stale.add((group.metadata.name, version.version))
        kinds: dict[tuple[str, str], Resource] = {}
        for each in self._wanted:
            is_kept = (each.group, each.version) in stale and self._seen.get((each.group, each.kind)) == each
            if is_kept or (each.group, each.version, each.plural) in served:
                kinds.setdefault((each.group, each.kind), each)
        return kinds

    async def _group_by_group(self) -> _Kinds:
        return {(each.group, each.kind): each for each in await served_among(self._api, self._wanted)}
