"""Giving back what was lent: a job within what is kept for its queue takes room from queues that hold more than theirs.

Source: FL-02 and Kubernetes' capacity scheduling. Victims are borrowers only: between their leaf and the node that both
have in common, everybody must hold more than is kept for them, of something that the job lacks. Nobody is taken below
that by more than the last job that goes. As few go as can be; of equally few the youngest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from itertools import combinations, islice
from typing import NamedTuple

from cockpit.model.eviction import EvictionMode, Grounds
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.quota import JOBS
from cockpit.sched.eviction.eviction_planner import EvictionPlanner, EvictionProposal, Place
from cockpit.sched.eviction.preemption_rules import PreemptionCandidate
from cockpit.sched.eviction.shrinking import evictions, smaller
from cockpit.sched.eviction.victim_release import index_after_releases, lacking, minimal_victims, release_all
from cockpit.sched.index import Index
from cockpit.sched.placement import eligible, find_placement
from cockpit.sched.rules.amounts import ONE, Amounts
from cockpit.sched.rules.counters import Counters, of_workers
from cockpit.sched.rules.limits import Counter
from cockpit.sched.rules.precedence import mode_of
from cockpit.sched.rules.quotas import NO_LEAF, Share, counter
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.rules.tres import CARDS, CPU, MEMORY
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot

MOST_TRIED = 2_000
"""So many sets are tried for one job; beyond, one is found of which nobody can be left out, maybe not the smallest."""


FIRST_LOOK = 64
"""So many of the youngest are looked at before all: where one of them is enough, nobody else need be asked."""


class QuotaClaim(NamedTuple):
    """A job's right to room that others have borrowed."""

    holder: Share
    """The lowest node within whose min the job stays."""
    above: tuple[tuple[Counter, int], ...]
    """What has to come free at the nodes above before the job may start, by counter."""


class Borrower(NamedTuple):
    """A running job that may have to go."""

    candidate: PreemptionCandidate
    parts: Mapping[Counter, int]
    """What it adds to each counter."""
    below: tuple[Share, ...]
    """Its nodes below the one that it has in common with the claimant."""


class Lent(NamedTuple):
    """What a leaf holds that is not its own."""

    below: tuple[Share, ...]
    """Its nodes below the one that it has in common with the claimant."""
    resources: set[str]


