"""Decides when suspended jobs resume: once the jobs that suspended them are gone, or in turns of one time slice each.

Source: Slurm's gang scheduling and preempt.html: a job that was suspended for one of its own partition (preempt/qos)
shares the CPUs with it in time slices; for a job of another partition it stays suspended until that job is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.cluster import Cluster, PreemptType
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.sched.decisions import SliceSwitch
from cockpit.sched.index import Index
from cockpit.sched.rules.rulebook import GANG
from cockpit.sched.snapshot import Snapshot


class TimeslicePlan(NamedTuple):
    """The decisions on suspended jobs."""

    switches: tuple[SliceSwitch, ...]
    after: Index
    """An index in which every job that is to resume has its CPUs, whether they are free yet or not: no other job gets
    them."""
    next_at: Millis | None
    """The next moment at which a time slice ends."""


def plan_timeslices(snapshot: Snapshot, cluster: Cluster, index: Index) -> TimeslicePlan:
    """Decide on all suspended jobs, the longest suspended first.

    For each of them:

    1. If no job that it was suspended for needs its nodes any more, it resumes as soon as its CPUs are free.
    2. Else, if both share the CPUs by time slices and the slice is over, the running jobs are suspended in its place.
    3. Otherwise it stays suspended.
    """
    planner = _TimeslicePlanner(snapshot, cluster, index)
    waiting = [snapshot.jobs[job] for job in snapshot.suspended]
    for job in sorted(waiting, key=lambda each: (each.state_since, each.id)):
        # a job that a user has suspended is not suspended for any job, and only a user resumes it
        if job.suspension is not None and job.suspension.for_jobs and job.ending is None:
            planner.consider(job, job.suspension.for_jobs)
    return TimeslicePlan(planner.switches(), planner.index, planner.next_at)


class _TimeslicePlanner:
    def __init__(self, snapshot: Snapshot, cluster: Cluster, index: Index) -> None:
        self.index = index
        self.next_at: Millis | None = None
        self._jobs, self._now, self._cluster = snapshot.jobs, snapshot.now, cluster
        self._instead: dict[JobId, tuple[JobId, ...]] = {}
        """Jobs that resume, with the jobs that each was suspended for."""
        self._suspended: set[JobId] = set()
        self._moves: list[tuple[JobId, tuple[JobId, ...]]] = []

    def consider(self, job: Job, for_jobs: Sequence[JobId]) -> None:
        others = [self._jobs[other] for other in for_jobs if self._needs(other, job)]
        if not others:
            self._resume(job, for_jobs)
        elif self._by_turns(job, others):
            self._swap(job, others, for_jobs)

    def switches(self) -> tuple[SliceSwitch, ...]:
        resuming = self._instead
        return tuple(
            SliceSwitch(
                job,
                others,
                tuple([each for each, suspended_for in resuming.items() if not set(others).isdisjoint(suspended_for)]),
            )
            for job, others in self._moves
        )

    def _needs(self, other: JobId, job: Job) -> bool:
        """Return whether the other job runs on this job's nodes, or is about to."""
        record = self._jobs.get(other)
        # gone, or off the CPUs already
        if record is None or other in self._suspended or record.state is JobState.SUSPENDED:
            return False
        if record.state is JobState.QUEUED:
            # a nominated job still needs the nodes that it had cleared, unless it is held
            return job.id in record.clears and not record.held_by
        return record.state in OCCUPYING and not _nodes(record).isdisjoint(_nodes(job))

    def _by_turns(self, job: Job, others: Iterable[Job]) -> bool:
        preemption = self._cluster.preemption
        if preemption.kind != PreemptType.QOS or GANG not in preemption.mode:
            return False
        return all(_partition(other) == _partition(job) for other in others)

    def _swap(self, job: Job, others: Sequence[Job], for_jobs: Sequence[JobId]) -> None:
        """Let the job resume in place of the others, if its turn has come and their CPUs suffice."""
        over_at = Millis(job.state_since + 1000 * self._cluster.preemption.slice_seconds)
        if over_at > self._now:
            self.next_at = min(over_at, self.next_at or over_at)
            return
        # one that is about to start or end changes the nodes soon: wait for that
        if any(other.state is not JobState.RUNNING or other.ending is not None for other in others):
            return
        after = self.index.fork()
        # suspended jobs keep memory and cards
        suspended = [(other.id, tuple([replace(part, cpus=0) for part in after.placed[other.id]])) for other in others]
        after.apply(suspended, {})
        if _has_cpus(after, job):
            self._suspended.update(other.id for other in others)
            self._moves.append((job.id, tuple([other.id for other in others])))
            self._instead[job.id] = tuple(for_jobs)
            self.index = self._index_with(after, job)

    def _resume(self, job: Job, for_jobs: Sequence[JobId]) -> None:
        if _has_cpus(self.index, job):
            self._moves.append((job.id, ()))
            self._instead[job.id] = tuple(for_jobs)
        # also where the CPUs are still taken: no other job may get them first
        self.index = self._index_with(self.index.fork(), job)

    def _index_with(self, index: Index, job: Job) -> Index:
        assert job.attempt is not None
        # the time limit does not run while a job is suspended
        suspended_ms = job.attempt.suspended_ms + self._now - job.state_since
        end = Millis(job.attempt.placed_at + suspended_ms + 1000 * job.spec.time_limit_seconds)
        index.apply([(job.id, job.attempt.placement)], {job.id: end})
        return index


def _has_cpus(index: Index, job: Job) -> bool:
    assert job.attempt is not None
    return all(index.nodes_free[order].cpus >= part.cpus for order, part in index.located(job.attempt.placement))


def _nodes(job: Job) -> set[str]:
    return {part.node for part in job.attempt.placement} if job.attempt is not None else set()


def _partition(job: Job) -> str:
    return job.attempt.partition if job.attempt is not None else ""
