"""Reclaims borrowed quota: a job within the guarantee (min) of its queue evicts jobs of queues that hold more than
theirs.

Source: FL-02 and Kubernetes' capacity scheduling. Only borrowers are victims: every queue between the victim's leaf and
the node of the tree that it shares with the claimant must hold more than its min, of a resource that the job lacks.
Only the last job that is evicted may take a queue below its min. As few jobs as possible are evicted, of equally few
the youngest.

The steps:

1. `claim`: the lowest node of the claimant's line within whose min the job stays; and what has to come free above it,
   where a max is reached.
2. `_borrowing_leaves`: the leaves that hold borrowed resources.
3. Shrink elastic borrowers, if that is enough.
4. Try the youngest borrowers, if one of them alone is enough; this answers most cases quickly.
5. Else search the smallest set among all borrowers (`_BorrowerSearch.smallest_set`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from itertools import combinations, islice
from typing import NamedTuple

from cockpit.model.attempt import EvictionMode, Grounds
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.quota import JOBS
from cockpit.sched.eviction.eviction_planner import EvictionPlanner, EvictionProposal, PlaceAfterEvictions
from cockpit.sched.eviction.shrinking import merge_evictions, worker_candidates
from cockpit.sched.eviction.victim_release import (
    PreemptionCandidate,
    index_after_releases,
    lacking,
    minimal_victims,
    release_all,
)
from cockpit.sched.index import Index
from cockpit.sched.placement import eligible, find_placement
from cockpit.sched.rules.counters import Counters, of_workers
from cockpit.sched.rules.limits import Counter
from cockpit.sched.rules.quotas import NO_LEAF, Share, counter
from cockpit.sched.rules.rulebook import Rulebook, mode_of
from cockpit.sched.rules.tres import CARDS, CPU, MEMORY, ONE, Amounts
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot

MOST_TRIED = 2_000
"""The most sets of victims that are tried for one job. Beyond that, the result is a set of which no job can be left
out, perhaps not the smallest one."""


FIRST_LOOK = 64
"""The number of youngest borrowers that are tried before all others: if one of them is enough, the others need not be
looked at."""


class QuotaClaim(NamedTuple):
    """A job's claim to resources that other queues have borrowed."""

    holder: Share
    """The lowest node of the quota tree within whose min the job stays."""
    above: tuple[tuple[Counter, int], ...]
    """Amounts, by counter, that must come free at the nodes above before the job may start."""


class Borrower(NamedTuple):
    """A running job that holds borrowed resources and may be evicted."""

    candidate: PreemptionCandidate
    parts: Mapping[Counter, int]
    """The amounts that it adds to each counter."""
    below: tuple[Share, ...]
    """The nodes of its queue below the one that it has in common with the claimant."""


class BorrowedShare(NamedTuple):
    """The resources that a leaf of the quota tree has borrowed."""

    below: tuple[Share, ...]
    """The nodes of the leaf's line below the one that it has in common with the claimant."""
    resources: set[str]


