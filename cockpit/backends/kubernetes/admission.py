"""When and why Kueue admits a job: its own positions, and cockpit's judgement of the quotas.

1. Kueue's reason stands at the workload; it says nothing of who uses a quota.
2. The position comes from the visibility API where it is served and allowed, else from priority and age.
3. Who uses the quota, and the likely admission, come from the core's copy of Kueue's rules. Fair sharing orders jobs by
   what their queues borrow, which this copy does not know: then nothing is predicted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects, admission_state
from cockpit.backends.kubernetes.mapping.kueue_shortage import holders, predicted_reason, quotas_in_use
from cockpit.backends.kubernetes.mapping.planning import job_record
from cockpit.backends.kubernetes.objects.kueue import PendingWorkloads
from cockpit.errors import CockpitError
from cockpit.model.forecast import AwaitedJob, Forecast, HoldingJob, NoBound, Outlook
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ENDED
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.reasons import Explanation
from cockpit.model.spec import NO_LIMIT_SECONDS
from cockpit.sched.admission.forecast import Admission, AdmissionState, predict_admissions
from cockpit.sched.admission.workloads import AdmissionWorkload, Preempts, Verdict
from cockpit.sched.forecast.history import history_of
from cockpit.sched.forecast.runtime_predictors import MeanRuntimePredictor

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.jobrow import JobRow

KUEUE = "Kueue"
MOST_NAMED = 10
"""The most jobs that an answer names as holders of a quota."""
VISIBILITY = ("v1beta2", "v1beta1", "v1alpha1")
VISIBILITY_SECONDS = 3.0
"""Longest time that the visibility API may take: an extension server that is gone answers late."""
KEPT_MS = 10_000
"""How long predictions are kept while jobs change."""


class _Prediction(NamedTuple):
    at: Millis
    version: object
    state: AdmissionState
    waiting: Mapping[str, AdmissionWorkload]
    admissions: Mapping[str, Admission]


class KueueAdmissions:
    """Answers questions about jobs that wait for Kueue."""

    def __init__(self, api: Api, jobs: JobList) -> None:
        self._api, self._list = api, jobs
        self._version = ""
        """The version of the visibility API that answered last."""
        self._prediction: _Prediction | None = None

    async def outlook(
        self, row: JobRow, reason: QueueWaits, objects: KueueObjects, now: Millis, version: object
    ) -> Outlook:
        """Return the answer about a job that is not admitted. `version`: equal for equal objects."""
        uid = self._uid(row.id)
        prediction = await self._predicted(objects, now, version, 0)
        state = prediction.state
        workload = prediction.waiting.get(uid)
        verdict = state.judge(workload) if workload is not None else None
        if workload is not None and verdict is not None:
            reason = _completed(reason, verdict)
            quotas, share = quotas_in_use(state, workload, verdict), objects.share_of(workload.queue)
            reason = replace(reason, quotas=quotas, share=share)
        numbers = self._numbers()
        ahead = [each.key for each in state.waiting.get(workload.queue, ())] if workload is not None else []
        ahead = ahead[: ahead.index(uid)] if uid in ahead else []
        position, in_local = await self._position(row.id)
        position = len(ahead) + 1 if position is None else position
        held = holders(state, workload, verdict) if workload is not None and verdict is not None else []
        using = [numbers[key] for key in held if key in numbers]
        before = [numbers[key] for key in ahead if key in numbers]
        forecast = self._forecast(uid, prediction)
        named = {*using[:MOST_NAMED], *before[:MOST_NAMED], *(each.job for each in forecast.after)}
        return Outlook(
            job=row.id,
            name=row.name,
            position=position,
            explanation=Explanation(
                row.id, replace(reason, position_in_queue=in_local), position, tuple(before[:MOST_NAMED])
            ),
            forecast=forecast,
            named=tuple(self._holding(job) for job in sorted(named) if job in self._list.rows),
            holders=tuple(using[:MOST_NAMED]),
            holders_in_all=len(using),
            scheduler=KUEUE,
        )

    async def likely(
        self, jobs: Sequence[JobId], objects: KueueObjects, now: Millis, version: object
    ) -> dict[JobId, Forecast]:
        """Return the likely admissions of those of the jobs for which one can be told. `version`: equal for equal
        objects."""
        prediction = await self._predicted(objects, now, version, KEPT_MS)
        forecasts = ((job, self._forecast(self._uid(job), prediction)) for job in jobs)
        return {job: replace(each, after=()) for job, each in forecasts if each.likely_at is not None}

    def _uid(self, job: JobId) -> str:
        queued = self._list.jobs[job].queued if job in self._list.jobs else None
        return queued.metadata.uid if queued is not None else ""

    def _numbers(self) -> dict[str, JobId]:
        """Return the jobs by their workloads' uids."""
        return {each.queued.metadata.uid: job for job, each in self._list.jobs.items() if each.queued is not None}

    def _holding(self, job: JobId) -> HoldingJob:
        row = self._list.rows[job]
        return HoldingJob(
            job, row.name, row.user or "-", bool(row.started_at), row.nodes, row.cpus, row.memory_mib, row.card_milli
        )

    async def _predicted(self, objects: KueueObjects, now: Millis, version: object, age_ms: int) -> _Prediction:
        """Return the last prediction if nothing has changed since, or if it is younger than `age_ms`; else a new one,
        which the list then shows, too."""
        known = self._prediction
        # Also without a change time passes, and what should have ended by now ends later.
        if known is not None and now - known.at < max(age_ms, KEPT_MS if known.version == version else 0):
            return known
        state = admission_state(objects)
        admissions: Mapping[str, Admission] = {}
        if not objects.has_fair_sharing:
            jobs = {each.queued.metadata.uid: (number, each) for number, each in self._list.jobs.items() if each.queued}
            lengths = _RunTimes(jobs, self._list.jobs)
            ends = {key: lengths.end_at(key, now) for key in state.admitted}
            # In a thread, since thousands of jobs take a second.
            admissions = await asyncio.to_thread(predict_admissions, state, now, ends, lengths.run_ms)
        waiting = {each.key: each for queued in state.waiting.values() for each in queued}
        self._prediction = _Prediction(now, version, state, waiting, admissions)
        return self._prediction

    def _forecast(self, uid: str, prediction: _Prediction) -> Forecast:
        admission, workload = prediction.admissions.get(uid), prediction.waiting.get(uid)
        if admission is None or workload is None:
            return Forecast()
        numbers = self._numbers()
        after = tuple(AwaitedJob(numbers.get(key, JobId(0)), at) for key, at in reversed(admission.after))
        return Forecast(likely_at=admission.at, after=after, no_bound=_why_no_bound(prediction.state, workload))

    async def _position(self, job: JobId) -> tuple[int | None, int | None]:
        """Return the job's positions in the cluster queue and in the queue that it names, from 1, as Kueue tells them;
        None: it does not (step 2)."""
        queued = self._list.jobs[job].queued
        if queued is None:
            return None, None
        namespace, name = queued.metadata.namespace, queued.spec.queue_name
        of_local = f"namespaces/{namespace}/localqueues/{name}/pendingworkloads"
        for version in (self._version,) if self._version else VISIBILITY:
            with suppress(CockpitError, TimeoutError, msgspec.MsgspecError):
                async with asyncio.timeout(VISIBILITY_SECONDS):
                    answer = await self._api.get(f"/apis/visibility.kueue.x-k8s.io/{version}/{of_local}")
                items = msgspec.json.decode(answer, type=PendingWorkloads).items
                self._version = version
                own = next((each for each in items if each.metadata.name == queued.metadata.name), None)
                if own is not None:
                    return own.position_in_cluster_queue + 1, own.position_in_local_queue + 1
                break
        return None, None


