"""The backend of a Kubernetes cluster.

Objects are listed once and then watched (`Inventory`); of them rows are made (`JobList`). Nodes, explanations and
predictions come from the embedded scheduler over a copy of the cluster (`PlanningMirror`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from cockpit import __version__
from cockpit.backends.base import Asking, Connection, JobsDelta, LiveBackend, Phase, ShellSession, refuse_absent
from cockpit.backends.kubernetes.acting import Acts, unknown
from cockpit.backends.kubernetes.capabilities import CAPABILITIES, without_rights
from cockpit.backends.kubernetes.holds import LOOK_SECONDS, Holds
from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.job_list import JobList
from cockpit.backends.kubernetes.logs import PodLogs
from cockpit.backends.kubernetes.mapping.kueue import queue_rows
from cockpit.backends.kubernetes.mapping.nodes import node_of
from cockpit.backends.kubernetes.mapping.planning import ClusterLists, shown_job
from cockpit.backends.kubernetes.mirror import PlanningMirror
from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire.access import user_name
from cockpit.backends.kubernetes.wire.exec import run_in_pod
from cockpit.backends.overviews import overview_of
from cockpit.backends.remote_shell import ShellStreams, remote_shell
from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.model import asking, forecast, jobdetail, view
from cockpit.model.capabilities import Capabilities
from cockpit.model.ids import JobId, job_words
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.pod_reasons import Unschedulable
from cockpit.model.reasons import Explanation, NeverFits, NoEligibleNode, NotEnoughFree
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.protocol import messages
from cockpit.protocol.operations import SHELL
from cockpit.runtime.latest import Latest
from cockpit.runtime.offline_engine import refuse
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from random import Random

    from cockpit.backends.inprocess import InProcessBackend
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.ids import Millis
    from cockpit.model.operations import Operation
    from cockpit.runtime.clock import Timekeeper

T = TypeVar("T")

SCHEDULER = "Kubernetes"
SHELL_COMMAND = ("sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh")
"""Bash where the image has it; every image with a shell has sh."""
COALESCE_SECONDS = 0.15
"""How long changes are collected before they are shown: some six times a second, however many there are."""
CHECK_SECONDS = 10.0
"""How often a server is asked for a sign of life while nothing changes."""
FIRST_LIST_SECONDS = 60.0
"""Longest time that the first complete list may take."""
MOST_AHEAD = 10
_MIRRORED = frozenset({"rules", "nodes", "reservations", "queues"})
"""Operations that the embedded engine answers from its copy of the cluster."""


class KubernetesBackend(Asking, LiveBackend):
    """Reads one context's cluster. Sends no request before the first operation."""

    def __init__(
        self, name: str, connect: Callable[[], Api], namespace: str, clock: Timekeeper, random: Random, user: str
    ) -> None:
        """`connect`: makes a connection; each event loop has its own. `namespace`: that of the kubeconfig's context."""
        self._name, self._connect, self._clock = name, connect, clock
        self._api = api = connect()
        self.user = user
        self._changed = asyncio.Event()
        self._inventory = Inventory(api, namespace, random, self._notify)
        self._holds = Holds(api, self._inventory.mark)
        self._list = JobList(self._inventory, self._holds.shown)
        self._mirror = PlanningMirror(clock, name, user)
        self._acts = Acts(api, self._list.numbers, self._found, namespace)
        self._logs = PodLogs(api)
        self._connection = Latest(Connection(Phase.CONNECTING))
        self._good_at: Millis | None = None
        """When the server last answered while all watches were in order."""
        self._starting = asyncio.Lock()
        self._started = False
        self._looked = False
        """Whether held containers were looked for once."""
        self._tasks = Tasks()
        self._server_version = ""

    @property
    def capabilities(self) -> Capabilities:
        return without_rights(CAPABILITIES, self._inventory.absent)

    async def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the operation
        # What the user may not read is known only after the first look.
        await self._ready()
        return await super().perform(operation, given)

    async def status(self) -> view.EngineStatus:
        await self._ready()
        return view.EngineStatus(
            running=True,
            pid=None,
            socket=self._api.context,
            state_folder="",
            version=f"Kubernetes {self._server_version}, cockpit {__version__}",
            protocol="",
            system=True,
            started_at=None,
            jobs=len(self._list.refresh()),
            trouble=self._trouble,
            user=self.user,
        )

    async def overview(self) -> view.Overview:
        await self._ready()
        nodes = [node_of(each) for each in self._inventory.nodes.values()]
        shown = overview_of(self._name, self._list.refresh().values(), nodes)
        return replace(shown, trouble=self._trouble, admin=False)

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        await self._ready()
        if (why := self._inventory.absent.get(PODS)) and not self._list.rows:
            message = (
                f"Pods cannot be listed: {why}. If you may list those of another namespace, name it in the context: "
                "kubectl config set-context --current --namespace=NAME"
            )
            raise RequestRefused(Refusal(RefusalKind.DENIED, message))
        rows = sorted(self._list.refresh().values(), key=lambda row: row.id)
        return rows if ended else [row for row in rows if _is_listed(row)]

    async def job(self, job: JobId, *, task: int | None = None) -> jobdetail.JobDetail:
        row = await self._row(job, task)
        return jobdetail.JobDetail(
            row=row,
            job=shown_job(self._list.jobs[job], job),
            explanation=self._explanation(row),
            events=(),
            recorded=True,
        )

    async def holds(self) -> list[view.HoldRow]:
        await self._ready()
        self._list.refresh()
        return list(self._holds.rows(self._list.jobs))

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        row = await self._row(job, task)
        own = self._explanation(row)
        if own is None:
            message = f"Job {job_words(job)} is {row.state}; only a job that waits can be explained."
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        core = await (await self._judged()).explain(job)
        judged = core.explanation.reason if core.explanation is not None else None
        # The scheduler's message counts nodes by cause; cockpit's own look at the nodes says how much they have free.
        if isinstance(own.reason, Unschedulable) and isinstance(judged, NotEnoughFree | NeverFits | NoEligibleNode):
            own = replace(own, reason=judged)
        # Kubernetes' schedulers plan no starts, and most jobs have no time limit from which one would follow.
        return replace(core, explanation=own, position=own.position, forecast=forecast.Forecast(), scheduler=SCHEDULER)

    async def starts(self, jobs: Sequence[JobId]) -> list[forecast.ExpectedStart]:
        """Return nothing: Kubernetes' schedulers plan no starts."""
        del jobs
        return []

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        try:
            async with asyncio.timeout(timeout_seconds):
                while (await self._row(job)).state not in ENDED:
                    await self._next_change()
        except TimeoutError:
            return None
        return shown_job(self._list.jobs[job], job)

    async def logs(self, request: asking.LogRequest) -> asking.LogChunk:
        if reason := self.capabilities.why_not("logs"):
            refuse_absent(reason)
        pod = await self._pod(JobId(request.job), request.rank)
        # Kubernetes stores both streams as one.
        if pod is None or request.stream is asking.LogStream.STDERR:
            return asking.LogChunk(b"", 0, ended=pod is None or pod.has_ended)
        return await self._logs.read(pod, request.offset, request.limit, wait=request.wait)

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        """Open a shell in a running pod. Refused for a pod that does not run: Kubernetes has no way into it."""
        if reason := self.capabilities.why_not(SHELL):
            refuse_absent(reason)
        pod = await self._pod(JobId(request.job), request.rank)
        if pod is None or pod.now.phase != "Running":
            state = "has no pod on a node" if pod is None else f"has ended ({pod.now.phase})"
            message = f"Replica {request.rank} of job {job_words(request.job)} {state}; only a running pod has a shell."
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        container = pod.spec.containers[0].name if pod.spec.containers else ""
        where = (pod.metadata.namespace, pod.metadata.name, container)
        argv = request.command or SHELL_COMMAND

        async def session(streams: ShellStreams) -> int:
            return await run_in_pod(self._connect, where, argv, request, streams)

        held = self._holds.of(self._list.jobs[JobId(request.job)])
        return remote_shell(session, request, kept=held is not None and held[0] is pod)

    @property
    def connection(self) -> Connection:
        return self._connection.value

    @property
    def silence(self) -> str:
        return self.connection.reason if self.connection.phase is Phase.STALE else ""

    def connections(self) -> AsyncIterator[Connection]:
        return self._connection.follow()

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        await self._ready()
        known: dict[JobId, JobRow] = {}
        version, silence = 0, ""
        while True:
            await self._list.settle()
            rows = {job: row for job, row in self._list.refresh().items() if _is_listed(row) or job in known}
            # Rows of unchanged jobs are the same objects as before.
            changed = tuple(row for job, row in rows.items() if known.get(job) is not row)
            removed = tuple(known.keys() - rows.keys())
            if changed or removed or anything or not version or silence != self.silence:
                version, known, silence = version + 1, rows, self.silence
                yield JobsDelta(changed, removed, version)
            await self._next_change()

    async def overviews(self) -> AsyncIterator[view.Overview]:
        last: view.Overview | None = None
        while True:
            with suppress(CockpitError):
                now = await self.overview()
                if now != last:
                    yield now
                last = now
            await self._next_change()

    async def close(self) -> None:
        await self._tasks.cancel_all()
        await self._inventory.stop()
        await self._logs.close()
        await self._api.close()

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        if op not in _MIRRORED:
            refuse(f"A Kubernetes cluster has no {op.replace('_', ' ')}.")
        await self._ready()
        if op == "queues":
            rows = queue_rows(self._inventory.cluster_queues.values(), self._inventory.local_queues.values())
            return msgspec.convert(view.QueuesShown(tuple(rows)), answer, from_attributes=True)
        return await (await self._mirror.look_at(*self._lists())).read(op, args, answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        del args
        refuse(f"A Kubernetes cluster has no {op.replace('_', ' ')}.")

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        await self._ready()
        return await (await self._judged()).await_answer(op, args, answer)

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        await self._ready()
        self._list.refresh()
        if isinstance(args, messages.ExtendArgs):
            until = await self._holds.extend(self._found(JobId(args.job))[1], args.seconds)
            return msgspec.convert(messages.HeldUntil(until), answer, from_attributes=True)
        if op == "end_hold" and isinstance(args, messages.JobArgs):
            await self._holds.end(self._found(JobId(args.job))[1])
            return msgspec.convert(None, answer)
        return msgspec.convert(await self._acts.act(args, op), answer, from_attributes=True)

    async def _judged(self) -> InProcessBackend:
        return await self._mirror.judge(*self._lists())

    def _lists(self) -> tuple[ClusterLists, object]:
        """Return everything that was read, and a value that changes with it."""
        self._list.refresh()
        lists = ClusterLists(
            self._clock.now(),
            self._inventory.nodes,
            dict(sorted(self._list.jobs.items())),
            tuple(self._inventory.other_pods()),
        )
        return lists, (self._list.version, self._inventory.nodes_version, self._inventory.pods_version)

    async def _row(self, job: JobId, task: int | None = None) -> JobRow:
        """Return the row of a job. Refused for an unknown one."""
        await self._ready()
        row = self._list.refresh().get(job) if task is None else None
        if row is None:
            raise unknown(job)
        return row

    async def _pod(self, job: JobId, rank: int) -> Pod | None:
        """Return a job's pod by its rank; None: it has none yet. Refused for an unknown job, or a rank too high."""
        await self._row(job)
        found = self._list.jobs[job]
        if rank >= max(1, found.wanted, len(found.pods)):
            message = f"Job {job_words(job)} has {found.wanted} replicas; the last one is {found.wanted - 1}."
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
        return found.pods[rank] if rank < len(found.pods) else None

    def _found(self, job: JobId) -> tuple[Resource, KubeJob]:
        found = self._list.jobs.get(job)
        resource = self._inventory.resource(found.meta.uid) if found is not None else None
        if found is None or resource is None:
            raise unknown(job)
        return resource, found

    async def _ready(self) -> None:
        """Begin to read the cluster, and wait until everything has been listed once.

        Raises `Unreachable` while the server has never answered.
        """
        async with self._starting:
            if not self._started:
                self._server_version = await _version(self._api)
                self.user = await user_name(self._api) or self.user
                await self._inventory.start()
                self._acts.user, self._acts.served = self.user, self._inventory.served
                self._started = True
                self._tasks.start(self._check(), "the check of the API server")
                self._tasks.start(self._look_for_holds(), "the look for held containers")
        try:
            async with asyncio.timeout(FIRST_LIST_SECONDS):
                while not self._inventory.synced:
                    if self._inventory.trouble is not None:
                        raise self._inventory.trouble
                    await self._next_change()
        except TimeoutError:
            raise Unreachable(
                f"The API server of the context {self._api.context!r} did not list its objects within "
                f"{FIRST_LIST_SECONDS:.0f} s."
            ) from None
        self._connected()
        await self._list.settle()
        if not self._looked:
            self._looked = True
            await self._holds.look(self._list.jobs.values())

    async def _look_for_holds(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._holds.look(list(self._list.jobs.values()))

    async def _check(self) -> None:
        """Ask for a sign of life again and again: a server that has gone away ends no watch."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                self._server_version = await _version(self._api)
            except CockpitError as error:
                self._stale(error)
            else:
                self._connected()

    def _connected(self) -> None:
        if self._inventory.trouble is not None:
            self._stale(self._inventory.trouble)
            return
        self._good_at = self._clock.now()
        if self.connection.phase is not Phase.CONNECTED:
            self._connection.put(Connection(Phase.CONNECTED, good_at=self._good_at))
            self._notify()

    def _stale(self, error: CockpitError) -> None:
        if self.connection.phase is not Phase.STALE:
            self._connection.put(Connection(Phase.STALE, str(error), self._good_at))
            self._notify()

    def _explanation(self, row: JobRow) -> Explanation | None:
        """Return why the job waits, and the jobs that the scheduler looks at before it."""
        if row.reason is None:
            return None
        # Highest priority first, then the oldest (kube-scheduler's PrioritySort).
        own = (-(row.priority or 0), row.submitted_at, row.id)
        waiting = [each for each in self._list.rows.values() if each.state is JobState.QUEUED]
        ahead = sorted(key for each in waiting if (key := (-(each.priority or 0), each.submitted_at, each.id)) < own)
        return Explanation(row.id, row.reason, len(ahead) + 1, tuple(job for _, _, job in ahead[:MOST_AHEAD]))

    @property
    def _trouble(self) -> tuple[str, ...]:
        shown = (f"{each.shown} cannot be read: {why}" for each, why in self._inventory.absent.items())
        return tuple(dict.fromkeys(shown))

    def _notify(self) -> None:
        self._changed.set()

    async def _next_change(self) -> None:
        """Wait for a change, and for those that follow within `COALESCE_SECONDS`."""
        changed = self._changed
        await changed.wait()
        await asyncio.sleep(COALESCE_SECONDS)
        # A new event for the next wait: clearing the old one could race with a watcher that has not woken up yet.
        if self._changed is changed:
            self._changed = asyncio.Event()


def _is_listed(row: JobRow) -> bool:
    """Return whether the job is live or held."""
    return row.ended_at is None or row.held_until is not None


class _ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


async def _version(api: Api) -> str:
    try:
        return msgspec.json.decode(await api.get("/version"), type=_ServerVersion).git_version
    except msgspec.DecodeError as error:
        raise Unreachable(f"What answers for the context {api.context!r} is no API server: {error}.") from error
