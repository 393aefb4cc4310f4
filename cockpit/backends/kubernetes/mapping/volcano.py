"""Why Volcano does not let a job start, and Volcano's queues as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.quantities import tres_amounts
from cockpit.backends.kubernetes.objects.gang import PodGroup
from cockpit.backends.kubernetes.objects.volcano import VolcanoQueue
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.view import QueueKind, QueueRow

VOLCANO = "Volcano"
ROOT = "root"
"""The queue above all others, which Volcano makes."""
CLOSED = "it is closed"
"""Why a queue lets no job start."""
_WAITING = ("", "Pending", "Inqueue")
"""Phases of pod groups that wait."""
_LONGEST = 400


def volcano_reason(job: KubeJob) -> QueueWaits | None:
    """Return why Volcano keeps the job in its queue; None: it does not, or the job is none of Volcano's.

    Volcano has a job's pods created when the job's pod group may leave the queue; a closed queue lets none leave.
    """
    if job.batch.missing_queue and not job.pods:
        return QueueWaits(VOLCANO, job.batch.missing_queue, "NoQueue")
    gang, queue = job.batch.gang, job.batch.queue
    group = gang.group if gang is not None else None
    if group is None or not group.spec.queue or group.status.phase not in {"", "Pending"}:
        return None
    if queue is not None and not queue.is_open:
        return QueueWaits(VOLCANO, group.spec.queue, "Closed")
    if job.pods:
        return None
    said = group.unschedulable
    return QueueWaits(VOLCANO, group.spec.queue, "InQueue", said.message[:_LONGEST] if said is not None else "")


def volcano_queue_rows(queues: Iterable[VolcanoQueue], groups: Iterable[PodGroup]) -> Iterator[QueueRow]:
    """Yield a row for each queue, parents first: what it deserves as the guarantee, its capability as the most.

    `groups`: the pod groups, which are counted where the queues have no numbers of them; only older versions do.
    """
    phases = Counter((each.spec.queue, each.status.phase) for each in groups)
    below: dict[str, list[VolcanoQueue]] = {}
    for each in sorted(queues, key=lambda each: each.metadata.name):
        below.setdefault(parent_of(each), []).append(each)
    names = {each.metadata.name for several in below.values() for each in several}
    # A queue whose parent is unknown is at the top; those in a circle of parents are left out.
    tops = [each for parent, several in below.items() if parent not in names for each in several]
    stack = [(each, each.metadata.name, 0) for each in reversed(tops)]
    while stack:
        queue, path, level = stack.pop()
        yield _row(queue, path, level, phases)
        children = below.get(queue.metadata.name, [])
        stack += [(each, f"{path}/{each.metadata.name}", level + 1) for each in reversed(children)]


def parent_of(queue: VolcanoQueue) -> str:
    """Return the name of the queue above; empty: there is none."""
    return queue.spec.parent or ("" if queue.metadata.name == ROOT else ROOT)


def _row(queue: VolcanoQueue, path: str, level: int, phases: Mapping[tuple[str, str], int]) -> QueueRow:
    name, status = queue.metadata.name, queue.status
    guarantee = queue.spec.guarantee.resource if queue.spec.guarantee is not None else None
    least = tres_amounts(queue.spec.deserved or guarantee or {})
    return QueueRow(
        kind=QueueKind.QUOTA,
        path=path,
        name=name,
        level=level,
        since=queue.metadata.created_at or None,
        waiting=status.pending + status.inqueue or sum(phases.get((name, each), 0) for each in _WAITING),
        running=status.running or phases.get((name, "Running"), 0),
        used=tres_amounts(queue.status.allocated or {}),
        min=least,
        max=tres_amounts(queue.spec.capability or {}),
        bounded=tuple(least),
        by_name=True,
        stopped="" if queue.is_open else CLOSED,
        alone=not level and name != ROOT,
    )
