"""A copy of the ScaleIns and ScaleOuts of a cluster, by the TrainingJobs that they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.mapping.scaling import scaling_of
from cockpit.backends.kubernetes.resources import TRAINING_JOBS, Resource

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.objects.scaler import Scaler
    from cockpit.model.resilience import Scaling

_Place = tuple[str, str]
"""Namespace and name of a job."""


class TrainingScalers:
    """Each change marks the job that it concerns."""

    def __init__(self, mark: Callable[[str], None]) -> None:
        """`mark`: has the job with this uid looked at anew."""
        self._mark = mark
        self._scalers: dict[_Place, dict[str, Scaler]] = {}
        self._jobs: dict[_Place, str] = {}
        """The uids of the TrainingJobs."""

    def scaler_changed(self, old: Scaler | None, new: Scaler | None) -> None:
        """Take over a change of a ScaleIn or a ScaleOut."""
        for each, is_there in ((old, False), (new, True)):
            if each is None:
                continue
            place = each.metadata.namespace, each.spec.selector.name
            own = self._scalers.setdefault(place, {})
            if is_there:
                own[each.metadata.uid] = each
            else:
                own.pop(each.metadata.uid, None)
            if not own:
                del self._scalers[place]
            if (job := self._jobs.get(place)) is not None:
                self._mark(job)

    def knows(self, uid: str) -> bool:
        """Return whether a ScaleIn or ScaleOut is there."""
        return any(uid in each for each in self._scalers.values())

    def note_job(self, resource: Resource, meta: ObjectMeta, *, present: bool) -> None:
        """Take over that a job is there, or gone."""
        if resource != TRAINING_JOBS:
            return
        if present:
            self._jobs[meta.namespace, meta.name] = meta.uid
        elif self._jobs.get((meta.namespace, meta.name)) == meta.uid:
            del self._jobs[meta.namespace, meta.name]

    def of(self, meta: ObjectMeta) -> Scaling | None:
        """Return the change that the job is shown with; None: none is, or it is no TrainingJob."""
        place = meta.namespace, meta.name
        if self._jobs.get(place) != meta.uid:
            return None
        return scaling_of(each for each in self._scalers.get(place, {}).values() if _is_about(each, meta))


def _is_about(scaler: Scaler, job: ObjectMeta) -> bool:
    """Return whether it is about this job, and not about an earlier one of the same name."""
    owner = scaler.metadata.controller
    return owner is None or owner.uid == job.uid
