"""Shrinks elastic jobs before any running job is evicted.

Source: EL-01 and SC-09. A job may lose its youngest workers, down to its minimum; the oldest stay together. This module
does not decide which job may take from which: a job that may be evicted may be shrunk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from cockpit.model.attempt import EvictionMode
from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.node import Allocation, Placement
from cockpit.sched.decisions import Eviction
from cockpit.sched.eviction.victim_release import (
    PreemptionCandidate,
    VictimRelease,
    index_after_releases,
    minimal_victims,
)
from cockpit.sched.index import Index
from cockpit.sched.shape import Shape

Workers = Mapping[JobId, Collection[int]]
"""Ranks of workers by job."""
NO_WORKERS: Workers = {}


def staying(held: Placement, job: Job, leaving: Workers = NO_WORKERS) -> Placement:
    """Return the part of a placement that a running job keeps once the workers that are leaving, or are to leave, are
    gone."""
    out = {each.rank for each in job.leaving}.union(leaving.get(job.id, ()))
    return tuple([part for part in held if part.rank not in out])


def spare_workers(job: Job, leaving: Workers = NO_WORKERS) -> Sequence[Allocation]:
    """Return the workers that the job can do without, the youngest first."""
    if job.spec.elastic is None or job.attempt is None:
        return ()
    # workers that joined later have higher ranks; those already leaving do not count as spare
    left = sorted(staying(job.attempt.placement, job, leaving), key=lambda part: -part.rank)
    return left[: max(0, len(left) - job.spec.elastic.min_workers)]


def worker_candidates(
    candidates: Iterable[PreemptionCandidate], jobs: Mapping[JobId, Job], index: Index, leaving: Workers
) -> list[PreemptionCandidate]:
    """Return a candidate for each worker that a candidate job can do without, in the order of the candidates, each
    job's youngest worker first."""
    return [
        each for candidate in candidates for each in _of_workers(candidate, jobs[candidate.release.job], index, leaving)
    ]


def _of_workers(
    candidate: PreemptionCandidate, job: Job, index: Index, leaving: Workers
) -> Iterator[PreemptionCandidate]:
    """Yield a candidate for each spare worker of the job, the youngest first."""
    # a worker cannot be suspended: it ends, with the job's own grace
    grace = job.spec.grace_seconds if candidate.mode is EvictionMode.SUSPEND else candidate.grace_seconds
    if job.spec.elastic is not None and job.spec.elastic.grace_seconds is not None:
        grace = job.spec.elastic.grace_seconds
    for part in spare_workers(job, leaving):
        if (order := index.layout.position.get(part.node)) is not None:
            yield PreemptionCandidate(
                VictimRelease(job.id, ((order, None),)), EvictionMode.SHRINK, candidate.grounds, grace, part.rank
            )


def choose_victims(
    index: Index,
    shape: Shape,
    workers: Sequence[PreemptionCandidate],
    evicted_from: Callable[[Index], Sequence[PreemptionCandidate]],
) -> list[PreemptionCandidate] | None:
    """Choose workers and jobs to evict so that the shape fits; None: all together are not enough.

    1. Only workers, if that is enough.
    2. Else the fewest jobs that must be evicted in addition to all these workers.
    3. Then only the workers that are needed beside those jobs.

    `evicted_from`: returns the jobs that may be evicted, as they are in an index without the workers.
    """
    # 1. workers alone
    alone = minimal_victims(index, shape, [each.release for each in workers])
    if alone is not None:
        return _released_by(workers, alone)
    # 2. jobs beside all of the workers
    without = index_after_releases(index, [each.release for each in workers])
    candidates = evicted_from(without)
    jobs = minimal_victims(without, shape, [each.release for each in candidates])
    if jobs is None:
        return None
    # taken from the real index: a job that is evicted after all releases its spare workers too
    evicted = [each for each in evicted_from(index) if each.release.job in {one.job for one in jobs}]
    # 3. the workers that are needed beside these jobs
    gone = {each.release.job for each in evicted}
    others = [each for each in workers if each.release.job not in gone]
    after = index_after_releases(index, [each.release for each in evicted])
    needed = minimal_victims(after, shape, [each.release for each in others])
    return [*_released_by(others, needed or ()), *evicted]


def _released_by(
    candidates: Iterable[PreemptionCandidate], releases: Collection[VictimRelease]
) -> list[PreemptionCandidate]:
    return [each for each in candidates if each.release in releases]


def merge_evictions(candidates: Iterable[PreemptionCandidate], for_job: JobId) -> list[Eviction]:
    """Merge the chosen candidates into one eviction for each job, with all of its workers that end."""
    by_job: dict[JobId, Eviction] = {}
    for each in candidates:
        job = each.release.job
        ranks = () if each.rank is None else (each.rank,)
        before = by_job[job].ranks if job in by_job else ()
        by_job[job] = Eviction(
            job, for_job, each.mode, each.grounds, each.grace_seconds, tuple(sorted((*before, *ranks)))
        )
    return list(by_job.values())
