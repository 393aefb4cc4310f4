"""Why a job waits for kube-scheduler, what would help, and when it would start: computed by cockpit from the cluster's
own objects, beside the scheduler's message.

1. The nodes are asked one by one, by the rules of the scheduler's filters (`node_filters`).
2. The waiting pods and the ends of running jobs are simulated (`pod_scheduling`); so are the changes of the job that
   its obstacles suggest (`what_helps`).
3. What cockpit cannot judge, such as another plugin's refusal, has no forecast.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.namespace_quotas import short_quotas
from cockpit.backends.kubernetes.mapping.node_filters import could_hold
from cockpit.backends.kubernetes.mapping.node_groups import holders, look_at_nodes
from cockpit.backends.kubernetes.mapping.planning import ClusterLists, is_same, shown_spec
from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds
from cockpit.backends.kubernetes.mapping.pod_scheduling import Simulation, WaitingJob
from cockpit.backends.kubernetes.mapping.quota_answer import holding_job
from cockpit.backends.kubernetes.mapping.scheduler_view import (
    SchedulerView,
    all_needs,
    scheduler_view,
    template_needs,
    waiting_needs,
)
from cockpit.backends.kubernetes.surroundings import LONGEST, Surroundings
from cockpit.backends.kubernetes.what_helps import Case, Judgement, forecast_of, what_helps
from cockpit.backends.planning_mirror import kept_seconds
from cockpit.engine.prediction import MOST_HOLDERS
from cockpit.model.forecast import ExpectedStart, Forecast, HoldingJob, NoBound, Outlook
from cockpit.model.ids import JobId
from cockpit.model.pod_reasons import Obstacle, PodsNotCreated, Unschedulable
from cockpit.model.reasons import Explanation
from cockpit.sched.forecast.predict import HYPOTHETICAL

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.model.jobrow import JobRow

SCHEDULER = "Kubernetes"
SAME_MOMENT_MS = 10_000
"""Age up to which a simulation is used again while nothing changes."""


class NewJob(NamedTuple):
    """A job that has no pods yet."""

    job: KubeJob
    pods: tuple[PodNeeds, ...]
    """What each of its pods will need."""


class SchedulerForecast:
    """Predicts placements on one cluster; keeps the last simulation for as long as nothing changes."""

    def __init__(self) -> None:
        self._lists: ClusterLists | None = None
        self._last: Judgement | None = None
        self._kept_until = 0.0
        """Until when it is kept although something has changed, as the event loop counts time."""

    async def view(self, lists: ClusterLists) -> SchedulerView:
        """Return the cluster as the scheduler sees it."""
        return (await self._fresh(lists)).view

    async def starts(self, lists: ClusterLists, jobs: Sequence[JobId]) -> list[ExpectedStart]:
        """Return the likely starts of these jobs, where they are known."""
        view, starts, _ = await self._fresh(lists)
        known = ((job, starts.get(job)) for job in jobs)
        return [
            ExpectedStart(job, start.at, replace(forecast_of(view, start), after=()))
            for job, start in known
            if start is not None
        ]

    async def outlook(
        self,
        lists: ClusterLists,
        explanation: Explanation,
        rows: Mapping[JobId, JobRow],
        around: Surroundings,
    ) -> Outlook:
        """Return everything about one waiting job. `around`: what was read around it."""
        judgement, number = await self._fresh(lists), explanation.job
        job = lists.jobs[number]
        if around.volumes:
            judgement = await asyncio.to_thread(_with_job, judgement, number, job, around)
        waits = judgement.view.waiting.get(number)
        bare = Outlook(
            job=number,
            name=job.meta.name,
            position=explanation.position,
            explanation=explanation,
            forecast=Forecast(),
            named=tuple(_named(explanation.ahead, rows)),
            scheduler=SCHEDULER,
        )
        reason = explanation.reason
        if isinstance(reason, PodsNotCreated):
            if around.creation:
                reason = replace(reason, message=around.creation[:LONGEST])
            case = _case_of(number, new_job(job), judgement.view, around)
            bare = replace(bare, explanation=replace(explanation, reason=reason))
            return await asyncio.to_thread(_held_by_quotas, bare, judgement, case, around)
        if isinstance(reason, Unschedulable):
            reason = replace(reason, message_at=around.message_at, claims=around.claims)
            bare = replace(bare, explanation=replace(explanation, reason=reason))
        if waits is None or not judgement.view.nodes:
            return bare
        anew = waits._replace(pods=all_needs(job), created_at=judgement.view.now)
        case = Case(waits, _with_volumes(anew, around), shown_spec(job), job.kind)
        return await asyncio.to_thread(_judged, bare, judgement, case, rows, around)

    async def predictions(
        self,
        lists: ClusterLists,
        new: Sequence[NewJob],
        rows: Mapping[JobId, JobRow],
        around: Mapping[str, Surroundings],
    ) -> list[Outlook]:
        """Return everything about jobs that are not submitted yet, as if they were now, in this order. `around`: what
        was read of each namespace."""
        view = (await self._fresh(lists)).view
        of_jobs = [around[each.job.meta.namespace] for each in new]
        cases = [_case_of(JobId(HYPOTHETICAL + number), each, view, of_jobs[number]) for number, each in enumerate(new)]
        view = view._replace(waiting={**view.waiting, **{each.waits.job: each.waits for each in cases}})
        simulation = Simulation(view.nodes, view.waiting.values(), view.ends, view.now)
        await asyncio.to_thread(simulation.run)
        judgement = Judgement(view, simulation.starts, settled=False)
        pairs = zip(cases, of_jobs, strict=True)
        return [await asyncio.to_thread(_predicted, judgement, case, rows, one) for case, one in pairs]

    async def _fresh(self, lists: ClusterLists) -> Judgement:
        known, last, now = self._lists, self._last, asyncio.get_running_loop().time
        is_old = known is None or not is_same(lists, known) or lists.at - known.at > SAME_MOMENT_MS
        # On a busy cluster something always has changed: simulations one after the other would keep a processor busy.
        if last is None or (is_old and now() >= self._kept_until):
            began = now()
            # Thousands of pods take a second, in which the screen stays alive; the watched nodes change meanwhile.
            last = await asyncio.to_thread(_judgement, lists._replace(nodes=dict(lists.nodes)))
            self._lists, self._last = lists, last
            self._kept_until = now() + kept_seconds(lists, now() - began)
        return last


def _judgement(lists: ClusterLists) -> Judgement:
    view = scheduler_view(lists)
    simulation = Simulation(view.nodes, view.waiting.values(), view.ends, view.now)
    simulation.try_on(view.nodes)
    settled = not simulation.placed
    simulation.go_on()
    return Judgement(view, simulation.starts, settled)


def _predicted(judgement: Judgement, case: Case, rows: Mapping[JobId, JobRow], around: Surroundings) -> Outlook:
    """Return the outlook of a job that is not submitted."""
    view, waits = judgement.view, case.waits
    ahead = sorted(each.order for each in view.waiting.values() if each.order < waits.order)
    count = len(waits.pods)
    reason = Unschedulable(count, count, len(view.nodes))
    explanation = Explanation(JobId(0), reason, len(ahead) + 1, ())
    bare = Outlook(
        job=JobId(0),
        name=case.spec.name,
        position=len(ahead) + 1,
        explanation=explanation,
        forecast=Forecast(),
        scheduler=SCHEDULER,
    )
    if not view.nodes or not waits.pods:
        return bare
    if short_quotas(waits.pods, around.quotas):
        bare = replace(bare, explanation=replace(explanation, reason=PodsNotCreated(case.kind)))
        return _held_by_quotas(bare, judgement, case, around)
    found = _judged(bare, judgement, case, rows, around)
    return replace(found, explanation=None) if found.forecast.now else found


def _held_by_quotas(bare: Outlook, judgement: Judgement, case: Case, around: Surroundings) -> Outlook:
    """Return the outlook of a job without pods, with the quotas that forbid them and what would meet these."""
    explanation = bare.explanation
    assert explanation is not None
    assert isinstance(explanation.reason, PodsNotCreated)
    short = short_quotas(case.anew.pods, around.quotas)
    if not short:
        return bare
    explanation = replace(explanation, reason=replace(explanation.reason, quotas=short))
    what_ifs = tuple(what_helps(judgement, case, None, around))
    return replace(bare, explanation=explanation, what_ifs=what_ifs)


def new_job(job: KubeJob) -> NewJob:
    """Return a job whose pods are created from its templates as they are."""
    return NewJob(job, tuple(template_needs(job)))


def _case_of(number: JobId, new: NewJob, view: SchedulerView, around: Surroundings) -> Case:
    """Return a job that has no pods yet."""
    job = new.job
    pods = tuple(_with_priority(each, job, around) for each in new.pods)
    waits = _with_volumes(WaitingJob(number, view.now, pods, None), around)
    return Case(waits, waits, shown_spec(job), job.kind)


def _judged(
    bare: Outlook, judgement: Judgement, case: Case, rows: Mapping[JobId, JobRow], around: Surroundings
) -> Outlook:
    """Return the outlook with what the nodes say, the forecast, and what would help."""
    explanation, view = bare.explanation, judgement.view
    assert explanation is not None
    needs = case.waits.pods[0]
    if isinstance(explanation.reason, Unschedulable):
        looked = look_at_nodes(needs, view.nodes)
        explanation = replace(explanation, reason=replace(explanation.reason, by_nodes=looked))
    # No node is of any use while a claim has no volume.
    if around.claims:
        return replace(bare, explanation=explanation)
    start = judgement.starts.get(case.waits.job)
    held = holders(needs, view.nodes)
    forecast = forecast_of(view, start) if start is not None else Forecast(no_bound=_unknown(view, needs))
    named = (*explanation.ahead, *(each.job for each in forecast.after), *held[:MOST_HOLDERS])
    return replace(
        bare,
        explanation=explanation,
        forecast=forecast,
        what_ifs=() if forecast.now else tuple(what_helps(judgement, case, start, around)),
        holders=tuple(held[:MOST_HOLDERS]),
        holders_in_all=len(held),
        named=tuple(_named(named, rows)),
    )


def _with_priority(needs: PodNeeds, job: KubeJob, around: Surroundings) -> PodNeeds:
    """Return the needs with the priority that the cluster will give the pod."""
    return replace(needs, priority=around.priority(job))


def _with_job(judgement: Judgement, number: JobId, job: KubeJob, around: Surroundings) -> Judgement:
    """Return the judgement with a job of whose volumes it is known which nodes can use them."""
    needs = tuple(waiting_needs(job, (Obstacle.OTHER,)))
    if not needs:
        return judgement
    waits = _with_volumes(WaitingJob(number, job.meta.created_at, needs, None), around)
    view = judgement.view._replace(waiting={**judgement.view.waiting, number: waits})
    simulation = Simulation(view.nodes, view.waiting.values(), view.ends, view.now)
    simulation.run()
    return Judgement(view, simulation.starts, judgement.settled)


def _with_volumes(waits: WaitingJob, around: Surroundings) -> WaitingJob:
    return waits._replace(pods=tuple(replace(each, volumes=around.volumes) for each in waits.pods))


def _unknown(view: SchedulerView, needs: PodNeeds) -> NoBound | None:
    """Return why no start is known, if it is that pods without a known end are on nodes that could take the job's."""
    ends = {job for _, job in view.ends}
    usable = (node for node in view.nodes.values() if could_hold(needs, node))
    return NoBound.NO_TIME_LIMIT if any(pod.job not in ends for node in usable for pod in node.pods) else None


def _named(jobs: Sequence[JobId], rows: Mapping[JobId, JobRow]) -> Iterator[HoldingJob]:
    return (holding_job(rows[job]) for job in dict.fromkeys(jobs) if job in rows)
