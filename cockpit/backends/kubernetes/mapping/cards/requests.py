"""How much of cards pods request, whichever way the cards are managed.

A share is requested by memory, by a percentage of memory or by cores, of one card or of several. In thousandths of a
card it depends on the cards' memory: that of the node on which the pod is, or, while it waits, of the smallest card in
the cluster that has as much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.cards import gpu_share, hami, koordinator, volcano
from cockpit.backends.kubernetes.mapping.cards.device_plugins import CARDS, MIG, SHARED_GPU, counts_cards
from cockpit.backends.kubernetes.mapping.quantities import PodAmounts
from cockpit.model.cardmodels import instances_per_card
from cockpit.model.spec import WHOLE_CARD

Units = tuple[tuple[str, tuple[int, ...]], ...]
"""By resource, the amounts that make one card of some node, smallest first."""
NO_UNITS: Units = ()


class Wanted(NamedTuple):
    """Equal parts of cards that a pod requests; which cards it gets is not known."""

    number: int
    """The number of the parts, each of another card where it is a whole one."""
    milli: int
    """Each part, in thousandths of a card."""
    resource: str
    """What counts them."""


class _Request(NamedTuple):
    """Resources by which pods request shares from one scheme."""

    number: str
    """Counts the cards; empty: none does."""
    shares: tuple[str, ...]
    """The total over the cards, by whatever of these the pod names first."""


_REQUESTS = (
    _Request("nvidia.com/gpu", (hami.MEMORY, hami.MEMORY_PERCENT, hami.CORES)),
    _Request(volcano.NUMBER, (volcano.MEMORY, volcano.MEMORY_PERCENT, volcano.CORES)),
    _Request(
        koordinator.NUMBER,
        (koordinator.MEMORY_PERCENT, koordinator.MEMORY, koordinator.CORES, koordinator.BOTH),
    ),
    _Request("", (gpu_share.MEMORY, gpu_share.CORES)),
    _Request("hygon.com/dcunum", ("hygon.com/dcumem", "hygon.com/dcucores")),
)
_PERCENT = frozenset({hami.MEMORY_PERCENT, hami.CORES, volcano.MEMORY_PERCENT, volcano.CORES, "hygon.com/dcucores"}) | {
    koordinator.MEMORY_PERCENT,
    koordinator.CORES,
    koordinator.BOTH,
    gpu_share.CORES,
}
"""Resources of which 100 are a card."""
_SHARED = frozenset(name for each in _REQUESTS for name in (each.number, *each.shares) if name and name not in CARDS)
_NUMBERS = {name: each.number for each in _REQUESTS for name in each.shares if each.number}


def has_cards(wanted: PodAmounts) -> bool:
    """Return whether a pod requests cards or parts of cards."""
    return any(counts_cards(name) or name in _SHARED for name, count in wanted.others if count)


def card_milli(wanted: PodAmounts, units: Units = NO_UNITS) -> int:
    """Return the cards that a pod requests, in thousandths."""
    return sum(each.number * each.milli for each in wanted_parts(wanted, units))


def depends_on_cards(wanted: PodAmounts) -> bool:
    """Return whether the thousandths of the request depend on the cluster's cards."""
    return any(name in _SHARED and name not in _PERCENT for name, _ in wanted.others)


# Thousands of pods have few different requests.
@lru_cache(maxsize=4096)
def wanted_parts(wanted: PodAmounts, units: Units = NO_UNITS) -> tuple[Wanted, ...]:
    """Return the cards, and parts of cards, that a pod requests."""
    sizes = dict(units)
    amounts = {name: count for name, count in wanted.others if count > 0}
    parts: list[Wanted] = []
    counted: set[str] = set()
    for request in _REQUESTS:
        named = [name for name in request.shares if name in amounts]
        if named or (request.number in amounts and request.number not in CARDS):
            counted.add(request.number)
            parts.append(_of(request, named, amounts, sizes))
    for name, count in amounts.items():
        if counts_cards(name) and name not in counted:
            parts.append(Wanted(count, WHOLE_CARD // _per_card(name, sizes), name))
    return tuple(parts)


def _of(
    request: _Request, named: list[str], amounts: Mapping[str, int], units: Mapping[str, tuple[int, ...]]
) -> Wanted:
    number = amounts.get(request.number, 0)
    for name in named:
        sizes = (100,) if name in _PERCENT else units.get(name, ())
        if sizes:
            each = amounts[name] / max(1, number)
            # While no card is known that has so much, the largest counts, so that several cards are requested.
            size = next((size for size in sizes if size >= each), sizes[-1])
            milli = max(1, WHOLE_CARD * amounts[name] // size)
            number = max(1, number, -(-milli // WHOLE_CARD))
            return Wanted(number, max(1, milli // number), name)
    # Of how much memory a card has nothing is known: it is shown as all of a card.
    return Wanted(max(1, number), WHOLE_CARD, named[0] if named else request.number)


def _per_card(resource: str, units: Mapping[str, tuple[int, ...]]) -> int:
    """Return how many of a device plugin's resource make one card."""
    if resource.startswith(MIG):
        return instances_per_card(resource.removeprefix(MIG)) or 1
    # A cluster may share the cards of some nodes by time and not those of others: a waiting pod may get a whole card.
    sizes = units.get(resource, (1,))
    return sizes[0] if resource in CARDS or resource == SHARED_GPU else 1


def units_of(units: Mapping[str, int]) -> Units:
    """Return the units of one node."""
    return tuple((name, (size,)) for name, size in sorted(units.items()))


def joined(units: Iterable[Units]) -> Units:
    """Return the units of several nodes."""
    sizes: defaultdict[str, set[int]] = defaultdict(set)
    # Most nodes have equal ones.
    for each in set(units):
        for name, found in each:
            sizes[name].update(found)
    return tuple((name, tuple(sorted(found))) for name, found in sorted(sizes.items()))
