"""What shows a container its cards and hides the others: variables and device nodes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from cockpit.model.node import Card, CardSlice, CardVendor, Node
from cockpit.model.spec import WHOLE_CARD


class _Naming(Enum):
    """How a variable lists the cards that a replica holds."""

    ID = auto()
    """By UUID where one is known, which means the same card inside and outside of a container; else by index."""
    INDEX = auto()
    """By position in the node."""
    ORDINAL = auto()
    """0, 1, 2 …: it counts among the cards that another variable has left visible."""


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
"""The indexes of the cards, whoever made them."""

_MPS_SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
_CUDA_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Else CUDA counts from the fastest card and an index means another card than in nvidia-smi."""


def no_cards_environment() -> dict[str, str]:
    """Every variable that shows cards, empty: nothing is visible."""
    names = (name for variables in _VARIABLES.values() for name in variables)
    return dict.fromkeys((*names, _CARDS), "")


def card_environment(node: Node, slices: Iterable[CardSlice]) -> dict[str, str]:
    """The variables of a replica that holds these slices of the node's cards. Those of absent vendors are empty."""
    held = _held_cards(node, slices)
    env = no_cards_environment()
    env[_CARDS] = _listed(str(card.index) for card, _ in held)
    # NVIDIA last: where both stand in one node, CUDA's variable is NVIDIA's
    for vendor in sorted(CardVendor, key=lambda vendor: vendor is CardVendor.NVIDIA):
        ours = [(card, part) for card, part in held if card.vendor is vendor]
        if ours:
            env |= {name: _value(naming, ours) for name, naming in _VARIABLES[vendor].items()}
    return env | _nvidia_extras([(card, part) for card, part in held if card.vendor is CardVendor.NVIDIA])


def card_devices(node: Node, slices: Iterable[CardSlice]) -> tuple[str, ...]:
    """The device nodes that the container of these slices needs, each once."""
    return tuple(dict.fromkeys(device for card, _ in _held_cards(node, slices) for device in card.devices))


def whole_cards(node: Node, slices: Iterable[CardSlice]) -> tuple[str, ...]:
    """UUIDs of the real cards that are held whole: of a card that several share, nobody can say who keeps it busy."""
    held = _held_cards(node, slices)
    return tuple(card.uuid for card, part in held if part.milli == WHOLE_CARD and card.uuid and not card.declared)


def share_limits(node: Node, slices: Iterable[CardSlice]) -> str:
    """How its shares of cards are enforced, for people; empty where it has none but those that the hardware made."""
    shared = [card for card, part in _held_cards(node, slices) if _is_soft(card, part)]
    if not shared:
        return ""
    if all(card.vendor is CardVendor.NVIDIA and not card.declared for card in shared):
        return "card share: by CUDA MPS where its server is reached, else not enforced"
    return "card share: not enforced"


def slots(slices: Iterable[CardSlice]) -> int:
    """Processes per node that a launcher starts: the cards of the replica, 1 without any."""
    return max(1, len({part.card for part in slices}))


def _held_cards(node: Node, slices: Iterable[CardSlice]) -> list[tuple[Card, CardSlice]]:
    """In the order of the cards, so that listings ascend."""
    cards = {card.index: card for card in node.cards}
    ordered = sorted(slices, key=lambda part: (part.card, part.slot or 0))
    return [(cards[part.card], part) for part in ordered if part.card in cards]


def _value(naming: _Naming, held: list[tuple[Card, CardSlice]]) -> str:
    if naming is _Naming.INDEX:
        return _listed(str(card.index) for card, _ in held)
    ids = dict.fromkeys(_hardware_slice(card, part) or card.uuid or str(card.index) for card, part in held)
    return _listed(ids if naming is _Naming.ID else map(str, range(len(ids))))


def _listed(names: Iterable[str]) -> str:
    """Comma-separated, each once: two slices of one card are one card to its driver."""
    return ",".join(dict.fromkeys(names))


def _hardware_slice(card: Card, part: CardSlice) -> str:
    """The UUID of the slice where the hardware makes slices (MIG); empty for whole cards and shares."""
    if part.slot is None or part.slot >= len(card.slice_uuids):
        return ""
    return card.slice_uuids[part.slot]


def _is_soft(card: Card, part: CardSlice) -> bool:
    """Whether it is a share that the hardware does not enforce."""
    return part.milli < WHOLE_CARD and not _hardware_slice(card, part)


def _nvidia_extras(held: list[tuple[Card, CardSlice]]) -> dict[str, str]:
    """A share that the hardware does not enforce gets MPS's limit, which holds where an MPS server runs."""
    if not held:
        return {}
    soft = [part.milli for card, part in held if _is_soft(card, part)]
    return _CUDA_ORDER | ({_MPS_SHARE: str(max(1, sum(soft) // 10))} if soft else {})
