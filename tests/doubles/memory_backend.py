"""A cluster of plain rows: what the faces are given, and a note of what they asked for."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Sequence
from tempfile import NamedTemporaryFile

from msgspec.structs import replace

from cockpit.backends.base import Backend, CommandPreview, JobsDelta, ShellSession
from cockpit.engine.state import ClusterState
from cockpit.errors import RequestRefused
from cockpit.formats.snapshotfile import Snapshot
from cockpit.model.accountchange import AccountChange
from cockpit.model.accounting import EndedJob, Spending
from cockpit.model.asking import (
    LogChunk,
    LogMatches,
    LogRequest,
    LogSearch,
    LogStream,
    ShellRequest,
    WantedLimit,
    WantedPriority,
)
from cockpit.model.capabilities import EMBEDDED, Ability, Capabilities
from cockpit.model.catalogue import CatalogueShown, EntryChange
from cockpit.model.cluster import Cluster, PriorityKind, Reservation, Weights
from cockpit.model.events import EventRecord
from cockpit.model.forecast import ExpectedStart, Outlook
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.jobdetail import JobDetail
from cockpit.model.jobrow import JobRow
from cockpit.model.priority import WeightChanges
from cockpit.model.quota import QuotaTree
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.requests import RequestOutcome
from cockpit.model.spec import JobSpec
from cockpit.model.staging import StagedCopy
from cockpit.model.view import (
    AccountsShown,
    EngineStatus,
    HoldRow,
    NodeRow,
    Overview,
    Priorities,
    QueuesShown,
    WeightsSet,
)
from cockpit.runtime.log_search import matches_of, part_of, refused_search, search_command


class MemoryBackend(Backend):
    """Answers from its lists, never suspends, and keeps every acting call in `asked`."""

    capabilities: Capabilities = EMBEDDED

    def __init__(self) -> None:
        self.job_rows: list[JobRow] = []
        self.copies: list[StagedCopy] = []
        self.details: dict[int, JobDetail] = {}
        self.ended_jobs: list[EndedJob] = []
        self.spent = lambda edges: Spending(edges, ((),) * (len(edges) - 1))
        self.node_rows: list[NodeRow] = []
        self.hold_rows: list[HoldRow] = []
        self.cluster = Cluster()
        self.tree = AccountsShown((), ())
        self.catalogued = CatalogueShown(())
        self.queued = QueuesShown(())
        self.reserved: list[Reservation] = []
        self.event_records: list[EventRecord] = []
        self.ended: dict[int, Job | None] = {}
        self.outlooks: dict[int, Outlook] = {}
        self.log, self.errors = b"", b""
        self.order = Priorities(PriorityKind.BASIC, Weights(), ())
        self.tried: Priorities | None = None
        self.deltas: list[JobsDelta] = []
        self.glance: Overview | None = None
        self.session: ShellSession | None = None
        self.refusal: Refusal | None = None
        self.asked: list[tuple[object, ...]] = []
        self.closed = False
        self.engine_status = EngineStatus(True, 77, "/run/s", "/var/s", "0.1.0", "1.0", False, Millis(0), 5, "overlay")

    async def perform(self, operation: object, given: object) -> None:
        raise NotImplementedError("every operation is answered by its own method")

    async def snapshot(self) -> Snapshot:
        jobs = {each.job.id: each.job for each in self.details.values()}
        return Snapshot(cluster=(await self.overview()).cluster, at=Millis(0), state=ClusterState(jobs=jobs))

    async def request(self, request: str) -> RequestOutcome:
        return RequestOutcome(known=False)

    def announce(self, look: object, *, required: bool = False) -> None:
        """It runs no commands."""

    async def written(self, spec: JobSpec) -> CommandPreview | None:
        if self.refusal is not None:
            raise RequestRefused(self.refusal)
        return (
            CommandPreview(("sbatch", f"--job-name={spec.name}"), "#!/bin/sh\ntrue\n")
            if self.capabilities.has(Ability.SCRIPTS)
            else None
        )

    async def direct(self, wanted: object) -> JobId | None:
        self.asked.append(("direct", wanted))
        if self.refusal is not None:
            raise RequestRefused(self.refusal)
        return JobId(4800)

    async def status(self) -> EngineStatus:
        return self.engine_status

    async def overview(self) -> Overview:
        assert self.glance is not None
        return self.glance

    async def jobs(self, *, ended: bool = False) -> list[JobRow]:
        self.asked.append(("jobs", ended))
        return [row for row in self.job_rows if ended or row.ended_at is None or row.held_until is not None]

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        if job not in self.details:
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, f"there is no job {job}; see cockpit jobs"))
        return self.details[job]

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        self.asked.append(("accounting", since, until, user))
        return self.ended_jobs

    async def spending(self, edges: Sequence[Millis]) -> Spending:
        self.asked.append(("spending", *edges))
        return self.spent(tuple(edges))

    async def nodes(self) -> list[NodeRow]:
        return self.node_rows

    async def holds(self) -> list[HoldRow]:
        return self.hold_rows

    async def rules(self) -> Cluster:
        return self.cluster

    async def accounts(self) -> AccountsShown:
        return self.tree

    async def change_accounts(self, change: AccountChange) -> None:
        self._act("change_accounts", change)

    async def catalogue(self) -> CatalogueShown:
        return self.catalogued

    async def change_catalogue(self, changes: Sequence[EntryChange]) -> None:
        self._act("change_catalogue", *changes)

    async def queues(self) -> QueuesShown:
        return self.queued

    async def apply_quota(self, tree: QuotaTree) -> None:
        self._act("apply_quota", tree)

    async def remove_quota(self) -> None:
        self._act("remove_quota")

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        self.asked.append(("priorities", weights))
        return self.tried if weights is not None and self.tried is not None else self.order

    async def set_weights(self, weights: WeightChanges) -> WeightsSet:
        self._act("set_weights", weights)
        return WeightsSet(weights.on(self.cluster.priority.weights), "/etc/cockpit-cluster/cluster.toml")

    async def reservations(self) -> list[Reservation]:
        return self.reserved

    async def make_reservation(self, reservation: Reservation) -> None:
        self._act("make_reservation", reservation)

    async def end_reservation(self, name: str) -> None:
        self._act("end_reservation", name)

    async def drain_node(self, name: str, reason: str, within_seconds: int | None = None) -> None:
        self._act("drain_node", name, reason, *(() if within_seconds is None else (within_seconds,)))

    async def resume_node(self, name: str) -> None:
        self._act("resume_node", name)

    async def staged(self) -> list[StagedCopy]:
        return self.copies

    async def unstage(self, name: str) -> None:
        self._act("unstage", name)

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        self.asked.append(("explain", job, task))
        if job not in self.outlooks:
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, f"job {job} does not wait"))
        return self.outlooks[job]

    async def starts(self, jobs: Sequence[JobId]) -> list[ExpectedStart]:
        told = ((job, self.outlooks[job].forecast) for job in jobs if job in self.outlooks)
        return [
            ExpectedStart(job, each.likely_at, replace(each, after=()))
            for job, each in told
            if each.likely_at is not None
        ]

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        self._act("predict", *specs)
        return list(self.outlooks.values())

    async def events(
        self, *, job: JobId | None = None, after: int = -1, limit: int = 1000, rank: int | None = None
    ) -> list[EventRecord]:
        self.asked.append(("events", job, after, limit, *([] if rank is None else [rank])))
        return self.event_records[-limit:]

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        for delta in self.deltas:
            yield delta

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        self._act("submit", *specs)
        return [JobId(100 + index) for index in range(len(specs))]

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        self._act("cancel", job, *_task(task), grace_seconds)

    async def hold(self, job: JobId, *, task: int | None = None) -> None:
        self._act("hold", job, *_task(task))

    async def release(self, job: JobId, *, task: int | None = None) -> None:
        self._act("release", job, *_task(task))

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        self._act("suspend", job, *_task(task))

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        self._act("resume", job, *_task(task))

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        self._act("requeue", job, *_task(task))

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        self._act("set_priority", job, priority, *_task(task))

    async def set_time_limit(self, job: JobId, limit: WantedLimit, *, task: int | None = None) -> None:
        self._act("set_time_limit", job, limit, *_task(task))

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        self._act("edit", job, spec)

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        self._act("delete", job, *_task(task))

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        self.asked.append(("wait", job, timeout_seconds))
        return self.ended[job]

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        self._act("extend_hold", job, seconds)
        return Millis(self.hold_rows[0].held_until + seconds * 1000)

    async def end_hold(self, job: JobId) -> None:
        self._act("end_hold", job)

    async def unblock(self, job: JobId, node: NodeName) -> None:
        self._act("unblock", job, node)

    async def logs(self, request: LogRequest) -> LogChunk:
        self.asked.append(("logs", request))
        log = self.log if request.stream is LogStream.STDOUT else self.errors
        start = max(len(log) + request.offset, 0) if request.offset < 0 else request.offset
        data = log[start : start + request.limit]
        return LogChunk(data, start, start + len(data) >= len(log), size=len(log))

    async def search_log(self, request: LogSearch) -> LogMatches:
        self.asked.append(("search_log", request))
        log = self.log if request.stream is LogStream.STDOUT else self.errors
        part = part_of(request, len(log))
        with NamedTemporaryFile() as file:
            file.write(log)
            file.flush()
            # Commands under test run without an event loop.
            done = subprocess.run(  # noqa: ASYNC221 - see above
                search_command(file.name, request, part), capture_output=True, text=True, check=False
            )
        if done.stderr:
            raise refused_search(request, done.stderr)
        return matches_of(request, part, done.stdout)

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        self._act("open_shell", request)
        assert self.session is not None
        return self.session

    async def close(self) -> None:
        self.closed = True

    def _act(self, *asked: object) -> None:
        self.asked.append(asked)
        if self.refusal is not None:
            raise RequestRefused(self.refusal)


def _task(task: int | None) -> tuple[int, ...]:
    return () if task is None else (task,)
