"""Which changes of a job would have Kueue admit it now: computed by cockpit's copy of Kueue's rules.

1. Of less cards, CPUs, memory or pods the most that the quota takes; the lowest priority class that suffices; each
   other queue of the namespace.
2. Each is tried on a copy of all queues with the jobs that wait there: who comes before it may take the quota.
3. What is admitted has to find nodes.

A job of another size is a new one for Kueue, behind those that wait; another class or queue leaves it its age.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kueue_admission import workload_of
from cockpit.backends.kubernetes.mapping.kueue_shortage import shortages
from cockpit.backends.kubernetes.mapping.kueue_submission import refusal
from cockpit.backends.kubernetes.mapping.quantities import CPU
from cockpit.backends.kubernetes.mapping.queue_what_ifs import (
    Pods,
    QueueTry,
    on_nodes,
    saved,
    smaller,
    unchanged_pods,
    what_if,
)
from cockpit.backends.kubernetes.mapping.scheduler_view import is_plain
from cockpit.backends.kubernetes.mapping.what_ifs import higher_classes
from cockpit.backends.kubernetes.objects.kueue import KueueWorkloadStatus
from cockpit.model.forecast import Change, Forecast, NoBound, WhatIf
from cockpit.model.ids import Millis
from cockpit.sched.admission.workloads import Mode

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kueue_prediction import QueuePrediction
    from cockpit.backends.kubernetes.mapping.kueue_starts import QueuedJob
    from cockpit.model.spec import JobSpec
    from cockpit.sched.admission.workloads import AdmissionWorkload, PodSetRequest, Verdict

_THOUSANDTHS = 1000


class KueueOffers(NamedTuple):
    """What a job may change to."""

    classes: Mapping[str, int]
    """The values of Kueue's priority classes."""
    labels: Mapping[str, str] | None
    """The labels of its namespace; None: they may not be read."""


class _Try(NamedTuple):
    changed: QueueTry
    workload: AdmissionWorkload


def admitted_with(prediction: QueuePrediction, key: str, spec: JobSpec, offers: KueueOffers) -> tuple[WhatIf, ...]:
    """Return the changes with which the job is admitted now, the soonest start first; none for a job that is, and where
    the order of the queues is not known (fair sharing). `spec`: as the job is shown."""
    own, queued = prediction.waiting.get(key), prediction.times.jobs.get(key)
    has_order = not prediction.objects.has_fair_sharing or len(prediction.waiting) == 1
    if own is None or queued is None or not has_order or prediction.is_admitted_now(key):
        return ()
    before = prediction.start(key)
    until = before.at if before is not None else None
    preempted = _preempted_anyway(prediction)
    found: list[WhatIf] = []
    done: set[Change] = set()
    for each in _tries(prediction, own, queued, spec, offers):
        change = each.changed.change
        # Of the classes, which come in order, the first one is enough.
        if change.change in done:
            continue
        admitted = _admitted(prediction, own, each.workload)
        if admitted is None:
            continue
        of_queue = prediction.times.jobs
        victims = [of_queue[one] for one in admitted[1] if one not in preempted and one in of_queue]
        forecast = _placed(prediction, queued, each.changed, admitted[0], victims, until)
        if forecast is None:
            continue
        if change.change is Change.PRIORITY_CLASS:
            done.add(change.change)
        found.append(what_if(change, forecast, sum(len(one.job.placed) for one in victims)))
    return tuple(sorted(found, key=lambda each: each.forecast.likely_at or prediction.now))


def _tries(
    prediction: QueuePrediction, own: AdmissionWorkload, queued: QueuedJob, spec: JobSpec, offers: KueueOffers
) -> Iterator[_Try]:
    """Yield the changes that the quota alone allows (step 1)."""
    pods, verdict = tuple(prediction.times.pods(queued.workload, {})), prediction.state.judge(own)
    counts = [each.count for each in queued.workload.spec.pod_sets]

    def resized(some: Pods) -> AdmissionWorkload:
        return replace(own, since=prediction.now, requests=tuple(_requests(own, counts, pods, some)))

    if verdict.mode is not Mode.FIT:
        short = {each.cell.resource for each in shortages(verdict)}
        for each in smaller(pods, spec, short, lambda some: _is_taken(prediction, resized(some))):
            yield _Try(each, resized(each.pods))
    of_class = queued.job.urgency_class or str(own.priority)
    for name, value in higher_classes(own.priority, offers.classes):
        change = unchanged_pods(Change.PRIORITY_CLASS, of_class, name, replace(spec, qos=name))
        yield from _if_taken(prediction, _Try(QueueTry(change, pods), replace(own, priority=value)))
    name = queued.workload.spec.queue_name
    for other, moved in _in_other_queues(prediction, queued, offers):
        change = unchanged_pods(Change.QUEUE, name, other, replace(spec, partitions=(other,)))
        yield from _if_taken(prediction, _Try(QueueTry(change, pods), moved))


