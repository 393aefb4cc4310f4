"""Quotas of queues by flavor, which the queues of a cohort lend each other.

A node is a queue or a cohort; cohorts form trees. A node keeps the part of its quota that it does not lend, and shares
the rest with all nodes below its parent. Source: Kueue's documentation of cohorts, borrowingLimit and lendingLimit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import NamedTuple

import msgspec

COHORT = "cohort/"
"""The prefix of a cohort's key: a cohort may have the name of a queue."""


class FlavorResource(NamedTuple):
    """What a quota counts: a resource on nodes of a flavor."""

    flavor: str
    resource: str


Usage = Mapping[FlavorResource, int]
"""Amounts in thousandths."""


class Quota(msgspec.Struct, frozen=True):
    """The quota of a node for one resource of a flavor, in thousandths."""

    nominal: int = 0
    borrowing_limit: int | None = None
    """The most that the node may use beyond its quota; None: as much as there is."""
    lending_limit: int | None = None
    """The most of its quota that others may use; None: all of it."""


_NONE = Quota()


class CohortQuotas:
    """The quotas of all queues and cohorts, and what is used of them."""

    def __init__(self, quotas: Mapping[str, Mapping[FlavorResource, Quota]], parents: Mapping[str, str]) -> None:
        """`quotas`: by key of the node, of cohorts with the prefix `COHORT`. `parents`: the cohort's key by node; a
        node without one lends and borrows nothing. A cohort that is its own ancestor counts as one without a parent."""
        self._quotas = {name: dict(each) for name, each in quotas.items()}
        self._parents = {node: parent for node, parent in parents.items() if not _is_in_cycle(node, parents)}
        self._children: dict[str, list[str]] = {}
        for node, parent in self._parents.items():
            self._children.setdefault(parent, []).append(node)
        self._subtrees: dict[tuple[str, FlavorResource], int] = {}
        self._used: dict[str, dict[FlavorResource, int]] = {}

    def copy(self) -> CohortQuotas:
        """Return a copy whose use changes on its own."""
        copied = copy(self)
        copied._used = {node: dict(used) for node, used in self._used.items()}  # noqa: SLF001 - of the same class
        return copied

    def parent(self, node: str) -> str | None:
        """Return the cohort of a queue or cohort; None: it has none."""
        return self._parents.get(node)

    def ancestors(self, node: str) -> Iterator[str]:
        """Yield the cohorts above a node, the nearest first."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def children(self, cohort: str) -> tuple[str, ...]:
        """Return the queues and cohorts directly below a cohort."""
        return tuple(self._children.get(cohort, ()))

    def height(self, node: str) -> int:
        """Return the levels below a node; 0: it is a queue, or empty."""
        return max((1 + self.height(child) for child in self._children.get(node, ())), default=0)

    def quota(self, node: str, cell: FlavorResource) -> Quota:
        """Return the node's own quota."""
        return self._quotas.get(node, {}).get(cell, _NONE)

    def subtree(self, node: str, cell: FlavorResource) -> int:
        """Return the quota of a node, of a cohort with what the nodes below it lend."""
        known = self._subtrees.get((node, cell))
        if known is None:
            lent = sum(self.subtree(each, cell) - self.kept(each, cell) for each in self._children.get(node, ()))
            known = self._subtrees[node, cell] = self.quota(node, cell).nominal + lent
        return known

    def kept(self, node: str, cell: FlavorResource) -> int:
        """Return the part of a node's quota that it does not lend."""
        lends = self.quota(node, cell).lending_limit
        return 0 if lends is None or node not in self._parents else max(0, self.subtree(node, cell) - lends)

    def used(self, node: str, cell: FlavorResource) -> int:
        """Return what a queue uses; of a cohort, what the nodes below it use of what is shared there."""
        return self._used.get(node, {}).get(cell, 0)

    def change(self, queue: str, usage: Usage, sign: int = 1) -> None:
        """Add what a job of the queue uses, or take it away (`sign` -1)."""
        for cell, amount in usage.items():
            node, delta = queue, sign * amount
            while True:
                before = self._shared_use(node, cell)
                self._used.setdefault(node, {})[cell] = self.used(node, cell) + delta
                # Only what the node does not cover itself burdens the cohort.
                delta = self._shared_use(node, cell) - before
                if node not in self._parents or not delta:
                    break
                node = self._parents[node]

    def _shared_use(self, node: str, cell: FlavorResource) -> int:
        return max(0, self.used(node, cell) - self.kept(node, cell))

    def local_free(self, node: str, cell: FlavorResource) -> int:
        """Return what is free of the part that the node does not lend."""
        return max(0, self.kept(node, cell) - self.used(node, cell))

    def available(self, node: str, cell: FlavorResource) -> int:
        """Return what a new job may use now; negative where more is used than there is."""
        parent = self._parents.get(node)
        if parent is None:
            return self.subtree(node, cell) - self.used(node, cell)
        shared = self.available(parent, cell)
        limit = self.quota(node, cell).borrowing_limit
        if limit is not None:
            lent = self.subtree(node, cell) - self.kept(node, cell)
            shared = min(shared, lent - self._shared_use(node, cell) + limit)
        return self.local_free(node, cell) + shared

    def potential(self, node: str, cell: FlavorResource) -> int:
        """Return the most that one job could ever use, were nothing else in use."""
        parent = self._parents.get(node)
        own = self.subtree(node, cell)
        if parent is None:
            return own
        most = self.kept(node, cell) + self.potential(parent, cell)
        limit = self.quota(node, cell).borrowing_limit
        return most if limit is None else min(most, own + limit)

    def would_borrow(self, node: str, cell: FlavorResource, amount: int) -> bool:
        """Return whether the node exceeds its quota with this amount more."""
        return self.used(node, cell) + amount > self.subtree(node, cell)

    def borrowing_level(self, queue: str, cell: FlavorResource, amount: int) -> tuple[int, bool]:
        """Return how far up a job has to borrow, in levels (0: not at all), and whether quota may be taken back there:
        the subtree in which it fits has nodes beside it."""
        if queue not in self._parents or not self.would_borrow(queue, cell, amount):
            return 0, queue in self._parents
        rest, top = amount - self.local_free(queue, cell), queue
        for top in self.ancestors(queue):
            if not self.would_borrow(top, cell, rest):
                return self.height(top), top in self._parents
            rest -= self.local_free(top, cell)
        return self.height(top), False


def _is_in_cycle(node: str, parents: Mapping[str, str]) -> bool:
    seen, above = {node}, parents.get(node)
    while above is not None:
        if above == node:
            return True
        # Another cycle further up, which its own nodes leave.
        if above in seen:
            return False
        seen.add(above)
        above = parents.get(above)
    return False
