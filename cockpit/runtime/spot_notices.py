"""Watches for notices that a provider takes machines back, and reclaims their nodes (EL-02).

Each round asks the provider's metadata addresses and reads the watched file. A source that fails is logged once until
it answers again, and is named by `cockpit engine status` meanwhile; it delays nothing but its own next round.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.engine.nodes import service
from cockpit.errors import why_unreadable
from cockpit.formats.spot_notices import (
    EVERY_NODE,
    SOURCES,
    TOKEN_SECONDS,
    NotANotice,
    Notice,
    read_file,
    read_notices,
)
from cockpit.model.ids import Millis, NodeName
from cockpit.model.outside import Provider
from cockpit.present.safe import safe
from cockpit.runtime.faultpatrol import BY
from cockpit.runtime.http_client import HttpAnswer, HttpFailed, call_http
from cockpit.runtime.tasks import report_defect

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.node import Node
    from cockpit.runtime.host import Host
    from cockpit.runtime.troubles import Outages

_Reclaim = tuple[NodeName, Millis, str]
"""A node, when it is gone, and the reason for which it is drained."""
GRACE_MS: Final = 30_000
"""The time that is left after a notice without a time. Google Cloud gives 30 s."""
MOST_BYTES: Final = 1 << 16
_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404


class SpotSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where notices come from."""

    provider: Provider = Provider.NONE
    address: str = ""
    """The base address in place of the provider's own, for nodes that have none of their own."""
    resource: str = ""
    """This machine's id or name at its provider; empty: the metadata address is asked where it matters."""
    file: str = ""
    seconds: int
    """The interval between two rounds."""
    patience_seconds: int
    """The time limit of each request."""

    @property
    def on(self) -> bool:
        """Whether there is anything to watch."""
        return bool(self.provider or self.file)


class MetadataClient:
    """Asks a provider's metadata address, with a token where it wants one."""

    def __init__(self, settings: SpotSettings, address: str = "") -> None:
        """`address`: the base address; empty: that of the settings, or the provider's own."""
        self._settings = settings
        self._source = SOURCES[settings.provider]
        self._base = (address or settings.address or self._source.address).rstrip("/")
        self._token = ""
        self._instance = ""

    @property
    def name(self) -> str:
        """The address in words."""
        return f"the spot notice's address {safe(self._base)}"

    async def notices(self) -> tuple[Notice, ...]:
        """Return the present notices. Raises `HttpFailed`."""
        answer = await self._ask(self._source.path)
        if answer.status == _NOT_FOUND:
            return ()
        if answer.status != _OK:
            raise HttpFailed(f"answers with status {answer.status}")
        try:
            return read_notices(self._settings.provider, answer.text)
        except NotANotice as error:
            raise HttpFailed(f"does not answer as {self._settings.provider} does: {safe(str(error))}") from None

    async def instance(self) -> str:
        """Return the machine's own id or name; empty: the provider's notices have it. Raises `HttpFailed`."""
        if self._source.instance_path and not self._instance:
            answer = await self._ask(self._source.instance_path)
            if answer.status != _OK:
                raise HttpFailed(f"does not say which machine it is (status {answer.status})")
            self._instance = answer.text.strip()
        return self._instance

    async def _ask(self, path: str) -> HttpAnswer:
        if self._source.token_first and not self._token:
            await self._renew_token()
        answer = await self._get(path)
        # The token has expired, or the machine's metadata are in a mode that needs one.
        if answer.status in {_UNAUTHORIZED, _FORBIDDEN} and self._source.token_path:
            await self._renew_token()
            answer = await self._get(path)
        return answer

    async def _get(self, path: str) -> HttpAnswer:
        token = {self._source.token_header: self._token} if self._token else {}
        return await self._call("GET", path, {**self._source.headers, **token})

    async def _renew_token(self) -> None:
        self._token = ""
        lifetime = {self._source.token_lifetime_header: str(TOKEN_SECONDS)}
        answer = await self._call("PUT", self._source.token_path, lifetime)
        token = answer.text.strip()
        if answer.status != _OK or not token.isascii() or not token.isprintable() or not token:
            raise HttpFailed(f"gives no token (status {answer.status})")
        self._token = token

    async def _call(self, method: str, path: str, headers: Mapping[str, str]) -> HttpAnswer:
        limit = self._settings.patience_seconds
        return await call_http(method, f"{self._base}{path}", headers, limit, limit=MOST_BYTES)