def _if_taken(prediction: QueuePrediction, each: _Try) -> Iterator[_Try]:
    if _is_taken(prediction, each.workload):
        yield each


def _is_taken(prediction: QueuePrediction, workload: AdmissionWorkload) -> bool:
    """Return whether the quota takes the job, perhaps with a preemption, and nothing but the quota keeps it."""
    if workload.queue not in prediction.state.queues or workload.queue in prediction.checked:
        return False
    verdict: Verdict = prediction.state.judge(workload)
    return verdict.mode is Mode.FIT or bool(verdict.victims)


def _requests(own: AdmissionWorkload, counts: Sequence[int], pods: Pods, some: Pods) -> Iterator[PodSetRequest]:
    """Yield what each pod set requests once the job has only some of its pods, or smaller ones."""
    start = 0
    for request, count in zip(own.requests, counts, strict=True):
        before, after = pods[start : start + count], some[start : start + count]
        start += count
        if not after:
            continue
        less = {name: amount if name == CPU else _THOUSANDTHS * amount for name, amount in saved(before, after).items()}
        less["pods"] = _THOUSANDTHS * (len(before) - len(after))
        amounts = {name: max(0, amount - less.get(name, 0)) for name, amount in request.amounts.items()}
        yield request._replace(amounts=amounts)


def _in_other_queues(
    prediction: QueuePrediction, queued: QueuedJob, offers: KueueOffers
) -> Iterator[tuple[str, AdmissionWorkload]]:
    """Yield the other queues of the namespace that look at the job, with the job there."""
    objects, workload = prediction.objects, queued.workload
    namespace, own = workload.metadata.namespace, prediction.waiting[workload.metadata.uid].queue
    of_local = {(each.metadata.namespace, each.metadata.name): each for each in objects.local_queues}
    flavors = {each.metadata.name: each for each in objects.flavors}
    for place, name in sorted(of_local):
        if place != namespace or name == workload.spec.queue_name:
            continue
        # What Kueue has said is about the queue that it waits in.
        status = KueueWorkloadStatus(resource_requests=workload.status.resource_requests)
        moved = replace(workload, spec=replace(workload.spec, queue_name=name), status=status)
        if refusal(objects, moved, offers.labels) is not None:
            continue
        found = workload_of(moved, of_local, prediction.state.queues, flavors)
        if found is not None and found.queue != own:
            yield name, found


def _preempted_anyway(prediction: QueuePrediction) -> frozenset[str]:
    """Return the jobs that are preempted now for jobs as they are."""
    state = prediction.state.copy()
    state.settle(prediction.now)
    return frozenset(state.preempted)


def _admitted(
    prediction: QueuePrediction, own: AdmissionWorkload, changed: AdmissionWorkload
) -> tuple[AdmissionWorkload, Sequence[str]] | None:
    """Return the changed job as it is admitted now, and the jobs that are preempted; None: it is not (step 2)."""
    state = prediction.state.copy()
    state.remove(own)
    state.add(changed)
    state.settle(prediction.now)
    admitted = state.admitted.get(changed.key)
    return (admitted, state.preempted) if admitted is not None else None


def _placed(
    prediction: QueuePrediction,
    queued: QueuedJob,
    changed: QueueTry,
    admitted: AdmissionWorkload,
    victims: Collection[QueuedJob],
    until: Millis | None,
) -> Forecast | None:
    """Return when the changed job has nodes; None: not sooner than as it is (step 3)."""
    view = prediction.times.view
    if not is_plain(queued.job):
        # Another scheduler places its pods.
        return Forecast(now=True, likely_at=view.now, no_bound=NoBound.LATER_SUBMISSIONS)
    pods = tuple(map(changed.change.changed, prediction.times.pods(queued.workload, admitted.flavors)))
    ending = [each.number for each in victims]
    return on_nodes(view, queued.number, pods[: len(changed.pods)], ending, until)
