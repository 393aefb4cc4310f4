"""Watches for notices that a provider takes this machine back, and reclaims its spot nodes (EL-02).

Each round asks the provider's metadata address and reads the watched file. A source that fails is logged once until it
answers again, and is named by `cockpit engine status` meanwhile; it delays nothing but its own next round.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
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
    read_notice,
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

GRACE_MS: Final = 30_000
"""The time that is left after a notice without a time. Google Cloud gives 30 s."""
MOST_BYTES: Final = 1 << 16
_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404


class SpotSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where notices come from."""

    provider: Provider = Provider.NONE
    address: str = ""
    """The base address in place of the provider's own."""
    resource: str = ""
    """This machine's name in the provider's answers about several machines."""
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

    def __init__(self, settings: SpotSettings) -> None:
        self._settings = settings
        self._source = SOURCES[settings.provider]
        self._base = (settings.address or self._source.address).rstrip("/")
        self._token = ""

    @property
    def name(self) -> str:
        """The address in words."""
        return f"the spot notice's address {safe(self._base)}"

    async def notice(self) -> Notice | None:
        """Return the present notice; None: there is none. Raises `HttpFailed`."""
        if self._source.token_first and not self._token:
            await self._renew_token()
        answer = await self._get()
        # The token has expired, or the machine's metadata are in a mode that needs one.
        if answer.status in {_UNAUTHORIZED, _FORBIDDEN} and self._source.token_path:
            await self._renew_token()
            answer = await self._get()
        if answer.status == _NOT_FOUND:
            return None
        if answer.status != _OK:
            raise HttpFailed(f"answers with status {answer.status}")
        try:
            return read_notice(self._settings.provider, answer.text, self._settings.resource)
        except NotANotice as error:
            raise HttpFailed(f"does not answer as {self._settings.provider} does: {safe(str(error))}") from None

    async def _get(self) -> HttpAnswer:
        token = {self._source.token_header: self._token} if self._token else {}
        return await self._call("GET", self._source.path, {**self._source.headers, **token})

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
        self._client = MetadataClient(settings) if settings.provider else None
        self._since: Millis | None = None
        """When the present notice without a time was first seen."""
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
        for notice, reason in [*await self._asked(), *await self._read()]:
            await self._carry_out(notice, reason)

    async def _asked(self) -> list[tuple[Notice, str]]:
        if self._client is None:
            return []
        try:
            notice = await self._client.notice()
        except HttpFailed as failed:
            self._outages.note(self._client.name, str(failed))
            return []
        self._outages.note(self._client.name, "")
        if notice is None:
            self._since = None
            return []
        origin = f"its provider ({self._settings.provider}) takes it back"
        if notice.gone_at is None:
            self._since = self._since or self._host.clock.now()
            return [(Notice(Millis(self._since + GRACE_MS)), origin)]
        return [(notice, f"{origin} at {_utc(notice.gone_at)}")]

    async def _read(self) -> list[tuple[Notice, str]]:
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
        lines = list(read_file(text, changed_at))
        known = {str(each) for each in self._host.machine.state.nodes} | {EVERY_NODE}
        notices = [each for each in lines if isinstance(each, Notice)]
        wrong = [each for each in lines if isinstance(each, str)]
        wrong += [f"names {safe(each.node)}, which is no node" for each in notices if each.node not in known]
        self._outages.note(name, f"is not usable: {wrong[0]}" if wrong else "")
        return [
            (each, f"its provider takes it back at {_utc(each.gone_at)}")
            for each in notices
            if each.node in known and each.gone_at is not None
        ]

    async def _carry_out(self, notice: Notice, reason: str) -> None:
        assert notice.gone_at is not None
        nodes = self._host.machine.state.nodes
        # the dictionary's own names: those of a file are any text
        named = [name for name in nodes if name == notice.node]
        meant = named if notice.node != EVERY_NODE else spot_nodes(nodes)
        new = [name for name in meant if (name, notice.gone_at) not in self._done]
        for name in new:
            # one after the other: whether enough workers of a job are left depends on those that leave already
            await self._host.act_until_stored(partial(_decide, name, reason, notice.gone_at), BY)
            self._done.add((name, notice.gone_at))


def _content(file: Path) -> tuple[str, Millis]:
    """Return the beginning of the file's text, and when it was written. Blocks."""
    with file.open("rb") as opened:
        changed_at = Millis(os.fstat(opened.fileno()).st_mtime_ns // 1_000_000)
        return opened.read(MOST_BYTES).decode(), changed_at


def _utc(moment: Millis) -> str:
    """Return the moment in words that do not depend on the present day: by them a restarted engine knows the notice."""
    return f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def spot_nodes(nodes: Mapping[NodeName, Node]) -> list[NodeName]:
    """Return the nodes that go with this machine: those with the taint `spot`; all, where no node has it."""
    tainted = [name for name, node in nodes.items() if any(each.key == "spot" for each in node.taints)]
    return tainted or list(nodes)


def _decide(name: NodeName, reason: str, gone_at: Millis, machine: Machine, now: Millis) -> list[EventBody]:
    return service.reclaim_by_notice(machine, name, reason, gone_at, now)
