"""Making room: which running jobs give way in a pass, for whom, and who was promised what they leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from cockpit.model.eviction import EvictionMode
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import MakingRoom
from cockpit.sched.decisions import Eviction
from cockpit.sched.equivalence import QueueEntry
from cockpit.sched.eviction.preemption_rules import PreemptionCandidate, PreemptionRule
from cockpit.sched.eviction.shrinking import chosen, evictions, smaller, staying
from cockpit.sched.eviction.victim_release import Offered, index_after_releases, minimal_victims
from cockpit.sched.index import Index
from cockpit.sched.placement import JobPlacement, find_placement
from cockpit.sched.rules.counters import Counters, of_workers
from cockpit.sched.rules.limits import Counter
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot


class Place(Protocol):
    """Room in an index, unless somebody ahead would be delayed by it."""

    def __call__(
        self, index_after: Index, job: Job, shape: Shape, *, suspends: bool = False
    ) -> JobPlacement | None: ...


MOST_TAKERS = 16
"""For so many jobs others give way in one pass; the next one follows at once."""


class EvictionProposal(NamedTuple):
    """What has to happen so that a job has room."""

    evictions: tuple[Eviction, ...]
    after: Index
    """With what the others give up given up."""
    job_placement: JobPlacement

    @property
    def at_once(self) -> bool:
        """Nobody has to end first."""
        return all(each.mode is EvictionMode.SUSPEND for each in self.evictions)


class EvictionPlanner:
    """One pass's evictions. There is none where no rule lets anybody take room."""

    def __init__(self, snapshot: Snapshot, preemption_rule: Sequence[PreemptionRule]) -> None:
        self.evictions: list[Eviction] = []
        self.promised: dict[JobId, MakingRoom] = {}
        self.recalled: dict[JobId, tuple[int, ...]] = {}
        """Workers that this pass has elastic jobs give up, by rank."""
        self.insufficient: dict[tuple[Shape, str], int] = {}
        """By shape and claim: how many might give way, and it would not be enough."""
        self._snapshot = snapshot
        self._claims = preemption_rule
        self._gives_way: set[JobId] = set()
        self._takers = 0
        self._unserved = False
        self._known: dict[object, tuple[list[PreemptionCandidate], Offered]] = {}

    def propose(self, entry: QueueEntry, shape: Shape, index: Index, place: Place) -> EvictionProposal | None:
        """The fewest that have to give way for a job that has no room; None where that cannot be, or those who are
        ending anyway leave it room enough. For best effort nobody does, and before anybody else it does itself."""
        if entry.job.spec.is_best_effort:
            return None
        if find_placement(self.index_after_evictions(index), shape) is not None:
            return None
        if self._takers >= MOST_TAKERS:
            self._unserved = True
            return None
        taken = self._taken(entry, shape, index)
        if taken is None:
            candidates, _ = self._on_offer(entry, shape, index)
            self.insufficient[entry.equivalence_class.shape, entry.equivalence_class.preemption_key] = sum(
                each.release.job not in self._gives_way for each in candidates
            )
            return None
        after = index_after_releases(index, [each.release for each in taken])
        still = any(each.mode is EvictionMode.SUSPEND for each in taken)
        found = place(
            after, _for_longer(entry.job, max((each.grace_seconds for each in taken), default=0)), shape, suspends=still
        )
        return EvictionProposal(tuple(evictions(taken, entry.job.id)), after, found) if found else None

    def _taken(self, entry: QueueEntry, shape: Shape, index: Index) -> list[PreemptionCandidate] | None:
        """Whose offers are taken; None: all of them together are not enough."""
        if self._snapshot.elastic:
            candidates = self._candidates(entry, shape, index)
            if workers := smaller(candidates, self._snapshot.jobs, index, self.recalled):
                return chosen(
                    index, shape, workers, lambda other: self._unshrunk(self._candidates(entry, shape, other))
                )
        candidates, offered = self._on_offer(entry, shape, index)
        enough = minimal_victims(index, shape, offered, self._gives_way | self.recalled.keys())
        return None if enough is None else [each for each in candidates if each.release in enough]

    def commit(self, index_after: EvictionProposal) -> None:
        """It is going to happen."""
        self._takers += 1
        self.evictions += index_after.evictions
        for each in index_after.evictions:
            if each.mode is EvictionMode.SHRINK:
                self.recalled[each.job] = (*self.recalled.get(each.job, ()), *each.ranks)
            else:
                self._gives_way.add(each.job)

    def promise(self, job: JobId, others: Iterable[JobId]) -> None:
        """The job starts once these are gone."""
        others = tuple(others)
        gone_at = [self.gone_at(other) for other in others]
        known = [each for each in gone_at if each is not None]
        self.promised[job] = MakingRoom(others, max(known) if others and len(known) == len(others) else None)

    def gives_way(self, job: JobId) -> bool:
        """By what this pass decided; with some of its workers, or altogether."""
        return job in self._gives_way or job in self.recalled

    def stays(self, job: JobId) -> bool:
        """Whether it goes on, be it with fewer workers."""
        return job not in self._gives_way and self._snapshot.jobs[job].ending is None

    def amounts_coming_free(self, counters: Counters) -> dict[Counter, int]:
        """What those count for who are on their way out, or are to go."""
        free: dict[Counter, int] = {}
        for job in (*self.leaving(), *self._going()):
            for counter, amount in counters.tallies[job].parts if job in counters.tallies else ():
                free[counter] = free.get(counter, 0) + amount
        for counter, amount in self._workers_free(counters):
            free[counter] = free.get(counter, 0) + amount
        return free

    def _workers_free(self, counters: Counters) -> Iterator[tuple[Counter, int]]:
        """What those workers count for that leave a job which goes on."""
        for job, left in self._smaller():
            held = self._snapshot.occupied[job]
            out = tuple([part for part in held if part not in left])
            if job in counters.tallies:
                yield from of_workers(counters.tallies[job], out, held, self._snapshot.nodes)

    def ending_for(self, job: JobId) -> list[JobId]:
        """Who is still on the way out for the job's sake, or some of whose workers are."""
        endings = {other: self._snapshot.jobs[other].ending for other in self.leaving()}
        smaller = (self._snapshot.jobs[other] for other in self._snapshot.elastic)
        return [
            *(other for other, ending in endings.items() if ending is not None and ending.for_job == job),
            *(
                other.id
                for other in smaller
                if other.id not in endings and any(w.for_job == job for w in other.leaving)
            ),
        ]

    def placement_after_evictions(self, shape: Shape, index: Index) -> JobPlacement | None:
        """Room as it will be once everybody who is ending is gone."""
        return find_placement(self.index_after_evictions(index), shape)

    def leaving(self) -> list[JobId]:
        """Who holds something and is being ended."""
        jobs = self._snapshot.jobs
        return [job for job in self._snapshot.occupied if job in jobs and jobs[job].ending is not None]

    def next_at(self) -> Millis | None:
        """When time alone makes more give way."""
        soon = Millis(self._snapshot.now + 1) if self._unserved else None
        return min(filter(None, (soon, *(each.next_at() for each in self._claims))), default=None)

    def _on_offer(self, entry: QueueEntry, shape: Shape, index: Index) -> tuple[list[PreemptionCandidate], Offered]:
        """To all who have the same claim, where that alone decides it. Whoever started in this pass is not on offer."""
        key = (entry.equivalence_class.preemption_key, shape.partition)
        if key in self._known and all(preemption_rule.alike for preemption_rule in self._claims):
            return self._known[key]
        candidates = self._unshrunk(self._candidates(entry, shape, index))
        self._known[key] = candidates, Offered(index, [each.release for each in candidates])
        return self._known[key]

    def _candidates(self, entry: QueueEntry, shape: Shape, index: Index) -> list[PreemptionCandidate]:
        found: dict[JobId, PreemptionCandidate] = {}
        for preemption_rule in self._claims:
            for candidate in preemption_rule.candidates(entry.job, shape.partition, index):
                if candidate.release.job not in self._gives_way:
                    found.setdefault(candidate.release.job, candidate)
        if not self._snapshot.elastic:
            return list(found.values())
        jobs = self._snapshot.jobs
        return sorted(found.values(), key=lambda candidate: not jobs[candidate.release.job].spec.is_best_effort)

    def _unshrunk(self, candidates: Iterable[PreemptionCandidate]) -> list[PreemptionCandidate]:
        """Without those who have given workers in this pass: what is left of them is not asked for at once."""
        return [each for each in candidates if each.release.job not in self.recalled]

    def index_after_evictions(self, index: Index) -> Index:
        """As it will be once those are gone who are on their way out, or are to go."""
        changes: list[tuple[JobId, Placement | None]] = [
            (job, None) for job in (*self.leaving(), *self._going()) if job in index.placed
        ]
        changes += self._smaller()
        if not changes:
            return index
        after = index.fork()
        after.apply(changes, index.ends)
        return after

    def _smaller(self) -> list[tuple[JobId, Placement]]:
        """Elastic jobs that go on with fewer workers, and what they go on with."""
        jobs = (self._snapshot.jobs[job] for job in self._snapshot.elastic)
        return [
            (job.id, staying(self._snapshot.occupied[job.id], job, self.recalled))
            for job in jobs
            if (job.leaving or job.id in self.recalled) and self.stays(job.id)
        ]

    def _going(self) -> list[JobId]:
        """Who ends by what this pass decided; one that stands still keeps what it has."""
        return [each.job for each in self.evictions if each.mode in (EvictionMode.CANCEL, EvictionMode.REQUEUE)]

    def delayed(self, job: Job) -> Job:
        """As one that is promised room comes to hold it: for its time, and until the others have had their grace."""
        until = self.promised[job.id].until
        return _for_longer(job, -(-(until - self._snapshot.now) // 1000)) if until is not None else job

    def gone_at(self, job: JobId) -> Millis | None:
        """When one that is on its way out, or is to go, is gone at the latest."""
        grace = [each.grace_seconds for each in self.evictions if each.job == job]
        if grace:
            return Millis(self._snapshot.now + 1000 * grace[0])
        found = self._snapshot.jobs[job]
        if found.ending is not None:
            return found.ending.kill_at
        return max((each.kill_at for each in found.leaving), default=None)


def _for_longer(job: Job, seconds: int) -> Job:
    if seconds <= 0:
        return job
    return replace(job, spec=replace(job.spec, time_limit_seconds=job.spec.time_limit_seconds + seconds))
