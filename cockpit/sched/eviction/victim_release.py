"""Finds the smallest set of running jobs that frees enough for a shape.

Steps for each alternative of the shape (`_VictimSearch.for_spec`):

1. Count the nodes that fit already; the others must be freed.
2. On each other node, keep the candidates that free something that it lacks.
3. If each candidate is on one node only, or one node is enough: the smallest set on each node, then the cheapest nodes
   (`_singly`).
4. Else candidates help on several nodes at once: try all sets, smallest first, up to `MOST_TRIED` (`_together`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Protocol

import msgspec
from msgspec.structs import replace

from cockpit.model.attempt import EvictionMode, Grounds
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.nodes.node_free import NodeFree, shortfall, whole_cards
from cockpit.sched.placement import eligible, fitting
from cockpit.sched.shape import Shape

MOST_TRIED = 2_000
"""The most sets of victims that are tried for one job. Beyond that, the result is a set of which no job can be left
out, perhaps not the smallest one."""


class VictimRelease(msgspec.Struct, frozen=True):
    """The resources that one victim releases: everything when it ends, its CPUs when it is suspended."""

    job: JobId
    left: tuple[tuple[int, Allocation | None], ...]
    """The part that it would still hold on each of its nodes, by the node's order; None: nothing. Nodes on which
    nothing changes are left out."""


Freed = tuple[int, int, int]
"""Freed CPUs, MiB of memory, and number of cards on which something comes free."""
Numbers = tuple[int, ...]
"""Positions in the list of candidates."""


def release_all(index: Index, job: JobId) -> VictimRelease:
    """Return the release of a job that ends."""
    return VictimRelease(job, tuple([(order, None) for order, _ in index.located(index.placed[job])]))


def release_cpus(index: Index, job: JobId) -> VictimRelease:
    """Return the release of a job that is suspended: its CPUs come free, memory and cards stay."""
    held = index.located(index.placed[job])
    return VictimRelease(job, tuple([(order, replace(part, cpus=0)) for order, part in held]))


class CandidatesByNode:
    """The candidates by node, made once for all searches with the same candidates."""

    def __init__(self, index: Index, candidates: Sequence[VictimRelease]) -> None:
        self.candidates = candidates
        self.on: dict[int, list[tuple[int, Freed]]] = {}
        """By order of the node: the candidates there, and what each frees."""
        for number, candidate in enumerate(candidates):
            for order, left in candidate.left:
                freed = _freed(index.nodes_free[order].tenants[candidate.job], left)
                self.on.setdefault(order, []).append((number, freed))


def minimal_victims(
    index: Index, shape: Shape, candidates: Sequence[VictimRelease] | CandidatesByNode, without: Collection[JobId] = ()
) -> tuple[VictimRelease, ...] | None:
    """Return the smallest set of candidates whose release makes the shape fit; None where all of them together do not.

    Of equally small sets, the one with the first members is taken: candidates come in the order in which they should be
    evicted. The set is empty if the shape fits already. `without`: jobs that are no candidates any more.
    """
    candidates_by_node = candidates if isinstance(candidates, CandidatesByNode) else CandidatesByNode(index, candidates)
    search = _VictimSearch(index, shape, candidates_by_node, without)
    sets = [chosen for spec in shape.specs if (chosen := search.for_spec(spec)) is not None]
    # numbers are positions in the list of candidates, so of equally small sets the one with the first members is
    # smaller
    best = min(sets, key=lambda chosen: (len(chosen), chosen), default=None)
    return None if best is None else tuple([candidates_by_node.candidates[number] for number in best])


def node_after_releases(node_free: NodeFree, releases: Iterable[VictimRelease]) -> NodeFree:
    """Return the node after these releases."""
    for each in releases:
        for order, part in each.left:
            if order == node_free.order and each.job in node_free.tenants:
                node_free = node_free.without_tenant(each.job)
                node_free = node_free if part is None else node_free.with_tenant(each.job, part)
    return node_free


def index_after_releases(index: Index, releases: Iterable[VictimRelease]) -> Index:
    """Return the index after these releases. A suspended job has no known end."""
    left: dict[JobId, Placement] = {}
    for each in releases:
        changed = {index.layout.nodes[order].name: part for order, part in each.left}
        # several workers of one job may leave, each by a release of its own
        held = left.get(each.job, index.placed[each.job])
        parts = [changed.get(part.node, part) for part in held]
        left[each.job] = tuple([part for part in parts if part is not None])
    after = index.fork()
    after.apply([(job, placement or None) for job, placement in left.items()], _ends_of_smaller(index, left))
    return after


def _ends_of_smaller(index: Index, left: Mapping[JobId, Placement]) -> dict[JobId, Millis]:
    """Return the known ends after the releases: a job that keeps running with fewer workers keeps its end; a
    suspended job has none."""
    return {
        job: index.ends[job]
        for job, placement in left.items()
        if job in index.ends and any(part.cpus for part in placement)
    }


class _VictimSearch:
    """A search for the victims of one shape."""

    def __init__(
        self, index: Index, shape: Shape, candidates_by_node: CandidatesByNode, without: Collection[JobId]
    ) -> None:
        self._index, self._shape = index, shape
        self._candidates, self._on, self._without = candidates_by_node.candidates, candidates_by_node.on, without
        self._tries = MOST_TRIED
        self._freed: dict[int, list[Freed]] = {}
        """By order of the node: what the useful candidates there free."""

    def for_spec(self, spec: NodeSpec) -> Numbers | None:
        """Return the smallest set of candidates for one alternative; None: all of them together are not enough."""
        # 1. nodes that fit, and how many are still wanted
        index, shape = self._index, self._shape
        places = eligible(index, shape, spec)
        free = {node_free.order for node_free in fitting(index, shape, spec)}
        # nodes that fit without any release are used first
        wanted = shape.nodes - len(free)
        if wanted <= 0:
            return ()
        # 2. candidates that help on the other nodes
        here = {
            order: numbers
            for order in sorted(self._on.keys() & places - free)
            if (numbers := self._useful_victims(order, spec))
        }
        # 3. and 4.
        # if no candidate is on two of the nodes, the nodes' sets are independent and the cheapest nodes win
        if wanted == 1 or not self._overlap(here):
            return self._singly(here, spec, wanted)
        return self._together(here, spec, wanted)

    def _singly(self, here: Mapping[int, list[int]], spec: NodeSpec, wanted: int) -> Numbers | None:
        """Choose the smallest set on each node, then the nodes with the smallest sets. Right where no candidate is on
        two of the nodes, or one node is enough."""
        nodes = sorted((self._least(order, spec), order) for order in here)
        sets: list[tuple[int, Numbers]] = []
        for least, order in nodes:
            # nodes come by a lower bound of their sets: once it exceeds the worst set chosen, no node can be better
            full = len(sets) == wanted
            if full and least > sets[-1][0]:
                break
            # a set larger than the worst one chosen would not be kept
            chosen = self._on_node(order, here[order], spec, least, sets[-1][0] if full else len(here[order]))
            if chosen is not None:
                sets = sorted([*sets, (len(chosen), chosen)])[:wanted]
        if len(sets) < wanted:
            return None
        return tuple(sorted({number for _, chosen in sets for number in chosen}))

    def _together(self, here: Mapping[int, list[int]], spec: NodeSpec, wanted: int) -> Numbers | None:
        """Choose a set where candidates free something on several nodes: try every set while there are not too many of
        them, else take the cheapest for one node after the other."""
        nodes_of: dict[int, list[int]] = {}
        for order, numbers in here.items():
            for number in numbers:
                nodes_of.setdefault(number, []).append(order)
        all_numbers = sorted(nodes_of)
        # the union of the nodes' own sets is one answer; only smaller sets need be tried
        bound = self._singly(here, spec, wanted)
        if bound is None:
            return None
        for size in range(1, len(bound) + 1):
            # a single candidate must free something on all the nodes that are wanted
            some = all_numbers if size > 1 else [each for each in all_numbers if len(nodes_of[each]) >= wanted]
            # too many sets: then the bound is the answer, without the candidates that it does not need
            if comb(len(some), size) > self._tries:
                break
            for chosen in combinations(some, size):
                self._tries -= 1
                if self._enough(chosen, nodes_of, spec, wanted):
                    return chosen
        return self._without_needless(bound, nodes_of, spec, wanted)

    def _without_needless(
        self, enough: Sequence[int], nodes_of: Mapping[int, Sequence[int]], spec: NodeSpec, wanted: int
    ) -> Numbers:
        """Leave out candidates that are not needed. Those at the end of the list, which should rather be spared, are
        left out first."""
        chosen = list(enough)
        # candidates to be spared come last in the list, so they are tried first
        for number in reversed(enough):
            rest = [each for each in chosen if each != number]
            chosen = rest if self._enough(rest, nodes_of, spec, wanted) else chosen
        return tuple(chosen)

    def _enough(
        self, chosen: Collection[int], nodes_of: Mapping[int, Sequence[int]], spec: NodeSpec, wanted: int
    ) -> bool:
        by_node: dict[int, list[int]] = {}
        for number in chosen:
            for order in nodes_of[number]:
                by_node.setdefault(order, []).append(number)
        return sum(self._fits(order, numbers, spec) for order, numbers in by_node.items()) >= wanted

    def _on_node(self, order: int, numbers: Sequence[int], spec: NodeSpec, least: int, most: int) -> Numbers | None:
        """Return the smallest set of between `least` and `most` candidates for one node; None: there is none."""
        # with all of them first: if that is not enough, no smaller set is
        if not self._fits(order, numbers, spec):
            return None
        for size in range(least, min(most, len(numbers)) + 1):
            for chosen in combinations(numbers, size):
                if not self._tries:
                    return self._without_needless(numbers, dict.fromkeys(numbers, (order,)), spec, 1)
                self._tries -= 1
                if self._fits(order, chosen, spec):
                    return chosen
        return None

    def _fits(self, order: int, chosen: Iterable[int], spec: NodeSpec) -> bool:
        node_free = node_after_releases(
            self._index.nodes_free[order], [self._candidates[number] for number in sorted(chosen)]
        )
        return shortfall(node_free, spec, exclusive=self._shape.exclusive) is None

    def _overlap(self, here: Mapping[int, list[int]]) -> bool:
        numbers = [number for each in here.values() for number in each]
        return len(numbers) > len(set(numbers))

    def _useful_victims(self, order: int, spec: NodeSpec) -> list[int]:
        """Return the candidates that free something that the node lacks."""
        node_free = self._index.nodes_free[order]
        lacks = lacking(node_free, spec)
        useful = []
        freed: list[Freed] = []
        for number, frees in self._on[order]:
            # a whole node must be emptied, so each of its tenants is needed then, whatever it holds
            helps = any(lack > 0 and free > 0 for lack, free in zip(lacks, frees, strict=True))
            if (helps or self._shape.exclusive) and self._candidates[number].job not in self._without:
                useful.append(number)
                freed.append(frees)
        self._freed[order] = freed
        return useful

    def _least(self, order: int, spec: NodeSpec) -> int:
        """Return a lower bound of the number of candidates that must be released on the node."""
        node_free = self._index.nodes_free[order]
        if self._shape.exclusive:
            return max(1, len(node_free.tenants))
        freed = self._freed[order]
        # of each resource the biggest amounts first: fewer candidates than that cannot make up for it
        counts = [
            _count_to(lack, [each[kind] for each in freed])
            for kind, lack in enumerate(lacking(node_free, spec))
            if lack > 0
        ]
        return max([1, *counts])


def _freed(held: Allocation, left: Allocation | None) -> Freed:
    if left is None:
        return held.cpus, held.memory_mib, len({part.card for part in held.slices})
    cards = len({part.card for part in held.slices} - {part.card for part in left.slices})
    return held.cpus - left.cpus, held.memory_mib - left.memory_mib, cards


def lacking(node_free: NodeFree, spec: NodeSpec) -> tuple[int, int, int]:
    """Return the missing CPUs, MiB and cards, 0 or less where none are missing. A missing share counts as one card."""
    if spec.shares_a_card:
        # only the share is asked about: CPUs and memory have numbers of their own
        as_if_alone = replace(spec, cpus=0, memory_mib=0)
        cards = int(shortfall(node_free, as_if_alone, exclusive=False) is not None)
    else:
        cards = spec.whole_cards - len(whole_cards(node_free, spec)) if spec.card_milli else 0
    return spec.cpus - node_free.cpus, spec.memory_mib - node_free.memory_mib, cards


def _count_to(lack: int, freed: Iterable[int]) -> int:
    """Count how many of the amounts, biggest first, make up for what is missing."""
    count = 0
    for each in sorted(freed, reverse=True):
        if lack <= 0:
            break
        lack, count = lack - each, count + 1
    return count


class PreemptionCandidate(msgspec.Struct, frozen=True):
    """A running job, or one of its workers, that may be evicted."""

    release: VictimRelease
    mode: EvictionMode
    grounds: Grounds
    grace_seconds: int = 0
    """Seconds between the notice and the end."""
    rank: int | None = None
    """The rank of the worker, if only this worker of an elastic job ends and the job keeps running; else None."""


class PreemptionRule(Protocol):
    """A preemption rule, for one pass."""

    @property
    def alike(self) -> bool:
        """Whether all jobs of one preemption key (`Rulebook.preemption_key`) and partition may evict the same jobs."""
        ...

    def candidates(self, job: Job, partition: str, index: Index) -> Sequence[PreemptionCandidate]:
        """Return the jobs that a job waiting in the partition may evict, in the order in which they should be
        evicted."""
        ...

    def next_at(self) -> Millis | None:
        """Return the next moment at which more of the jobs considered so far may be evicted."""
        ...
