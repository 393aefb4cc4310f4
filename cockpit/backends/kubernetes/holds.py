"""Finds held containers, and changes the ends of their holds.

For Kubernetes a held container runs. Only the last line of its log says that its command has failed, so the logs of
running pods whose jobs have a wrapper are looked at again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.kubernetes.hold_wrapper import HOLD_SECONDS, UNTIL, Hold, hold_in
from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards
from cockpit.backends.kubernetes.mapping.quantities import requested
from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire.exec import run_quietly
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.view import HoldRow
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.jobrow import JobRow

LOOK_SECONDS = 5.0
"""How often the logs of running pods with a wrapper are looked at."""
_TAIL = (("tailLines", "1"), ("limitBytes", "400"))
_AT_ONCE = 10


class Holds:
    """The held containers of a cluster, as they were at the last look."""

    def __init__(self, api: Api, changed: Callable[[str], None]) -> None:
        """`changed` is called with the uid of a job whose holds have changed."""
        self._api, self._changed = api, changed
        self._holds: dict[str, Hold] = {}
        self._looking = asyncio.Lock()
        self._tasks = Tasks()
        self._has_begun = False

    async def begin(self, jobs: Callable[[], Collection[KubeJob]]) -> None:
        """Look once, and from then on again and again, at those of `jobs` that there are by then. Later calls do
        nothing."""
        if not self._has_begun:
            self._has_begun = True
            await self.look(jobs())
            self._tasks.start(self._go_on(jobs), "the look for held containers")

    async def close(self) -> None:
        await self._tasks.cancel_all()

    async def _go_on(self, jobs: Callable[[], Collection[KubeJob]]) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look(jobs())

    async def look(self, jobs: Iterable[KubeJob]) -> None:
        """Look at the logs of the running pods of these jobs, as far as their commands are wrapped."""
        async with self._looking:
            pods = [
                (job, pod)
                for job in jobs
                if job.meta.annotation(HOLD_SECONDS)
                for pod in job.placed
                if pod.now.phase == "Running"
            ]
            at_once = asyncio.Semaphore(_AT_ONCE)

            async def one(pod: Pod) -> Hold | None:
                async with at_once:
                    return await self._hold_of(pod)

            found = await asyncio.gather(*(one(pod) for _, pod in pods))
            before, self._holds = self._holds, {}
            for (job, pod), hold in zip(pods, found, strict=True):
                uid = pod.metadata.uid
                old = before.pop(uid, None)
                if hold is not None:
                    # A longer hold was asked for since the wrapper announced it.
                    self._holds[uid] = old if old is not None and old[:2] == hold[:2] else hold
                if (old is None) != (hold is None):
                    self._changed(job.meta.uid)

    def of(self, job: KubeJob) -> tuple[Pod, Hold] | None:
        """Return the pod of the job whose command failed first and is held, with its hold; None: none is held."""
        held = [(pod, self._holds[pod.metadata.uid]) for pod in job.placed if pod.metadata.uid in self._holds]
        return min(held, key=lambda each: each[1].at, default=None)

    def shown(self, job: KubeJob, row: JobRow) -> JobRow:
        """Return the row of a job: one that is held has failed, whatever its controller says."""
        found = self.of(job)
        if found is None:
            return row
        _, hold = found
        return replace(
            row,
            state=JobState.ERROR,
            state_since=hold.at,
            ended_at=hold.at,
            held_until=hold.until,
            end_cause=EndCause.EXIT,
            exit_code=hold.exit_code,
            reason=None,
        )

    def rows(self, jobs: Mapping[JobId, KubeJob], cards: ClusterCards) -> Iterable[HoldRow]:
        """Yield the debug holds."""
        for number, job in jobs.items():
            if (found := self.of(job)) is None:
                continue
            _, hold = found
            wants = [requested(pod.spec) for pod in job.placed]
            yield HoldRow(
                job=number,
                name=job.meta.name,
                user=job.user,
                state=JobState.ERROR,
                exit_code=hold.exit_code,
                nodes=tuple(map(NodeName, job.nodes)),
                ended_at=hold.at,
                held_until=hold.until,
                # The pods go on, so that they keep what they have.
                keeps_card_milli=sum(cards.pod_milli(job, each) for each in wants),
                keeps_cpus=sum(each.cpus for each in wants),
            )

    async def extend(self, job: KubeJob, seconds: int) -> Millis:
        """Extend the holds of a job's pods; return the new end. Raises `RequestRefused` where none is held."""
        _, hold = self._held(job)
        until = Millis(hold.until + 1000 * seconds)
        await self._set_ends(job, until)
        return until

    async def end(self, job: KubeJob) -> None:
        """End the holds of a job's pods, which then end with the exit codes of their commands."""
        self._held(job)
        await self._set_ends(job, Millis(0))

    async def _set_ends(self, job: KubeJob, until: Millis) -> None:
        for pod in job.placed:
            hold = self._holds.get(pod.metadata.uid)
            if hold is None:
                continue
            if not hold.folder:
                message = (
                    f"The image of {pod.metadata.name} has no writable folder, so that its hold cannot be changed."
                )
                raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
            argv = ("sh", "-c", f'echo "$1" >"$2/{UNTIL}"', "sh", str(until // 1000), hold.folder)
            code, said = await run_quietly(self._api, pod, argv)
            if code:
                message = f"The hold of {pod.metadata.name} could not be changed: {said.strip()[-200:]}"
                raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
            self._holds[pod.metadata.uid] = hold._replace(until=until)
        self._changed(job.meta.uid)

    def _held(self, job: KubeJob) -> tuple[Pod, Hold]:
        found = self.of(job)
        if found is None:
            why = " An out-of-memory kill leaves nothing to hold." if job.is_oom else ""
            message = f"No container of job {job.meta.namespace}/{job.meta.name} is held.{why}"
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        return found

    async def _hold_of(self, pod: Pod) -> Hold | None:
        """Return what the last line of the pod's log announces; None also where the log cannot be read."""
        container = pod.spec.containers[0].name if pod.spec.containers else ""
        path = PODS.path(pod.metadata.namespace, pod.metadata.name, "log")
        try:
            return hold_in(await self._api.get(path, (("container", container), *_TAIL)))
        except CockpitError:
            return None