class Reclaim:
    """The reclaim rule for one pass."""

    def __init__(self, rules: Rulebook, snapshot: Snapshot, eviction_planner: EvictionPlanner) -> None:
        self._rules, self._quotas = rules, rules.quotas
        self._jobs, self._occupied, self._nodes = snapshot.jobs, snapshot.occupied, snapshot.nodes
        self._elastic = bool(snapshot.elastic)
        self._eviction_planner = eviction_planner

    def claim(self, leaf: str, amounts: Amounts, counters: Counters) -> QuotaClaim | None:
        """Return what a job of the leaf with these amounts may claim; None: the job would have to borrow itself, or a
        limit stops it that no eviction would lift."""
        used = self._used_without_ending(counters)
        line = [self._quotas.shares[path] for path in self._quotas.shares[leaf].line]
        named = self._quotas.resources
        # 1. the lowest node of the line, the root excluded, within whose min the job stays
        level = next((number for number, each in enumerate(line[:-1]) if each.guarantees(used, amounts, named)), None)
        # the number of jobs is no borrowed resource, so a node that has reached its maximum is not relieved by a
        # reclaim
        if level is None or any(
            each.use(used, JOBS) + ONE > each.max.get(JOBS, each.use(used, JOBS) + ONE) for each in line
        ):
            return None
        # below that node no max may be exceeded; from it upwards, what exceeds a max has to be reclaimed
        over = [tuple(_excess_over_max(each, used, amounts)) for each in line]
        if any(over[:level]):
            return None
        return QuotaClaim(line[level], tuple(each for part in over[level:] for each in part))

    def propose(
        self, job: Job, shape: Shape, claim: QuotaClaim, index: Index, counters: Counters, place: PlaceAfterEvictions
    ) -> EvictionProposal | None:
        """Propose the fewest evictions by which the job may start; without any if the jobs that are ending anyway
        suffice. None: evictions do not help."""
        without = self._eviction_planner.index_after_evictions(index)
        candidates = self.choose_borrowers(claim, shape, without, counters)
        if candidates is None:
            return None
        after = index_after_releases(without, [each.release for each in candidates])
        job_placement = place(after, job, shape)
        return (
            EvictionProposal(tuple(merge_evictions(candidates, job.id)), after, job_placement)
            if job_placement is not None
            else None
        )

    def choose_borrowers(
        self, claim: QuotaClaim, shape: Shape, index: Index, counters: Counters
    ) -> list[PreemptionCandidate] | None:
        """Choose the borrowers to evict; None: evicting them is not enough. In `index` the ending jobs are gone
        already."""
        # 2. the job fits already, and no max is in its way
        if not claim.above and find_placement(index, shape) is not None:
            return []
        used = self._used_without_ending(counters)
        borrowed_by_leaf = dict(self._borrowing_leaves(claim, used))
        if not borrowed_by_leaf:
            return None
        short = {each[-1] for each, _ in claim.above} | _short_of(shape, index)
        # 3. workers of elastic borrowers, at most `FIRST_LOOK` of them
        if self._elastic and (
            workers := list(islice(self._workers(borrowed_by_leaf, short, index, counters), FIRST_LOOK))
        ):
            search = _BorrowerSearch(claim, shape, index, workers, short, used)
            if (shrunk := search.single() or search.smallest_set()) is not None:
                return [each.candidate for each in shrunk]
        # 4. the youngest borrowers, one of them alone
        borrowers = self._borrowers(borrowed_by_leaf, short, index, counters)
        # the rest of the generator is used only in step 5
        some = list(islice(borrowers, FIRST_LOOK))
        victims = _BorrowerSearch(claim, shape, index, some, short, used).single()
        # 5. a set of any borrowers
        if victims is None:
            victims = _BorrowerSearch(claim, shape, index, [*some, *borrowers], short, used).smallest_set()
        return None if victims is None else [each.candidate for each in victims]

    def _used_without_ending(self, counters: Counters) -> Mapping[Counter, int]:
        """Return the amounts in use, without those of jobs that are ending."""
        free = self._eviction_planner.amounts_coming_free(counters)
        return {each: amount - free.get(each, 0) for each, amount in counters.used.items()} if free else counters.used

    def _borrowing_leaves(self, claim: QuotaClaim, used: Mapping[Counter, int]) -> Iterator[tuple[str, BorrowedShare]]:
        """Yield the leaves that hold borrowed resources at every node up to the one shared with the claimant."""
        line = set(claim.holder.line)
        for leaf in self._running:
            upwards = self._quotas.shares[leaf].line
            below = tuple(self._quotas.shares[path] for path in upwards if path not in line)
            # a resource counts as borrowed only if every node up to the shared one is above its min
            borrowed = {
                each for each in self._quotas.resources if all(share.borrows(used, each) > 0 for share in below)
            }
            if borrowed and claim.holder.path not in upwards:
                yield leaf, BorrowedShare(below, borrowed)

    def _borrowers(
        self, borrowed_by_leaf: Mapping[str, BorrowedShare], short: Collection[str], index: Index, counters: Counters
    ) -> Iterator[Borrower]:
        """Yield the borrowers that hold a resource the job lacks, the youngest first."""
        for job, leaf in self._jobs_of(borrowed_by_leaf):
            # jobs that end or shrink already free their resources in `index`
            if job.id not in index.placed or job.leaving or self._eviction_planner.loses_resources(job.id):
                continue
            parts = dict(counters.tallies[job.id].parts)
            if any(parts.get(counter(leaf, each)) for each in borrowed_by_leaf[leaf].resources.intersection(short)):
                yield Borrower(self._candidate(job, index), parts, borrowed_by_leaf[leaf].below)

    def _workers(
        self, borrowed_by_leaf: Mapping[str, BorrowedShare], short: Collection[str], index: Index, counters: Counters
    ) -> Iterator[Borrower]:
        """Yield the workers that elastic borrowers can do without."""
        for job, leaf in self._jobs_of(borrowed_by_leaf):
            if (
                job.spec.elastic is None
                or job.id not in index.placed
                or not self._eviction_planner.keeps_running(job.id)
            ):
                continue
            # each worker by itself: of a job that borrows, only as many workers have to leave as the claim needs
            held = {part.rank: part for part in index.placed[job.id]}
            for candidate in worker_candidates(
                [self._candidate(job, index)], self._jobs, index, self._eviction_planner.recalled
            ):
                worker = (held[candidate.rank],) if candidate.rank in held else ()
                parts = dict(of_workers(counters.tallies[job.id], worker, tuple(held.values()), self._nodes))
                if any(parts.get(counter(leaf, each)) for each in borrowed_by_leaf[leaf].resources.intersection(short)):
                    yield Borrower(candidate, parts, borrowed_by_leaf[leaf].below)

    def _jobs_of(self, borrowed_by_leaf: Mapping[str, BorrowedShare]) -> Iterator[tuple[Job, str]]:
        leaves = ([(job, leaf) for job in self._running[leaf]] for leaf in borrowed_by_leaf)
        # each leaf's jobs are sorted already; merging is lazy, so `FIRST_LOOK` jobs cost no full sort
        return merge(*leaves, key=lambda each: _youngest_first(each[0]))

    @cached_property
    def _running(self) -> Mapping[str, Sequence[Job]]:
        """Jobs that ran when the pass began and are not ending, by leaf, the youngest first."""
        by_leaf: dict[str, list[Job]] = {}
        for job_id in self._occupied:
            job = self._jobs.get(job_id)
            if job is not None and job.state in OCCUPYING and job.ending is None:
                by_leaf.setdefault(self._quotas.leaf(job.project), []).append(job)
        # jobs outside the quota tree borrow nothing
        by_leaf.pop(NO_LEAF, None)
        return {leaf: sorted(jobs, key=_youngest_first) for leaf, jobs in by_leaf.items()}

    def _candidate(self, job: Job, index: Index) -> PreemptionCandidate:
        usual = mode_of(self._rules.cluster, self._rules.accounts, job)
        # a suspended job would keep its memory and cards, so reclaim never suspends
        mode = EvictionMode.CANCEL if usual is EvictionMode.CANCEL else EvictionMode.REQUEUE
        grace = max(job.spec.end_grace_seconds, job.spec.checkpoint_seconds)
        return PreemptionCandidate(release_all(index, job.id), mode, Grounds.QUOTA, grace)


