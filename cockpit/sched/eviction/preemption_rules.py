"""The interface of preemption rules: which running jobs a waiting job may evict. A pass applies every rule that is
configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from cockpit.model.eviction import EvictionMode, Grounds
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.sched.eviction.victim_release import VictimRelease
from cockpit.sched.index import Index


class PreemptionCandidate(msgspec.Struct, frozen=True):
    """A running job, or one of its workers, that may be evicted."""

    release: VictimRelease
    mode: EvictionMode
    grounds: Grounds
    grace_seconds: int = 0
    """Seconds between the notice and the end."""
    rank: int | None = None
    """The rank, if only one worker of an elastic job ends and the job goes on; else None."""


class PreemptionRule(Protocol):
    """One preemption rule, for one pass."""

    @property
    def alike(self) -> bool:
        """Whether all jobs of one preemption key (`Rulebook.preemption_key`) and partition may evict the same jobs."""
        ...

    def candidates(self, job: Job, partition: str, index: Index) -> Sequence[PreemptionCandidate]:
        """Return the jobs that a job waiting in the partition may evict, those to be evicted rather than others
        first."""
        ...

    def next_at(self) -> Millis | None:
        """The next moment at which more of the jobs considered so far may be evicted."""
        ...
