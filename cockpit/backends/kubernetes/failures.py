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
MOST_TAILS = 100
"""Most replicas whose last lines are remembered."""
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


class LastLines:
    """The last lines of failed replicas. A job's page asks for them each second, so they are read once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[tuple[str, str], str] = {}

    async def of(self, pod: Pod) -> str:
        """Return the last lines of a pod's log, without what the wrapper adds; empty where the log cannot be read.

        The log of a failed command is complete, so that it can change only with the pod.
        """
        key = (pod.metadata.uid, pod.metadata.resource_version)
        if key not in self._known:
            self._known[key] = await self._read(pod)
            while len(self._known) > MOST_TAILS:
                del self._known[next(iter(self._known))]
        return self._known[key]

    async def _read(self, pod: Pod) -> str:
        container = pod.spec.containers[0].name if pod.spec.containers else ""
        path = PODS.path(pod.metadata.namespace, pod.metadata.name, "log")
        query = (("container", container), ("tailLines", str(TAIL_LINES + 1)))
        try:
            text = await self._api.get(path, query)
        except CockpitError:
            return ""
        # The server's own limit of bytes would leave out the end.
        return without_announcement(text[-_TAIL_BYTES:]).decode(errors="replace")