class _RunTimes:
    """How long jobs run, from the time limits and the history of their users' jobs."""

    def __init__(self, jobs: Mapping[str, tuple[JobId, KubeJob]], everything: Mapping[JobId, KubeJob]) -> None:
        ended = (job_record(each, number) for number, each in everything.items() if each.state in ENDED)
        self._predictor = MeanRuntimePredictor(history_of(each for each in ended if each.attempt is not None))
        self._jobs = {key: job_record(each, number) for key, (number, each) in jobs.items()}
        self._started = {key: each.started_at for key, (_, each) in jobs.items()}

    def run_ms(self, key: str, elapsed: int = -1) -> int | None:
        """Return the likely run time of a job; None: neither a limit nor earlier jobs tell it."""
        job = self._jobs.get(key)
        if job is None:
            return None
        length = self._predictor.run_ms(job, elapsed)
        return None if length >= 1000 * NO_LIMIT_SECONDS else length

    def end_at(self, key: str, now: Millis) -> Millis | None:
        """Return when an admitted job is likely to end; None: unknown."""
        started = self._started.get(key) or now
        length = self.run_ms(key, now - started)
        return None if length is None else Millis(started + length)


def _completed(reason: QueueWaits, verdict: Verdict) -> QueueWaits:
    """Return cockpit's reason where Kueue gives none: of equal jobs that wait in a queue it judges the first alone."""
    own = predicted_reason(KUEUE, reason.queue, verdict) if not reason.code else None
    return replace(own, judged=True) if own is not None else reason


def _why_no_bound(state: AdmissionState, workload: AdmissionWorkload) -> NoBound:
    """Return why no latest admission is promised: none ever is, since later jobs of higher priority come first."""
    if state.judge(workload).level:
        return NoBound.BORROWED_QUOTA
    if state.queues[workload.queue].within is not Preempts.NEVER or _may_be_reclaimed(state, workload.queue):
        return NoBound.PREEMPTION
    return NoBound.LATER_SUBMISSIONS


def _may_be_reclaimed(state: AdmissionState, queue: str) -> bool:
    cohort = set(state.quotas.ancestors(queue))
    return any(
        each.reclaim is not Preempts.NEVER and each.name != queue and cohort & set(state.quotas.ancestors(each.name))
        for each in state.queues.values()
    )
