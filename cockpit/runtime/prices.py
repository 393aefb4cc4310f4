"""Asks a file or an HTTP address again and again for the present prices of the nodes (EL-01).

A source that fails is logged once until it answers again; the last prices hold meanwhile.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.engine.nodes import pricing
from cockpit.errors import why_unreadable
from cockpit.formats.node_prices import NotPrices, read_prices
from cockpit.formats.spot_notices import EVERY_NODE
from cockpit.model.ids import Millis, NodeName
from cockpit.present.safe import safe
from cockpit.runtime.faultpatrol import BY
from cockpit.runtime.http_client import HttpFailed, call_http
from cockpit.runtime.spot_notices import spot_nodes
from cockpit.runtime.tasks import report_defect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.node import Node
    from cockpit.runtime.host import Host
    from cockpit.runtime.troubles import Outages

MOST_BYTES: Final = 1 << 20
_OK: Final = 200


class PriceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where prices come from."""

    source: str
    """The path of a file, or an address with http:// or https://."""
    seconds: int
    """The interval between two questions."""
    patience_seconds: int
    """The time limit of each."""


class _SourceFailed(Exception):
    """The source gave no prices; the text says why, to follow its name."""


class PriceWatch:
    """Keeps the prices of one engine's nodes up to date."""

    def __init__(self, host: Host, settings: PriceSettings, outages: Outages) -> None:
        self._host = host
        self._settings = settings
        self._outages = outages

    async def watch_periodically(self) -> None:
        """Ask at each interval, until cancelled."""
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - a defect here must not end the engine
                report_defect("asking for prices", error)
            await self._host.clock.wait_until(Millis(self._host.clock.now() + 1000 * self._settings.seconds))

    async def look(self) -> None:
        """Ask once, and record prices that differ from the known ones."""
        name = f"the price source {safe(self._settings.source)}"
        try:
            named = read_prices(await self._text())
        except NotPrices as error:
            self._outages.note(name, f"is not usable: {error}")
        except _SourceFailed as failed:
            self._outages.note(name, str(failed))
        else:
            self._outages.note(name, "")
            prices = of_nodes(named, self._host.machine.state.nodes)
            await self._host.act_until_stored(partial(_decide, prices), BY)

    async def _text(self) -> str:
        source, limit = self._settings.source, self._settings.patience_seconds
        try:
            if source.startswith(("http://", "https://")):
                answer = await call_http("GET", source, {"Accept": "*/*"}, limit, limit=MOST_BYTES)
                if answer.status != _OK:
                    raise _SourceFailed(f"answers with status {answer.status}")
                return answer.text
            return await asyncio.to_thread(_content, Path(source))
        except HttpFailed as failed:
            raise _SourceFailed(str(failed)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise _SourceFailed(why_unreadable(error)) from None


async def forget_prices(host: Host) -> None:
    """Let the labels of the nodes count again: the engine has no price source any more."""
    await host.act_until_stored(partial(_decide, {}), BY)


def _decide(prices: Mapping[NodeName, int], machine: Machine, now: Millis) -> list[EventBody]:
    return pricing.prices_changed(machine, prices, now)


def _content(file: Path) -> str:
    """Return the beginning of the file's text. Blocks."""
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES).decode()


def of_nodes(named: Mapping[str, int], nodes: Mapping[NodeName, Node]) -> dict[NodeName, int]:
    """Return the price of each node that has one; a list may name nodes of other clusters too."""
    spot = set(spot_nodes(nodes)) if EVERY_NODE in named else set()
    prices = {name: named.get(str(name), named[EVERY_NODE] if name in spot else None) for name in nodes}
    return {name: price for name, price in prices.items() if price is not None}
