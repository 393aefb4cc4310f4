"""Plans the evictions of one pass: which running jobs are evicted, for which job, and which jobs are nominated.

For a job that does not fit (`propose`):

1. No eviction if the jobs that are ending anyway free enough.
2. Shrink elastic jobs if that is enough (`shrinking.choose_victims`).
3. Else take the fewest victims among the jobs that the preemption rules allow (`minimal_victims`).
4. The backfiller places the job in the index without the victims, so that no job ahead is delayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from cockpit.model.attempt import EvictionMode
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import EvictionPending
from cockpit.sched.decisions import Eviction
from cockpit.sched.equivalence import QueueEntry
from cockpit.sched.eviction.shrinking import choose_victims, merge_evictions, staying, worker_candidates
from cockpit.sched.eviction.victim_release import (
    CandidatesByNode,
    PreemptionCandidate,
    PreemptionRule,
    index_after_releases,
    minimal_victims,
)
from cockpit.sched.index import Index
from cockpit.sched.placement import JobPlacement, find_placement
from cockpit.sched.rules.counters import Counters, of_workers
from cockpit.sched.rules.limits import Counter
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot


class PlaceAfterEvictions(Protocol):
    """The backfiller's function that places a job after evictions, unless that delays a job ahead."""

    def __call__(
        self, index_after: Index, job: Job, shape: Shape, *, suspends: bool = False
    ) -> JobPlacement | None: ...


MOST_SERVED = 16
"""The most jobs for which others are evicted in one pass; the next pass follows at once."""


class EvictionProposal(NamedTuple):
    """The evictions by which a job fits, and its placement then."""

    evictions: tuple[Eviction, ...]
    after: Index
    """The index after the evictions."""
    job_placement: JobPlacement

    @property
    def at_once(self) -> bool:
        """Whether the job can start at once, since the victims are only suspended."""
        return all(each.mode is EvictionMode.SUSPEND for each in self.evictions)


