"""Finds held containers, and changes the ends of their holds.

For Kubernetes a held container runs. Only the last line of its log says that its command has failed, so the logs of
running pods whose jobs have a wrapper are looked at again and again.

Each container holds itself, since none knows of the others. Of a job whose replicas belong together one is enough to
see what went wrong: the cockpit of the job's owner ends the holds of those that failed after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.kubernetes.failures import Failure, first_failure
from cockpit.backends.kubernetes.hold_wrapper import HOLD_REPLICAS, HOLD_SECONDS, UNTIL, Hold, hold_in
from cockpit.backends.kubernetes.mapping.accounting import held_by
from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards
from cockpit.backends.kubernetes.mapping.planning import job_record
from cockpit.backends.kubernetes.mapping.quantities import requested
from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire.exec import run_quietly
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import DebugHold, HoldAllocation, HoldCards
from cockpit.model.view import HoldRow
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.job import Job
    from cockpit.model.jobrow import JobRow

LOOK_SECONDS = 5.0
"""How often the logs of running pods with a wrapper are looked at."""
_TAIL = (("tailLines", "1"), ("limitBytes", "400"))
_AT_ONCE = 10
_NO_HOLD = Hold(0, Millis(0), Millis(0), "")
"""Stands for a failed pod that has announced no hold."""


class Holds:
    """The held containers of a cluster, as they were at the last look."""

    def __init__(self, api: Api, changed: Callable[[str], None], user: Callable[[], str]) -> None:
        """`changed` is called with the uid of a job whose holds have changed; `user` returns the user's name on the
        cluster."""
        self._api, self._changed, self._user = api, changed, user
        self._holds: dict[str, Hold] = {}
        self._past: dict[str, Hold | None] = {}
        """What failed pods of jobs with several replicas have announced; None: not looked at yet."""
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
        """Look at the logs of the running pods of these jobs, as far as their commands are wrapped, and once at those
        of several pods that have failed: the hold of the first to fail may have ended last."""
        async with self._looking:
            wrapped = [job for job in jobs if job.meta.annotation(HOLD_SECONDS)]
            running = [(job, pod) for job in wrapped for pod in job.placed if pod.now.phase == "Running"]
            failed = [(job, pod) for job in wrapped for pod in _several_failed(job)]
            self._past = {pod.metadata.uid: self._past.get(pod.metadata.uid) for _, pod in failed}
            new = [(job, pod) for job, pod in failed if self._past[pod.metadata.uid] is None]
            at_once = asyncio.Semaphore(_AT_ONCE)

            async def one(pod: Pod) -> Hold | None:
                async with at_once:
                    return await self._hold_of(pod)

            found = await asyncio.gather(*(one(pod) for _, pod in (*running, *new)))
            before, self._holds = self._holds, {}
            for (job, pod), hold in zip(running, found, strict=False):
                uid = pod.metadata.uid
                old = before.pop(uid, None)
                if hold is not None:
                    # A longer hold was asked for since the wrapper announced it.
                    self._holds[uid] = old if old is not None and old[:2] == hold[:2] else hold
                if (old is None) != (hold is None):
                    self._changed(job.meta.uid)
            for (job, pod), hold in zip(new, found[len(running) :], strict=True):
                # One without an announcement was killed, and is not looked at again.
                self._past[pod.metadata.uid] = hold or _NO_HOLD
                if hold is not None:
                    self._changed(job.meta.uid)
            await self._end_later_holds({job.meta.uid: job for job, _ in running}.values())

    async def _end_later_holds(self, jobs: Iterable[KubeJob]) -> None:
        """Let those replicas end that failed after the first held one, as far as the user's own jobs want that."""
        for job in jobs:
            held = self._held_pods(job)
            if len(held) < 2 or job.user != self._user() or not _holds_one(job):
                continue
            first, _ = self._first(job) or (None, None)
            for pod, hold in held:
                if pod is not first and hold.until:
                    # One that cannot be changed holds on, as does one whose user has lost the right.
                    with suppress(CockpitError):
                        await self._set_end(pod, hold, Millis(0))
            self._changed(job.meta.uid)

    def failure(self, job: KubeJob) -> Failure | None:
        """Return the first failure of the job's replicas; None: none has failed."""
        return first_failure(job, self._announced)

    def _announced(self, pod: Pod) -> Hold | None:
        """Return the present or former hold of a pod; None: it has had none."""
        past = self._past.get(pod.metadata.uid)
        return self._holds.get(pod.metadata.uid) or (past if past is not _NO_HOLD else None)

    def of(self, job: KubeJob) -> tuple[Pod, Hold] | None:
        """Return the pod of the job whose command failed first and is held, with its hold; None: none is held."""
        return self._first(job)

    def _held_pods(self, job: KubeJob) -> list[tuple[Pod, Hold]]:
        return [(pod, self._holds[pod.metadata.uid]) for pod in job.placed if pod.metadata.uid in self._holds]

    def _first(self, job: KubeJob) -> tuple[Pod, Hold] | None:
        # A hold that was ended goes on until its container notices. `placed` is in the order of ranks.
        lasting = [each for each in self._held_pods(job) if each[1].until]
        return min(lasting or self._held_pods(job), key=lambda each: each[1].at, default=None)

    def shown(self, job: KubeJob, row: JobRow) -> JobRow:
        """Return the row of a job: one that is held has failed, whatever its controller says."""
        found = self.of(job)
        if found is None:
            first = self.failure(job) if row.failed is not None else None
            return replace(row, failed=(first.rank, first.exit_code)) if first is not None else row
        _, hold = found
        # Another replica may have failed before, and left nothing to hold.
        first = self.failure(job) or Failure(hold.at, 0, hold.exit_code)
        return replace(
            row,
            state=JobState.ERROR,
            state_since=first.at,
            ended_at=first.at,
            held_until=hold.until,
            end_cause=EndCause.EXIT,
            exit_code=first.exit_code,
            oom=first.is_oom,
            failed=(first.rank, first.exit_code) if len(job.pods) > 1 else None,
            reason=None,
        )

    def record(self, job: KubeJob, record: Job, cards: ClusterCards) -> Job:
        """Return the record of a job as `shown` returns its row, with what the hold keeps."""
        if not job.meta.annotation(HOLD_SECONDS):
            return record
        # Held pods go on, so that they keep what they have.
        kept = DebugHold(cards=HoldCards.KEEP, allocation=HoldAllocation.KEEP)
        record = replace(record, spec=replace(record.spec, terminal=True, debug_hold=kept))
        found, first = self.of(job), self.failure(job)
        if found is None or first is None:
            return record
        attempt = record.attempt
        # Of nodes that the user may not see the numbers of the cards are unknown, but not what the pods keep.
        if attempt is None or not attempt.placement:
            attempt = job_record(job, record.id, tuple(held_by(job, cards)), cards).attempt
        return replace(
            record,
            state=JobState.ERROR,
            end_cause=EndCause.EXIT,
            ended_at=first.at,
            held_until=found[1].until,
            exit=ExitStatus(code=first.exit_code, oom=first.is_oom),
            attempt=attempt,
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
            # One that was ended because another replica failed before it stays so.
            if hold is not None and hold.until:
                await self._set_end(pod, hold, until)
        self._changed(job.meta.uid)

    async def _set_end(self, pod: Pod, hold: Hold, until: Millis) -> None:
        """Set the end of a pod's hold. Raises `CockpitError` where that cannot be done."""
        if not hold.folder:
            message = f"The image of {pod.metadata.name} has no writable folder, so that its hold cannot be changed."
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        argv = ("sh", "-c", f'echo "$1" >"$2/{UNTIL}"', "sh", str(until // 1000), hold.folder)
        code, said = await run_quietly(self._api, pod, argv)
        if code:
            message = f"The hold of {pod.metadata.name} could not be changed: {said.strip()[-200:]}"
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        self._holds[pod.metadata.uid] = hold._replace(until=until)

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


def _several_failed(job: KubeJob) -> list[Pod]:
    """Return the job's failed pods if there are several, of which one failed first."""
    failed = [pod for pod in job.pods if pod.now.phase == "Failed"]
    return failed if len(failed) > 1 else []


def _holds_one(job: KubeJob) -> bool:
    """Return whether one held replica is enough. The pods of a batch/v1 Job are tasks that fail by themselves, and
    those of an elastic job are replaced."""
    return job.kind != "Job" and job.workers is None and job.meta.annotation(HOLD_REPLICAS) != "all"
