"""By what right one job takes another's room. Each rule is a `PreemptionRule` of its own; a pass asks them all."""

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
    """A running job that has to give way if its room is needed."""

    release: VictimRelease
    mode: EvictionMode
    grounds: Grounds
    grace_seconds: int = 0
    rank: int | None = None
    """Where it is one worker of an elastic job that ends, and the job goes on: which."""


class PreemptionRule(Protocol):
    """One rule, for one pass."""

    @property
    def alike(self) -> bool:
        """Whether all jobs of one claim (`Rulebook.claim`) and partition may take the same."""
        ...

    def candidates(self, job: Job, partition: str, index: Index) -> Sequence[PreemptionCandidate]:
        """What a job that waits in the partition may take: who is to go rather than others comes first."""
        ...

    def next_at(self) -> Millis | None:
        """When time alone makes more of the jobs asked about so far give way."""
        ...
