"""Slurm's preempt/qos and preempt/partition_prio: which jobs may preempt which, in what order, and how.

Source: slurm.conf(5) PreemptType, PreemptMode, PreemptExemptTime, GraceTime; sacctmgr(1) Preempt, PreemptMode;
`src/plugins/preempt/{qos,partition_prio}`. Of equal rank the youngest job is preempted first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cockpit.model.attempt import EvictionMode, Grounds
from cockpit.model.cluster import PreemptType
from cockpit.model.ids import Millis
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.sched.eviction.victim_release import PreemptionCandidate, release_all, release_cpus
from cockpit.sched.index import Index
from cockpit.sched.rules.rulebook import NO_PARTITION, NO_QOS, WITHIN, mode_of, partition_of

if TYPE_CHECKING:
    from cockpit.sched.rules.rulebook import Rulebook
    from cockpit.sched.snapshot import Snapshot


class Preemption:
    """The preemption rules of Slurm, for one pass."""

    def __init__(self, rules: Rulebook, snapshot: Snapshot, priority_of: Callable[[Job, str], int]) -> None:
        self._cluster, self._accounts = rules.cluster, rules.accounts
        self._jobs, self._now = snapshot.jobs, snapshot.now
        self._priority_of = priority_of
        self._by_qos = rules.cluster.preemption.kind == PreemptType.QOS
        self._exempt_until: Millis | None = None

    def candidates(self, job: Job, partition: str, index: Index) -> Sequence[PreemptionCandidate]:
        """Return the jobs that the job may preempt, lowest rank first, then the youngest."""
        below = [other for other in self._running(index) if self._may(job, partition, other)]
        # of equal rank the youngest first: it has least work to lose
        below.sort(key=lambda other: (self._rank(other), -_started(other), -other.id))
        return [candidate for other in below for candidate in self._candidate(other, index)]

    @property
    def alike(self) -> bool:
        return not (self._by_qos and WITHIN in self._cluster.preemption.mode)

    def next_at(self) -> Millis | None:
        return self._exempt_until

    def _running(self, index: Index) -> Iterator[Job]:
        """Return the jobs that hold resources, did not start in this pass, and are not ending anyway."""
        jobs = (self._jobs.get(job) for job in index.placed)
        return (job for job in jobs if job is not None and _is_evictable(job))

    def _may(self, job: Job, partition: str, other: Job) -> bool:
        if not self._by_qos:
            tier = (self._cluster.partition(partition) or NO_PARTITION).priority_tier
            return partition_of(self._cluster, other).priority_tier < tier
        own = self._accounts.qos.get(job.qos, NO_QOS)
        # within one QOS only priority can decide, and only if the administrator allows it
        if own.name and other.qos == own.name:
            return WITHIN in self._cluster.preemption.mode and self._is_before(job, partition, other)
        return other.qos in own.preempt

    def _is_before(self, job: Job, partition: str, other: Job) -> bool:
        held_in = other.attempt.partition if other.attempt is not None else ""
        return self._priority_of(job, partition) > self._priority_of(other, held_in)

    def _rank(self, other: Job) -> int:
        if self._by_qos:
            return self._accounts.qos.get(other.qos, NO_QOS).priority
        return partition_of(self._cluster, other).priority_tier

    def _candidate(self, other: Job, index: Index) -> Iterable[PreemptionCandidate]:
        """Return the job as a candidate with its mode and grace; empty while it may not be preempted."""
        # by the victim's QOS or partition, as in Slurm, not by that of the job that preempts it
        mode = mode_of(self._cluster, self._accounts, other)
        if mode is None:
            return ()
        grounds = Grounds.QOS if self._by_qos else Grounds.PARTITION
        if mode is EvictionMode.SUSPEND:
            if other.state is not JobState.RUNNING:
                return ()
            return (PreemptionCandidate(release_cpus(index, other.id), mode, grounds),)
        if (until := self._exempt(other)) > self._now:
            # the next pass is due when the first exempt time is over
            self._exempt_until = min(until, self._exempt_until or until)
            return ()
        return (PreemptionCandidate(release_all(index, other.id), mode, grounds, self._grace(other)),)

    def _exempt(self, other: Job) -> Millis:
        """Return the end of the exempt time, during which the job may not be cancelled or requeued."""
        # a QOS without a time of its own has the cluster's
        own = self._accounts.qos.get(other.qos, NO_QOS).exempt_seconds if self._by_qos else None
        seconds = self._cluster.preemption.exempt_seconds if own is None else own
        return Millis(_started(other) + 1000 * seconds)

    def _grace(self, other: Job) -> int:
        """Return the grace time in seconds; a job that writes checkpoints has its own time for that, where it is
        longer."""
        own = other.spec.checkpoint_seconds
        if self._by_qos:
            return max(own, self._accounts.qos.get(other.qos, NO_QOS).grace_seconds)
        return max(own, partition_of(self._cluster, other).grace_seconds)


def _is_evictable(job: Job) -> bool:
    return job.state in OCCUPYING and job.state is not JobState.SUSPENDED and job.ending is None


def _started(job: Job) -> Millis:
    assert job.attempt is not None
    return job.attempt.placed_at
