"""The quota tree in a form that can be tested quickly: a job's leaf, its limits there, and what is guaranteed.

The use of a node is that of all leaves below it. A job may start if no node from its leaf to the root would exceed its
max. The root's max is its min, so jobs may use what siblings leave unused of their min, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.quota import JOBS, MOST, Amounts, QuotaTree, places
from cockpit.sched.rules.limits import Counter, LimitScope, Running

QUOTA = "quota"
"""The name of the limit, and of its counters."""
NO_LEAF = ""

Used = Mapping[Counter, int]
"""Use by counter, in thousandths."""


class Share(NamedTuple):
    """A node of the quota tree."""

    path: str
    line: tuple[str, ...]
    """The paths from this node up to the root."""
    min: Amounts
    max: Amounts

    def use(self, used: Used, resource: str) -> int:
        return used.get(counter(self.path, resource), 0)

    def guarantees(self, used: Used, wanted: Amounts, resources: tuple[str, ...]) -> bool:
        """Return whether the node stays within its min with these amounts added."""
        return all(
            self.use(used, each) + wanted[each] <= self.min.get(each, 0) for each in resources if wanted.get(each)
        )

    def borrows(self, used: Used, resource: str) -> int:
        """Return the amount of the resource that is in use beyond the min; 0 or less: nothing is borrowed."""
        return self.use(used, resource) - self.min.get(resource, 0)


class Quotas:
    """A quota tree, or none; without a tree no job belongs to a leaf and nothing is limited."""

    def __init__(self, tree: QuotaTree | None) -> None:
        self.shares: dict[str, Share] = {}
        """The nodes by path, parents first."""
        self._leaves: dict[str, str] = {}
        """The leaf of each project, by name."""
        lines: list[str] = []
        for place in places(tree.root) if tree is not None else ():
            # places come depth first: the path so far is cut back to this node's parent
            del lines[place.depth :]
            lines.append(place.path)
            self.shares[place.path] = Share(place.path, tuple(reversed(lines)), place.node.min, place.node.max)
            self._leaves |= dict.fromkeys(place.node.namespaces, place.path)
        named = {name for share in self.shares.values() for name in (*share.min, *share.max)}
        self.resources = tuple(sorted(named - {JOBS}))
        """The resources that some node limits; others are not counted."""
        self.guarantees = any(share.min.get(each) for share in self._below_root() for each in self.resources)
        """Whether some node below the root has a min."""

    def _below_root(self) -> Iterator[Share]:
        return (share for share in self.shares.values() if len(share.line) > 1)

    def leaf(self, project: str) -> str:
        """Return the path of the project's leaf; NO_LEAF where there is none."""
        return self._leaves.get(project, NO_LEAF)

    def joined(self, scope: LimitScope, leaf: str) -> LimitScope:
        """Return the scope with the limits of the quota tree added for jobs of this leaf."""
        line = [self.shares[path] for path in self.shares[leaf].line]
        running = tuple(
            Running(QUOTA, share.path, resource, most, counter(share.path, resource))
            for share in line
            for resource, most in share.max.items()
            # A max of MOST means unlimited.
            if most < MOST
        )
        counters = tuple(counter(share.path, each) for share in line for each in (*self.resources, JOBS))
        return replace(scope, running=(*scope.running, *running), counters=(*scope.counters, *counters), queue=leaf)


def counter(path: str, resource: str) -> Counter:
    """Return the counter of a node's use of a resource."""
    return (QUOTA, path, resource)
