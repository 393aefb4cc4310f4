"""The backend of a Slurm cluster.

Lists, states and reasons are Slurm's own; predictions and what-ifs come from the embedded scheduler (`PlanningMirror`).
Parts: `Reading` reads, `Acts` changes, `Rows` makes the job list, `ClusterWatch` looks for changes, `History` records
them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from cockpit import __version__
from cockpit.backends.base import (
    Announced,
    Asking,
    CommandPreview,
    Connection,
    JobsDelta,
    LiveBackend,
    ShellSession,
    TypedLogin,
    refuse_absent,
    why_not_stream,
)
from cockpit.backends.job_history import History
from cockpit.backends.overviews import overview_of
from cockpit.backends.slurm import entering, logs
from cockpit.backends.slurm.acting import Acts, submissions
from cockpit.backends.slurm.mapping import accounting, licences, rules, values
from cockpit.backends.slurm.mapping.holding import holds
from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.backends.slurm.mirroring import planning_mirror, recounted, with_ended
from cockpit.backends.slurm.past import HISTORY, ended_jobs, jobs_between, look_up, look_up_waiting
from cockpit.backends.slurm.ranking import all_tasks_counted, printed_of, shares_shown, site_factors
from cockpit.backends.slurm.ranking import priorities as in_order
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.rows import Rows, ended_row, explanation, past_row, task_row
from cockpit.backends.slurm.snapshot import snapshot as taken
from cockpit.backends.slurm.watching import LOOK_SECONDS, ClusterWatch
from cockpit.backends.slurm.why import SLURM, outlook, predicted
from cockpit.backends.slurm.wire.calls import Garbled
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model import asking, forecast, jobdetail, view
from cockpit.model.accounting import EndedJob, Spending
from cockpit.model.capabilities import (
    NO_DEBUG_IMAGE,
    NO_FLEET,
    NO_MANIFESTS,
    NO_REQUEST_IDS,
    ONE_CLUSTER,
    Ability,
    Capabilities,
)
from cockpit.model.events import EventRecord
from cockpit.model.fleetrow import MemberObject
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import HoldAllocation, JobSpec
from cockpit.protocol.operations import SHELL
from cockpit.runtime.observed_history import ObservedHistory
from cockpit.runtime.offline_engine import refuse
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from cockpit.backends.inprocess import InProcessBackend
    from cockpit.backends.slurm.mapping.jobs import LookedUpJob
    from cockpit.backends.slurm.wire.calls import Commands
    from cockpit.formats.snapshotfile import Snapshot
    from cockpit.model.directives import Directive
    from cockpit.model.priority import WeightChanges
    from cockpit.runtime.clock import Timekeeper

T = TypeVar("T")

_MIRRORED = frozenset({"rules", "nodes", "reservations"})
"""Operations that the embedded engine answers from its copy of the cluster."""


CAPABILITIES = Capabilities(
    {
        "delete": "Slurm's accounting keeps jobs that have ended; the cockpit cannot delete them.",
        "unblock": "Slurm has no elastic jobs, and so no block lists of jobs.",
        "set_weights": "This cluster's weights are set in slurm.conf: its administrator changes them there and runs "
        "`scontrol reconfigure`.",
        "apply_quota": "Slurm has no quota tree: limits are set with `cockpit accounts modify`.",
        "remove_quota": "Slurm has no quota tree.",
        "catalogue": "A Slurm cluster has no catalogue.",
        "change_catalogue": "A Slurm cluster has no catalogue.",
        "staged": "A Slurm cluster has no staged copies.",
        "unstage": "A Slurm cluster has no staged copies.",
        "request": "Slurm remembers no request ids; `cockpit jobs` shows what was submitted.",
        "fleet": NO_FLEET,
        Ability.CLUSTERS: ONE_CLUSTER,
        Ability.MANIFESTS: NO_MANIFESTS,
        Ability.RESIZE: "Slurm has no elastic jobs: a running job keeps its number of nodes.",
        Ability.DEBUG_IMAGE: NO_DEBUG_IMAGE,
        Ability.MERGED_LOGS: "Slurm writes output into plain files without times, so stdout and stderr cannot be "
        "merged by time; a job that names no file for its errors (`#SBATCH -e`) has both in one.",
        Ability.QUOTA_TREE: "No quota tree: this cluster has its own scheduler, which has none.",
        Ability.EVERY_EVENT: "What a cockpit saw while it was connected; Slurm provides no history of events.",
        Ability.ENVIRONMENT: "Slurm does not show a job's environment variables: they are part of its batch script.",
        Ability.REQUEST_IDS: NO_REQUEST_IDS,
        Ability.LOCAL_FILES: "A Slurm cluster's jobs run on its nodes, whose folders may differ from this machine's.",
    }
)


class SlurmBackend(Asking, LiveBackend):
    """Asks Slurm by its commands. Runs no command before the first operation."""

    def __init__(
        self,
        name: str,
        commands: Commands,
        reading: Reading,
        clock: Timekeeper,
        user: str,
        introduction: Callable[[], Awaitable[tuple[str, ObservedHistory]]] | None = None,
        login: TypedLogin | None = None,
    ) -> None:
        """`introduction`: returns the cluster's own name and the file for its history, once the cluster answers.

        Without it the cluster keeps `name`, and the history is lost when cockpit ends.
        """
        self._name, self._commands, self._reading, self._clock = name, commands, reading, clock
        self.user = user
        """Name of the user on the cluster; empty when unknown."""
        self.login = login
        """Login by a typed password or code; None: the transport never needs one."""
        self._rows = Rows(user)
        self._mirror = planning_mirror(clock, name, user)
        self._acts = Acts(commands, reading, user)
        self._history = History(ObservedHistory(None, SLURM))
        self._introduction = introduction
        self._introducing = asyncio.Lock()
        self._beside = Tasks()
        self._watch = ClusterWatch(reading, self._all_rows, self._whose_past, self._note)

    async def _introduce(self) -> None:
        """Learn the cluster's name, once. Raises `CockpitError` while the cluster does not answer."""
        async with self._introducing:
            if self._introduction is not None:
                name, observed = await self._introduction()
                self._introduction, self._name, self._mirror.name = None, name, name
                self._history.close()
                self._history = History(observed)

    def introduced_within(self, seconds: float) -> Awaitable[object]:
        """Start to learn the cluster's name and wait at most `seconds` for it; operations wait for the rest."""

        async def first() -> None:
            with suppress(CockpitError):  # the first operation raises it again
                await self._introduce()

        return asyncio.wait({self._beside.start(first(), "the cluster's name")}, timeout=seconds)

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES.without(self._commands.absent)

    async def status(self) -> view.EngineStatus:
        conf = await self._reading.config()
        return view.EngineStatus(
            running=True,
            pid=None,
            socket=self._commands.name,
            state_folder="",
            version=f"Slurm {rules.version(conf)}, cockpit {__version__}",
            protocol="",
            system=True,
            started_at=None,
            jobs=len(await self._reading.jobs()),
            containers="",
            trouble=tuple(self._reading.trouble.values()),
            user=self.user,
        )

    async def overview(self) -> view.Overview:
        rows = await self.jobs(ended=True)
        nodes = [each.node for each in await self._reading.nodes()]
        shown = overview_of(self._name, rows, nodes)
        return replace(shown, trouble=tuple(self._reading.trouble.values()), admin=self._rows.admin)

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        rows = await self._all_rows()
        if not ended:
            return [row for row in rows.values() if row.ended_at is None]
        # The controller's record of a job is newer than that of accounting, which may have both.
        past = [past_row(each) for each in await self._reading.sacct.ended(HISTORY) if each.job.id not in rows]
        return [*past, *rows.values()]

    async def job(self, job: JobId, *, task: int | None = None) -> jobdetail.JobDetail:
        known, rows = await self._with_rows(lambda: look_up(self._reading, job, task))
        record, listed = known.job, known.listed
        row = task_row(rows[listed.id], record) if listed is not None else ended_row(record, known.fields)
        reason = explanation(row, rows)
        has_started = record.attempt is not None
        steps: tuple[jobdetail.StepRow, ...] = ()
        if has_started:
            try:
                steps = (await self._reading.sacct.accounted(slurm_id(record.id)))[1]
            except Garbled:
                raise
            except CockpitError:
                pass  # the details are useful without accounting, too
        # Accounting learns of running steps late, or, without a database, never.
        if has_started and record.state not in ENDED:
            steps = accounting.beside(steps, await self._reading.running_steps(known.number))
        path = await logs.output_path(self._reading, known)
        # sprio prints waiting jobs only.
        ranked = await self._reading.priorities() if reason is not None else {}
        return jobdetail.JobDetail(
            row=replace(row, output=path),
            job=replace(record, spec=replace(record.spec, output=path)),
            explanation=reason,
            events=self._history.of(record),
            waited=self._history.waited(record, self._clock.now()),
            recorded=True,
            log_tail=await logs.tail(self._commands, self._reading, known) if record.state in ENDED else "",
            steps=await logs.with_outputs(self._reading, known, steps),
            priority=printed_of(record.id, ranked),
        )

    async def holds(self) -> list[view.HoldRow]:
        running_jobs = (each.job for each in await self._reading.jobs() if each.kind is JobState.RUNNING)
        return list(holds(running_jobs))

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        known, rows = await self._with_rows(lambda: look_up_waiting(self._reading, job, task))
        return await outlook(self._reading, self._mirror, known, rows)

    async def own_object(self, job: JobId, *, cluster: str = "") -> MemberObject:
        """Return Slurm's record of the job: squeue's fields, of an ended job those of sacct."""
        known = await look_up(self._reading, job)
        fields = known.listed.fields if known.listed is not None else known.fields
        text = "".join(f"{name}={value}\n" for name, value in fields.items())
        return MemberObject(cluster=cluster or self._name, own=slurm_id(job), form="text", text=text)

    async def starts(self, jobs: Sequence[JobId]) -> list[forecast.ExpectedStart]:
        """Return Slurm's own estimates, which come with squeue's list: predicting all would cost too much."""
        rows = await self._all_rows()
        estimates = ((job, rows[job].starts_by) for job in jobs if job in rows)
        return [forecast.ExpectedStart(job, at) for job, at in estimates if at is not None]

    async def predict(self, specs: Sequence[JobSpec]) -> list[forecast.Outlook]:
        """Predict with the embedded scheduler, without asking Slurm."""
        return await predicted(self._reading, self._mirror, specs)

    async def priorities(self, weights: WeightChanges | None = None) -> view.Priorities:
        rows, printed = await self._all_rows(), await self._reading.priorities()
        # Slurm has no question for other weights, so here, and only here, priorities are computed.
        if weights is not None:
            unknown = self.capabilities.why_not(Ability.WEIGHTS)
            if unknown and not weights.is_complete:
                refuse(f"{unknown} With other weights the order is known only if you name all of them, also 0.")
            everything = await self._reading.everything(closely=False)
            everything = everything._replace(site_factors=site_factors(printed))
            return await (await recounted(everything, self._clock, self._name)).priorities(weights)
        return in_order(rows.values(), printed, await self._reading.rules())

    async def _queues(self) -> view.QueuesShown:
        """Return the partitions, then the licences."""
        shown, jobs = await (await self._looking_backend()).queues(), await self._reading.jobs()
        waiting: Counter[str] = Counter()
        for each in jobs:
            # The mirror plans at most `PLANNED_TASKS` of an array; the records have the true number.
            for partition in values.names(each.fields["Partition"]) if each.waits else ():
                waiting[partition] += len(each.tasks) or 1
        rows = (replace(row, waiting=waiting[row.path]) for row in shown.rows)
        return replace(shown, rows=(*rows, *licences.queue_rows(await self._reading.licences(), jobs)))

    async def accounts(self) -> view.AccountsShown:
        shown = await (await self._looking_backend()).accounts()
        if missing := self._reading.missing("sacctmgr list qos", "sacctmgr list assoc"):
            # sshare alone has accounts and shares, without limits and QOS.
            known = bool(await self._reading.shares())
            return replace(shown, rows=shown.rows if known else (), qos=(), missing=missing)
        shown = all_tasks_counted(shown, await self._reading.jobs())
        return replace(shares_shown(shown, await self._reading.shares()), admin=self._rows.admin)

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        jobs = await ended_jobs(self._reading, since, until, user or "")
        if missing := self._reading.missing("sacct"):
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, missing))
        return jobs

    async def spending(self, edges: Sequence[Millis]) -> Spending:
        past = await jobs_between(self._reading, min(edges), max(edges))
        everything = await self._reading.everything(closely=True)
        spent = await (await with_ended(everything, past, self._clock, self._name)).spending(edges)
        return replace(spent, missing=self._reading.missing("sacct"))

    async def events(
        self, *, job: JobId | None = None, after: int = -1, limit: int = 1000, rank: int | None = None
    ) -> list[EventRecord]:
        """Return the changes that were seen while a cockpit was connected: Slurm itself records no events."""
        del rank  # of a fleet's job
        if job is None:
            await self._introduce()  # the file of the changes is named after the cluster
            return self._history.events(after=after, limit=limit)
        return [each for each in self._history.of(await self._find(job)) if each.seq > after][-limit:]

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        try:
            async with asyncio.timeout(timeout_seconds):
                while (record := await self._find(job)).state not in ENDED:  # noqa: ASYNC110 - Slurm sends no events
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            return None
        return record

    async def logs(self, request: asking.LogRequest) -> asking.LogChunk:
        if reason := self.capabilities.why_not("logs") or why_not_stream(self.capabilities, request.stream):
            refuse_absent(reason)
        while True:
            known = await look_up(self._reading, JobId(request.job))
            chunk = await logs.read(self._commands, self._reading, known, request)
            if chunk.data or chunk.ended or not request.wait or chunk.size < request.offset:
                return chunk
            await asyncio.sleep(LOOK_SECONDS)

    async def search_log(self, request: asking.LogSearch) -> asking.LogMatches:
        if reason := self.capabilities.why_not("search_log") or why_not_stream(self.capabilities, request.stream):
            refuse_absent(reason)
        known = await look_up(self._reading, JobId(request.job))
        return await logs.search(self._commands, self._reading, known, request)

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        """Open a shell in a running job; for a job held without its allocation, in a new job that replaces it."""
        if reason := self.capabilities.why_not(SHELL):
            refuse_absent(reason)
        known = await look_up(self._reading, JobId(request.job))
        job, fields = known.job, known.listed.fields if known.listed is not None else known.fields
        # Its allocation is still there, so a step in it is enough.
        if job.spec.debug_hold.allocation is not HoldAllocation.FREE or job.state is JobState.RUNNING:
            return await self._commands.open_shell(entering.command(job, fields.get("WorkDir", ""), request), request)
        argv = entering.command_in_new_job(job, await self._reading.comment(slurm_id(job.id)), request)
        await self._acts.show([CommandPreview(argv)])  # the user confirms, because the new job is billed
        return await self._commands.open_shell(argv, request)

    def announce(self, look: Announced, *, required: bool = False) -> None:
        del required
        self._acts.look = look

    @property
    def silence(self) -> str:
        return self._watch.silence

    async def written(self, spec: JobSpec) -> CommandPreview:
        (command,) = submissions([spec], await self._acts.runtime([spec]))
        return CommandPreview(*command)

    async def direct(self, wanted: Directive) -> JobId | None:
        if reason := self.why_not_directed(wanted):
            refuse_absent(reason)
        await self._introduce()
        done = await self._acts.direct(wanted)
        self._watch.look_now()
        return done

    async def snapshot(self) -> Snapshot:
        await self._introduce()
        return await taken(self._reading, self._name)

    def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        return self._watch.jobs(anything=anything)

    @property
    def connection(self) -> Connection:
        return self._watch.connection

    def connections(self) -> AsyncIterator[Connection]:
        return self._watch.connections()

    def overviews(self) -> AsyncIterator[view.Overview]:
        return self._watch.overviews(self.overview)

    async def close(self) -> None:
        await self._beside.cancel_all()
        self._history.close()
        await self._commands.close()

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        if op == "queues":
            return msgspec.convert(await self._queues(), answer, from_attributes=True)
        if op not in _MIRRORED:
            refuse(f"A Slurm cluster has no {op.replace('_', ' ')}.")
        # Only the nodes view shows which job has which card, for which scontrol must list every job.
        looked = await self._looking_backend(closely=op == "nodes")
        # After the look, which finds out what is hidden.
        if op in self._reading.hidden:
            raise RequestRefused(Refusal(RefusalKind.DENIED, self._reading.hidden[op]))
        return await looked.read(op, args, answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        del args
        refuse(f"A Slurm cluster has no {op.replace('_', ' ')}.")

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return await self.read(op, args, answer)

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Change something on the cluster, then have the watchers read it again at once.

        Raises `Unreachable`, and sends nothing, while the cluster has never answered.
        """
        await self._introduce()
        done = await self._acts.act(op, args)
        self._watch.look_now()
        return msgspec.convert(done, answer, from_attributes=True)

    async def _all_rows(self) -> dict[JobId, JobRow]:
        await self._introduce()
        # Before the rows are made: each says whether the user may change it.
        self._rows.admin = await self._acts.is_admin()
        reservations = {each.name: each for each in await self._reading.reservations()}
        return self._rows.of(await self._reading.jobs(), reservations, self._clock.now())

    async def _with_rows(
        self, find: Callable[[], Awaitable[LookedUpJob]]
    ) -> tuple[LookedUpJob, Mapping[JobId, JobRow]]:
        """Return a job and the rows of all jobs, which include its own while squeue lists it."""
        while True:
            known, rows = await find(), await self._all_rows()
            # squeue's list may have been read again between the two, without the job or with the array split otherwise:
            # then the job is looked up in that list.
            if known.listed is None or known.listed.id in rows:
                return known, rows

    def _whose_past(self) -> str:
        """Return whose recently ended jobs are watched: the user's own; for an administrator, all users'."""
        return "" if self._rows.admin else self.user

    def _note(self, rows: Mapping[JobId, JobRow]) -> None:
        """Record the changes that a watcher has seen."""
        self._history.look(rows, self._rows.job, self._clock.now())

    async def _find(self, job: JobId, task: int | None = None) -> Job:
        return (await look_up(self._reading, job, task)).job

    async def _looking_backend(self, *, closely: bool = False) -> InProcessBackend:
        return await self._mirror.look_at(await self._reading.everything(closely=closely))
