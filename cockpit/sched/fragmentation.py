"""Fragmentation gradient descent, for clusters where many jobs share cards.

After "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", Weng et al.,
USENIX ATC 2023, section 4. The fragmentation of a node is measured against a target workload: for each of its shapes m,
F(m) is what the node has free of cards but m cannot use: everything when m does not fit the node, else the cards with
less free than m needs; F is the mean over the workload. A request goes where F grows least. Here the target workload is
what is queued and running now, and the mean is left as a sum, so that everything stays an integer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cockpit.model.ids import JobId
from cockpit.model.node import Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.room import Room, allocate, sharing_cards, shortfall, whole_cards
from cockpit.sched.shape import Shape

Target = tuple[NodeSpec, int]
"""What one replica asks for, and how many replicas do."""

_MOST_TARGETS = 100
"""The most frequent shapes stand for all, as in the paper's experiments."""

_NOBODY = JobId(0)


def target_workload(queued: Iterable[Shape], running: Iterable[Placement]) -> tuple[Target, ...]:
    """The most frequent requests for cards, most frequent first."""
    count: Counter[NodeSpec] = Counter()
    for shape, jobs in Counter(queued).items():
        count[shape.specs[0]] += shape.nodes * jobs
    for placement in running:
        for part in placement:
            count[NodeSpec(cpus=part.cpus, memory_mib=part.memory_mib, card_milli=part.card_milli)] += 1
    asking = Counter({spec: weight for spec, weight in count.items() if spec.card_milli})
    return tuple(asking.most_common(_MOST_TARGETS))


def fragmentation(room: Room, targets: Iterable[Target]) -> int:
    """Thousandths of cards free on the node that the workload cannot use, summed over its replicas."""
    return sum(weight * _unusable(room, spec) for spec, weight in targets)


class GradientDescent:
    """`placement.Fit` by least growth of fragmentation; remembers equal rooms, of which a cluster has many."""

    def __init__(self, targets: tuple[Target, ...]) -> None:
        self._targets = targets
        self._steps: dict[object, tuple[int, int | None]] = {}

    def ranked(self, rooms: list[Room], spec: NodeSpec) -> list[Room]:
        return sorted(rooms, key=lambda room: self._step(room, spec)[0])

    def card(self, room: Room, spec: NodeSpec) -> int | None:
        return self._step(room, spec)[1]

    def _step(self, room: Room, spec: NodeSpec) -> tuple[int, int | None]:
        """(growth, card) of the gentlest way to put one replica here; equal ways: the best fit."""
        alike = (room.kind, room.cpus, room.memory_mib, room.idle, room.holes, spec)
        if alike not in self._steps:
            cards: list[int | None] = [*sharing_cards(room, spec)] if spec.shares_a_card else [None]
            after = [self._after(room, spec, card) for card in cards]
            least = min(range(len(cards)), key=after.__getitem__)
            self._steps[alike] = after[least] - fragmentation(room, self._targets), cards[least]
        return self._steps[alike]

    def _after(self, room: Room, spec: NodeSpec, card: int | None) -> int:
        taken = allocate(room, spec, 0, exclusive=False, card=card)
        return fragmentation(room.having(_NOBODY, taken), self._targets)


def _unusable(room: Room, spec: NodeSpec) -> int:
    free = sum(map(room.free_milli, range(len(room.holes))))
    if shortfall(room, spec, exclusive=False):
        return free
    cards = sharing_cards(room, spec) if spec.shares_a_card else whole_cards(room, spec)
    return free - sum(map(room.free_milli, cards))
