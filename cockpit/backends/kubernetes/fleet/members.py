"""The members of a fleet as clusters of their own, which are opened when they are first needed.

A member is reached through the user's own context for it, if the kubeconfig has one of its name or its address, else
through the host's proxy, which asks the member as the same user.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from cockpit.backends.kubernetes.objects.fleet import CLUSTERS
from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.backends.base import ShellSession
    from cockpit.backends.kubernetes.fleet.table import ListedJob
    from cockpit.backends.kubernetes.fleet_host import FleetHost
    from cockpit.backends.kubernetes.wire.kubeconfig import Context
    from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch, ShellRequest
    from cockpit.model.events import EventRecord
    from cockpit.model.fleetrow import MemberObject
    from cockpit.model.ids import JobId

T = TypeVar("T")
PATIENCE_SECONDS = 10.0
"""Longest time that a table waits for its slowest member."""


class MemberBackend(Protocol):
    """A member as the backend of its cluster."""

    async def listed_jobs(self) -> list[ListedJob]: ...

    async def own_object(self, job: JobId, *, cluster: str = "") -> MemberObject: ...

    async def logs(self, request: LogRequest) -> LogChunk: ...

    async def search_log(self, request: LogSearch) -> LogMatches: ...

    async def open_shell(self, request: ShellRequest) -> ShellSession: ...

    async def events(
        self, *, job: JobId | None = None, after: int = -1, limit: int = 1000, rank: int | None = None
    ) -> list[EventRecord]: ...

    async def close(self) -> None: ...


def proxy_of(member: str) -> str:
    """Return the path of the host's proxy to a member's API server."""
    return CLUSTERS.path("", member, "proxy")


def own_context(member: str, address: str, contexts: Mapping[str, Context]) -> str:
    """Return the name of the user's context for a member; empty: there is none. `address`: the member's server."""
    if member in contexts:
        return member
    return next((name for name, each in contexts.items() if address and each.server == address), "")


class Members:
    """Opens members, each once."""

    def __init__(self, host: FleetHost, opening: Callable[[str, str], MemberBackend]) -> None:
        """`opening`: opens the member of a name and an address, without asking it anything."""
        self._host, self._opening = host, opening
        self._open: dict[str, MemberBackend] = {}

    def member(self, name: str) -> MemberBackend:
        if name not in self._open:
            known = self._host.members.get(name)
            self._open[name] = self._opening(name, known.spec.api_endpoint if known is not None else "")
        return self._open[name]

    async def each(
        self, names: Iterable[str], ask: Callable[[MemberBackend], Awaitable[T]]
    ) -> dict[str, tuple[T | None, str]]:
        """Ask these members at once. Return each one's answer, or None and why there is none, as a sentence."""
        wanted = tuple(names)
        found = await asyncio.gather(*(self._answer(name, ask) for name in wanted))
        return dict(zip(wanted, found, strict=True))

    async def close(self) -> None:
        for each in self._open.values():
            await each.close()

    async def _answer(self, name: str, ask: Callable[[MemberBackend], Awaitable[T]]) -> tuple[T | None, str]:
        known = self._host.members.get(name)
        ready = known.ready if known is not None else None
        if ready is not None and not ready.is_true:
            return None, ready.message or f"The fleet cannot reach {name}."
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await ask(self.member(name)), ""
        except TimeoutError:
            return None, f"{name} did not answer within {PATIENCE_SECONDS:.0f} s."
        except CockpitError as error:
            return None, str(error)
