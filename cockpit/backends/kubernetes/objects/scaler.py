"""ScaleIn and ScaleOut: changes of the number of workers of a TrainingJob, which its operator carries out one by one.

Source: kai.alibabacloud.com/v1alpha1, ScaleInSpec, ScaleOutSpec and their status.
"""

from __future__ import annotations

import msgspec

from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta


class JobSelector(msgspec.Struct, frozen=True, gc=False):
    """The job whose workers change, in the same namespace."""

    name: str = ""


class WorkersToAdd(msgspec.Struct, frozen=True, gc=False):
    """How many workers a ScaleOut adds."""

    count: int = 0


class WorkersToDelete(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The workers that a ScaleIn removes: by their names, or else so many of those with the highest numbers."""

    count: int = 0
    pod_names: tuple[str, ...] | None = None


class ScalerSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a ScaleIn or a ScaleOut is to do."""

    selector: JobSelector = JobSelector()
    to_add: WorkersToAdd | None = None
    to_delete: WorkersToDelete | None = None
    timeout: int | None = None
    """How long a ScaleOut waits for its workers to run, in seconds; None: a minute."""


class ScalerStatus(msgspec.Struct, frozen=True, gc=False):
    """How far it is."""

    phase: str = ""
    """Empty: the operator has not begun; `Scaling`, `ScaleSucceeded` or `ScaleFailed`."""
    conditions: tuple[Condition, ...] | None = None


class Scaler(msgspec.Struct, frozen=True, gc=False):
    """A ScaleIn or a ScaleOut."""

    metadata: ObjectMeta
    spec: ScalerSpec = ScalerSpec()
    status: ScalerStatus | None = None

    @property
    def kind(self) -> str:
        return "ScaleOut" if self.spec.to_add is not None else "ScaleIn"

    @property
    def change(self) -> int:
        """By how many workers the job is to change; negative: fewer."""
        if self.spec.to_add is not None:
            return self.spec.to_add.count
        gone = self.spec.to_delete
        return 0 if gone is None else -(len(gone.pod_names) if gone.pod_names else gone.count)