class _BorrowerSearch:
    """Searches the smallest set of borrowers whose eviction is enough."""

    def __init__(
        self,
        claim: QuotaClaim,
        shape: Shape,
        index: Index,
        borrowers: Sequence[Borrower],
        short: Collection[str],
        used: Mapping[Counter, int],
    ) -> None:
        self._claim, self._shape, self._index = claim, shape, index
        self._borrowers, self._short, self._used = borrowers, short, used

    def single(self) -> Sequence[Borrower] | None:
        """Return the first borrower whose eviction alone is enough; None: there is none."""
        releases = minimal_victims(self._index, self._shape, [each.candidate.release for each in self._borrowers])
        chosen = [each for each in self._borrowers if each.candidate.release in (releases or ())]
        return chosen if len(chosen) == 1 and self._suffices(chosen) else None

    def smallest_set(self) -> Sequence[Borrower] | None:
        """Return the smallest set that is enough; None: all of them together are not.

        1. The fewest that free enough on the nodes, if they satisfy the quotas too.
        2. Else all larger sets, smallest first, the youngest first, up to `MOST_TRIED`.
        3. Else a set from which no job can be left out.
        """
        releases = minimal_victims(self._index, self._shape, [each.candidate.release for each in self._borrowers])
        if releases is None:
            return None
        chosen = [each for each in self._borrowers if each.candidate.release in releases]
        # 1. the fewest by the nodes alone
        if self._suffices(chosen):
            return chosen
        # 2. no smaller set can free enough on the nodes
        tries = MOST_TRIED
        for size in range(max(1, len(chosen)), len(self._borrowers) + 1):
            for some in combinations(self._borrowers, size):
                if not tries:  # 3.
                    return self._without_needless(chosen)
                tries -= 1
                if self._suffices(some) and self._frees_enough(some):
                    return some
        return None

    def _without_needless(self, chosen: Sequence[Borrower]) -> Sequence[Borrower] | None:
        """Return a set from which no borrower can be left out: those that free enough on the nodes, then the youngest,
        until it is enough; then each is tried whether the others are enough without it."""
        some: list[Borrower] = []
        for each in (*chosen, *self._borrowers):
            if each not in some and self._all_still_borrow([*some, each]):
                some.append(each)
                if self._suffices(some) and self._frees_enough(some):
                    break
        else:
            return None
        # the last one made the set enough, so it stays; of the others, those added last leave first
        for each in reversed(some[:-1]):
            rest = [other for other in some if other is not each]
            some = rest if self._suffices(rest) and self._frees_enough(rest) else some
        return some

    def _suffices(self, some: Sequence[Borrower]) -> bool:
        """Return whether the nodes above could hold the job once these are evicted, and each of these still borrows
        until its eviction."""
        enough = all(sum(each.parts.get(above, 0) for each in some) >= wanted for above, wanted in self._claim.above)
        return enough and self._all_still_borrow(some)

    def _all_still_borrow(self, some: Sequence[Borrower]) -> bool:
        """Return whether each node of the tree still holds more than its min when the last of its jobs is evicted."""
        shares = {share.path: share for each in some for share in each.below}
        return all(
            any(self._borrows_to_the_last(share, each, some) for each in self._short) for share in shares.values()
        )

    def _borrows_to_the_last(self, share: Share, resource: str, some: Sequence[Borrower]) -> bool:
        parts = [each.parts.get(counter(share.path, resource), 0) for each in some]
        # the best order evicts the biggest last: until then the node must still hold more than its min
        most = max(parts)
        return most > 0 and share.borrows(self._used, resource) - (sum(parts) - most) > 0

    def _frees_enough(self, some: Sequence[Borrower]) -> bool:
        return minimal_victims(self._index, self._shape, [each.candidate.release for each in some]) is not None


