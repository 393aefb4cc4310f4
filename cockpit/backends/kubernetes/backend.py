"""The backend of a Kubernetes cluster.

Parts: `Session` is the connection, `Inventory` the copy of the cluster's objects, `JobList` makes rows of them,
`ClusterWatch` reports their changes, `Acts` changes them, `Replicas` reads logs and opens shells. Nodes, explanations
and predictions come from the embedded scheduler over a copy of the cluster (`PlanningMirror`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from cockpit import __version__
from cockpit.backends.base import Asking, Connection, JobsDelta, LiveBackend, ShellSession, refuse_absent
from cockpit.backends.job_history import History
from cockpit.backends.kubernetes.acting import Acts, unknown
from cockpit.backends.kubernetes.admission import KUEUE, KueueAdmissions
from cockpit.backends.kubernetes.batch_view import BatchView
from cockpit.backends.kubernetes.capabilities import CAPABILITIES, NO_WEIGHTS, without_rights
from cockpit.backends.kubernetes.dialects import Dialects
from cockpit.backends.kubernetes.editing import JobEditor
from cockpit.backends.kubernetes.events import JobEvents, chosen
from cockpit.backends.kubernetes.failures import LastLines
from cockpit.backends.kubernetes.holds import Holds
from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.job_list import JobList
from cockpit.backends.kubernetes.mapping.accounting import ended_jobs, past_job, spending
from cockpit.backends.kubernetes.mapping.kueue_queues import queue_rows
from cockpit.backends.kubernetes.mapping.planning import (
    ClusterLists,
    is_same,
    job_placement,
    node_placement,
    shown_job,
    state,
)
from cockpit.backends.kubernetes.mapping.priorities import breakdown_of, priorities
from cockpit.backends.kubernetes.mapping.scheduler_view import is_plain
from cockpit.backends.kubernetes.priority_classes import PriorityClasses
from cockpit.backends.kubernetes.quota_acts import QuotaActs
from cockpit.backends.kubernetes.quota_view import QuotaView
from cockpit.backends.kubernetes.replicas import Replicas
from cockpit.backends.kubernetes.requeueing import Requeuer
from cockpit.backends.kubernetes.resources import DEVICES, PODS
from cockpit.backends.kubernetes.session import Changes, Session
from cockpit.backends.kubernetes.submitting import job_of, manifest_of
from cockpit.backends.kubernetes.surroundings import read_namespace, read_surroundings, with_mount_failure
from cockpit.backends.kubernetes.watching import ClusterWatch, is_listed
from cockpit.backends.kubernetes.why import SCHEDULER, SchedulerForecast
from cockpit.backends.kubernetes.writing import ObjectWriter
from cockpit.backends.overviews import overview_of
from cockpit.backends.planning_mirror import PlanningMirror
from cockpit.errors import RequestRefused
from cockpit.formats.snapshotfile import SchedulerReport, Snapshot
from cockpit.model import asking, forecast, jobdetail, view
from cockpit.model.capabilities import Capabilities
from cockpit.model.ids import JobId, job_words
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.pod_reasons import PodsNotCreated, PodsStarting, QueueWaits, Unschedulable
from cockpit.model.reasons import Explanation
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible
from cockpit.protocol import messages
from cockpit.protocol.operations import SHELL
from cockpit.runtime.observed_history import ObservedHistory
from cockpit.runtime.offline_engine import refuse

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from cockpit.backends.inprocess import InProcessBackend
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.accounting import EndedJob, Spending
    from cockpit.model.events import EventRecord
    from cockpit.model.ids import Millis
    from cockpit.model.operations import Operation
    from cockpit.model.priority import Breakdown, WeightChanges
    from cockpit.model.spec import JobSpec
    from cockpit.runtime.clock import Timekeeper

T = TypeVar("T")

MOST_AHEAD = 10
MOST_EVENTS = 1000
_MIRRORED = frozenset({"rules", "nodes", "reservations", "queues"})
"""Operations that the embedded engine answers from its copy of the cluster."""


class ContextOptions(NamedTuple):
    """What is known of a context beside its kubeconfig."""

    history: Path | None = None
    """The file of what was seen of jobs; None: it is forgotten when cockpit ends."""
    namespaces: tuple[str, ...] = ()
    """The namespaces that are read; empty: all that the user may list."""
    manifests: Path | None = None
    """The folder for manifests of jobs that are being created once more; None: that for temporary files."""


DEFAULT_OPTIONS = ContextOptions()


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
        history, namespaces = options.history, options.namespaces
        # A job is submitted to the context's namespace, but to none that is not shown.
        namespace = namespace if not namespaces or namespace in namespaces else namespaces[0]
        self._name, self._clock, self.user = name, clock, user
        api, changes = connect(), Changes()
        self._inventory = Inventory(api, namespace, random, changes.notify, namespaces)
        self._session = Session(api, self._inventory, changes, clock, user)
        self._changes, self._context = changes, api.context
        self._holds = Holds(api, self._inventory.mark, lambda: self.user)
        self._api, self._last = api, LastLines(api)
        self._list = JobList(self._inventory, self._holds.shown, clock)
        self._history = History(ObservedHistory(history, SCHEDULER))
        self._events = JobEvents(api, self._history)
        self._watch = ClusterWatch(self._session, changes, self._list, self._note)
        self._quota = QuotaView(self._inventory, self._list)
        self._batch = BatchView(self._inventory.schedulers, self._list)
        self._namespace, self._forecast = namespace, SchedulerForecast()
        self._mirror = PlanningMirror(clock, name, user, state, is_same)
        self._classes = PriorityClasses(api)
        writer, dialects = ObjectWriter(api, self._inventory, changes), Dialects(api)
        editor = JobEditor(writer, dialects, self._classes, lambda: self._inventory.cards)
        quota = QuotaActs(api, writer)
        self._acts = Acts(writer, dialects, editor, quota, self._list.numbers, self._found, namespace)
        self._requeuer = Requeuer(api, writer, self._inventory, self._acts.queue, options.manifests)
        self._replicas = Replicas(api, connect, self._holds, self._job)
        self._admissions = KueueAdmissions(api, self._list)

    @property
    def capabilities(self) -> Capabilities:
        served = self._inventory.queue_kinds if self._session.started else None
        return without_rights(CAPABILITIES, self._inventory.absent, served)

    async def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the operation
        # What the user may not read is known only after the first look.
        await self._ready()
        return await super().perform(operation, given)

    async def status(self) -> view.EngineStatus:
        await self._ready()
        return view.EngineStatus(
            running=True,
            pid=None,
            socket=self._context,
            state_folder="",
            version=f"Kubernetes {self._session.server_version}, cockpit {__version__}",
            protocol="",
            system=True,
            started_at=None,
            jobs=len(self._list.refresh()),
            trouble=self._trouble,
            user=self.user,
        )

    async def overview(self) -> view.Overview:
        await self._ready()
        shown = overview_of(self._name, self._list.refresh().values(), self._inventory.shown_nodes())
        return replace(shown, trouble=self._trouble, admin=False)

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        await self._ready()
        if (why := self._inventory.absent.get(PODS)) and not self._list.rows:
            message = (
                f"Pods cannot be listed: {why}. If you may list those of other namespaces, name them: "
                f'-c \'kube:{self._context}?namespaces=A,B\', or namespaces = ["A", "B"] of the cluster in config.toml.'
            )
            raise RequestRefused(Refusal(RefusalKind.DENIED, message))
        rows = sorted(self._list.refresh().values(), key=lambda row: row.id)
        if not ended:
            return [row for row in rows if is_listed(row)]
        return sorted((*rows, *(each.row for each in self._list.gone.values())), key=lambda row: row.id)

    async def job(self, job: JobId, *, task: int | None = None) -> jobdetail.JobDetail:
        row = await self._row(job, task)
        explanation = self._explanation(row)
        return jobdetail.JobDetail(
            # Of a job in a queue more is known than in the list: the quota test.
            row=row if explanation is None else replace(row, reason=explanation.reason),
            job=self._placed_record(job),
            log_tail=await self._last_lines(job),
            explanation=explanation,
            # A panel asks each second, as long as the cursor is on the job.
            events=tuple(chosen(await self._events_of(job, recent=True), -1, MOST_EVENTS)),
            priority=await self._priority(row),
            waited=self._history.waited(self._record(job), self._clock.now()),
            recorded=True,
        )

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = MOST_EVENTS) -> list[EventRecord]:
        """Return what Kubernetes reports of jobs, and what was seen of them while this cockpit was connected."""
        if job is None:
            await self._ready()
            everything = await self._events.of_all(self._list.jobs, self._inventory.namespaces)
            return chosen(everything, after, limit)
        await self._row(job)
        return chosen(await self._events_of(job), after, limit)

    async def priorities(self, weights: WeightChanges | None = None) -> view.Priorities:
        await self._ready()
        if weights is not None:
            refuse(NO_WEIGHTS)
        return priorities(self._list.refresh().values(), self._list.jobs, await self._classes.values())

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        """Return the ended jobs that the cluster still has, and those that this cockpit saw go."""
        await self._ready()
        return ended_jobs(self._past(), since, until, user)

    async def spending(self, edges: Sequence[Millis]) -> Spending:
        await self._ready()
        return spending((job for _, job in self._past()), edges, self._clock.now())

    async def snapshot(self) -> Snapshot:
        await self._ready()
        lists = self._lists()
        reports = {row.id: SchedulerReport(reason=row.reason) for row in self._list.rows.values() if row.reason}
        whole = state(lists)
        return Snapshot(cluster=self._name, at=lists.at, scheduler=SCHEDULER, reports=reports, state=whole)

    def _past(self) -> Iterator[tuple[JobRow, Job]]:
        """Yield all jobs with what they hold or held."""
        rows, cards = self._list.refresh(), self._inventory.cards
        yield from ((row, past_job(self._list.jobs[number], number, cards)) for number, row in rows.items())
        yield from self._list.gone.values()

    async def holds(self) -> list[view.HoldRow]:
        await self._ready()
        self._list.refresh()
        return list(self._holds.rows(self._list.jobs, self._inventory.cards))

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        row = await self._row(job, task)
        own = self._explanation(row)
        if own is None:
            message = f"Job {job_words(job)} is {row.state}; only a job that waits can be explained."
            if row.failed is not None:
                said = (await self._last_lines(job)).rstrip().rpartition("\n")[2]
                message += f" Replica {row.failed[0]} failed first, with exit code {row.failed[1]}"
                message += f"; its last line is: {visible(said, 300)}" if said else "."
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        if isinstance(own.reason, QueueWaits) and own.reason.manager == KUEUE:
            return await self._admissions.outlook(
                row, own.reason, self._kueue_objects(), self._clock.now(), self._kueue_version
            )
        by_scheduler = isinstance(own.reason, Unschedulable | PodsNotCreated) and is_plain(self._list.jobs[job])
        if by_scheduler and not self._batch.is_short(own):
            around = await read_surroundings(self._api, self._list.jobs[job])
            return await self._forecast.outlook(self._lists(), own, self._list.rows, around)
        if isinstance(own.reason, PodsStarting):
            own = replace(own, reason=await with_mount_failure(self._api, self._list.jobs[job], own.reason))
        # Placed pods wait for no scheduler, and queue managers plan no starts.
        bare = forecast.Outlook(
            job=job, name=row.name, position=own.position, explanation=own, forecast=forecast.Forecast()
        )
        core = await (await self._judged()).explain(job) if row.state is JobState.QUEUED else bare
        own, core = self._batch.with_figures(own, self._quota.with_holders(core, own.reason))
        return replace(core, explanation=own, position=own.position, forecast=forecast.Forecast(), scheduler=SCHEDULER)

    async def starts(self, jobs: Sequence[JobId]) -> list[forecast.ExpectedStart]:
        """Return the likely starts by cockpit's own simulations: neither Kubernetes' scheduler nor Kueue plans any."""
        await self._ready()
        rows = self._list.refresh()
        queued = [job for job in jobs if job in rows and isinstance(rows[job].reason, QueueWaits)]
        others = await self._forecast.starts(self._lists(), [job for job in jobs if job not in set(queued)])
        if not queued or not self._inventory.kueue.workloads:
            return others
        found = await self._admissions.likely(queued, self._kueue_objects(), self._clock.now(), self._kueue_version)
        return [*others, *(forecast.ExpectedStart(job, each.likely_at, each) for job, each in found.items())]

    async def predict(self, specs: Sequence[JobSpec]) -> list[forecast.Outlook]:
        """Predict jobs that are not submitted, by the objects that they would become. Refused where one can be none."""
        await self._ready()
        lists = self._lists()
        # A queue manager decides first, whose rules the embedded scheduler knows.
        if lists.quota is not None:
            return await (await self._judged()).predict(specs)
        made = [manifest_of(each, self._inventory.served, self._namespace, self.user) for each in specs]
        jobs = [job_of(resource, manifest) for resource, manifest in made]
        around = {each.meta.namespace: await read_namespace(self._api, each.meta.namespace) for each in jobs}
        return await self._forecast.predictions(lists, jobs, self._list.rows, around)

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        try:
            async with asyncio.timeout(timeout_seconds):
                seen = self._changes.count
                while (await self._row(job)).state not in ENDED:
                    await self._changes.after(seen)
                    seen = self._changes.count
        except TimeoutError:
            return None
        return self._placed_record(job)

    async def logs(self, request: asking.LogRequest) -> asking.LogChunk:
        if reason := self.capabilities.why_not("logs"):
            refuse_absent(reason)
        await self._row(JobId(request.job))
        if JobId(request.job) in self._list.gone:
            return asking.LogChunk(b"", 0, ended=True)
        return await self._replicas.read_log(request)

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        if reason := self.capabilities.why_not(SHELL):
            refuse_absent(reason)
        await self._ready()
        self._list.refresh()
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
        self._history.close()
        await self._holds.close()
        await self._replicas.close()
        await self._session.close()

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        if op not in _MIRRORED:
            refuse(f"A Kubernetes cluster has no {op.replace('_', ' ')}.")
        await self._ready()
        if op == "queues":
            return msgspec.convert(await self._queues(), answer, from_attributes=True)
        if op == "nodes":
            return cast("T", await self._mirror.nodes(self._lists()))
        return await (await self._mirror.look_at(self._lists())).read(op, args, answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        del args
        refuse(f"A Kubernetes cluster has no {op.replace('_', ' ')}.")

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        await self._ready()
        return await (await self._judged()).await_answer(op, args, answer)

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        await self._ready()
        self._list.refresh()
        if op == "delete" and isinstance(args, messages.JobArgs) and args.job in self._list.gone:
            self._list.forget(JobId(args.job))
            self._changes.notify()
            return msgspec.convert(None, answer)
        if isinstance(args, messages.ExtendArgs):
            until = await self._holds.extend(self._found(JobId(args.job))[1], args.seconds)
            return msgspec.convert(messages.HeldUntil(until), answer, from_attributes=True)
        if op == "requeue" and isinstance(args, messages.JobArgs):
            await self._requeuer.requeue(JobId(args.job), *self._found(JobId(args.job)))
            return msgspec.convert(None, answer)
        if op == "end_hold" and isinstance(args, messages.JobArgs):
            await self._holds.end(self._found(JobId(args.job))[1])
            return msgspec.convert(None, answer)
        return msgspec.convert(await self._acts.act(args, op), answer, from_attributes=True)

    async def _queues(self) -> view.QueuesShown:
        self._list.refresh()
        of_kueue = queue_rows(self._kueue_objects())
        tree = self._inventory.kube_queue.tree
        admin = self.capabilities.has("apply_quota") and await self._acts.quota.may_change()
        rows = (*self._quota.rows(), *of_kueue, *self._batch.rows())
        return view.QueuesShown(rows, tree.name if tree is not None else "", admin)

    def _kueue_objects(self) -> KueueObjects:
        return self._inventory.kueue.objects(sees_all=self._inventory.namespaces == ("",))

    @property
    def _kueue_version(self) -> object:
        return self._list.version, self._inventory.kueue.version

    async def _judged(self) -> InProcessBackend:
        return await self._mirror.judge(self._lists())

    def _lists(self) -> ClusterLists:
        self._list.refresh()
        return ClusterLists(
            self._clock.now(),
            # A copy, since the state may be made of it in a thread.
            dict(self._inventory.nodes),
            dict(sorted(self._list.jobs.items())),
            tuple(self._inventory.other_pods()),
            quota=self._inventory.kube_queue.tree,
            known_cards=self._inventory.cards,
            version=(self._list.version, *self._inventory.versions),
        )

    async def _row(self, job: JobId, task: int | None = None) -> JobRow:
        """Return the row of a job. Refused for an unknown one."""
        await self._ready()
        self._list.refresh()
        row = self._list.row(job) if task is None else None
        if row is None:
            raise unknown(job)
        return row

    async def _priority(self, row: JobRow) -> tuple[Breakdown, ...]:
        job = self._list.jobs.get(row.id)
        if row.state is not JobState.QUEUED or job is None:
            return ()
        return (breakdown_of(row, job, await self._classes.values()),)

    async def _events_of(self, job: JobId, *, recent: bool = False) -> list[EventRecord]:
        return await self._events.of_job(job, self._record(job), self._list.jobs.get(job), recent=recent)

    def _record(self, job: JobId) -> Job:
        """Return the record of a job, with the nodes that it has and without its cards."""
        if (gone := self._list.gone.get(job)) is not None:
            return gone.record
        found, cards = self._list.jobs[job], self._inventory.cards
        return self._holds.record(found, shown_job(found, job, node_placement(found), cards), cards)

    async def _last_lines(self, job: JobId) -> str:
        """Return the last lines of the replica that failed first; empty: none has failed, or its log is gone."""
        found = self._list.jobs.get(job)
        first = self._holds.failure(found) if found is not None else None
        return await self._last.of(found.pods[first.rank]) if found is not None and first is not None else ""

    def _placed_record(self, job: JobId) -> Job:
        """Return the record with what the job occupies, for which all pods are looked at."""
        if job in self._list.gone:
            return self._record(job)
        found = self._list.jobs[job]
        placement = job_placement(self._lists(), job)
        cards = self._inventory.cards
        return self._holds.record(found, shown_job(found, job, placement, cards), cards)

    def _job(self, job: JobId) -> KubeJob:
        """Return a job of the cluster. Refused for an unknown one, and for one that is gone."""
        found = self._list.jobs.get(job)
        if found is not None:
            return found
        if (gone := self._list.gone.get(job)) is None:
            raise unknown(job)
        message = f"Job {job_words(job)} ({gone.row.project}/{gone.row.name}) is gone: its object was deleted."
        raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))

    def _found(self, job: JobId) -> tuple[Resource, KubeJob]:
        found = self._job(job)
        resource = self._inventory.resource(found.meta.uid)
        if resource is None:
            message = (
                f"You have no right to read an object of the kind {found.kind}, so that it cannot be changed here."
            )
            raise RequestRefused(Refusal(RefusalKind.DENIED, message))
        return resource, found

    async def _ready(self) -> None:
        """Wait until everything has been listed once. Raises `Unreachable` while the server has never answered."""
        await self._session.ready()
        # A screen asks several questions at once, none of which may have to wait: a key is handled between them.
        await asyncio.sleep(0)
        self.user = self._acts.user = self._session.user
        self._acts.served = self._inventory.served
        self._acts.queue.takes_jobs_of = self._inventory.takes_jobs_of
        await self._list.settle()
        await self._holds.begin(lambda: list(self._list.jobs.values()))

    def _note(self) -> None:
        """Record what has changed since the last look."""
        # A copy: the list of rows is changed in place.
        gone = {job: each.row for job, each in self._list.gone.items()}
        self._history.look(self._list.rows | gone, self._seen_job, self._clock.now())

    def _seen_job(self, number: JobId) -> Job:
        """Return a job as the history records it: with what its pods hold."""
        gone = self._list.gone.get(number)
        return gone.record if gone is not None else past_job(self._list.jobs[number], number, self._inventory.cards)

    def _explanation(self, row: JobRow) -> Explanation | None:
        """Return why the job waits, and the jobs that the scheduler looks at before it."""
        if row.reason is None:
            return None
        if (queued := self._quota.explanation(row.id, row.reason, MOST_AHEAD)) is not None:
            return queued
        # Highest priority first, then the oldest (kube-scheduler's PrioritySort).
        own = (-(row.priority or 0), row.submitted_at, row.id)
        waiting = [each for each in self._list.rows.values() if each.state is JobState.QUEUED]
        ahead = sorted(key for each in waiting if (key := (-(each.priority or 0), each.submitted_at, each.id)) < own)
        return Explanation(row.id, row.reason, len(ahead) + 1, tuple(job for _, _, job in ahead[:MOST_AHEAD]))

    @property
    def _trouble(self) -> tuple[str, ...]:
        absent = self._inventory.absent.items()
        # Few users may read the devices of resource claims, and few clusters have any.
        shown = (f"{each.shown} cannot be read: {why}" for each, why in absent if each not in DEVICES)
        said = dict.fromkeys((*shown, *self._inventory.unseen))
        return (*said, *self._inventory.missing_parts, *self._inventory.devices.trouble)
