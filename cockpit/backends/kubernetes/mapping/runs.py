"""Count the starts of a job's replicas: of a container again in its pod, or of another pod in place of a failed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.kubernetes.mapping.kube_jobs import index_of, role_of

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.pod import Pod


class Run(NamedTuple):
    """One start of a replica, which cockpit counts as an attempt."""

    pod: Pod
    later: int = 0
    """The number of times that its container was started in this pod after it. Kubernetes keeps the log of the last
    one (0) and of the one before it (1)."""


def runs_of(job: KubeJob, rank: int) -> list[Run]:
    """Return the starts of this replica that are known, in order; of pods that were deleted nothing is known."""
    # The one that has not ended is the last, also where two were made in the same second.
    pods = sorted(_pods_of(job, rank), key=lambda pod: (not pod.has_ended, pod.metadata.created_at, pod.metadata.name))
    return [Run(pod, later) for pod in pods for later in range(_restarts(pod), -1, -1)]


def attempts_of(job: KubeJob) -> int:
    """Return the number of attempts of the job: of the replica that was started most often."""
    return max((len(runs_of(job, rank)) for rank in range(len(job.pods))), default=1)


def _pods_of(job: KubeJob, rank: int) -> list[Pod]:
    """Return the pod of this rank, and those that were in its place."""
    pod = job.pods[rank]
    if index := index_of(pod):
        return [each for each in job.pods if (role_of(each), index_of(each)) == (role_of(pod), index)]
    # Without an index the pods of several replicas cannot be told from those that took the place of others.
    return job.pods if job.wanted == 1 else [pod]


def _restarts(pod: Pod) -> int:
    main = pod.spec.containers[0].name if pod.spec.containers else ""
    return next((each.restart_count for each in pod.now.container_statuses or () if each.name == main), 0)