class Reclaim:
    """The rule for one pass."""

    def __init__(self, rules: Rulebook, snapshot: Snapshot, eviction_planner: EvictionPlanner) -> None:
        self._rules, self._quotas = rules, rules.quotas
        self._jobs, self._occupied, self._nodes = snapshot.jobs, snapshot.occupied, snapshot.nodes
        self._elastic = bool(snapshot.elastic)
        self._eviction_planner = eviction_planner

    def claim(self, leaf: str, amounts: Amounts, counters: Counters) -> QuotaClaim | None:
        """What a job of the leaf that wants these amounts may insist on; None: it would have to borrow, or a bound
        stops it that nobody else's going would lift."""
        used = self._without_going(counters)
        line = [self._quotas.shares[path] for path in self._quotas.shares[leaf].line]
        named = self._quotas.resources
        kept = next((number for number, each in enumerate(line[:-1]) if each.guarantees(used, amounts, named)), None)
        if kept is None or any(
            each.use(used, JOBS) + ONE > each.max.get(JOBS, each.use(used, JOBS) + ONE) for each in line
        ):
            return None
        over = [tuple(_over(each, used, amounts)) for each in line]
        if any(over[:kept]):
            return None
        return QuotaClaim(line[kept], tuple(each for part in over[kept:] for each in part))

    def propose(
        self, job: Job, shape: Shape, claim: QuotaClaim, index: Index, counters: Counters, place: Place
    ) -> EvictionProposal | None:
        """The fewest who have to go, none where those suffice who are going anyway; None where they cannot."""
        without = self._eviction_planner.index_after_evictions(index)
        candidates = self.evicted(claim, shape, without, counters)
        if candidates is None:
            return None
        after = index_after_releases(without, [each.release for each in candidates])
        found = place(after, job, shape)
        return EvictionProposal(tuple(evictions(candidates, job.id)), after, found) if found is not None else None

    def evicted(
        self, claim: QuotaClaim, shape: Shape, index: Index, counters: Counters
    ) -> list[PreemptionCandidate] | None:
        """Who has to go so that the job may start and has room; None: they cannot make it any. Who is going anyway has
        gone from the index already."""
        if not claim.above and find_placement(index, shape) is not None:
            return []
        used = self._without_going(counters)
        lent = dict(self._lent(claim, used))
        if not lent:
            return None
        short = {each[-1] for each, _ in claim.above} | _short_of(shape, index)
        if self._elastic and (workers := list(islice(self._workers(lent, short, index, counters), FIRST_LOOK))):
            search = _Search(claim, shape, index, workers, short, used)
            if (shrunk := search.one() or search.chosen()) is not None:
                return [each.candidate for each in shrunk]
        borrowers = self._borrowers(lent, short, index, counters)
        some = list(islice(borrowers, FIRST_LOOK))
        found = _Search(claim, shape, index, some, short, used).one()
        if found is None:
            found = _Search(claim, shape, index, [*some, *borrowers], short, used).chosen()
        return None if found is None else [each.candidate for each in found]

    def _without_going(self, counters: Counters) -> Mapping[Counter, int]:
        """What is in use beside what those hold who are on their way out."""
        free = self._eviction_planner.amounts_coming_free(counters)
        return {each: amount - free.get(each, 0) for each, amount in counters.used.items()} if free else counters.used

    def _lent(self, claim: QuotaClaim, used: Mapping[Counter, int]) -> Iterator[tuple[str, Lent]]:
        """The leaves that hold what is not theirs, from their own nodes up to the one in common with the claimant."""
        line = set(claim.holder.line)
        for leaf in self._running:
            upwards = self._quotas.shares[leaf].line
            below = tuple(self._quotas.shares[path] for path in upwards if path not in line)
            borrowed = {
                each for each in self._quotas.resources if all(share.borrows(used, each) > 0 for share in below)
            }
            if borrowed and claim.holder.path not in upwards:
                yield leaf, Lent(below, borrowed)

    def _borrowers(
        self, lent: Mapping[str, Lent], short: Collection[str], index: Index, counters: Counters
    ) -> Iterator[Borrower]:
        """The youngest first."""
        for job, leaf in self._of_leaves(lent):
            if job.id not in index.placed or job.leaving or self._eviction_planner.gives_way(job.id):
                continue
            parts = dict(counters.tallies[job.id].parts)
            if any(parts.get(counter(leaf, each)) for each in lent[leaf].resources.intersection(short)):
                yield Borrower(self._candidate(job, index), parts, lent[leaf].below)

    def _workers(
        self, lent: Mapping[str, Lent], short: Collection[str], index: Index, counters: Counters
    ) -> Iterator[Borrower]:
        """Those that elastic jobs among them can do without."""
        for job, leaf in self._of_leaves(lent):
            if job.spec.elastic is None or job.id not in index.placed or not self._eviction_planner.stays(job.id):
                continue
            held = {part.rank: part for part in index.placed[job.id]}
            for candidate in smaller([self._candidate(job, index)], self._jobs, index, self._eviction_planner.recalled):
                worker = (held[candidate.rank],) if candidate.rank in held else ()
                parts = dict(of_workers(counters.tallies[job.id], worker, tuple(held.values()), self._nodes))
                if any(parts.get(counter(leaf, each)) for each in lent[leaf].resources.intersection(short)):
                    yield Borrower(candidate, parts, lent[leaf].below)

    def _of_leaves(self, lent: Mapping[str, Lent]) -> Iterator[tuple[Job, str]]:
        leaves = ([(job, leaf) for job in self._running[leaf]] for leaf in lent)
        return merge(*leaves, key=lambda each: _youngest_first(each[0]))

    @cached_property
    def _running(self) -> Mapping[str, Sequence[Job]]:
        """By leaf: who ran when the pass began, and is not on the way out; the youngest first."""
        found: dict[str, list[Job]] = {}
        for job_id in self._occupied:
            job = self._jobs.get(job_id)
            if job is not None and job.state in OCCUPYING and job.ending is None:
                found.setdefault(self._quotas.leaf(job.project), []).append(job)
        found.pop(NO_LEAF, None)
        return {leaf: sorted(jobs, key=_youngest_first) for leaf, jobs in found.items()}

    def _candidate(self, job: Job, index: Index) -> PreemptionCandidate:
        usual = mode_of(self._rules.cluster, self._rules.accounts, job)
        mode = EvictionMode.CANCEL if usual is EvictionMode.CANCEL else EvictionMode.REQUEUE
        grace = max(job.spec.end_grace_seconds, job.spec.checkpoint_seconds)
        return PreemptionCandidate(release_all(index, job.id), mode, Grounds.QUOTA, grace)


