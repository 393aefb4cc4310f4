"""Decides what follows from the present prices of nodes (EL-01).

Starts and growth follow by themselves, since the scheduler reads the prices. A running job keeps its workers whatever
they cost now, unless it asks for the opposite (`shrink_above_price`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.nodes.reclaiming import leave_dear_nodes
from cockpit.model import events

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.ids import Millis, NodeName


def prices_changed(machine: Machine, prices: Mapping[NodeName, int], now: Millis) -> list[EventBody]:
    """Record the present prices, in thousandths, of those nodes that have one; no events where they are known."""
    nodes = machine.state.nodes
    known = {name: node.price_milli for name, node in nodes.items() if node.price_milli is not None}
    present = {name: price for name, price in prices.items() if name in nodes}
    if present == known:
        return []
    return [events.PricesChanged(present), *leave_dear_nodes(machine, present, now)]
