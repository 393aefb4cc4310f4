"""The replica of a job that failed first, and what it printed last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.kubernetes.hold_wrapper import Hold, without_announcement
from cockpit.backends.kubernetes.objects.meta import millis
from cockpit.backends.kubernetes.resources import PODS
from cockpit.errors import CockpitError
from cockpit.model.ids import Millis

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.backends.kubernetes.wire.api import Api

TAIL_LINES = 12
"""Lines of the log that a job's page shows."""
_TAIL_BYTES = 1 << 14


class Failure(NamedTuple):
    """The failure of a replica's command."""

    at: Millis
    rank: int
    exit_code: int
    is_oom: bool = False


def first_failure(job: KubeJob, hold_of: Callable[[Pod], Hold | None]) -> Failure | None:
    """Return the first failure among the job's replicas; None: none has failed. `hold_of` returns the present or former
    hold of a pod.

    Clocks of nodes differ and moments are whole seconds: of equal ones the lowest rank counts.
    """
    ends = dict(job.ends)
    failures = []
    for rank, pod in enumerate(job.pods):
        hold, end = hold_of(pod), ends.get(rank)
        # The container of one that was held has ended long after its command.
        if hold is not None:
            failures.append(Failure(hold.at, rank, hold.exit_code))
        elif end is not None and end.exit_code:
            at = millis(end.finished_at) or Millis(0)
            failures.append(Failure(at, rank, end.exit_code, end.reason == "OOMKilled"))
    return min(failures, default=None)


async def last_lines(api: Api, pod: Pod) -> str:
    """Return the last lines of a pod's log, without what the wrapper adds; empty where the log cannot be read."""
    container = pod.spec.containers[0].name if pod.spec.containers else ""
    path = PODS.path(pod.metadata.namespace, pod.metadata.name, "log")
    query = (("container", container), ("tailLines", str(TAIL_LINES + 1)))
    try:
        text = await api.get(path, query)
    except CockpitError:
        return ""
    # The server's own limit of bytes would leave out the end.
    return without_announcement(text[-_TAIL_BYTES:]).decode(errors="replace")
