"""Gives the kinds of replicas of one job different nodes: a bipartite matching, found with augmenting paths.

A kind that takes its best nodes first may leave none for a kind that fits on fewer of them; this finds a choice
wherever there is one (Hall, "On Representatives of Subsets", 1935; augmenting paths after Berge, 1957).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence


def choose_distinct_nodes(nodes: Sequence[Sequence[int]], counts: Sequence[int]) -> list[list[int]] | None:
    """Return for each kind as many different nodes as it needs; None where no choice serves all kinds. `nodes`: by
    kind, the nodes that hold one replica, best first. Each kind in turn gets the best nodes that leave enough for the
    kinds behind it."""
    if most_distinct_nodes(nodes, counts) < sum(counts):
        return None
    chosen: list[list[int]] = []
    taken: set[int] = set()
    for kind, count in enumerate(counts):
        own: list[int] = []
        for node in nodes[kind]:
            if len(own) == count:
                break
            if node in taken:
                continue
            # take the node if what is left still serves the rest of this kind and all kinds behind it
            left = [count - len(own) - 1, *counts[kind + 1 :]]
            after = [node, *own, *taken]
            if most_distinct_nodes(nodes[kind:], left, after) == sum(left):
                own.append(node)
        taken.update(own)
        chosen.append(own)
    return chosen


def most_distinct_nodes(nodes: Sequence[Sequence[int]], counts: Sequence[int], taken: Collection[int] = ()) -> int:
    """Return how many of the replicas can have a node of their own at once. `taken`: nodes that none of them gets."""
    excluded = set(taken)
    # a kind that cannot be served now can never be: later augmentations only move nodes between kinds
    holder: dict[int, int] = {}
    served = 0
    for kind, count in enumerate(counts):
        for _ in range(count):
            served += _serve(kind, nodes, holder, excluded)
    return served


def _serve(kind: int, nodes: Sequence[Sequence[int]], holder: dict[int, int], excluded: Collection[int]) -> bool:
    """Give the kind one more node; other kinds may change theirs for that. `holder`: the kind that has each node."""
    # breadth first: the shortest path moves the fewest kinds
    came_from: dict[int, tuple[int, int]] = {}
    seen, queue = {kind}, deque((kind,))
    while queue:
        current = queue.popleft()
        for node in nodes[current]:
            if node in excluded:
                continue
            other = holder.get(node)
            if other is None:
                # each kind on the way gives up one node to the kind before it, and gets the next one
                holder[node] = current
                while current != kind:
                    current, given = came_from[current]
                    holder[given] = current
                return True
            if other not in seen:
                seen.add(other)
                came_from[other] = (current, node)
                queue.append(other)
    return False
