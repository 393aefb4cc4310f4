"""Pod groups, whose pods start together or not at all. Sources: PodGroupSpec and PodGroupStatus of
scheduling.volcano.sh/v1beta1 (Volcano), scheduling.x-k8s.io/v1alpha1 (scheduler-plugins) and
scheduling.sigs.k8s.io/v1alpha1 (Koordinator, and older scheduler-plugins)."""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta, condition


class PodGroupSpec(msgspec.Struct, frozen=True, rename="camel"):
    """When a pod group may start."""

    min_member: int = 0
    """The number of pods without which none starts."""
    queue: str = ""
    """The queue of Volcano; the other two have none."""


class PodGroupStatus(msgspec.Struct, frozen=True):
    """How far a pod group is."""

    phase: str = ""
    """Volcano: Pending, Inqueue, Running, Unknown, Completed; the others: Pending, PreScheduling, Scheduling, Running,
    Unknown, Finished, Failed."""
    conditions: tuple[Condition, ...] | None = None
    """Volcano's alone."""
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(msgspec.Struct, frozen=True):
    """A pod group."""

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def unschedulable(self) -> Condition | None:
        """The scheduler's condition of a group that it could not place; None: it could, or has not looked at it."""
        found = condition(self.status.conditions, "Unschedulable")
        return found if found is not None and found.is_true else None
