"""The scheduler's index: what is free on every node, sorted so that a search looks at few nodes.

An index is an explicit value: `refresh_index` makes the next one from the last one and the changes since. An index made
from nothing gives the same answers.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.equivalence import EquivalenceCache
from cockpit.sched.nodes.free_node_buckets import FreeNodeBuckets
from cockpit.sched.nodes.node_free import NodeFree, Tenant, node_free_of
from cockpit.sched.nodes.node_layout import NodeLayout
from cockpit.sched.rules.counters import Counters, JobAmounts, tally_of_placed
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.snapshot import Snapshot

Located = tuple[tuple[int, Allocation], ...]
"""A placement in which each part has its node's position in the cluster."""

_NO_CLASS: frozenset[int] = frozenset()
Departure = tuple[Millis, JobId, Located]
"""The latest end of a job, its id, and what comes free then."""


class Index:
    """Free resources per node, buckets of nodes, departures and limit counters, for one version of the state. It
    must not change once `refresh_index` or `fork` has returned it, except by the caller who made the fork."""

    __slots__ = (
        "_buckets_current",
        "_by_hole",
        "_by_whole",
        "_own_classes",
        "_running",
        "counters",
        "departures",
        "ends",
        "equivalence",
        "layout",
        "most_cards",
        "most_cpus",
        "nodes_free",
        "placed",
        "shared",
        "single_node",
        "version",
    )

    def __init__(
        self,
        layout: NodeLayout,
        equivalence: EquivalenceCache,
        occupied: Mapping[JobId, Placement],
        ends: Mapping[JobId, Millis],
    ) -> None:
        """`occupied`: what each job holds; `ends`: when a job is gone at the latest, for jobs where that is known."""
        self.version = 0
        """The latest version of the state that the index is known to represent."""
        self.shared = True
        """Whether it may be read later as it is now; such an index is copied before a change."""
        self.layout = layout
        self.equivalence = equivalence
        self.counters = Counters()
        self.placed: dict[JobId, Placement] = dict(occupied)
        self.ends = {job: ends[job] for job in occupied if job in ends}
        """When each job is gone at the latest; absent: not known."""
        # node names become positions here, once: every later step works with positions alone
        located = {job: self.located(placement) for job, placement in occupied.items()}
        self.departures: list[Departure] = sorted([(end, job, located[job]) for job, end in self.ends.items()])
        """The same ends, soonest first, with what comes free."""
        tenants: list[list[Tenant]] = [[] for _ in layout.nodes]
        for job, parts in located.items():
            for order, part in parts:
                tenants[order].append((job, part))
        self.nodes_free = [
            node_free_of(node, order, node_class, inside)
            for order, (node, node_class, inside) in enumerate(zip(layout.nodes, layout.class_of, tenants, strict=True))
        ]
        self.single_node = len(self.nodes_free) == 1
        """Whether the cluster has a single node. Then buckets are made only when they are read: a search over one node
        needs none. Without this case an EASY replay of KTH-SP2 (PF-03) takes a tenth longer."""
        self._running: Counter[NodeSpec] | None = None
        self._own_classes = frozenset(range(len(layout.node_classes)))
        """Node classes whose buckets belong to this index alone; the buckets of others are copied before they
        change."""
        self._fill_buckets()
        self._update_maxima()

    def fork(self) -> Index:
        """Return a copy that may be changed; about 0.3 ms for 10 000 nodes."""
        fork = Index.__new__(Index)
        fork.version, fork.layout, fork.equivalence = self.version, self.layout, self.equivalence
        fork.counters, fork.shared, fork.single_node = self.counters, True, self.single_node
        fork.nodes_free, fork.placed = self.nodes_free.copy(), self.placed.copy()
        fork.ends, fork.departures = self.ends.copy(), self.departures.copy()
        fork._running = None if self._running is None else self._running.copy()  # noqa: SLF001 - same class
        fork._by_whole, fork._by_hole = self._by_whole.copy(), self._by_hole.copy()  # noqa: SLF001 - same class
        # from now on both share the buckets, so whichever of them changes first copies them
        if self._own_classes:
            self._own_classes = _NO_CLASS
        fork._own_classes = _NO_CLASS  # noqa: SLF001 - same class
        fork._buckets_current = self._buckets_current  # noqa: SLF001 - same class
        fork.most_cpus, fork.most_cards = self.most_cpus, self.most_cards
        return fork

    def with_own_caches(self) -> Index:
        """Return a copy with caches of its own: nothing that is computed with it changes what others compute."""
        fork = self.fork()
        fork.layout, fork.equivalence = (
            self.layout.with_own_caches(),
            EquivalenceCache(self.equivalence.rules.with_own_caches()),
        )
        return fork

    @property
    def by_whole(self) -> list[FreeNodeBuckets]:
        """Nodes of each node class, in buckets by the number of idle cards."""
        if not self._buckets_current:
            self._fill_buckets()
        return self._by_whole

    @property
    def by_hole(self) -> list[FreeNodeBuckets]:
        """Nodes of each node class, in buckets by the free thousandths of a shared card; a node is in one bucket for
        each distinct number."""
        if not self._buckets_current:
            self._fill_buckets()
        return self._by_hole

    def _fill_buckets(self) -> None:
        """Sort all nodes into buckets by what they have free."""
        by_whole, by_hole = (
            [FreeNodeBuckets() for _ in self.layout.node_classes],
            [FreeNodeBuckets() for _ in self.layout.node_classes],
        )
        for node_free in self.nodes_free:
            by_whole[node_free.node_class].put(len(node_free.idle), node_free)
            for hole in _shared_holes(node_free):
                by_hole[node_free.node_class].put(hole, node_free)
        self._by_whole, self._by_hole = by_whole, by_hole
        self._buckets_current = True
        """False only in a cluster with a single node: there the buckets are made again when they are read, which costs
        no more than to update them."""

    def writable(self) -> Index:
        """Return an index that may be changed: this one if no other code reads it, else a copy."""
        return self.fork() if self.shared else self

    def after(self, changes: Mapping[JobId, Placement | None], snapshot: Snapshot) -> Index:
        """Return the index of a later snapshot with the same rules that differs by these changes."""
        if not changes:
            self.version = snapshot.version
            return self
        fresh = self.writable()
        fresh.apply(changes.items(), snapshot.ends)
        count(fresh, changes, snapshot)
        fresh.version = snapshot.version
        return fresh

    def is_of_rules(self, snapshot: Snapshot) -> bool:
        """Return whether the snapshot has the same nodes and rules."""
        return (
            self.equivalence.rules.version == snapshot.rules_version and self.layout.version == snapshot.nodes_version
        )

    def apply(self, changes: Iterable[tuple[JobId, Placement | None]], ends: Mapping[JobId, Millis]) -> None:
        """Set what each of the jobs holds until its end; None or an empty placement: nothing any more."""
        for job, placement in changes:
            if job in self.placed:
                self._remove(job)
            if placement:
                self._add(job, placement, ends.get(job))
        self._update_maxima()

    def place(self, job: JobId, placement: Placement, end: Millis) -> None:
        """Set what a starting job holds until its end."""
        if job in self.placed:
            self._remove(job)
        self._add(job, placement, end)
        self._update_maxima()

    def lacks_cpus_for(self, alternatives: Sequence[NodeSpec]) -> bool:
        """Return whether no node has enough free CPUs for any of the alternatives."""
        # no generator where the first alternative fits: this runs for every job that a pass reaches
        widest = self.most_cpus
        return alternatives[0].cpus > widest and all(spec.cpus > widest for spec in alternatives[1:])

    def tightest(self, node_class: int, spec: NodeSpec, avoid: Collection[int] = ()) -> int | None:
        """Return the order of the node in the class that has enough free CPUs and memory and least more of them; none
        of those in `avoid`. None: there is no such node."""
        # a full cluster is recognised without a search
        if spec.cpus > self.most_cpus:
            return None
        if self.single_node:
            return 0 if self.nodes_free[0].memory_mib >= spec.memory_mib and 0 not in avoid else None
        return self._by_whole[node_class].tightest(spec.cpus, spec.memory_mib, avoid)

    def nodes_free_at(self, orders: Iterable[int]) -> Iterator[NodeFree]:
        return map(self.nodes_free.__getitem__, orders)

    def located(self, placement: Placement) -> Located:
        """Return the placement with each node's order, without nodes that have left the cluster under a running job."""
        position = self.layout.position
        if len(placement) == 1:
            (part,) = placement
            return ((position[part.node], part),) if part.node in position else ()
        return tuple([(position[part.node], part) for part in placement if part.node in position])

    def running(self) -> Mapping[NodeSpec, int]:
        """Count the running replicas by what they hold; card models are not distinguished, and held containers are left
        out. Counted from the first call on, and kept up to date from then."""
        if self._running is None:
            self._running = Counter()
            for placement in self.placed.values():
                self._count_running(placement, +1)
        return self._running

    def _count_running(self, placement: Placement, by: int) -> None:
        if self._running is None:
            return
        for part in placement:
            spec = NodeSpec(cpus=part.cpus, memory_mib=part.memory_mib, card_milli=part.card_milli)
            self._running[spec] += by if part.cpus else 0
            if not self._running[spec]:
                del self._running[spec]

    def _add(self, job: JobId, placement: Placement, end: Millis | None) -> None:
        """Put a job with this placement into the index, which must not have it."""
        self.placed[job] = placement
        if self._running is not None:
            self._count_running(placement, +1)
        located, nodes_free = self.located(placement), self.nodes_free
        for order, part in located:
            old = nodes_free[order]
            new = nodes_free[order] = old.with_tenant(job, part)
            if self.single_node:
                self._buckets_current = False
            else:
                self._move(old, new)
        if end is not None:
            self.ends[job] = end
            # kept sorted: reservations and limits read the departures soonest first
            insort(self.departures, (end, job, located))

    def _remove(self, job: JobId) -> None:
        """Take the job out of the index, and give back what it holds."""
        placement = self.placed.pop(job)
        if self._running is not None:
            self._count_running(placement, -1)
        end, departures, nodes_free = self.ends.pop(job, None), self.departures, self.nodes_free
        # a job with a known end has its positions in `departures`, so they need not be looked up again
        if end is None:
            located = self.located(placement)
        else:
            # (end, job) is unique, so the search lands exactly on this departure
            _, _, located = departures.pop(bisect_left(departures, (end, job)))
        for order, _ in located:
            old = nodes_free[order]
            new = nodes_free[order] = old.without_tenant(job)
            if self.single_node:
                self._buckets_current = False
            else:
                self._move(old, new)

    def _move(self, old: NodeFree, new: NodeFree) -> None:
        """Move one node from the buckets where it was to those where it belongs now."""
        node_class = new.node_class
        if node_class not in self._own_classes:  # copy on write: a pass changes few of the classes
            self._own_classes |= {node_class}
            self._by_whole[node_class] = self._by_whole[node_class].copy()
            if new.holes:
                self._by_hole[node_class] = self._by_hole[node_class].copy()
        self._by_whole[node_class].move(len(old.idle), old, len(new.idle), new)
        if new.holes:
            for hole in _shared_holes(old):
                self._by_hole[node_class].take(hole, old)
            for hole in _shared_holes(new):
                self._by_hole[node_class].put(hole, new)

    def _update_maxima(self) -> None:
        """Set `most_cpus` and `most_cards`: the most free CPUs, and the most idle cards, on any node. A job that needs
        more on one node need not search."""
        if self.single_node:
            node_free = self.nodes_free[0]
            self.most_cpus, self.most_cards = node_free.cpus, len(node_free.idle)
        # with one class its buckets have the maxima, and no list of classes is made
        elif len(self._by_whole) == 1:
            self.most_cpus, self.most_cards = self._by_whole[0].most_free()
        else:
            cpus, cards = zip((0, 0), *[buckets.most_free() for buckets in self._by_whole], strict=True)
            self.most_cpus, self.most_cards = max(cpus), max(cards)