def _excess_over_max(share: Share, used: Mapping[Counter, int], amounts: Amounts) -> Iterator[tuple[Counter, int]]:
    """Yield by how much the node would exceed its max, for each resource."""
    for resource, most in share.max.items():
        wanted = amounts.get(resource, 0)
        beyond = share.use(used, resource) + wanted - most
        if resource != JOBS and wanted and beyond > 0:
            yield counter(share.path, resource), beyond


def _short_of(shape: Shape, index: Index) -> set[str]:
    """Return the resources that too few nodes have free; if each is free on enough nodes, but never together, all that
    the job asks for."""
    if find_placement(index, shape) is not None:
        return set()
    resources: set[str] = set()
    for spec in shape.specs:
        nodes_free = [lacking(index.nodes_free[order], spec) for order in eligible(index, shape, spec)]
        names = [
            name for name, amount in ((CPU, spec.cpus), (MEMORY, spec.memory_mib), (CARDS, spec.card_milli)) if amount
        ]
        kinds = {CPU: 0, MEMORY: 1, CARDS: 2}
        short = {name for name in names if sum(lacks[kinds[name]] <= 0 for lacks in nodes_free) < shape.nodes}
        resources |= short or set(names)
    return resources


def _youngest_first(job: Job) -> tuple[int, int]:
    assert job.attempt is not None
    return -job.attempt.placed_at, -job.id
