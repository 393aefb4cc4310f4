"""When and why Kueue admits a job: its own positions, and cockpit's judgement of the quotas.

1. Kueue's reason stands at the workload; it says nothing of who uses a quota.
2. The position comes from the visibility API where it is served and allowed, else from priority and age.
3. Who uses the quota, and the likely start, come from the core's copy of Kueue's rules and from the nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kueue import KUEUE
from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects
from cockpit.backends.kubernetes.mapping.kueue_prediction import QueuePrediction
from cockpit.backends.kubernetes.mapping.kueue_shortage import cohort_queues, holders, predicted_reason, quotas_in_use
from cockpit.backends.kubernetes.mapping.kueue_starts import QueuedJob, QueueTimes, gone_at
from cockpit.backends.kubernetes.mapping.kueue_submission import new_workload, refusal
from cockpit.backends.kubernetes.mapping.kueue_victims import WAITS, ending_for
from cockpit.backends.kubernetes.mapping.kueue_what_ifs import KueueOffers, admitted_with
from cockpit.backends.kubernetes.mapping.planning import shown_spec
from cockpit.backends.kubernetes.mapping.quota_answer import holding_job
from cockpit.backends.kubernetes.objects.kueue import PendingWorkloads
from cockpit.backends.kubernetes.priority_classes import PriorityClasses
from cockpit.backends.kubernetes.surroundings import namespace_labels
from cockpit.backends.planning_mirror import kept_seconds
from cockpit.errors import CockpitError
from cockpit.model.forecast import AwaitedJob, Forecast, Outlook, WhatIf
from cockpit.model.ids import JobId, Millis
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.reasons import Explanation
from cockpit.sched.admission.workloads import Verdict
from cockpit.sched.forecast.predict import HYPOTHETICAL

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.mapping.planning import ClusterLists
    from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds
    from cockpit.backends.kubernetes.mapping.scheduler_view import SchedulerView
    from cockpit.backends.kubernetes.objects.kueue import KueueWorkload
    from cockpit.backends.kubernetes.surroundings import Surroundings
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.jobrow import JobRow

MOST_NAMED = 10
"""The most jobs that an answer names as holders of a quota."""
VISIBILITY = ("v1beta2", "v1beta1", "v1alpha1")
VISIBILITY_SECONDS = 3.0
"""Longest time that the visibility API may take: an extension server that is gone answers late."""
KEPT_MS = 10_000
"""How long predictions are kept while jobs change."""


class KueueCluster(NamedTuple):
    """What a prediction is made of."""

    objects: KueueObjects
    lists: ClusterLists
    view: SchedulerView
    priority: Callable[[str], int]
    """Returns the value of a class of pods."""
    version: object
    """Equal for equal objects."""

    @property
    def now(self) -> Millis:
        return self.lists.at


class QueuedSpec(NamedTuple):
    """A job that is not submitted yet."""

    job: KubeJob
    queue: str
    """The queue of its namespace."""
    around: Surroundings
    """What was read of the namespace."""


class QueueAnswer(NamedTuple):
    """What Kueue would do with a job that is not submitted yet."""

    outlook: Outlook
    pods: tuple[PodNeeds, ...] = ()
    """Its pods as Kueue would have them created at once, so that the nodes decide; empty: it would not, or the user may
    see no nodes."""


class _Kept(NamedTuple):
    version: object
    prediction: QueuePrediction
    rest_ms: float
    """How long it is kept although something has changed."""


class KueueAdmissions:
    """Answers questions about jobs that wait for Kueue."""

    def __init__(self, api: Api, jobs: JobList) -> None:
        self._api, self._list = api, jobs
        self._version = ""
        """The version of the visibility API that answered last."""
        self._kept: _Kept | None = None
        self._classes = PriorityClasses(api)
        self._helps: tuple[QueuePrediction, dict[str, tuple[WhatIf, ...]]] | None = None
        """What helps the jobs that were explained, by the uids of their workloads."""

    async def outlook(self, row: JobRow, reason: QueueWaits, cluster: KueueCluster) -> Outlook:
        """Return the answer about a job that is not admitted."""
        uid = self._uid(row.id)
        prediction = await self._predicted(cluster, 0)
        position, in_local = await self._position(row.id)
        answer = self._answer(uid, row.name, reason, prediction)
        assert answer.explanation is not None
        found = answer.explanation.reason
        assert isinstance(found, QueueWaits)
        position = answer.position if position is None else position
        explanation = replace(
            answer.explanation, job=row.id, reason=replace(found, position_in_queue=in_local), position=position
        )
        what_ifs = await self._what_helps(row.id, uid, prediction)
        return replace(answer, job=row.id, position=position, explanation=explanation, what_ifs=what_ifs)

    async def likely(self, jobs: Sequence[JobId], cluster: KueueCluster) -> dict[JobId, Forecast]:
        """Return the likely starts of those of the jobs for which one can be told."""
        prediction = await self._predicted(cluster, KEPT_MS)
        forecasts = ((job, prediction.forecast(self._uid(job))) for job in jobs)
        return {job: replace(each, after=()) for job, each in forecasts if each.likely_at is not None}

    async def predict(self, new: Sequence[QueuedSpec], cluster: KueueCluster) -> list[QueueAnswer]:
        """Return the answers about jobs that are not submitted, as if they were now, in this order."""
        # Times of one second would have them in any order.
        made = [
            new_workload(
                each.job, each.queue, f"new-{place}", each.around.priority(each.job), Millis(cluster.now + place)
            )
            for place, each in enumerate(new)
        ]
        refused = [refusal(cluster.objects, one, each.around.labels) for one, each in zip(made, new, strict=True)]
        joining = tuple(one for one, why in zip(made, refused, strict=True) if why is None)
        objects = cluster.objects._replace(workloads=(*cluster.objects.workloads, *joining))
        jobs = self._jobs() | {
            one.metadata.uid: QueuedJob(JobId(HYPOTHETICAL + place), each.job, one)
            for place, (one, each) in enumerate(zip(made, new, strict=True))
        }
        prediction = await asyncio.to_thread(_predict, objects, jobs, cluster)
        pairs = zip(made, refused, strict=True)
        return [self._new_answer(one, why, prediction) for one, why in pairs]

    async def _what_helps(self, number: JobId, uid: str, prediction: QueuePrediction) -> tuple[WhatIf, ...]:
        """Return the changes with which the job is admitted now. They are kept as long as the prediction."""
        if self._helps is None or self._helps[0] is not prediction:
            self._helps = prediction, {}
        helps = self._helps[1]
        if uid not in helps:
            job = self._list.jobs[number]
            known, labels = await asyncio.gather(
                self._classes.of_kueue(), namespace_labels(self._api, job.meta.namespace)
            )
            offers = KueueOffers({name: each.value for name, each in known.items()}, labels)
            helps[uid] = await asyncio.to_thread(admitted_with, prediction, uid, shown_spec(job), offers)
        return helps[uid]

    def _new_answer(self, one: KueueWorkload, why: QueueWaits | None, prediction: QueuePrediction) -> QueueAnswer:
        """Return the answer about a job that is not submitted. `why`: the reason for which its queue does not look at
        it; None: it does."""
        uid = one.metadata.uid
        answer = self._answer(uid, one.metadata.name, why or QueueWaits(KUEUE, one.spec.queue_name), prediction)
        if answer.explanation is not None and isinstance(answer.explanation.reason, QueueWaits):
            # Kueue can have said nothing of it.
            reason = replace(answer.explanation.reason, judged=False)
            answer = replace(answer, explanation=replace(answer.explanation, reason=reason))
        start = prediction.start(uid)
        if start is None or not prediction.is_admitted_now(uid):
            return QueueAnswer(answer)
        # A user who may see no nodes knows the quota alone.
        times = prediction.times
        pods = tuple(times.pods(one, start.flavors)) if times.view.nodes else ()
        # Of the flavors that come before the one that it gets, others may have the quota.
        return QueueAnswer(replace(answer, explanation=None, holders=(), holders_in_all=0), pods)

    def _answer(self, uid: str, name: str, reason: QueueWaits, prediction: QueuePrediction) -> Outlook:
        """Return what the quotas say of a job, as of one that is not submitted."""
        state, workload = prediction.state, prediction.waiting.get(uid)
        held: list[str] = []
        if workload is not None:
            verdict = state.judge(workload)
            quotas, share = quotas_in_use(state, workload, verdict), prediction.objects.share_of(workload.queue)
            reason = replace(_completed(reason, verdict), quotas=quotas, share=share)
            held = holders(state, workload, verdict)
        reason, victims = self._with_victims(uid, reason, prediction)
        jobs, ahead = prediction.times.jobs, prediction.ahead(uid)
        using = [jobs[key].number for key in held if key in jobs]
        before = [jobs[key].number for key in ahead if key in jobs]
        forecast = _after(prediction.forecast(uid), victims)
        named = {*using[:MOST_NAMED], *before[:MOST_NAMED], *(each.job for each in forecast.after)}
        return Outlook(
            job=JobId(0),
            name=name,
            position=len(ahead) + 1,
            explanation=Explanation(JobId(0), reason, len(ahead) + 1, tuple(before[:MOST_NAMED])),
            forecast=forecast,
            named=tuple(holding_job(self._list.rows[job]) for job in sorted(named) if job in self._list.rows),
            holders=tuple(using[:MOST_NAMED]),
            holders_in_all=len(using),
            scheduler=KUEUE,
        )

    def _with_victims(
        self, uid: str, reason: QueueWaits, prediction: QueuePrediction
    ) -> tuple[QueueWaits, tuple[AwaitedJob, ...]]:
        """Return the reason with the jobs that were preempted for the job and still end, and when each has ended."""
        objects, waiting = prediction.objects, prediction.waiting.get(uid)
        queued = prediction.times.jobs.get(uid)
        if queued is None or waiting is None:
            return reason, ()
        lenders = {waiting.queue, *cohort_queues(prediction.state, waiting.queue)}
        victims = ending_for(queued.workload, objects.workloads, lenders)
        if not victims:
            return reason, ()
        known = [
            prediction.times.jobs[each.metadata.uid] for each in victims if each.metadata.uid in prediction.times.jobs
        ]
        awaited = sorted((max(prediction.now, gone_at(each.job)), each.number) for each in known)
        shown = tuple(number for _, number in awaited if number in self._list.rows)
        reason = replace(reason, code=WAITS, jobs=shown[:MOST_NAMED], ending=len(victims), message="", flavors=())
        return reason, tuple(AwaitedJob(number, at) for at, number in awaited)

    def _uid(self, job: JobId) -> str:
        queued = self._list.jobs[job].queued if job in self._list.jobs else None
        return queued.metadata.uid if queued is not None else ""

    def _jobs(self) -> dict[str, QueuedJob]:
        """Return the jobs by their workloads' uids."""
        return {
            each.queued.metadata.uid: QueuedJob(number, each, each.queued)
            for number, each in self._list.jobs.items()
            if each.queued is not None
        }

    async def _predicted(self, cluster: KueueCluster, age_ms: int) -> QueuePrediction:
        """Return the last prediction if nothing has changed since, or if it is younger than `age_ms`; else a new one,
        which the list then shows, too."""
        kept, began = self._kept, asyncio.get_running_loop().time()
        # Also without a change time passes, and what should have ended by now ends later.
        if kept is not None:
            longest = max(age_ms, kept.rest_ms, KEPT_MS if kept.version == cluster.version else 0)
            if cluster.now - kept.prediction.now < longest:
                return kept.prediction
        # In a thread, since thousands of jobs take a second.
        prediction = await asyncio.to_thread(_predict, cluster.objects, self._jobs(), cluster)
        rest = kept_seconds(cluster.lists, asyncio.get_running_loop().time() - began)
        self._kept = _Kept(cluster.version, prediction, 1000 * rest)
        return prediction

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


def _after(forecast: Forecast, victims: Sequence[AwaitedJob]) -> Forecast:
    """Return the forecast of a job that waits for victims to end."""
    if forecast.likely_at is None or not victims:
        return forecast
    at = max(forecast.likely_at, victims[-1].end_at)
    return replace(forecast, now=False, likely_at=at, after=(*forecast.after, *victims))


def _predict(objects: KueueObjects, jobs: Mapping[str, QueuedJob], cluster: KueueCluster) -> QueuePrediction:
    flavors = {each.metadata.name: each for each in objects.flavors}
    times = QueueTimes(cluster.view, jobs, flavors, cluster.priority)
    return QueuePrediction(objects, times, cluster.lists.jobs)


def _completed(reason: QueueWaits, verdict: Verdict) -> QueueWaits:
    """Return cockpit's reason where Kueue gives none: of equal jobs that wait in a queue it judges the first alone."""
    own = predicted_reason(KUEUE, reason.queue, verdict) if not reason.code else None
    return replace(own, judged=True) if own is not None else reason