def _shared_holes(node_free: NodeFree) -> frozenset[int]:
    """Return the distinct free thousandths of the node's cards that are shared already."""
    idle, holes = node_free.idle, node_free.holes
    if len(idle) == len(holes) - holes.count(0):  # each card with free thousandths is idle
        return frozenset()
    return frozenset([hole for card, hole in enumerate(holes) if hole and card not in idle])


def refresh_index(index: Index | None, snapshot: Snapshot) -> Index:
    """Return the index of this snapshot: from the last one by the changes since, or from nothing where these are not
    known."""
    if index is not None and index.version == snapshot.version:
        return index
    equivalence = _equivalence(index, snapshot)
    # other nodes mean other positions, and changes before `changes_from` are forgotten: both need a new index
    if index is None or not index.layout.of(snapshot) or index.version < snapshot.changes_from:
        return _rebuilt(snapshot, equivalence)
    fresh = index.after(dict(snapshot.changes), snapshot)
    # other rules: other limits count the same jobs
    if equivalence is not index.equivalence:
        fresh = fresh.fork()
        fresh.equivalence = equivalence
        _recount(fresh, snapshot)
    return fresh


def _equivalence(index: Index | None, snapshot: Snapshot) -> EquivalenceCache:
    """The last index's cache if the rules are still the same, else a new one."""
    if index is not None and index.equivalence.rules.version == snapshot.rules_version:
        return index.equivalence
    return EquivalenceCache(Rulebook(snapshot.cluster, snapshot.accounts, snapshot.rules_version, snapshot.quota))


def _rebuilt(snapshot: Snapshot, equivalence: EquivalenceCache) -> Index:
    index = Index(NodeLayout(snapshot), equivalence, snapshot.occupied, snapshot.ends)
    index.version = snapshot.version
    _recount(index, snapshot)
    return index


def _recount(index: Index, snapshot: Snapshot) -> None:
    index.counters = Counters()
    count(index, snapshot.occupied, snapshot)


def count(index: Index, changes: Mapping[JobId, Placement | None], snapshot: Snapshot) -> None:
    """Count the changed jobs to the limits."""
    rules, tallies = index.equivalence.rules, index.counters.tallies
    # no job is counted so far and none is placed, so nothing can change
    if not (rules.binding or tallies or any(changes.values())):
        return
    tallied: dict[JobId, JobAmounts | None] = {}
    for job_id, placement in changes.items():
        if placement and (job := snapshot.jobs.get(job_id)) is not None:
            tallied[job_id] = tally_of_placed(rules, job, placement, snapshot.nodes)
        elif job_id in tallies:
            tallied[job_id] = None
    if tallied:
        index.counters = index.counters.changed(tallied)
