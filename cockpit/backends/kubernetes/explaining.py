"""Explains jobs that wait and predicts starts: by Kueue's rules, by those of the scheduler, or by the embedded core."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.kubernetes.admission import KueueAdmissions, KueueCluster, QueueAnswer, QueuedSpec
from cockpit.backends.kubernetes.batch_view import BatchView
from cockpit.backends.kubernetes.elastic_platform import ElasticPlatform
from cockpit.backends.kubernetes.mapping.gang_places import places_of
from cockpit.backends.kubernetes.mapping.kueue import KUEUE
from cockpit.backends.kubernetes.mapping.kueue_submission import default_queue
from cockpit.backends.kubernetes.mapping.planning import ClusterLists, is_same, state
from cockpit.backends.kubernetes.mapping.quota_answer import with_holders
from cockpit.backends.kubernetes.mapping.scheduler_view import is_plain
from cockpit.backends.kubernetes.priority_classes import PriorityClasses
from cockpit.backends.kubernetes.quota_view import QuotaView
from cockpit.backends.kubernetes.quota_what_ifs import dequeued_with
from cockpit.backends.kubernetes.submitting import job_of, kueue_queue, manifest_of
from cockpit.backends.kubernetes.surroundings import read_namespace, read_surroundings, with_mount_failure
from cockpit.backends.kubernetes.why import SCHEDULER, SchedulerForecast, new_job
from cockpit.backends.planning_mirror import PlanningMirror
from cockpit.model import forecast
from cockpit.model.fleet_placement import FleetWaits
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.pod_reasons import GangIncomplete, PodsNotCreated, PodsStarting, QueueWaits, Unschedulable
from cockpit.model.reasons import Explanation

if TYPE_CHECKING:
    from cockpit.backends.inprocess import InProcessBackend
    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.jobrow import JobRow
    from cockpit.model.spec import JobSpec
    from cockpit.runtime.clock import Timekeeper

MOST_AHEAD = 10
FLEET = "the fleet"


class Explainer:
    """Answers why jobs wait and when they may start, from the copy of the cluster's objects."""

    def __init__(
        self, api: Api, inventory: Inventory, jobs: JobList, clock: Timekeeper, name: str, user: str, namespace: str
    ) -> None:
        """`name`: that of the cluster. `namespace`: where jobs without a project go."""
        self._api, self._inventory, self._jobs, self._clock = api, inventory, jobs, clock
        self._namespace = namespace
        self.platform = ElasticPlatform(api, inventory, clock)
        self.quota = QuotaView(inventory, jobs)
        self.batch = BatchView(inventory.schedulers, jobs)
        self.mirror = PlanningMirror(clock, name, user, state, is_same)
        self._classes = PriorityClasses(api)
        self._by_scheduler, self._by_kueue = SchedulerForecast(), KueueAdmissions(api, jobs)

    def lists(self) -> ClusterLists:
        """Return the objects of which the embedded scheduler's copy of the cluster is made."""
        self._jobs.refresh()
        return ClusterLists(
            self._clock.now(),
            # A copy, since the state may be made of it in a thread.
            dict(self._inventory.nodes),
            dict(sorted(self._jobs.jobs.items())),
            tuple(self._inventory.jobs.other_pods()),
            quota=self._inventory.kube_queue.tree,
            known_cards=self._inventory.cards,
            version=(self._jobs.version, *self._inventory.versions),
        )

    async def judged(self) -> InProcessBackend:
        """Return the embedded engine over a copy of the cluster, with the reasons of the jobs that wait."""
        return await self.mirror.judge(self.lists())

    def kueue_objects(self) -> KueueObjects:
        return self._inventory.kueue.objects(sees_all=self._inventory.namespaces == ("",))

    def explanation(self, row: JobRow) -> Explanation | None:
        """Return why the job waits, and the jobs that the scheduler looks at before it; None: it does not wait."""
        if row.reason is None:
            return None
        if (queued := self.quota.explanation(row.id, row.reason, MOST_AHEAD)) is not None:
            return queued
        reason = self.platform.with_missing(self._jobs.jobs.get(row.id), row.reason)
        # Highest priority first, then the oldest (kube-scheduler's PrioritySort).
        own = (-(row.priority or 0), row.submitted_at, row.id)
        waiting = [each for each in self._jobs.rows.values() if each.state is JobState.QUEUED]
        ahead = sorted(key for each in waiting if (key := (-(each.priority or 0), each.submitted_at, each.id)) < own)
        return Explanation(row.id, reason, len(ahead) + 1, tuple(job for _, _, job in ahead[:MOST_AHEAD]))

    async def outlook(self, row: JobRow, own: Explanation) -> forecast.Outlook:
        """Return what is known of a job that waits. `own`: its explanation.

        1. Of a job in a queue of Kueue: what Kueue's rules say of it.
        2. Of a job whose pods the scheduler keeps back, or whose controller creates none: what the nodes and the
           namespace say.
        3. Of another: the embedded core's answer, with the figures of the queue or quota that is short.
        """
        if isinstance(own.reason, FleetWaits):
            # Of the members' nodes the host knows only sums, so that no start is predicted.
            return forecast.Outlook(
                job=row.id,
                name=row.name,
                position=own.position,
                explanation=own,
                forecast=forecast.Forecast(),
                scheduler=FLEET,
            )
        if isinstance(own.reason, QueueWaits) and own.reason.manager == KUEUE:  # step 1
            return await self._by_kueue.outlook(row, own.reason, await self._kueue_cluster())
        job = self._jobs.jobs[row.id]
        is_of_nodes = isinstance(own.reason, Unschedulable | PodsNotCreated) and is_plain(job)
        if is_of_nodes and not self.batch.is_short(own):  # step 2
            around = await read_surroundings(self._api, job)
            return await self._by_scheduler.outlook(self.lists(), own, self._jobs.rows, around)
        held: list[JobId] = []
        if isinstance(own.reason, GangIncomplete):
            found = places_of(job, own.reason, (await self._by_scheduler.view(self.lists())).nodes)
            if found is not None:
                own, held = replace(own, reason=replace(own.reason, by_nodes=found[0])), found[1]
        if isinstance(own.reason, PodsStarting):
            own = replace(own, reason=await with_mount_failure(self._api, job, own.reason))
        # Placed pods wait for no scheduler, and queue managers plan no starts.
        core = forecast.Outlook(
            job=row.id, name=row.name, position=own.position, explanation=own, forecast=forecast.Forecast()
        )
        if row.state is JobState.QUEUED:  # step 3
            core = await (await self.judged()).explain(row.id)
            if (case := self.quota.case(row.id)) is not None:
                view, classes = await self._by_scheduler.view(self.lists()), await self._classes.of_pods()
                values = {name: each.value for name, each in classes.items()}
                core = replace(core, what_ifs=await asyncio.to_thread(dequeued_with, case, view, values))
        own, core = self.batch.with_figures(own, self.quota.with_holders(core, own.reason))
        if isinstance(own.reason, GangIncomplete) and held:
            core = with_holders(core, held, self._jobs.rows)
        return replace(core, explanation=own, position=own.position, forecast=forecast.Forecast(), scheduler=SCHEDULER)

    async def starts(self, jobs: Sequence[JobId]) -> list[forecast.ExpectedStart]:
        """Return the likely starts by cockpit's own simulations: neither Kubernetes' scheduler nor Kueue plans any."""
        rows = self._jobs.refresh()
        queued = [job for job in jobs if job in rows and isinstance(rows[job].reason, QueueWaits)]
        others = await self._by_scheduler.starts(self.lists(), [job for job in jobs if job not in set(queued)])
        if not queued or not self._inventory.kueue.workloads:
            return others
        found = await self._by_kueue.likely(queued, await self._kueue_cluster())
        return [*others, *(forecast.ExpectedStart(job, each.likely_at, each) for job, each in found.items())]

    async def predict(self, specs: Sequence[JobSpec], user: str) -> list[forecast.Outlook]:
        """Predict jobs that are not submitted, by the objects that they would become. Refused where one can be none."""
        lists, queues = self.lists(), self._inventory.kueue.queue_names()
        made = [manifest_of(each, self._inventory.served, self._namespace, user) for each in specs]
        new = [new_job(job_of(resource, manifest)) for resource, manifest in made]
        namespaces = {each.job.meta.namespace for each in new}
        around = {namespace: await read_namespace(self._api, namespace) for namespace in namespaces}
        found: dict[int, forecast.Outlook] = {}
        for place, each in enumerate(new):
            priority = around[each.job.meta.namespace].priority(each.job)
            if (waits := self.quota.predicted(each.job, priority, lists.at)) is not None:
                found[place] = waits
        names = [
            kueue_queue(spec, self._namespace, queues) or default_queue(each.job.meta.namespace, queues)
            for spec, each in zip(specs, new, strict=True)
        ]
        answers: dict[int, QueueAnswer] = {}
        if queued := [place for place, name in enumerate(names) if name and place not in found]:
            jobs = [QueuedSpec(new[place].job, names[place], around[new[place].job.meta.namespace]) for place in queued]
            answers = dict(zip(queued, await self._by_kueue.predict(jobs, await self._kueue_cluster()), strict=True))
        # Of what Kueue admits at once, and of what is in no queue, the nodes decide.
        found |= {place: each.outlook for place, each in answers.items() if not each.pods}
        left = {place: each for place, each in enumerate(new) if place not in found}
        left |= {place: each._replace(pods=answers[place].pods) for place, each in left.items() if place in answers}
        by_nodes = await self._by_scheduler.predictions(lists, list(left.values()), self._jobs.rows, around)
        found |= dict(zip(left, by_nodes, strict=True))
        return [found[place] for place in range(len(specs))]

    async def _kueue_cluster(self) -> KueueCluster:
        lists = self.lists()
        return KueueCluster(
            self.kueue_objects(),
            lists,
            await self._by_scheduler.view(lists),
            (await self._classes.values()).value,
            (self._jobs.version, self._inventory.kueue.version),
        )
