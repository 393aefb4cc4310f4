"""What running jobs could give up, and the fewest of them that have to so that another job has room."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.node import Allocation
from cockpit.model.spec import NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.placement import eligible, fitting
from cockpit.sched.room import Room, shortfall, whole_cards
from cockpit.sched.shape import Shape

MOST_TRIED = 2_000
"""So many sets are tried for one job. Then one is found of which nobody can be left out, maybe not the smallest."""


class Concession(msgspec.Struct, frozen=True):
    """One job giving way: going, or standing still."""

    job: JobId
    left: tuple[tuple[int, Allocation | None], ...]
    """What it would still hold on its nodes, by their order; None: nothing. Nodes that it keeps as they are, are not
    here."""


Numbers = tuple[int, ...]
"""Places in the list of what is on offer."""


def going(index: Index, job: JobId) -> Concession:
    """The job leaves all it holds."""
    return Concession(job, tuple([(order, None) for order, _ in index.located(index.placed[job])]))


def standing_still(index: Index, job: JobId) -> Concession:
    """The job is suspended: its CPUs come free, memory and cards stay."""
    held = index.located(index.placed[job])
    return Concession(job, tuple([(order, replace(part, cpus=0)) for order, part in held]))


def fewest(index: Index, shape: Shape, offers: Sequence[Concession]) -> tuple[Concession, ...] | None:
    """The smallest set of offers that makes room for the shape; None where all of them together do not.

    Of equally small sets the one whose members stand first: whoever is to go rather than others is offered before them.
    Nothing is asked of anybody when there is room already: then the set is empty.
    """
    search = _Search(index, shape, offers)
    found = [chosen for spec in shape.specs if (chosen := search.for_spec(spec)) is not None]
    best = min(found, key=lambda chosen: (len(chosen), chosen), default=None)
    return None if best is None else tuple([offers[number] for number in best])


def conceded(room: Room, concessions: Iterable[Concession]) -> Room:
    """The room once these have given way."""
    for each in concessions:
        for order, part in each.left:
            if order == room.order and each.job in room.tenants:
                room = room.left_by(each.job)
                room = room if part is None else room.having(each.job, part)
    return room


class _Search:
    """For one shape."""

    def __init__(self, index: Index, shape: Shape, offers: Sequence[Concession]) -> None:
        self._index, self._shape, self._offers = index, shape, offers
        self._tries = MOST_TRIED
        self._on: dict[int, list[int]] = {}
        """Offers by the order of node that they concern."""
        for number, offer in enumerate(offers):
            for order, _ in offer.left:
                self._on.setdefault(order, []).append(number)

    def for_spec(self, spec: NodeSpec) -> Numbers | None:
        index, shape = self._index, self._shape
        places = eligible(index, shape, spec)
        free = {room.order for room in fitting(index, shape, spec)}
        wanted = shape.nodes - len(free)
        if wanted <= 0:
            return ()
        here = {
            order: numbers
            for order in sorted(self._on.keys() & places - free)
            if (numbers := self._of_use(order, spec))
        }
        if wanted == 1 or not self._overlap(here):
            return self._singly(here, spec, wanted)
        return self._together(here, spec, wanted)

    def _singly(self, here: Mapping[int, list[int]], spec: NodeSpec, wanted: int) -> Numbers | None:
        """Where nobody concerns two nodes, or one node is enough: the best sets of the best nodes."""
        nodes = sorted((self._least(order, numbers, spec), order) for order, numbers in here.items())
        found: list[tuple[int, Numbers]] = []
        for least, order in nodes:
            full = len(found) == wanted
            if full and least > found[-1][0]:
                break
            chosen = self._on_node(order, here[order], spec, least, found[-1][0] if full else len(here[order]))
            if chosen is not None:
                found = sorted([*found, (len(chosen), chosen)])[:wanted]
        if len(found) < wanted:
            return None
        return tuple(sorted({number for _, chosen in found for number in chosen}))

    def _together(self, here: Mapping[int, list[int]], spec: NodeSpec, wanted: int) -> Numbers | None:
        """Where one that gives way helps on several nodes."""
        everybody = sorted({number for numbers in here.values() for number in numbers})
        if not self._enough(everybody, here, spec, wanted):
            return None
        for size in range(1, len(everybody)):
            for chosen in combinations(everybody, size):
                if not self._tries:
                    return self._without_needless(everybody, here, spec, wanted)
                self._tries -= 1
                if self._enough(chosen, here, spec, wanted):
                    return chosen
        return tuple(everybody)

    def _without_needless(
        self, everybody: Sequence[int], here: Mapping[int, list[int]], spec: NodeSpec, wanted: int
    ) -> Numbers:
        """Whoever is to stay rather than others is left out first."""
        chosen = list(everybody)
        for number in reversed(everybody):
            rest = [each for each in chosen if each != number]
            chosen = rest if self._enough(rest, here, spec, wanted) else chosen
        return tuple(chosen)

    def _enough(self, chosen: Collection[int], here: Mapping[int, list[int]], spec: NodeSpec, wanted: int) -> bool:
        gone = set(chosen)
        fitting_ = (order for order, numbers in here.items() if self._fits(order, gone.intersection(numbers), spec))
        return sum(1 for _ in zip(fitting_, range(wanted), strict=False)) == wanted

    def _on_node(self, order: int, numbers: Sequence[int], spec: NodeSpec, least: int, most: int) -> Numbers | None:
        if not self._fits(order, numbers, spec):
            return None
        for size in range(least, min(most, len(numbers)) + 1):
            for chosen in combinations(numbers, size):
                if not self._tries:
                    return self._without_needless(numbers, {order: list(numbers)}, spec, 1)
                self._tries -= 1
                if self._fits(order, chosen, spec):
                    return chosen
        return None

    def _fits(self, order: int, chosen: Iterable[int], spec: NodeSpec) -> bool:
        room = conceded(self._index.rooms[order], [self._offers[number] for number in sorted(chosen)])
        return shortfall(room, spec, exclusive=self._shape.exclusive) is None

    def _overlap(self, here: Mapping[int, list[int]]) -> bool:
        numbers = [number for each in here.values() for number in each]
        return len(numbers) > len(set(numbers))

    def _of_use(self, order: int, spec: NodeSpec) -> list[int]:
        """Those who free something that the node lacks."""
        if self._shape.exclusive:
            return self._on[order]
        lacks = lacking(self._index.rooms[order], spec)
        return [
            number
            for number in self._on[order]
            if any(lack > 0 and frees > 0 for lack, frees in zip(lacks, self._freed(number, order), strict=True))
        ]

    def _least(self, order: int, numbers: Sequence[int], spec: NodeSpec) -> int:
        """No fewer can be enough."""
        room = self._index.rooms[order]
        if self._shape.exclusive:
            return max(1, len(room.tenants))
        freed = [self._freed(number, order) for number in numbers]
        lacks = lacking(room, spec)
        return max([1, *(_count_to(lack, [each[kind] for each in freed]) for kind, lack in enumerate(lacks))])

    def _freed(self, number: int, order: int) -> tuple[int, int, int]:
        """CPUs, MiB, and cards that are touched."""
        offer = self._offers[number]
        held = self._index.rooms[order].tenants[offer.job]
        left = dict(offer.left)[order]
        if left is None:
            return held.cpus, held.memory_mib, len({part.card for part in held.slices})
        cards = len({part.card for part in held.slices} - {part.card for part in left.slices})
        return held.cpus - left.cpus, held.memory_mib - left.memory_mib, cards


def lacking(room: Room, spec: NodeSpec) -> tuple[int, int, int]:
    """CPUs, MiB and cards that are missing, 0 or less where none are; of a share the card that would take it."""
    if spec.shares_a_card:
        as_if_alone = replace(spec, cpus=0, memory_mib=0)
        cards = int(shortfall(room, as_if_alone, exclusive=False) is not None)
    else:
        cards = spec.whole_cards - len(whole_cards(room, spec)) if spec.card_milli else 0
    return spec.cpus - room.cpus, spec.memory_mib - room.memory_mib, cards


def _count_to(lack: int, freed: Iterable[int]) -> int:
    """How many, the biggest first, make up for what lacks."""
    count = 0
    for each in sorted(freed, reverse=True):
        if lack <= 0:
            break
        lack, count = lack - each, count + 1
    return count
