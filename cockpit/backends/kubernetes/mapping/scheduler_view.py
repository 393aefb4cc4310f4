"""The cluster as kube-scheduler sees it: nodes with their pods, the jobs whose pods wait, and when jobs end.

A job of whose run time nothing is known has no known end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.node_filters import NodePods, PlacedPod
from cockpit.backends.kubernetes.mapping.planning import ClusterLists
from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds, needs_of
from cockpit.backends.kubernetes.mapping.pod_scheduling import WaitingJob
from cockpit.backends.kubernetes.mapping.run_times import RunTimes
from cockpit.backends.kubernetes.mapping.waiting import unschedulable
from cockpit.backends.kubernetes.objects.meta import millis
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ENDED
from cockpit.model.pod_reasons import Obstacle

DEFAULT_SCHEDULER = frozenset({"", "default-scheduler"})


class SchedulerView(NamedTuple):
    """What decides about the next pods."""

    now: Millis
    nodes: dict[str, NodePods]
    waiting: dict[JobId, WaitingJob]
    ends: tuple[tuple[Millis, JobId], ...]
    """The likely ends of running jobs, where they are known."""


def scheduler_view(lists: ClusterLists) -> SchedulerView:
    """Return the cluster with all jobs; those that a queue manager or a gate keeps back do not wait here."""
    lengths = RunTimes(lists.jobs)
    nodes = {name: NodePods(node) for name, node in sorted(lists.nodes.items())}
    waiting: dict[JobId, WaitingJob] = {}
    ends: list[tuple[Millis, JobId]] = []
    for number, job in lists.jobs.items():
        for pod in job.placed:
            _place(nodes, pod, number)
        if job.state in ENDED:
            continue
        needs = tuple(waiting_needs(job))
        # A job that starts or waits may run as long as its user's jobs do; a running one is known to have run for some
        # time already.
        if needs:
            waiting[number] = WaitingJob(number, job.meta.created_at, needs, lengths.run_ms(job, number))
        elif job.placed and (end_at := lengths.end_at(job, number, lists.at)) is not None:
            ends.append((end_at, number))
    for pod in lists.others:
        _place(nodes, pod, JobId(0))
    return SchedulerView(lists.at, nodes, waiting, tuple(ends))


def is_plain(job: KubeJob) -> bool:
    """Return whether Kubernetes' own scheduler places the job's pods."""
    specs = [pod.spec for pod in job.pods] or [job.pod_spec]
    return all(each.scheduler_name in DEFAULT_SCHEDULER for each in specs)


_UNKNOWN = frozenset({Obstacle.OTHER, Obstacle.VOLUME})
"""Causes of which the watched objects do not tell what lifts them."""


def waiting_needs(job: KubeJob, unknown: Collection[Obstacle] = _UNKNOWN) -> Iterator[PodNeeds]:
    """Yield what each pod needs that the default scheduler has to place. `unknown`: the causes in the scheduler's
    message for which a pod is left out, as cockpit cannot tell when they end."""
    if job.is_suspended or (job.queued is not None and not job.queued.is_admitted):
        return
    for pod in job.waiting:
        if pod.spec.scheduler_name in DEFAULT_SCHEDULER and not pod.spec.scheduling_gates and not _has(pod, unknown):
            yield needs_of(pod.spec, pod.metadata.namespace, pod.metadata.labels)


def all_needs(job: KubeJob) -> tuple[PodNeeds, ...]:
    """Return what each pod needs of a job that is submitted anew."""
    return tuple(needs_of(pod.spec, pod.metadata.namespace, pod.metadata.labels) for pod in job.pods)


def template_needs(job: KubeJob) -> Iterator[PodNeeds]:
    """Yield what each pod needs of a job that has no pods yet."""
    for group in job.groups:
        labels = group.template.metadata.labels if group.template.metadata is not None else None
        yield from (needs_of(group.template.spec, job.meta.namespace, labels) for _ in range(group.count))


def _has(pod: Pod, causes: Collection[Obstacle]) -> bool:
    """Return whether the scheduler has refused the pod for one of these causes, or in words of another form."""
    if pod.unscheduled is None or pod.unscheduled.reason != "Unschedulable":
        return False
    said = unschedulable(pod.unscheduled.message, 1, 1)
    return said.nodes is None or any(each.obstacle in causes for each in said.excluded)


def _place(nodes: dict[str, NodePods], pod: Pod, job: JobId) -> None:
    # A node that is gone, or that the user may not see.
    if (node := nodes.get(pod.spec.node_name)) is not None:
        since = millis(pod.now.start_time) or pod.metadata.created_at
        node.add(PlacedPod(needs_of(pod.spec, pod.metadata.namespace, pod.metadata.labels), job, since))
