"""The cluster as kube-scheduler sees it: nodes with their pods, the jobs whose pods wait, and when jobs end.

Ends come from the jobs' deadlines and from how long similar jobs of the user ran. A job of which neither says anything
has no known end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.node_filters import NodePods, PlacedPod
from cockpit.backends.kubernetes.mapping.planning import ClusterLists, job_record
from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds, needs_of
from cockpit.backends.kubernetes.mapping.pod_scheduling import WaitingJob
from cockpit.backends.kubernetes.mapping.waiting import unschedulable
from cockpit.backends.kubernetes.objects.meta import millis
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.model.attempt import Attempt
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.job import ENDED, Job
from cockpit.model.pod_reasons import Obstacle
from cockpit.model.spec import NO_LIMIT_SECONDS
from cockpit.sched.forecast.history import History, history_of
from cockpit.sched.forecast.runtime_predictors import MeanRuntimePredictor

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
    predictor = MeanRuntimePredictor(_history(lists.jobs.values()))
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
            waiting[number] = WaitingJob(number, job.meta.created_at, needs, _run_ms(job, number, predictor, None))
        elif job.placed and (end_at := _end_at(job, number, predictor, lists.at)) is not None:
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


def _run_ms(job: KubeJob, number: JobId, predictor: MeanRuntimePredictor, elapsed_ms: int | None) -> int | None:
    """Return how long the job likely runs from its start; None: nothing is known of it."""
    run = predictor.run_ms(_of_user(job, number), -1 if elapsed_ms is None else elapsed_ms)
    return run if run < 1000 * NO_LIMIT_SECONDS else None


def _end_at(job: KubeJob, number: JobId, predictor: MeanRuntimePredictor, now: Millis) -> Millis | None:
    """Return when a job without waiting pods likely ends; None: nothing is known of it."""
    starts = [millis(pod.now.start_time) for pod in job.placed]
    begun = millis(job.workload.now.start_time) if job.workload is not None else None
    begun = begun or min((each for each in starts if each is not None), default=None)
    # A deadline runs from the moment when the job or pod was accepted, also while its image is pulled.
    since = job.started_at or (begun if job.deadline_seconds is not None else None)
    if since is None:
        return None
    run = _run_ms(job, number, predictor, now - since)
    if run is None:
        return None
    end_at = (
        since + run
        if job.deadline_seconds is None or begun is None
        else min(since + run, begun + 1000 * job.deadline_seconds)
    )
    # One that has outlived its deadline is about to end.
    return Millis(max(now, end_at))


def _of_user(job: KubeJob, number: JobId) -> Job:
    """Return the record of a job. Jobs without a user count as those of one user for each namespace."""
    record = job_record(job, number)
    owner = UserName(job.user or f"namespace {job.meta.namespace}")
    return replace(record, submitter=replace(record.submitter, name=owner))


def _history(jobs: Iterable[KubeJob]) -> History:
    """Return how long the ended jobs ran that the cluster still has."""
    ended = sorted((job for job in jobs if job.state in ENDED and job.started_at), key=lambda job: job.ended_at or 0)
    return history_of([_ran(_of_user(job, JobId(0)), job.started_at or Millis(0)) for job in ended])


def _ran(record: Job, started_at: Millis) -> Job:
    return replace(record, attempt=Attempt(number=1, spec_index=0, placement=(), placed_at=started_at, replicas=()))
