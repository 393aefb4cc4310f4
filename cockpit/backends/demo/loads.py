"""Simulates the load of the demo's cards and containers, with the figures that drivers and the kernel would report."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.model.jobdetail import ReplicaUse
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.usage import Sample
from cockpit.model.view import CardLoad, NodeRow

if TYPE_CHECKING:
    from cockpit.engine.effects import StartReplica
    from cockpit.model.node import Node

LOOK_MS = 10_000
"""How long the figures stay the same."""
LEAST, MOST = 35, 99
"""The load in percent of a card that one job has whole."""
WAVERS = 7
STRETCHES = 60


def with_loads(row: NodeRow, now: Millis) -> NodeRow:
    """Return the row with the loads of its cards; hardware slices are not measured, as on real ones."""
    # NVML reports no utilization for a card in MIG mode (n/a).
    cards = (card for card in row.node.cards if not card.slice_uuids)
    return replace(row, loads=tuple(CardLoad(card.index, _percent(row, card.index, now)) for card in cards))


def use_of(start: StartReplica, node: Node | None, began: Millis, now: Millis) -> ReplicaUse:
    """Return what a replica that began then would have used by now."""
    given, name = start.allocation, str(start.replica)
    # At least 1, since rates are divided by it.
    lasted = max(now - began, 1)
    level = _between(name, 30, 95)
    peak = given.memory_mib * _between(name, 35, 93) // 100
    samples = _course(start, began, lasted, level, peak)
    cards = [each.card for each in given.slices if each.milli == WHOLE_CARD]
    sizes = {card.index: card.memory_mib for card in node.cards} if node is not None else {}
    card_memory = sum(sizes.get(card, 0) for card in cards) * _between(name, 50, 96) // 100 or None
    percents = [each.card_percent for each in samples if each.card_percent is not None]
    return ReplicaUse(
        given.rank,
        cpu_ms=lasted * given.cpus * level // 100,
        memory_mib=samples[-1].memory_mib,
        peak_memory_mib=peak,
        card_percent=percents[-1] if percents else None,
        card_memory_mib=card_memory,
        mean_card_percent=sum(percents) // len(percents) if percents else None,
        peak_card_percent=max(percents, default=None),
        peak_card_memory_mib=card_memory,
        course=tuple(samples),
    )


def _course(start: StartReplica, began: Millis, lasted: int, level: int, peak: int) -> list[Sample]:
    """Return the samples over its life: it fills its memory in the first tenth of the samples, and is then
    nearly even."""
    given = start.allocation
    whole = any(each.milli == WHOLE_CARD for each in given.slices)
    samples = []
    for number in range(STRETCHES):
        until = began + lasted * (number + 1) // STRETCHES
        # A hash of what is asked and when, in place of a random number: the same question has the same answer.
        slot = f"{start.replica}/{until // LOOK_MS}"
        fills = min(1.0, 0.15 + number / (STRETCHES / 10))
        # Drivers report the load of a card, not that of a share of it.
        percent = _busy(start.replica.job, until) if whole else None
        busy = given.cpus * 10 * min(100, level + _between(slot, -6, 6))
        memory = int(peak * fills * _between(slot, 94, 100) / 100)
        samples.append(Sample(lasted // STRETCHES, int(busy * fills), memory, percent))
    return samples


def _percent(row: NodeRow, card: int, now: Millis) -> int:
    uses = [use for use in row.slices if use.card == card and not use.held]
    return sum(use.milli * _busy(use.job, now) // 1000 for use in uses)


def _busy(job: int, at: int) -> int:
    """Return the load of a card in percent: about as busy as the job is, varying a little from look to look."""
    level = _between(f"{job}", LEAST, MOST)
    return max(0, min(MOST, level + _between(f"{job}/{at // LOOK_MS}", -WAVERS, WAVERS)))


def _between(what: str, least: int, most: int) -> int:
    return least + crc32(what.encode()) % (most - least + 1)
