"""Sorts nodes by what they have free, so that a search looks only at nodes that can fit.

A bucket holds the nodes with one number free (idle cards, or thousandths of a shared card), sorted by free CPUs, free
memory and order. In a full cluster the buckets that a job could use are empty, so a search costs nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Sequence
from heapq import merge

from cockpit.sched.nodes.node_free import NodeFree

Entry = tuple[int, int, int]
"""Free CPUs, free memory in MiB, order of the node."""


class FreeNodeBuckets(dict[int, list[Entry]]):
    """Buckets by key: the number of idle cards, or the free thousandths of a card. No bucket is empty. A bucket with a
    single node is replaced, not changed, because copies share it."""

    __slots__ = ()

    def copy(self) -> FreeNodeBuckets:
        # buckets of one node are never changed in place, so copies may share them
        fresh = FreeNodeBuckets(self)
        for key, bucket in self.items():
            if len(bucket) > 1:
                fresh[key] = bucket.copy()
        return fresh

    def put(self, key: int, node_free: NodeFree) -> None:
        entry = node_free.cpus, node_free.memory_mib, node_free.order
        bucket = self.get(key, ())
        # a bucket of one node may be shared with a copy, so a second node makes a new list
        if isinstance(bucket, list) and len(bucket) > 1:
            insort(bucket, entry)
        else:
            self[key] = sorted((*bucket, entry))

    def take(self, key: int, node_free: NodeFree) -> None:
        bucket = self[key]
        if len(bucket) == 1:
            del self[key]
        else:
            del bucket[bisect_left(bucket, (node_free.cpus, node_free.memory_mib, node_free.order))]

    def move(self, before: int, old: NodeFree, key: int, node_free: NodeFree) -> None:
        """Move one node: `take` and `put` in one step."""
        # a bucket of one node that stays is replaced without a search
        bucket = self[before]
        if before != key or len(bucket) > 1:
            self.take(before, old)
            self.put(key, node_free)
        else:
            self[key] = [(node_free.cpus, node_free.memory_mib, node_free.order)]

    def most_free(self) -> tuple[int, int]:
        """Return the most free CPUs of any node, and the highest key."""
        if len(self) == 1:
            ((key, bucket),) = self.items()
            return bucket[-1][0], key
        return (max([bucket[-1][0] for bucket in self.values()]), max(self)) if self else (0, 0)

    def sorted_keys(self) -> list[int]:
        return sorted(self)

    def total(self) -> int:
        """Return the sum of all nodes' keys, for example of all idle cards."""
        return sum(key * len(bucket) for key, bucket in self.items())

    def orders(self) -> Iterator[int]:
        return (entry[2] for key in self.sorted_keys() for entry in self[key])

    def with_cpus(self, key: int, cpus: int) -> list[Entry]:
        """Return the nodes of a bucket with at least so many free CPUs, tightest first."""
        bucket = self.get(key)
        return bucket[bisect_left(bucket, (cpus,)) :] if bucket and bucket[-1][0] >= cpus else []

    def has_fewer(self, count: int, least: int, cpus: int) -> bool:
        """Return whether fewer than `count` nodes have a key of at least `least` and so many free CPUs."""
        for key, bucket in self.items():
            if key >= least and bucket[-1][0] >= cpus:
                # the bucket is sorted by CPUs: where its first node suffices all do, and no search is needed
                count -= len(bucket) if bucket[0][0] >= cpus else len(bucket) - bisect_left(bucket, (cpus,))
                if count <= 0:
                    return False
        return True

    def with_at_least(self, cpus: int, memory_mib: int) -> Iterator[int]:
        """Yield all nodes with at least these free, lowest key first, within a bucket the tightest first."""
        for _, bucket in sorted(self.items()):
            for number in range(bisect_left(bucket, (cpus,)), len(bucket)):
                _, memory, order = bucket[number]
                if memory >= memory_mib:
                    yield order

    def tightest(self, cpus: int, memory_mib: int, avoid: Collection[int] = ()) -> int | None:
        """Return the first node that `with_at_least` yields and that is not in `avoid`; None: there is none."""
        for _, bucket in sorted(self.items()) if len(self) > 1 else self.items():
            if len(bucket) == 1:
                free, memory, order = bucket[0]
                if free >= cpus and memory >= memory_mib and order not in avoid:
                    return order
                continue
            for number in range(bisect_left(bucket, (cpus,)), len(bucket)):
                _, memory, order = bucket[number]
                if memory >= memory_mib and order not in avoid:
                    return order
        return None

    def most_memory(self, key: int, cpus: int) -> Iterator[int]:
        """Yield the bucket's nodes with enough CPUs, most memory first, then most CPUs, then by order."""
        entries = sorted(self.with_cpus(key, cpus), key=lambda entry: (-entry[1], -entry[0], entry[2]))
        return (order for _, _, order in entries)

    def most_cpus(self, key: int, below: int | None = None) -> Iterator[int]:
        """Yield the bucket's nodes with fewer free CPUs than `below`, most CPUs first, then most memory, then by
        order."""
        bucket = self.get(key, [])
        # walk back over runs of equal CPUs and memory, so that nodes of one run come in the cluster's order
        end = len(bucket) if below is None else bisect_left(bucket, (below,))
        while end:
            start = bisect_left(bucket, bucket[end - 1][:2])
            yield from (order for _, _, order in bucket[start:end])
            end = start


def walk(buckets: Sequence[FreeNodeBuckets], least: int, cpus: int, memory_mib: int) -> Iterator[tuple[int, int]]:
    """Yield (key, order) of the nodes with at least these free, best fit first over all the buckets together."""
    if len(buckets) == 1:
        keys = [key for key in buckets[0].sorted_keys() if key >= least]
    else:
        keys = sorted({key for each in buckets for key in each.sorted_keys() if key >= least})
    for key in keys:
        fitting = [entries for each in buckets if (entries := each.with_cpus(key, cpus))]
        # entries of all classes are merged by CPUs, memory and order, which is the order of best fit within a key
        for entry in fitting[0] if len(fitting) == 1 else merge(*fitting):
            if entry[1] >= memory_mib:
                yield key, entry[2]
