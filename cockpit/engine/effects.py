"""The effects that the runtime must carry out. After a crash they are repeated, so that twice must be like once."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.alerts import Alert
from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.job import Submitter
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import HoldCards, JobSpec


class StartReplica(msgspec.Struct, frozen=True):
    """Make the container and start the command in it. A replica that was started before is left alone."""

    replica: ReplicaId
    spec: JobSpec
    submitter: Submitter
    allocation: Allocation


class CheckNodes(msgspec.Struct, frozen=True):
    """Check that the nodes have what an attempt was allocated, before any of its replicas is started."""

    replica: ReplicaId
    """The first replica of the attempt."""
    placement: Placement


class StageReplica(msgspec.Struct, frozen=True):
    """Copy all files to the node that this start needs there."""

    start: StartReplica

    @property
    def replica(self) -> ReplicaId:
        return self.start.replica


class SignalKind(StrEnum):
    """The kind of signal."""

    TERM = "term"
    KILL = "kill"
    EARLY = "early"
    """The signal that a batch script wants before its time limit."""


class SignalReplica(msgspec.Struct, frozen=True):
    """TERM the command's processes, or KILL every process of the container (its holder stays)."""

    replica: ReplicaId
    force: SignalKind


class FreezeReplica(msgspec.Struct, frozen=True):
    """Suspend all processes of the container."""

    replica: ReplicaId


class ThawReplica(msgspec.Struct, frozen=True):
    """Resume the processes of a frozen container."""

    replica: ReplicaId


class WriteWorkersFile(msgspec.Struct, frozen=True):
    """Write the file that tells a worker of an elastic job which workers there are, and which are recalled."""

    replica: ReplicaId


class KeepContainer(msgspec.Struct, frozen=True):
    """Hold the container of an ended command, so that shells can be opened in it. They see cards only with `keep`."""

    replica: ReplicaId
    cards: HoldCards
    until: Millis | None = None
    """When the container's holder ends by itself if no engine ends it; None: never."""


class RemoveContainer(msgspec.Struct, frozen=True):
    """End the container's holder and delete its files. Logs stay until the job's history is deleted."""

    replica: ReplicaId


class RecordEnded(msgspec.Struct, frozen=True):
    """Write the ended job into the accounting tables."""

    job: JobId


class SendAlert(msgspec.Struct, frozen=True):
    """Send an alert about a job to the receivers that the settings name. After a crash it is not repeated."""

    job: JobId
    alert: Alert


Effect = (
    StartReplica
    | CheckNodes
    | StageReplica
    | SignalReplica
    | FreezeReplica
    | ThawReplica
    | WriteWorkersFile
    | KeepContainer
    | RemoveContainer
    | RecordEnded
    | SendAlert
)
