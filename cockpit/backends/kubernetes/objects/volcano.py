"""Queues and jobs of Volcano. Sources: QueueSpec, QueueStatus (scheduling.volcano.sh/v1beta1); TaskSpec, JobState
(batch.volcano.sh/v1alpha1)."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta
from cockpit.backends.kubernetes.objects.pod import PodTemplate, Quantities


class Guarantee(msgspec.Struct, frozen=True):
    """What is kept free for a queue."""

    resource: Quantities | None = None


class VolcanoQueueSpec(msgspec.Struct, frozen=True):
    """What a queue may use."""

    weight: int = 1
    parent: str = ""
    """The queue above it; empty: root."""
    guarantee: Guarantee | None = None
    deserved: Quantities | None = None
    """Its share, above which others may take resources back."""
    capability: Quantities | None = None
    """The most that it may use."""


class VolcanoQueueStatus(msgspec.Struct, frozen=True):
    """What a queue uses, and how many of its pod groups are in each phase."""

    state: str = ""
    """Open, Closing, Closed or Unknown."""
    pending: int = 0
    inqueue: int = 0
    running: int = 0
    allocated: Quantities | None = None


class VolcanoQueue(msgspec.Struct, frozen=True):
    """A queue; it belongs to no namespace."""

    metadata: ObjectMeta
    spec: VolcanoQueueSpec = VolcanoQueueSpec()
    status: VolcanoQueueStatus = VolcanoQueueStatus()

    @property
    def is_open(self) -> bool:
        """Whether it takes new jobs. A queue that the controller has not looked at has no state yet."""
        return self.status.state in {"", "Open"}


class VolcanoTask(msgspec.Struct, frozen=True, rename="camel"):
    """Equal replicas of a job."""

    name: str = ""
    replicas: int | None = None
    min_available: int | None = None
    """The number of its pods without which the job does not start; None: all."""
    template: PodTemplate | None = None


class VolcanoState(msgspec.Struct, frozen=True, rename="camel"):
    """What a job is at present."""

    phase: str = ""
    """Pending, Running, Restarting, Completing, Terminating, Aborting; or Aborted, Completed, Terminated, Failed."""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None

    @property
    def is_suspended(self) -> bool:
        """Whether it has no pods until it is resumed."""
        return self.phase in {"Aborting", "Aborted"}

    @property
    def end(self) -> Condition | None:
        """Its end as the condition that other kinds have for it; None: it has not ended."""
        kind = {"Completed": "Complete", "Failed": "Failed", "Terminated": "Failed"}.get(self.phase)
        if kind is None:
            return None
        return Condition(kind, "True", self.reason, self.message, self.last_transition_time)