class SpotWatch:
    """Watches all sources of one engine."""

    def __init__(self, host: Host, settings: SpotSettings, outages: Outages) -> None:
        self._host = host
        self._settings = settings
        self._outages = outages
        self._clients: dict[str, MetadataClient] = {}
        """By the address that nodes have; the empty one is the engine's own."""
        self._since: dict[str, Millis] = {}
        """When the present notice without a time was first seen, by the same address."""
        self._done: set[tuple[NodeName, Millis]] = set()
        """What was carried out already: a node that is resumed is not reclaimed again for the same notice."""

    async def watch_periodically(self) -> None:
        """Look at each interval, until cancelled."""
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - a defect here must not end the engine
                report_defect("watching for spot notices", error)
            await self._host.clock.wait_until(Millis(self._host.clock.now() + 1000 * self._settings.seconds))

    async def look(self) -> None:
        """Look once, and carry out the notices that are new."""
        for name, gone_at, reason in [*await self._asked(), *await self._read()]:
            if (name, gone_at) not in self._done:
                # one after the other: whether enough workers of a job are left depends on those that leave already
                await self._host.act_until_stored(partial(_decide, name, reason, gone_at), BY)
                self._done.add((name, gone_at))

    async def _asked(self) -> list[_Reclaim]:
        """Ask all addresses at the same time, so that one that does not answer delays none of the others."""
        if not self._settings.provider:
            return []
        addresses = {each.notice_address for each in self._host.machine.state.nodes.values()}
        answers = await asyncio.gather(*map(self._ask, sorted(addresses)))
        return [each for answer in answers for each in answer]

    async def _ask(self, address: str) -> list[_Reclaim]:
        """Ask one address; return the nodes that it takes back."""
        client = self._clients.setdefault(address, MetadataClient(self._settings, address))
        nodes = {name: each for name, each in self._host.machine.state.nodes.items() if each.notice_address == address}
        own = self._settings.resource if not address else ""
        try:
            notices = await client.notices()
            # Only where its nodes are of several machines is it asked which one this is.
            if notices and not (own or address) and any(each.instance for each in nodes.values()):
                own = await client.instance()
        except HttpFailed as failed:
            self._outages.note(client.name, str(failed))
            return []
        self._outages.note(client.name, "")
        meant: dict[NodeName, _Reclaim] = {}
        for notice in notices:
            at, reason = self._moment(address, notice)
            for name in nodes_meant(nodes, notice, own):
                meant.setdefault(name, (name, at, reason))  # of several the earliest, which comes first
        if all(each.gone_at is not None for each in notices):
            self._since.pop(address, None)
        return list(meant.values())

    def _moment(self, address: str, notice: Notice) -> tuple[Millis, str]:
        """Return when the machine of a notice is gone, and the reason for which its nodes are drained."""
        origin = f"its provider ({self._settings.provider}) takes it back"
        if notice.gone_at is not None:
            return notice.gone_at, f"{origin} at {_utc(notice.gone_at)}"
        since = self._since.setdefault(address, self._host.clock.now())
        return Millis(since + GRACE_MS), origin

    async def _read(self) -> list[_Reclaim]:
        if not self._settings.file:
            return []
        name, file = f"the spot notices' file {safe(self._settings.file)}", Path(self._settings.file)
        try:
            text, changed_at = await asyncio.to_thread(_content, file)
        except FileNotFoundError:  # the usual state: there is no notice
            self._outages.note(name, "")
            return []
        except (OSError, UnicodeDecodeError) as error:
            self._outages.note(name, why_unreadable(error))
            return []
        nodes = self._host.machine.state.nodes
        meant: list[_Reclaim] = []
        wrong: list[str] = []
        for each in read_file(text, changed_at):
            if isinstance(each, str):
                wrong.append(each)
                continue
            assert each.gone_at is not None
            reason = f"its provider takes it back at {_utc(each.gone_at)}"
            named = spot_nodes(nodes) if EVERY_NODE in each.names else nodes_named(nodes, each.names)
            meant += [(name, each.gone_at, reason) for name in named]
            if not named and EVERY_NODE not in each.names:
                wrong.append(f"names {safe(each.names[0])}, which is no node")
        self._outages.note(name, f"is not usable: {wrong[0]}" if wrong else "")
        return meant


def _content(file: Path) -> tuple[str, Millis]:
    """Return the beginning of the file's text, and when it was written. Blocks."""
    with file.open("rb") as opened:
        changed_at = Millis(os.fstat(opened.fileno()).st_mtime_ns // 1_000_000)
        return opened.read(MOST_BYTES).decode(), changed_at


def _utc(moment: Millis) -> str:
    """Return the moment in words that do not depend on the present day: by them a restarted engine knows the notice."""
    return f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def nodes_meant(nodes: Mapping[NodeName, Node], notice: Notice, own: str) -> list[NodeName]:
    """Return the nodes that a notice takes back, of those whose machines' notices come from one address.

    `own`: the id or name of the machine that was asked; empty: it is not known. Nodes without an instance are parts of
    that machine.
    """
    parts = {name: each for name, each in nodes.items() if not each.instance}
    if not notice.names:
        named = [name for name, each in nodes.items() if own and each.instance == own]
        return named or spot_nodes(parts if own else nodes)
    if named := nodes_named(nodes, notice.names):
        return named
    # Without the own name, names that no node has are this machine's only if no node is told from the others.
    is_mine = own in notice.names if own else len(parts) == len(nodes)
    return spot_nodes(parts) if is_mine else []


def nodes_named(nodes: Mapping[NodeName, Node], names: Collection[str]) -> list[NodeName]:
    """Return the nodes that have one of these names at their provider, or here."""
    return [name for name, each in nodes.items() if each.instance in names or str(name) in names]


def spot_nodes(nodes: Mapping[NodeName, Node]) -> list[NodeName]:
    """Return the nodes that go with this machine: those with the taint `spot`; all, where no node has it."""
    tainted = [name for name, node in nodes.items() if any(each.key == "spot" for each in node.taints)]
    return tainted or list(nodes)


def _decide(name: NodeName, reason: str, gone_at: Millis, machine: Machine, now: Millis) -> list[EventBody]:
    return service.reclaim_by_notice(machine, name, reason, gone_at, now)