class _Search:
    """For the fewest borrowers."""

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

    def one(self) -> Sequence[Borrower] | None:
        """The first of them whose going is enough; None: that of no single one is."""
        node_free = minimal_victims(self._index, self._shape, [each.candidate.release for each in self._borrowers])
        of_room = [each for each in self._borrowers if each.candidate.release in (node_free or ())]
        return of_room if len(of_room) == 1 and self._suffices(of_room) else None

    def chosen(self) -> Sequence[Borrower] | None:
        node_free = minimal_victims(self._index, self._shape, [each.candidate.release for each in self._borrowers])
        if node_free is None:
            return None
        of_room = [each for each in self._borrowers if each.candidate.release in node_free]
        if self._suffices(of_room):
            return of_room
        tries = MOST_TRIED
        for size in range(max(1, len(of_room)), len(self._borrowers) + 1):
            for some in combinations(self._borrowers, size):
                if not tries:
                    return self._without_needless(of_room)
                tries -= 1
                if self._suffices(some) and self._has_room(some):
                    return some
        return None

    def _without_needless(self, of_room: Sequence[Borrower]) -> Sequence[Borrower] | None:
        """Not the fewest, but nobody too many: those who make room, then the youngest, until it is enough."""
        some: list[Borrower] = []
        for each in (*of_room, *self._borrowers):
            if each not in some and self._is_lawful([*some, each]):
                some.append(each)
                if self._suffices(some) and self._has_room(some):
                    break
        else:
            return None
        for each in reversed(some[:-1]):
            rest = [other for other in some if other is not each]
            some = rest if self._suffices(rest) and self._has_room(rest) else some
        return some

    def _suffices(self, some: Sequence[Borrower]) -> bool:
        """Whether the nodes above may hold the job then, and all of these are borrowers until they go."""
        enough = all(sum(each.parts.get(above, 0) for each in some) >= wanted for above, wanted in self._claim.above)
        return enough and self._is_lawful(some)

    def _is_lawful(self, some: Sequence[Borrower]) -> bool:
        """Whether each node still holds more than is kept for it when the last of its jobs goes."""
        shares = {share.path: share for each in some for share in each.below}
        return all(
            any(self._borrows_to_the_last(share, each, some) for each in self._short) for share in shares.values()
        )

    def _borrows_to_the_last(self, share: Share, resource: str, some: Sequence[Borrower]) -> bool:
        parts = [each.parts.get(counter(share.path, resource), 0) for each in some]
        most = max(parts)
        return most > 0 and share.borrows(self._used, resource) - (sum(parts) - most) > 0

    def _has_room(self, some: Sequence[Borrower]) -> bool:
        return minimal_victims(self._index, self._shape, [each.candidate.release for each in some]) is not None


def _over(share: Share, used: Mapping[Counter, int], amounts: Amounts) -> Iterator[tuple[Counter, int]]:
    """By how much the node would pass its max."""
    for resource, most in share.max.items():
        wanted = amounts.get(resource, 0)
        beyond = share.use(used, resource) + wanted - most
        if resource != JOBS and wanted and beyond > 0:
            yield counter(share.path, resource), beyond


def _short_of(shape: Shape, index: Index) -> set[str]:
    """What too few nodes have enough of; where it is all there, but not together: all that the job asks for."""
    if find_placement(index, shape) is not None:
        return set()
    found: set[str] = set()
    for spec in shape.specs:
        nodes_free = [lacking(index.nodes_free[order], spec) for order in eligible(index, shape, spec)]
        names = [
            name for name, asked in ((CPU, spec.cpus), (MEMORY, spec.memory_mib), (CARDS, spec.card_milli)) if asked
        ]
        kinds = {CPU: 0, MEMORY: 1, CARDS: 2}
        short = {name for name in names if sum(lacks[kinds[name]] <= 0 for lacks in nodes_free) < shape.nodes}
        found |= short or set(names)
    return found


def _youngest_first(job: Job) -> tuple[int, int]:
    assert job.attempt is not None
    return -job.attempt.placed_at, -job.id
