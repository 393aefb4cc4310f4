"""Computes the variables and device nodes that give a container its cards and hide the others."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from cockpit.model.node import Card, CardSlice, CardVendor, Node
from cockpit.model.spec import WHOLE_CARD


class _Naming(Enum):
    """The ways in which a variable lists the cards of a replica."""

    ID = auto()
    """UUID, which is the same inside and outside of a container; the index if it is unknown."""
    INDEX = auto()
    """Index of the card in the node."""
    ORDINAL = auto()
    """0, 1, 2 …: number among the cards that another variable leaves visible."""


_VARIABLES: dict[CardVendor, dict[str, _Naming]] = {
    # CUDA environment variables, CUDA C++ Programming Guide; NVIDIA Container Toolkit
    CardVendor.NVIDIA: {"CUDA_VISIBLE_DEVICES": _Naming.ID, "NVIDIA_VISIBLE_DEVICES": _Naming.ID},
    CardVendor.MLU: {"MLU_VISIBLE_DEVICES": _Naming.INDEX},
    # CANN environment variables; Ascend Docker Runtime
    CardVendor.ASCEND: {"ASCEND_RT_VISIBLE_DEVICES": _Naming.INDEX, "ASCEND_VISIBLE_DEVICES": _Naming.INDEX},
    # ROCm "GPU isolation": ROCR filters first, HIP counts among what is left and reads CUDA's variable too
    CardVendor.ROCM: {
        "ROCR_VISIBLE_DEVICES": _Naming.ID,
        "HIP_VISIBLE_DEVICES": _Naming.ORDINAL,
        "CUDA_VISIBLE_DEVICES": _Naming.ORDINAL,
    },
    CardVendor.OTHER: {},
}
_CARDS = "COCKPIT_CARDS"
"""Variable with the indexes of the cards, of whatever vendor."""

_MPS_SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
_CUDA_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""CUDA's order of cards. Without this CUDA numbers the fastest card first, and an index means another card than in
nvidia-smi."""


def no_cards_environment() -> dict[str, str]:
    """Return every variable that lists cards, empty, so that no card is visible."""
    names = (name for variables in _VARIABLES.values() for name in variables)
    return dict.fromkeys((*names, _CARDS), "")


def card_environment(node: Node, slices: Iterable[CardSlice]) -> dict[str, str]:
    """Return the card variables of a replica with these slices; variables of vendors without a card are empty."""
    held = _held_cards(node, slices)
    env = no_cards_environment()
    env[_CARDS] = _join_unique(str(card.index) for card, _ in held)
    # NVIDIA last: ROCm reads CUDA_VISIBLE_DEVICES, too, and in a node with both vendors it must list NVIDIA's cards.
    for vendor in sorted(CardVendor, key=lambda vendor: vendor is CardVendor.NVIDIA):
        ours = [(card, part) for card, part in held if card.vendor is vendor]
        if ours:
            env |= {name: _value(naming, ours) for name, naming in _VARIABLES[vendor].items()}
    return env | _nvidia_extras([(card, part) for card, part in held if card.vendor is CardVendor.NVIDIA])


def card_devices(node: Node, slices: Iterable[CardSlice]) -> tuple[str, ...]:
    """Return the device nodes that the container of these slices needs, each once."""
    return tuple(dict.fromkeys(device for card, _ in _held_cards(node, slices) for device in card.devices))


def whole_cards(node: Node, slices: Iterable[CardSlice]) -> tuple[str, ...]:
    """Return the UUIDs of the replica's whole cards; the use of a shared card cannot be assigned to one job."""
    held = _held_cards(node, slices)
    return tuple(card.uuid for card, part in held if part.milli == WHOLE_CARD and card.uuid and not card.declared)


def share_limits(node: Node, slices: Iterable[CardSlice]) -> str:
    """Return a text on how a replica's shares of cards are enforced; empty without shares that software enforces."""
    shared = [card for card, part in _held_cards(node, slices) if _is_soft(card, part)]
    if not shared:
        return ""
    if all(card.vendor is CardVendor.NVIDIA and not card.declared for card in shared):
        return "card share: by CUDA MPS where its server is reached, else not enforced"
    return "card share: not enforced"


def slots(slices: Iterable[CardSlice]) -> int:
    """Return the number of processes that a launcher starts on the node: one per card, 1 without cards."""
    return max(1, len({part.card for part in slices}))


def _held_cards(node: Node, slices: Iterable[CardSlice]) -> list[tuple[Card, CardSlice]]:
    """Return the cards with their slices in ascending order."""
    cards = {card.index: card for card in node.cards}
    # Drivers number the visible cards from 0 in the order of the list, and programs expect that of the node.
    ordered = sorted(slices, key=lambda part: (part.card, part.slot or 0))
    # A card that the node has lost since the placement gets no variable.
    return [(cards[part.card], part) for part in ordered if part.card in cards]


def _value(naming: _Naming, held: list[tuple[Card, CardSlice]]) -> str:
    if naming is _Naming.INDEX:
        return _join_unique(str(card.index) for card, _ in held)
    ids = dict.fromkeys(_hardware_slice(card, part) or card.uuid or str(card.index) for card, part in held)
    return _join_unique(ids if naming is _Naming.ID else map(str, range(len(ids))))


def _join_unique(names: Iterable[str]) -> str:
    """Join the names with commas, each once: for the driver two slices of one card are one card."""
    return ",".join(dict.fromkeys(names))


def _hardware_slice(card: Card, part: CardSlice) -> str:
    """Return the UUID of a slice that the hardware makes (MIG); empty for whole cards and shares."""
    if part.slot is None or part.slot >= len(card.slice_uuids):
        return ""
    return card.slice_uuids[part.slot]


def _is_soft(card: Card, part: CardSlice) -> bool:
    """Return whether the slice is a share that the hardware does not enforce."""
    return part.milli < WHOLE_CARD and not _hardware_slice(card, part)


def _nvidia_extras(held: list[tuple[Card, CardSlice]]) -> dict[str, str]:
    """Return NVIDIA's further variables; a share gets the limit of MPS, which is enforced where an MPS server runs."""
    if not held:
        return {}
    soft = [part.milli for card, part in held if _is_soft(card, part)]
    # MPS takes whole percent of a card's threads (milli / 10), at least one.
    return _CUDA_ORDER | ({_MPS_SHARE: str(max(1, sum(soft) // 10))} if soft else {})