class EvictionPlanner:
    """The evictions of one pass. There is no planner where no rule allows any."""

    def __init__(self, snapshot: Snapshot, preemption_rules: Sequence[PreemptionRule]) -> None:
        self.evictions: list[Eviction] = []
        self.nominated: dict[JobId, EvictionPending] = {}
        self.recalled: dict[JobId, tuple[int, ...]] = {}
        """Ranks of the workers that this pass takes from elastic jobs, by job."""
        self.insufficient: dict[tuple[Shape, str], int] = {}
        """By shape and preemption key: how many jobs could be preempted, where all of them together are not enough."""
        self._snapshot = snapshot
        self._preemption_rules = preemption_rules
        self._evicted: set[JobId] = set()
        self._served = 0
        self._left_to_next_pass = False
        self._candidates_by_key: dict[object, tuple[list[PreemptionCandidate], CandidatesByNode]] = {}

    def propose(
        self, entry: QueueEntry, shape: Shape, index: Index, place: PlaceAfterEvictions
    ) -> EvictionProposal | None:
        """Propose the fewest evictions by which the job fits; None where no eviction helps or none is needed, because
        jobs that are ending anyway free enough. For best effort jobs no job is evicted; they are themselves evicted
        first."""
        if entry.job.spec.is_best_effort:
            return None
        # 1. jobs that are ending anyway
        if find_placement(self.index_after_evictions(index), shape) is not None:
            return None
        # each search takes milliseconds; `next_at` lets the next pass follow at once
        if self._served >= MOST_SERVED:
            self._left_to_next_pass = True
            return None
        victims = self._choose_victims(entry, shape, index)
        if victims is None:
            # the reason shows this number: "may preempt 3 jobs, which is not enough"
            candidates, _ = self._known_candidates(entry, shape, index)
            self.insufficient[entry.equivalence_class.shape, entry.equivalence_class.preemption_key] = sum(
                each.release.job not in self._evicted for each in candidates
            )
            return None
        # 4. victims keep what they hold for their grace time, so the job needs its nodes that much longer
        after = index_after_releases(index, [each.release for each in victims])
        suspends = any(each.mode is EvictionMode.SUSPEND for each in victims)
        job_placement = place(
            after,
            _with_longer_limit(entry.job, max((each.grace_seconds for each in victims), default=0)),
            shape,
            suspends=suspends,
        )
        return (
            EvictionProposal(tuple(merge_evictions(victims, entry.job.id)), after, job_placement)
            if job_placement
            else None
        )

    def _choose_victims(self, entry: QueueEntry, shape: Shape, index: Index) -> list[PreemptionCandidate] | None:
        """Choose the victims; None: all candidates together do not free enough."""
        # 2. workers of elastic jobs
        if self._snapshot.elastic:
            candidates = self._candidates(entry, shape, index)
            if workers := worker_candidates(candidates, self._snapshot.jobs, index, self.recalled):
                return choose_victims(
                    index, shape, workers, lambda other: self._unshrunk(self._candidates(entry, shape, other))
                )
        # 3. the fewest whole jobs
        candidates, candidates_by_node = self._known_candidates(entry, shape, index)
        enough = minimal_victims(index, shape, candidates_by_node, self._evicted | self.recalled.keys())
        return None if enough is None else [each for each in candidates if each.release in enough]

    def commit(self, proposal: EvictionProposal) -> None:
        """Add the proposal to the pass's evictions."""
        self._served += 1
        self.evictions += proposal.evictions
        for each in proposal.evictions:
            if each.mode is EvictionMode.SHRINK:
                self.recalled[each.job] = (*self.recalled.get(each.job, ()), *each.ranks)
            else:
                self._evicted.add(each.job)

    def nominate(self, job: JobId, others: Iterable[JobId]) -> None:
        """Nominate the job: it starts once these others are gone."""
        # iterated twice, and the caller may pass a generator
        others = tuple(others)
        gone_at = [self.gone_at(other) for other in others]
        known = [each for each in gone_at if each is not None]
        # the job starts when the last of them is gone; one unknown end makes the moment unknown
        self.nominated[job] = EvictionPending(others, max(known) if others and len(known) == len(others) else None)

    def loses_resources(self, job: JobId) -> bool:
        """Return whether this pass evicts the job or some of its workers."""
        return job in self._evicted or job in self.recalled

    def keeps_running(self, job: JobId) -> bool:
        """Return whether the job keeps running, perhaps with fewer workers."""
        return job not in self._evicted and self._snapshot.jobs[job].ending is None

    def amounts_coming_free(self, counters: Counters) -> dict[Counter, int]:
        """Return the amounts, by limit counter, that come free with jobs and workers that are ending or that this pass
        evicts."""
        free: dict[Counter, int] = {}
        for job in (*self.ending_jobs(), *self._ended_by_pass()):
            for counter, amount in counters.tallies[job].parts if job in counters.tallies else ():
                free[counter] = free.get(counter, 0) + amount
        for counter, amount in self._workers_free(counters):
            free[counter] = free.get(counter, 0) + amount
        return free

    def _workers_free(self, counters: Counters) -> Iterator[tuple[Counter, int]]:
        """Yield the amounts, by counter, of workers that leave a job which keeps running."""
        for job, left in self._shrunk_placements():
            held = self._snapshot.occupied[job]
            out = tuple([part for part in held if part not in left])
            if job in counters.tallies:
                yield from of_workers(counters.tallies[job], out, held, self._snapshot.nodes)

    def ending_for(self, job: JobId) -> list[JobId]:
        """Return the jobs that are still being ended for this job, wholly or with some of their workers."""
        endings = {other: self._snapshot.jobs[other].ending for other in self.ending_jobs()}
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
        """Find a placement that will be free once all ending jobs are gone."""
        return find_placement(self.index_after_evictions(index), shape)

    def ending_jobs(self) -> list[JobId]:
        """Return the jobs that hold resources and are being ended."""
        jobs = self._snapshot.jobs
        return [job for job in self._snapshot.occupied if job in jobs and jobs[job].ending is not None]

    def next_at(self) -> Millis | None:
        """Return the next moment at which more jobs may be evicted although nothing else happens."""
        soon = Millis(self._snapshot.now + 1) if self._left_to_next_pass else None
        return min(filter(None, (soon, *(each.next_at() for each in self._preemption_rules))), default=None)

    def _known_candidates(
        self, entry: QueueEntry, shape: Shape, index: Index
    ) -> tuple[list[PreemptionCandidate], CandidatesByNode]:
        """Return the candidates for the job, in order and by node. Cached by preemption key and partition if these
        alone decide. Jobs that started in this pass are no candidates."""
        key = (entry.equivalence_class.preemption_key, shape.partition)
        # the caches hold victims of this pass too: searches leave them out by `_evicted`
        if key in self._candidates_by_key and all(preemption_rule.alike for preemption_rule in self._preemption_rules):
            return self._candidates_by_key[key]
        candidates = self._unshrunk(self._candidates(entry, shape, index))
        self._candidates_by_key[key] = candidates, CandidatesByNode(index, [each.release for each in candidates])
        return self._candidates_by_key[key]

    def _candidates(self, entry: QueueEntry, shape: Shape, index: Index) -> list[PreemptionCandidate]:
        """Return the jobs that the rules let this job evict, each once, in the order in which they should be
        evicted."""
        by_job: dict[JobId, PreemptionCandidate] = {}
        for preemption_rule in self._preemption_rules:
            for candidate in preemption_rule.candidates(entry.job, shape.partition, index):
                # the first rule that offers a job decides how it is evicted
                if candidate.release.job not in self._evicted:
                    by_job.setdefault(candidate.release.job, candidate)
        if not self._snapshot.elastic:
            return list(by_job.values())
        jobs = self._snapshot.jobs
        # best effort jobs first; the sort is stable, so the rules' order stays within both groups
        return sorted(by_job.values(), key=lambda candidate: not jobs[candidate.release.job].spec.is_best_effort)

    def _unshrunk(self, candidates: Iterable[PreemptionCandidate]) -> list[PreemptionCandidate]:
        """Leave out jobs that have given up workers in this pass: they are not evicted as well in the same pass."""
        return [each for each in candidates if each.release.job not in self.recalled]

    def index_after_evictions(self, index: Index) -> Index:
        """Return the index without the jobs and workers that are ending or that this pass evicts."""
        changes: list[tuple[JobId, Placement | None]] = [
            (job, None) for job in (*self.ending_jobs(), *self._ended_by_pass()) if job in index.placed
        ]
        # `keeps_running` leaves out jobs that end, so no job is in both lists
        changes += self._shrunk_placements()
        if not changes:
            return index
        after = index.fork()
        after.apply(changes, index.ends)
        return after

    def _shrunk_placements(self) -> list[tuple[JobId, Placement]]:
        """Return the elastic jobs that keep running with fewer workers, and the placement that each keeps."""
        jobs = (self._snapshot.jobs[job] for job in self._snapshot.elastic)
        return [
            (job.id, staying(self._snapshot.occupied[job.id], job, self.recalled))
            for job in jobs
            if (job.leaving or job.id in self.recalled) and self.keeps_running(job.id)
        ]

    def _ended_by_pass(self) -> list[JobId]:
        """Return the jobs that this pass ends. Suspended jobs are not among them: they keep their memory and cards."""
        return [each.job for each in self.evictions if each.mode in (EvictionMode.CANCEL, EvictionMode.REQUEUE)]

    def with_wait_added(self, job: Job) -> Job:
        """Return the nominated job with a time limit longer by its wait, since its time begins only once the others are
        gone."""
        until = self.nominated[job.id].until
        return _with_longer_limit(job, -(-(until - self._snapshot.now) // 1000)) if until is not None else job

    def gone_at(self, job: JobId) -> Millis | None:
        """Return the latest end of an ending or evicted job; None: not known."""
        # a job that this pass evicts has no end in the snapshot yet
        grace = [each.grace_seconds for each in self.evictions if each.job == job]
        if grace:
            return Millis(self._snapshot.now + 1000 * grace[0])
        record = self._snapshot.jobs[job]
        if record.ending is not None:
            return record.ending.kill_at
        return max((each.kill_at for each in record.leaving), default=None)


def _with_longer_limit(job: Job, seconds: int) -> Job:
    if seconds <= 0:
        return job
    return replace(job, spec=replace(job.spec, time_limit_seconds=job.spec.time_limit_seconds + seconds))
