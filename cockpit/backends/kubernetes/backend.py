"""The backend of a Kubernetes cluster: answers and changes, by the parts of `ConnectedCluster`.

`ClusterWatch` reports changes of the job list, `Replicas` reads logs and opens shells, and `FleetView` does so at the
member clusters of a fleet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from cockpit import __version__
from cockpit.backends.base import (
    Asking,
    Connection,
    JobsDelta,
    LiveBackend,
    ShellSession,
    refuse_absent,
    why_not_stream,
)
from cockpit.backends.kubernetes.capabilities import NO_WEIGHTS
from cockpit.backends.kubernetes.connected_cluster import DEFAULT_OPTIONS, ConnectedCluster, ContextOptions
from cockpit.backends.kubernetes.events import binding_event, chosen
from cockpit.backends.kubernetes.fleet.members import Members, proxy_of
from cockpit.backends.kubernetes.fleet.table import ListedJob
from cockpit.backends.kubernetes.fleet.view import FleetView, MemberPart
from cockpit.backends.kubernetes.mapping.accounting import ended_jobs, spending
from cockpit.backends.kubernetes.mapping.fleet_nodes import member_node, member_row
from cockpit.backends.kubernetes.mapping.fleet_placement import placement_of
from cockpit.backends.kubernetes.mapping.kueue_queues import queue_rows
from cockpit.backends.kubernetes.mapping.own_object import without_environment
from cockpit.backends.kubernetes.mapping.planning import state
from cockpit.backends.kubernetes.mapping.priorities import breakdown_of, priorities
from cockpit.backends.kubernetes.replicas import Replicas
from cockpit.backends.kubernetes.watching import ClusterWatch, is_listed
from cockpit.backends.kubernetes.why import SCHEDULER
from cockpit.backends.overviews import overview_of
from cockpit.errors import CockpitError, RequestRefused
from cockpit.formats.snapshotfile import SchedulerReport, Snapshot
from cockpit.model import asking, forecast, jobdetail, view
from cockpit.model.capabilities import Capabilities
from cockpit.model.fleet_placement import FleetStep, FleetWaits
from cockpit.model.fleetrow import FleetShown, MemberObject
from cockpit.model.ids import JobId, job_words
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible
from cockpit.protocol import messages
from cockpit.protocol.operations import SHELL
from cockpit.runtime.offline_engine import refuse

if TYPE_CHECKING:
    from random import Random

    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.accounting import EndedJob, Spending
    from cockpit.model.events import EventRecord
    from cockpit.model.fleet_placement import FleetPlacement
    from cockpit.model.ids import Millis
    from cockpit.model.operations import Operation
    from cockpit.model.priority import Breakdown, WeightChanges
    from cockpit.model.spec import JobSpec
    from cockpit.runtime.clock import Timekeeper

T = TypeVar("T")

MOST_EVENTS = 1000
_MIRRORED = frozenset({"rules", "nodes", "reservations", "queues"})
"""Operations that the embedded engine answers from its copy of the cluster."""


class KubernetesBackend(Asking, LiveBackend):
    """Reads one context's cluster. Sends no request before the first operation."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], Api],
        namespace: str,
        clock: Timekeeper,
        random: Random,
        user: str,
        options: ContextOptions = DEFAULT_OPTIONS,
    ) -> None:
        """`connect`: makes a connection; each event loop has its own. `namespace`: that of the kubeconfig's context."""
        self._name, self._clock = name, clock
        self._cluster = cluster = ConnectedCluster(name, connect, namespace, clock, random, user, options)
        self._inventory, self._session, self._list = cluster.inventory, cluster.session, cluster.list
        self._records, self._rights, self._explainer = cluster.records, cluster.rights, cluster.explainer
        self._watch = ClusterWatch(cluster.session, cluster.changes, cluster.list, cluster.records.note)
        self._replicas = Replicas(cluster.api, connect, cluster.holds, cluster.list.known)
        self._acts, self._platform = cluster.acts, cluster.explainer.platform
        self._ready, self._listed, self._row = cluster.ready, cluster.listed, cluster.row

        def open_member(member: str, address: str) -> KubernetesBackend:
            reached = options.reach_member(member, address) or (lambda: connect().through(proxy_of(member)))
            own = ContextOptions(namespaces=options.namespaces)
            return KubernetesBackend(member, reached, cluster.namespace, clock, random, user, own)

        self._fleet = FleetView(Members(cluster.inventory.fleet, open_member))

    @property
    def user(self) -> str:  # type: ignore[override] # the server tells it later
        return self._cluster.user

    @property
    def capabilities(self) -> Capabilities:
        return self._cluster.capabilities

    async def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the operation
        # What the user may not read is known only after the first look.
        await self._ready()
        return await super().perform(operation, given)

    async def status(self) -> view.EngineStatus:
        await self._ready()
        return view.EngineStatus(
            running=True,
            pid=None,
            socket=self._cluster.api.context,
            state_folder="",
            version=f"Kubernetes {self._session.server_version}, cockpit {__version__}",
            protocol="",
            system=True,
            started_at=None,
            jobs=len(self._list.refresh()),
            trouble=self._cluster.trouble,
            user=self.user,
        )

    async def overview(self) -> view.Overview:
        await self._ready()
        nodes = [*map(member_node, self._inventory.fleet.members.values()), *self._inventory.shown_nodes()]
        shown = overview_of(self._name, self._list.refresh().values(), nodes)
        return replace(shown, trouble=self._cluster.trouble, hidden=True, admin=False)

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        await self._listed()
        rows = sorted(self._list.refresh().values(), key=lambda row: row.id)
        if not ended:
            return [row for row in rows if is_listed(row)]
        return sorted((*rows, *(each.row for each in self._list.gone.values())), key=lambda row: row.id)

    async def job(self, job: JobId, *, task: int | None = None) -> jobdetail.JobDetail:
        row = await self._row(job, task)
        self._rights.prefer(row.project)
        explanation = self._explainer.explanation(row)
        # A panel asks each second, as long as the cursor is on the job.
        events = tuple(chosen(await self._records.events(job, recent=True), -1, MOST_EVENTS))
        return jobdetail.JobDetail(
            # Of a job in a queue more is known than in the list: the quota test.
            row=row if explanation is None else replace(row, reason=explanation.reason),
            job=self._records.placed_record(job, self._explainer.lists()),
            log_tail=await self._records.last_lines(job),
            explanation=explanation,
            events=events,
            priority=await self._priority(row),
            waited=self._records.waited(job),
            recorded=True,
            fleet=self._placement(job, events),
            scaling=None if (own := self._list.jobs.get(job)) is None else own.scaling,
        )

    async def events(
        self, *, job: JobId | None = None, after: int = -1, limit: int = MOST_EVENTS, rank: int | None = None
    ) -> list[EventRecord]:
        """Return what Kubernetes reports of jobs, and what was seen of them while this cockpit was connected."""
        if job is None:
            await self._listed()
            return chosen(await self._records.all_events(), after, limit)
        await self._row(job)
        if rank is not None and (part := await self._part(job, rank)) is not None:
            return await part.events(job, after, limit)
        return chosen(await self._records.events(job), after, limit)

    async def priorities(self, weights: WeightChanges | None = None) -> view.Priorities:
        await self._listed()
        if weights is not None:
            refuse(NO_WEIGHTS)
        return priorities(self._list.refresh().values(), self._list.jobs, await self._cluster.classes.values())

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        """Return the ended jobs that the cluster still has, and those that this cockpit saw go."""
        await self._listed()
        return ended_jobs(self._records.past(), since, until, user)

    async def spending(self, edges: Sequence[Millis]) -> Spending:
        await self._listed()
        return spending((job for _, job in self._records.past()), edges, self._clock.now())

    async def snapshot(self) -> Snapshot:
        await self._listed()
        lists = self._explainer.lists()
        reports = {row.id: SchedulerReport(reason=row.reason) for row in self._list.rows.values() if row.reason}
        whole = state(lists)
        return Snapshot(cluster=self._name, at=lists.at, scheduler=SCHEDULER, reports=reports, state=whole)

    async def holds(self) -> list[view.HoldRow]:
        await self._ready()
        self._list.refresh()
        return list(self._cluster.holds.rows(self._list.jobs, self._inventory.cards))

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        row = await self._row(job, task)
        own = self._explainer.explanation(row)
        if own is None:
            message = f"Job {job_words(job)} is {row.state}; only a job that waits can be explained."
            if row.failed is not None:
                said = (await self._records.last_lines(job)).rstrip().rpartition("\n")[2]
                message += f" Replica {row.failed[0]} failed first, with exit code {row.failed[1]}"
                message += f"; its last line is: {visible(said, 300)}" if said else "."
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        if isinstance(own.reason, FleetWaits) and own.reason.step is FleetStep.SENT:
            own = replace(own, reason=replace(own.reason, message=await self._why_not_there(job)))
        return await self._explainer.outlook(row, own)

    async def listed_jobs(self) -> list[ListedJob]:
        """Return the jobs that have objects, each with its row."""
        await self._listed()
        rows = self._list.refresh()
        return [ListedJob(rows[number], job) for number, job in sorted(self._list.jobs.items())]

    async def fleet(self, *, job: JobId | None = None, pods: bool = False, jobs: Sequence[JobId] = ()) -> FleetShown:
        """Return the table of the fleet whose host this is."""
        listed = await self.listed_jobs()
        if reason := self.capabilities.why_not("fleet"):
            refuse_absent(reason)
        if job is not None:
            await self._row(job)
        only = set(jobs) or ({job} if job is not None else set())
        if only:
            listed = [each for each in listed if each.row.id in only]
        every = self._inventory.fleet.members
        return await self._fleet.shown(listed, every, self._clock.now(), pods=pods, alone=bool(only))

    async def own_object(self, job: JobId, *, cluster: str = "") -> MemberObject:
        """Return the job's object as the server has it now, without the values of environment variables.

        On a fleet's host that of the member `cluster`, or of the first that has it.
        """
        await self._listed()
        if cluster != self._name and (part := await self._part(job, 0, cluster)) is not None:
            return await part.backend.own_object(part.job)
        resource, found = self._list.found(job)
        whole = await self._cluster.writer.read(resource, found.meta.namespace, found.meta.name)
        text = msgspec.json.format(msgspec.json.encode(without_environment(whole)), indent=2).decode()
        own = f"{found.kind} {found.meta.namespace}/{found.meta.name}"
        return MemberObject(cluster=cluster or self._name, own=own, form="json", text=text)

    async def starts(self, jobs: Sequence[JobId]) -> list[forecast.ExpectedStart]:
        await self._ready()
        return await self._explainer.starts(jobs)

    async def manifests(self, specs: Sequence[JobSpec]) -> list[dict[str, Any]]:
        await self._ready()
        if wrong := self._platform.refusals(specs):
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, "\n".join(wrong)))
        return await self._acts.objects(specs)

    async def predict(self, specs: Sequence[JobSpec]) -> list[forecast.Outlook]:
        await self._ready()
        return await self._explainer.predict(specs, self.user)

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        try:
            async with asyncio.timeout(timeout_seconds):
                seen = self._cluster.changes.count
                while (await self._row(job)).state not in ENDED:
                    await self._cluster.changes.after(seen)
                    seen = self._cluster.changes.count
        except TimeoutError:
            return None
        return self._records.placed_record(job, self._explainer.lists())

    async def logs(self, request: asking.LogRequest) -> asking.LogChunk:
        if reason := self.capabilities.why_not("logs") or why_not_stream(self.capabilities, request.stream):
            refuse_absent(reason)
        await self._row(JobId(request.job))
        if JobId(request.job) in self._list.gone:
            return asking.LogChunk(b"", 0, ended=True)
        if (part := await self._part(JobId(request.job), request.rank)) is not None:
            return await part.backend.logs(replace(request, job=part.job, rank=part.rank))
        return await self._replicas.read_log(request)

    async def search_log(self, request: asking.LogSearch) -> asking.LogMatches:
        if reason := self.capabilities.why_not("search_log") or why_not_stream(self.capabilities, request.stream):
            refuse_absent(reason)
        await self._row(JobId(request.job))
        if JobId(request.job) in self._list.gone:
            return asking.LogMatches((), 0, 0, 0, 0)
        if (part := await self._part(JobId(request.job), request.rank)) is not None:
            return await part.backend.search_log(replace(request, job=part.job, rank=part.rank))
        return await self._replicas.search_log(request)

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        if reason := self.capabilities.why_not(SHELL):
            refuse_absent(reason)
        await self._ready()
        self._list.refresh()
        if (part := await self._part(JobId(request.job), request.rank)) is not None:
            return await part.backend.open_shell(replace(request, job=part.job, rank=part.rank))
        return await self._replicas.open_shell(request)

    @property
    def connection(self) -> Connection:
        return self._session.connection

    @property
    def silence(self) -> str:
        return self._session.silence

    def connections(self) -> AsyncIterator[Connection]:
        return self._session.connections()

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        await self._ready()
        async for delta in self._watch.jobs(anything=anything):
            yield delta

    def overviews(self) -> AsyncIterator[view.Overview]:
        return self._watch.overviews(self.overview)

    async def close(self) -> None:
        await self._replicas.close()
        await self._fleet.close()
        await self._cluster.close()

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        if op not in _MIRRORED:
            refuse(f"A Kubernetes cluster has no {op.replace('_', ' ')}.")
        await self._ready()
        if op == "queues":
            return msgspec.convert(await self._queues(), answer, from_attributes=True)
        if op == "nodes":
            own = await self._explainer.mirror.nodes(self._explainer.lists())
            return cast("T", [*self._member_rows(), *own])
        return await (await self._explainer.mirror.look_at(self._explainer.lists())).read(op, args, answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        del args
        refuse(f"A Kubernetes cluster has no {op.replace('_', ' ')}.")

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        await self._ready()
        return await (await self._explainer.judged()).await_answer(op, args, answer)

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        await self._ready()
        self._list.refresh()
        if isinstance(args, messages.SubmitArgs) and (wrong := self._platform.refusals(args.specs)):
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, "\n".join(wrong)))
        return msgspec.convert(await self._cluster.act(args, op), answer, from_attributes=True)

    def _member_rows(self) -> list[view.NodeRow]:
        """Return the members of the fleet whose host this is, as nodes."""
        rows = self._list.refresh().values()
        return [member_row(each, rows) for _, each in sorted(self._inventory.fleet.members.items())]

    async def _queues(self) -> view.QueuesShown:
        self._list.refresh()
        of_kueue = queue_rows(self._explainer.kueue_objects())
        tree = self._inventory.kube_queue.tree
        admin = self.capabilities.has("apply_quota") and await self._acts.quota.may_change()
        rows = (*self._explainer.quota.rows(), *of_kueue, *self._explainer.batch.rows())
        return view.QueuesShown(rows, tree.name if tree is not None else "", admin)

    async def _part(self, job: JobId, rank: int, cluster: str = "") -> MemberPart | None:
        """Return where a replica runs on a fleet; None: the cluster is no host of one, or the job has pods here."""
        found = self._list.jobs.get(job)
        if found is None or found.fleet is None or found.pods:
            return None
        return await self._fleet.part(job, found, self._clock.now(), rank, cluster)

    async def _why_not_there(self, job: JobId) -> str:
        """Return why the member to which a job is bound does not run it, or why the member does not say."""
        try:
            part = await self._part(job, 0)
        except CockpitError as error:
            return str(error).rstrip(".")
        return part.why if part is not None else ""

    def _placement(self, job: JobId, events: Sequence[EventRecord]) -> FleetPlacement | None:
        """Return what the fleet tells of a job; None: the cluster is no host of one, or the job is gone."""
        found = self._list.jobs.get(job)
        return None if found is None or found.fleet is None else placement_of(found, found.fleet, binding_event(events))

    async def _priority(self, row: JobRow) -> tuple[Breakdown, ...]:
        job = self._list.jobs.get(row.id)
        if row.state is not JobState.QUEUED or job is None:
            return ()
        return (breakdown_of(row, job, await self._cluster.classes.values()),)
