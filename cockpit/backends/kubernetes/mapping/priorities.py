"""The queue in its order, with the priority of each job and the class that gives it.

Kueue orders its queue by the priority of a workload; without Kueue kube-scheduler takes the pod with the highest
priority first, and the oldest of equal ones (its plugin PrioritySort).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cockpit.backends.kubernetes.mapping.kube_jobs import KUEUE_CLASS, KubeJob
from cockpit.model.cluster import PriorityKind, Weights
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.priority import Breakdown
from cockpit.model.reasons import Held
from cockpit.model.view import Priorities, PriorityRow

NO_WEIGHTS = Weights(age=0, assoc=0, fairshare=0, job_size=0, partition=0, qos=0)


class ClassValues:
    """The values of the PriorityClasses; empty where the user may not list them."""

    def __init__(self, values: Mapping[str, int], default: str = "") -> None:
        """`default`: the class of pods that name none; empty: there is none, and their priority is 0."""
        self._values, self._default = values, default

    def value(self, name: str) -> int:
        """Return the priority of pods that name this class; empty: none."""
        return self._values.get(name or self._default, 0)

    def of(self, job: KubeJob) -> tuple[int, str]:
        """Return a job's priority and the words for what gives it."""
        name = job.priority_class or self._default
        if job.queued is not None and job.queued.spec.priority is not None:
            own = job.meta.label(KUEUE_CLASS)
            return job.queued.spec.priority, f"WorkloadPriorityClass {own}" if own else _class_words(name)
        # Pods that do not exist yet have no number; the server takes that of their class.
        value = job.priority if job.priority is not None else self._values.get(name, 0)
        return value, _class_words(name)


def _class_words(name: str) -> str:
    return f"PriorityClass {name}" if name else "no PriorityClass"


def breakdown_of(row: JobRow, job: KubeJob, values: ClassValues) -> Breakdown:
    """Return a job's priority; 0 for one that is held, as it is not considered."""
    value, source = values.of(job)
    held = isinstance(row.reason, Held)
    return Breakdown(row.id, job.queue, 0 if held else value, (), source=source)


def priorities(rows: Iterable[JobRow], jobs: Mapping[JobId, KubeJob], values: ClassValues) -> Priorities:
    """Return the jobs that wait, the first in the queue first; held ones come last."""
    waiting = [
        (row, breakdown_of(row, jobs[row.id], values))
        for row in rows
        if row.state is JobState.QUEUED and row.id in jobs
    ]
    waiting.sort(key=_turn)
    shown = []
    for place, (row, breakdown) in enumerate(waiting, 1):
        shown.append(
            PriorityRow(
                job=row.id,
                name=row.name,
                user=row.user,
                account=row.account,
                qos=row.qos,
                partition=breakdown.partition,
                position=None if isinstance(row.reason, Held) else place,
                breakdown=breakdown,
            )
        )
    # Not in order of submission (priority/basic): jobs have priorities, although no factors.
    return Priorities(PriorityKind.MULTIFACTOR, NO_WEIGHTS, tuple(shown))


def _turn(entry: tuple[JobRow, Breakdown]) -> tuple[bool, int, int, int]:
    row, breakdown = entry
    return isinstance(row.reason, Held), -breakdown.total, row.submitted_at, row.id
