"""The result of a vendor's probe for cards."""

from __future__ import annotations

import msgspec

from cockpit.model.node import Card
from cockpit.runtime.findings import Finding


class FoundCards(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor's cards, numbered from 0 in the vendor's order."""

    cards: tuple[Card, ...] = ()
    driver_version: str = ""
    findings: tuple[Finding, ...] = ()
    """Problems only."""
