"""What the machine asks the world to do, imperative. Every effect may be replayed after a crash: twice is like once."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.job import Submitter
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import HoldCards, JobSpec


class StartReplica(msgspec.Struct, frozen=True):
    """Make the container and start the command in it; a replica that was ever started is left alone."""

    replica: ReplicaId
    spec: JobSpec
    submitter: Submitter
    allocation: Allocation


class CheckNodes(msgspec.Struct, frozen=True):
    """Find out whether the nodes have what an attempt was promised, before anything of it is started."""

    replica: ReplicaId
    """Its first."""
    placement: Placement


class StageReplica(msgspec.Struct, frozen=True):
    """Have everything copied to the node that this start needs there."""

    start: StartReplica

    @property
    def replica(self) -> ReplicaId:
        return self.start.replica


class Force(StrEnum):
    TERM = "term"
    KILL = "kill"
    EARLY = "early"
    """The signal that a batch script wants before its time limit."""


class SignalReplica(msgspec.Struct, frozen=True):
    """TERM the command's processes, or KILL every process of the container (its holder stays)."""

    replica: ReplicaId
    force: Force


class FreezeReplica(msgspec.Struct, frozen=True):
    """Nothing in the container runs until it is thawed."""

    replica: ReplicaId


class ThawReplica(msgspec.Struct, frozen=True):
    replica: ReplicaId


class TellWorkers(msgspec.Struct, frozen=True):
    """Let a worker of an elastic job know who its fellows are now, and who of them has to end."""

    replica: ReplicaId


class KeepContainer(msgspec.Struct, frozen=True):
    """The command has ended and the container is kept: entered shells see cards only with `keep`."""

    replica: ReplicaId
    cards: HoldCards
    until: Millis | None = None
    """When its holder ends by itself if no engine does it; None: never."""


class RemoveContainer(msgspec.Struct, frozen=True):
    """End the holder and delete the container's files; logs stay until the job's history is dropped."""

    replica: ReplicaId


class RecordEnded(msgspec.Struct, frozen=True):
    """Write the ended job into the accounting tables."""

    job: JobId


Effect = (
    StartReplica
    | CheckNodes
    | StageReplica
    | SignalReplica
    | FreezeReplica
    | ThawReplica
    | TellWorkers
    | KeepContainer
    | RemoveContainer
    | RecordEnded
)
