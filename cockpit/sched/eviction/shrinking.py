"""Shrink before evict: elastic jobs give up workers before any running job has to go.

Source: EL-01 and SC-09. A job may be asked for its youngest workers, down to its min; its eldest stay together. Who may
take whose room is not decided here: whoever may be evicted may be shrunk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from cockpit.model.eviction import EvictionMode
from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.node import Allocation, Placement
from cockpit.sched.decisions import Eviction
from cockpit.sched.eviction.preemption_rules import PreemptionCandidate
from cockpit.sched.eviction.victim_release import VictimRelease, index_after_releases, minimal_victims
from cockpit.sched.index import Index
from cockpit.sched.shape import Shape

Workers = Mapping[JobId, Collection[int]]
"""Ranks by job."""
NOBODY: Workers = {}


def staying(held: Placement, job: Job, going: Workers = NOBODY) -> Placement:
    """What of it a running job keeps once those workers are gone that are on their way out, or are to go."""
    out = {each.rank for each in job.leaving}.union(going.get(job.id, ()))
    return tuple([part for part in held if part.rank not in out])


def spare_workers(job: Job, going: Workers = NOBODY) -> Sequence[Allocation]:
    """Those that it can do without, the youngest first."""
    if job.spec.elastic is None or job.attempt is None:
        return ()
    left = sorted(staying(job.attempt.placement, job, going), key=lambda part: -part.rank)
    return left[: max(0, len(left) - job.spec.elastic.min_workers)]


def smaller(
    candidates: Iterable[PreemptionCandidate], jobs: Mapping[JobId, Job], index: Index, going: Workers
) -> list[PreemptionCandidate]:
    """One offer for each worker that a job on offer can do without: whoever is to give way rather than others comes
    first, its youngest worker before all."""
    return [
        each for candidate in candidates for each in _of_workers(candidate, jobs[candidate.release.job], index, going)
    ]


def _of_workers(
    candidate: PreemptionCandidate, job: Job, index: Index, going: Workers
) -> Iterator[PreemptionCandidate]:
    grace = job.spec.grace_seconds if candidate.mode is EvictionMode.SUSPEND else candidate.grace_seconds
    if job.spec.elastic is not None and job.spec.elastic.grace_seconds is not None:
        grace = job.spec.elastic.grace_seconds
    for part in spare_workers(job, going):
        if (order := index.layout.position.get(part.node)) is not None:
            yield PreemptionCandidate(
                VictimRelease(job.id, ((order, None),)), EvictionMode.SHRINK, candidate.grounds, grace, part.rank
            )


def chosen(
    index: Index,
    shape: Shape,
    workers: Sequence[PreemptionCandidate],
    evicted_from: Callable[[Index], Sequence[PreemptionCandidate]],
) -> list[PreemptionCandidate] | None:
    """Who gives way so that the shape has room: workers alone where they suffice; else the fewest jobs that have to go
    beside all of them, and then only the workers that are needed still. None: it would not be enough.

    `evicted_from`: the jobs that may be evicted, as an index has them in which the workers have gone.
    """
    alone = minimal_victims(index, shape, [each.release for each in workers])
    if alone is not None:
        return _those(workers, alone)
    without = index_after_releases(index, [each.release for each in workers])
    candidates = evicted_from(without)
    going = minimal_victims(without, shape, [each.release for each in candidates])
    if going is None:
        return None
    evicted = [each for each in evicted_from(index) if each.release.job in {one.job for one in going}]
    gone = {each.release.job for each in evicted}
    others = [each for each in workers if each.release.job not in gone]
    after = index_after_releases(index, [each.release for each in evicted])
    needed = minimal_victims(after, shape, [each.release for each in others])
    return [*_those(others, needed or ()), *evicted]


def _those(candidates: Iterable[PreemptionCandidate], releases: Collection[VictimRelease]) -> list[PreemptionCandidate]:
    return [each for each in candidates if each.release in releases]


def evictions(candidates: Iterable[PreemptionCandidate], for_job: JobId) -> list[Eviction]:
    """What the chosen offers come to: one for each job, with all of its workers that go."""
    found: dict[JobId, Eviction] = {}
    for each in candidates:
        job = each.release.job
        ranks = () if each.rank is None else (each.rank,)
        before = found[job].ranks if job in found else ()
        found[job] = Eviction(
            job, for_job, each.mode, each.grounds, each.grace_seconds, tuple(sorted((*before, *ranks)))
        )
    return list(found.values())
