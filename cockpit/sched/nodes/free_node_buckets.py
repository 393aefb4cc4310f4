"""Nodes sorted by what they have free, so that a search looks only at those that can do.

A shelf holds the nodes with one number free (idle cards, or thousandths of a shared card), sorted by free CPUs, free
memory and order. Searching a full cluster for room therefore touches nothing at all.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Sequence
from heapq import merge

from cockpit.sched.nodes.node_free import NodeFree

Entry = tuple[int, int, int]
"""Free CPUs, free memory, order of the node."""


class FreeNodeBuckets(dict[int, list[Entry]]):
    """Shelves by label; none is empty. One that has a single node is replaced, not changed: copies share it."""

    __slots__ = ()

    def copy(self) -> FreeNodeBuckets:
        fresh = FreeNodeBuckets(self)
        for label, shelf in self.items():
            if len(shelf) > 1:
                fresh[label] = shelf.copy()
        return fresh

    def put(self, label: int, node_free: NodeFree) -> None:
        entry = node_free.cpus, node_free.memory_mib, node_free.order
        shelf = self.get(label, ())
        if isinstance(shelf, list) and len(shelf) > 1:
            insort(shelf, entry)
        else:
            self[label] = sorted((*shelf, entry))

    def take(self, label: int, node_free: NodeFree) -> None:
        shelf = self[label]
        if len(shelf) == 1:
            del self[label]
        else:
            del shelf[bisect_left(shelf, (node_free.cpus, node_free.memory_mib, node_free.order))]

    def move(self, before: int, old: NodeFree, label: int, node_free: NodeFree) -> None:
        """One node: `take` and `put`."""
        shelf = self[before]
        if before != label or len(shelf) > 1:
            self.take(before, old)
            self.put(label, node_free)
        else:
            self[label] = [(node_free.cpus, node_free.memory_mib, node_free.order)]

    def most_free(self) -> tuple[int, int]:
        """CPUs of the node that has most of them free, and the highest label."""
        if len(self) == 1:
            ((label, shelf),) = self.items()
            return shelf[-1][0], label
        return (max([shelf[-1][0] for shelf in self.values()]), max(self)) if self else (0, 0)

    def labels(self) -> list[int]:
        return sorted(self)

    def total(self) -> int:
        """Sum of all nodes' labels."""
        return sum(label * len(shelf) for label, shelf in self.items())

    def orders(self) -> Iterator[int]:
        return (entry[2] for label in self.labels() for entry in self[label])

    def with_cpus(self, label: int, cpus: int) -> list[Entry]:
        """The nodes on a shelf with at least so many CPUs, tightest first."""
        shelf = self.get(label)
        return shelf[bisect_left(shelf, (cpus,)) :] if shelf and shelf[-1][0] >= cpus else []

    def has_fewer(self, count: int, least: int, cpus: int) -> bool:
        """Whether fewer nodes than `count` are on the shelves from `least` on and have so many CPUs."""
        for label, shelf in self.items():
            if label >= least and shelf[-1][0] >= cpus:
                count -= len(shelf) if shelf[0][0] >= cpus else len(shelf) - bisect_left(shelf, (cpus,))
                if count <= 0:
                    return False
        return True

    def wide_enough(self, cpus: int, memory_mib: int) -> Iterator[int]:
        """All nodes with at least these free, lowest label first, on a shelf the tightest."""
        for _, shelf in sorted(self.items()):
            for number in range(bisect_left(shelf, (cpus,)), len(shelf)):
                _, memory, order = shelf[number]
                if memory >= memory_mib:
                    yield order

    def tightest(self, cpus: int, memory_mib: int, avoid: Collection[int] = ()) -> int | None:
        """The first of these that is not to be avoided."""
        for _, shelf in sorted(self.items()) if len(self) > 1 else self.items():
            if len(shelf) == 1:
                free, memory, order = shelf[0]
                if free >= cpus and memory >= memory_mib and order not in avoid:
                    return order
                continue
            for number in range(bisect_left(shelf, (cpus,)), len(shelf)):
                _, memory, order = shelf[number]
                if memory >= memory_mib and order not in avoid:
                    return order
        return None

    def most_memory(self, label: int, cpus: int) -> Iterator[int]:
        """Of those with enough CPUs, most memory first (then CPUs, then order)."""
        entries = sorted(self.with_cpus(label, cpus), key=lambda entry: (-entry[1], -entry[0], entry[2]))
        return (order for _, _, order in entries)

    def most_cpus(self, label: int, below: int | None = None) -> Iterator[int]:
        """Nodes on a shelf with most CPUs first (then memory, then order), of those with fewer than `below`."""
        shelf = self.get(label, [])
        end = len(shelf) if below is None else bisect_left(shelf, (below,))
        while end:
            start = bisect_left(shelf, shelf[end - 1][:2])
            yield from (order for _, _, order in shelf[start:end])
            end = start


def walk(shelves: Sequence[FreeNodeBuckets], least: int, cpus: int, memory_mib: int) -> Iterator[tuple[int, int]]:
    """(label, order) of the nodes with at least these free, best fit first over all the given shelves together."""
    if len(shelves) == 1:
        labels = [label for label in shelves[0].labels() if label >= least]
    else:
        labels = sorted({label for each in shelves for label in each.labels() if label >= least})
    for label in labels:
        fitting = [entries for each in shelves if (entries := each.with_cpus(label, cpus))]
        for entry in fitting[0] if len(fitting) == 1 else merge(*fitting):
            if entry[1] >= memory_mib:
                yield label, entry[2]
