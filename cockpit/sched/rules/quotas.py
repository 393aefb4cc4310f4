"""The quota tree, ready to be asked: which leaf a job belongs to, what binds it there, and what is kept for whom.

`used` of a node is that of all leaves below it. A job may start where no node from its leaf to the root would pass its
max. Since the root's max is its min, that is what siblings leave of their min and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.quota import JOBS, MOST, Amounts, QuotaTree, places
from cockpit.sched.rules.limits import Counter, LimitScope, Running

QUOTA = "quota"
"""The name of the limit, and of what counts for it."""
NO_LEAF = ""

Used = Mapping[Counter, int]
"""Of every counter, in thousandths."""


class Share(NamedTuple):
    """One node of the tree."""

    path: str
    line: tuple[str, ...]
    """Paths from here up to the root."""
    min: Amounts
    max: Amounts

    def use(self, used: Used, resource: str) -> int:
        return used.get(counter(self.path, resource), 0)

    def guarantees(self, used: Used, wanted: Amounts, resources: tuple[str, ...]) -> bool:
        """Whether so much more is still within what is kept for it."""
        return all(
            self.use(used, each) + wanted[each] <= self.min.get(each, 0) for each in resources if wanted.get(each)
        )

    def borrows(self, used: Used, resource: str) -> int:
        """How much more of the resource is in use than is kept for it; 0 or less: nothing is borrowed."""
        return self.use(used, resource) - self.min.get(resource, 0)


class Quotas:
    """One tree, or none: then nobody belongs to a leaf, and nothing is bound."""

    def __init__(self, tree: QuotaTree | None) -> None:
        self.shares: dict[str, Share] = {}
        """By path, parents first."""
        self._leaves: dict[str, str] = {}
        """By project."""
        lines: list[str] = []
        for place in places(tree.root) if tree is not None else ():
            del lines[place.depth :]
            lines.append(place.path)
            self.shares[place.path] = Share(place.path, tuple(reversed(lines)), place.node.min, place.node.max)
            self._leaves |= dict.fromkeys(place.node.namespaces, place.path)
        named = {name for share in self.shares.values() for name in (*share.min, *share.max)}
        self.resources = tuple(sorted(named - {JOBS}))
        """That some node bounds: nothing else is counted."""
        self.guarantees = any(share.min.get(each) for share in self._below_root() for each in self.resources)
        """Something is kept for somebody."""

    def _below_root(self) -> Iterator[Share]:
        return (share for share in self.shares.values() if len(share.line) > 1)

    def leaf(self, project: str) -> str:
        """Its path; NO_LEAF where no leaf has the project."""
        return self._leaves.get(project, NO_LEAF)

    def joined(self, scope: LimitScope, leaf: str) -> LimitScope:
        """Those of the party whose project is the leaf's: the tree binds them too."""
        line = [self.shares[path] for path in self.shares[leaf].line]
        running = tuple(
            Running(QUOTA, share.path, resource, most, counter(share.path, resource))
            for share in line
            for resource, most in share.max.items()
            if most < MOST
        )
        counters = tuple(counter(share.path, each) for share in line for each in (*self.resources, JOBS))
        return replace(scope, running=(*scope.running, *running), counters=(*scope.counters, *counters), queue=leaf)


def counter(path: str, resource: str) -> Counter:
    """What is in use at a node."""
    return (QUOTA, path, resource)
