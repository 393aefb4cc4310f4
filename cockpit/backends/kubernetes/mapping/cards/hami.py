"""HAMi: pods share cards by memory and cores.

A register on the node has the cards of each maker, as fields or, since version 2.6, as JSON. The scheduler writes into
the pod which cards it has, with the memory and the cores of each. The resource of whole cards counts how many pods may
share them, so the register alone tells how many cards there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from cockpit.backends.kubernetes.mapping.cards.device_plugins import CARDS
from cockpit.backends.kubernetes.mapping.cards.registers import Registered, allocated, cards_of, number, records
from cockpit.backends.kubernetes.mapping.cards.scheme import NodeSource, PodSource, SchemeCards, Share, Unreadable
from cockpit.model.node import Card, CardVendor

_NODE, _REGISTER, _POD, _ALLOCATED = "hami.io/node-", "register", "hami.io/", "-devices-allocated"
_VENDORS = (
    ("nvidia", CardVendor.NVIDIA),
    ("Ascend", CardVendor.ASCEND),
    ("amd", CardVendor.ROCM),
    ("mlu", CardVendor.MLU),
)
"""Vendors by the words in the names of their registers, such as `hami.io/node-register-Ascend910B`."""
MEMORY, MEMORY_PERCENT, CORES = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
_FIELDS = 7
"""UUID, pods that may share it, memory in MiB, percent of cores, type, NUMA node, health."""


class _JsonCard(msgspec.Struct, frozen=True):
    """A card in a register of the newer form; what is false or 0 is left out there."""

    id: str = ""
    devmem: int = 0
    type: str = ""
    health: bool = False


_JSON = msgspec.json.Decoder(tuple[_JsonCard, ...])


class Hami:
    """Cards in registers of HAMi."""

    def cards(self, source: NodeSource) -> SchemeCards | None:
        cards: dict[str, Card] = {}
        vendors: set[CardVendor] = set()
        for name, text in (source.meta.annotations or {}).items():
            if is_register(name) and text:
                vendor = next((each for word, each in _VENDORS if word in name), CardVendor.OTHER)
                vendors.add(vendor)
                try:
                    cards |= cards_of(_registered(name, text), vendor)
                except Unreadable as error:
                    raise Unreadable(str(error), _resources({vendor})) from None
        if not vendors:
            return None
        resources = _resources(vendors)
        most = max((card.memory_mib for card in cards.values()), default=0)
        units = {MEMORY: most} if most and CardVendor.NVIDIA in vendors else {}
        return SchemeCards(cards, resources, units)

    def shares(self, source: PodSource, node: SchemeCards) -> tuple[Share, ...] | None:
        annotations = source.pod.metadata.annotations or {}
        texts = [(name, text) for name, text in annotations.items() if _is_allocation(name)]
        return tuple(_shares(texts, node.cards)) if texts else None


def is_register(annotation: str) -> bool:
    """Return whether a node's annotation of this name is a register."""
    return annotation.startswith(_NODE) and _REGISTER in annotation


def _resources(vendors: set[CardVendor]) -> frozenset[str]:
    """Return the resources of whole cards, which on such nodes count the pods that may share them."""
    return frozenset(name for name, vendor in CARDS.items() if vendor in vendors)


def _is_allocation(annotation: str) -> bool:
    return annotation.startswith(_POD) and annotation.endswith(_ALLOCATED)


def _registered(name: str, text: str) -> Iterator[Registered]:
    if text.lstrip().startswith("["):
        try:
            cards = _JSON.decode(text)
        except msgspec.DecodeError as error:
            raise Unreadable(f"{name}: {error}") from None
        yield from (Registered(each.id, each.devmem, each.type, each.health) for each in cards)
        return
    for fields in records(text, _FIELDS, name):
        yield Registered(fields[0], number(fields[2], name), fields[4], fields[6] == "true")


def _shares(texts: list[tuple[str, str]], cards: Mapping[str, Card]) -> Iterator[Share]:
    for name, text in texts:
        yield from allocated(text, cards, name, MEMORY)
