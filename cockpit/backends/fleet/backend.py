"""The backend of several clusters as one merged view (`-c all`).

Lists are merged from all members that answer. An operation on one job or node goes to its cluster, which is known from
the fleet's id or the node's name (`lab:n1`); ids, times and node names of its answer are translated (`id_translation`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from cockpit.backends.base import (
    Announced,
    Asking,
    Connection,
    JobsDelta,
    LiveBackend,
    Phase,
    ShellSession,
    refuse_absent,
)
from cockpit.backends.fleet.id_translation import in_fleet
from cockpit.backends.fleet.member import Member, Opened
from cockpit.backends.fleet.table import fleet_job_row
from cockpit.engine.fleet.rows import pod_rows
from cockpit.errors import CockpitError, RequestRefused, StoreError, Unreachable
from cockpit.model import forecast, jobdetail, view
from cockpit.model.capabilities import ENGINE, NO_REQUEST_IDS, Ability, Capabilities
from cockpit.model.directives import SendSignal, UpdateJob
from cockpit.model.fleetrow import FleetShown, MemberObject
from cockpit.model.ids import JobId, Millis, member_of
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.offline_engine import refuse
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from cockpit.backends.base import Backend
    from cockpit.model.accounting import EndedJob
    from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch, ShellRequest
    from cockpit.model.directives import Directive
    from cockpit.model.events import EventRecord
    from cockpit.model.job import Job
    from cockpit.model.jobrow import JobRow
    from cockpit.model.requests import RequestIds

T = TypeVar("T")
Question = Callable[[], Awaitable[T]]

LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 10.0
"""Longest time that a one-shot command waits for the slowest member."""
ONE_CLUSTERS = "This is each cluster's own: open one of them for it (`-c NAME`, or Enter in the view of clusters)."
"""Refusal of operations that make sense only for one cluster."""


CAPABILITIES = Capabilities(
    dict.fromkeys(
        (
            *(
                Ability.SCRIPTS,
                Ability.MANIFESTS,
                Ability.TOP,
                Ability.QUOTA_TREE,
                Ability.LOCAL_FILES,
                Ability.EVERY_EVENT,
            ),
            *("status", "rules", "accounts", "change_accounts", "spending", "catalogue", "change_catalogue", "queues"),
            *("apply_quota", "remove_quota", "priorities", "set_weights", "reservations", "make_reservation", "staged"),
            *("submit", "predict", "request", "snapshot"),
        ),
        ONE_CLUSTERS,
    )
    | {Ability.STEPS: ENGINE.why_not(Ability.STEPS)}
)
"""Operations on one job, node, reservation or copy go to its cluster, which refuses what it lacks itself."""


class FleetBackend(Asking, LiveBackend):
    """Merges its members, in the given order."""

    def __init__(
        self,
        name: str,
        members: Sequence[tuple[str, str, Callable[[], Awaitable[Opened]]]],
        now: Callable[[], Millis],
    ) -> None:
        """`members`: name, address, and the function that opens it, of each cluster."""
        self._name = name
        self.members = [Member(number, *each, now) for number, each in enumerate(members, 1)]
        self._tasks = Tasks()
        self._listeners: set[asyncio.Queue[JobsDelta]] = set()
        self._look: tuple[Announced, bool] | None = None
        """The arguments of `announce`."""
        self._ids: RequestIds | None = None

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def capabilities_for(self, jobs: Iterable[JobId]) -> Capabilities:
        # An action on jobs of several clusters is possible only where all of these clusters have it.
        numbers = {member_of(job)[0] for job in jobs}
        shown = CAPABILITIES
        for member in self.members:
            shown = shown.without(member.capabilities.absent) if member.number in numbers else shown
        return shown

    def begin(self) -> None:
        """Watch all members from now on, in the running event loop."""
        if not self._watched:
            for member in self.members:
                self._tasks.start(member.follow(self._notify_listeners), f"watching {member.name}")

    async def clusters(self) -> list[view.ClusterRow]:
        """Return the state of each member; if they are not watched, ask each of them once first."""
        if not self._watched:
            with suppress(Unreachable, StoreError):  # the rows say so
                await self._each(Member.look)
        return self._member_rows()

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        """Return the jobs of all members that answer in time; `clusters` shows which do not."""

        async def of(member: Member) -> list[JobRow]:
            return list(member.in_fleet(await (await member.backend()).jobs(ended=ended)))

        return [row for rows in await self._each(of) for row in rows]

    async def overview(self) -> view.Overview:
        await self.clusters()
        return self._sum()

    async def nodes(self) -> list[view.NodeRow]:
        async def of(member: Member) -> list[view.NodeRow]:
            return in_fleet(await (await member.backend()).nodes(), member.words)

        return [row for rows in await self._each(of) for row in rows]

    async def holds(self) -> list[view.HoldRow]:
        async def of(member: Member) -> list[view.HoldRow]:
            return in_fleet(await (await member.backend()).holds(), member.words)

        return [row for rows in await self._each(of) for row in rows]

    async def job(self, job: JobId, *, task: int | None = None) -> jobdetail.JobDetail:
        member, own = self._whose(job)
        detail = await (await self._there(member)).job(own, task=task)
        # The row apart from the rest: `member.in_fleet` adds the cluster's name, which the general translation does
        # not.
        (row,) = member.in_fleet([detail.row])
        return replace(in_fleet(detail, member.words), row=row)

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        member, own = self._whose(job)
        return in_fleet(await (await self._there(member)).explain(own, task=task), member.words)

    async def fleet(self, *, job: JobId | None = None, pods: bool = False, jobs: Sequence[JobId] = ()) -> FleetShown:
        """Return the jobs of all members; of one that does not answer the last known, with the reason and their age.

        The pods are those of named jobs: to list them for all would ask every cluster once for each of its jobs.
        """
        if jobs:
            return await self._fleet_of(jobs, pods=pods)
        if job is None:
            if pods:
                refuse("A merged view lists the pods of one job at a time: name the job, such as lab:4711.")
            rows = [(member, row) for member, rows in await self._known_rows() for row in rows]
            return FleetShown(jobs=tuple(fleet_job_row(row, member.row()) for member, row in rows))
        member, own = self._whose(job)
        backend = await self._there(member)
        if backend.capabilities.has("fleet"):
            with suppress(RequestRefused):  # it is no fleet, or has no such job, which is said below
                return in_fleet(await backend.fleet(job=own, pods=pods), member.words)
        return await self._own_rows(job, member, pods=pods)

    async def _fleet_of(self, jobs: Sequence[JobId], *, pods: bool) -> FleetShown:
        """Return the rows of these jobs, for which a member that is a fleet is asked once. Jobs that are gone, or whose
        cluster does not answer in time, have no rows."""

        async def of(member: Member) -> list[FleetShown]:
            mine = [each for each in jobs if member_of(each)[0] == member.number]
            if not mine:
                return []
            own = [member_of(each)[1] for each in mine]
            whole = await _fleet_rows(await member.backend(), own, pods=pods)
            if whole is not None:
                return [in_fleet(whole, member.words)]
            return [rows for each in mine for rows in await self._rows_of(each, member, pods=pods)]

        shown = [each for answer in await self._each(of) for each in answer]
        return FleetShown(
            jobs=tuple(row for each in shown for row in each.jobs),
            pods=tuple(row for each in shown for row in each.pods),
        )

    async def _rows_of(self, job: JobId, member: Member, *, pods: bool) -> list[FleetShown]:
        """Return the rows of a job of a cluster that is no fleet; none if it has just gone."""
        try:
            return [await self._own_rows(job, member, pods=pods)]
        except RequestRefused:
            return []

    async def _own_rows(self, job: JobId, member: Member, *, pods: bool) -> FleetShown:
        detail = await self.job(job)
        if pods:
            return FleetShown(pods=tuple(pod_rows(member.name, detail.job, job)))
        return FleetShown(jobs=(fleet_job_row(detail.row, member.row()),))

    async def own_object(self, job: JobId, *, cluster: str = "") -> MemberObject:
        member, own = self._whose(job)
        if cluster not in ("", member.name):
            here = f"{cluster} has nothing of job {member.name}:{own}: it is a job of {member.name}."
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, here))
        return replace(await (await self._there(member)).own_object(own), cluster=member.name)

    async def _known_rows(self) -> list[tuple[Member, Sequence[JobRow]]]:
        """Return the rows of each member; of one that does not answer those that it sent last."""

        async def of(member: Member) -> tuple[Member, Sequence[JobRow]]:
            rows = list(member.in_fleet(await (await member.backend()).jobs()))
            await member.look()
            return member, rows

        if self._watched:
            return [(member, list(member.rows.values())) for member in self.members]
        answered = {member.number: rows for member, rows in await self._each(of)}
        return [(member, answered.get(member.number, ())) for member in self.members]

    async def starts(self, jobs: Sequence[JobId]) -> list[forecast.ExpectedStart]:
        """Return the expected starts of the jobs whose cluster answers in time."""

        async def of(member: Member) -> list[forecast.ExpectedStart]:
            own = [job for number, job in map(member_of, jobs) if number == member.number]
            return in_fleet(await (await member.backend()).starts(own), member.words) if own else []

        return [each for starts in await self._each(of) for each in starts]

    async def events(
        self, *, job: JobId | None = None, after: int = -1, limit: int = 1000, rank: int | None = None
    ) -> list[EventRecord]:
        # Members count their events separately, so there is no `after` that would mean one place in a merged list.
        if job is None:
            refuse(ONE_CLUSTERS)
        member, own = self._whose(job)
        there = await self._there(member)
        return in_fleet(await there.events(job=own, after=after, limit=limit, rank=rank), member.words)

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        member, own = self._whose(job)
        return in_fleet(await (await self._there(member)).wait(own, timeout_seconds=timeout_seconds), member.words)

    async def logs(self, request: LogRequest) -> LogChunk:
        member, own = self._whose(request.job)
        return await (await self._there(member)).logs(replace(request, job=own))

    async def search_log(self, request: LogSearch) -> LogMatches:
        member, own = self._whose(request.job)
        return await (await self._there(member)).search_log(replace(request, job=own))

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        member, own = self._whose(request.job)
        return await (await self._there(member)).open_shell(replace(request, job=own))

    async def direct(self, wanted: Directive) -> JobId | None:
        """Run a Slurm command on one job; a cluster that is not Slurm's refuses it."""
        # The other directives submit something, and no job says to which cluster.
        if not isinstance(wanted, SendSignal | UpdateJob):
            refuse(ONE_CLUSTERS)
        member, own = self._whose(wanted.job)
        return await (await self._there(member)).direct(replace(wanted, job=own))

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        async def of(member: Member) -> list[EndedJob]:
            jobs = await (await member.backend()).accounting(since=since, until=until, user=user)
            rows = member.in_fleet(each.row for each in jobs)
            return [replace(each, row=row) for each, row in zip(jobs, rows, strict=True)]

        ended = [each for jobs in await self._each(of) for each in jobs]
        # The answers of the members follow each other, so the whole has to be sorted by time.
        return sorted(ended, key=lambda each: -(each.row.ended_at or 0))

    def identify(self, ids: RequestIds) -> None:
        """Pass the ids to the member that an operation goes to; if the ids are required, a member that
        remembers none refuses it."""
        self._ids = ids

    def announce(self, look: Announced, *, required: bool = False) -> None:
        """Call `look` with the commands of every member that runs commands."""
        self._look = look, required

    @property
    def silent_members(self) -> tuple[tuple[str, str], ...]:
        silent = view.ClusterState.SILENT
        return tuple((row.name, row.reason) for row in self._member_rows() if row.state is silent)

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        # Members report their connection with empty deltas in any case (`Member.follow`).
        del anything
        self.begin()
        queue: asyncio.Queue[JobsDelta] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            # The queue is registered before this snapshot, and nothing awaits between: no change can fall between the
            # two.
            yield JobsDelta(tuple(row for member in self.members for row in member.rows.values()), (), 0)
            while True:
                yield await queue.get()
        finally:
            self._listeners.discard(queue)

    @property
    def connection(self) -> Connection:
        """Always connected: a member that does not answer does not keep the others from being shown."""
        return Connection(Phase.CONNECTED)

    async def connections(self) -> AsyncIterator[Connection]:
        yield self.connection
        await asyncio.get_running_loop().create_future()

    async def overviews(self) -> AsyncIterator[view.Overview]:
        self.begin()
        last: view.Overview | None = None
        while True:
            now = self._sum()
            if now != last:
                yield now
            last = now
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        await self._tasks.cancel_all()
        for member in self.members:
            # A member that cannot be closed in order must not keep the others open.
            with suppress(CockpitError):
                await member.close()

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return await self._passed_on("read", op, args, answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        del op, args
        refuse(ONE_CLUSTERS)

    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return await self._passed_on("await_answer", op, args, answer)

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        return await self._passed_on("act", op, args, answer)

    async def _passed_on(self, how: str, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Pass an operation to the cluster of its job or node, and translate its answer."""
        member, own = self._resolve_member(args)
        backend = await self._there(member)
        assert isinstance(backend, Asking)
        # What one of the members can do the view can do; this member may lack it.
        if reason := backend.capabilities.why_not(op):
            refuse_absent(reason)
        result: T = await getattr(backend, how)(op, own, answer)
        return in_fleet(result, member.words)

    def _resolve_member(self, args: msgspec.Struct) -> tuple[Member, msgspec.Struct]:
        """Return the member that the arguments name, and the arguments with its own job id or node name."""
        job, name = getattr(args, "job", None), getattr(args, "name", "")
        if job is not None:
            member, own = self._whose(job)
            return member, replace(args, job=own)
        # A name without a cluster does not say whose it is.
        cluster, colon, node = name.partition(":")
        known = next((each for each in self.members if colon and each.name == cluster), None)
        if known is None:
            refuse(ONE_CLUSTERS)
        return known, replace(args, name=node)

    def _whose(self, job: int) -> tuple[Member, JobId]:
        number, own = member_of(job)
        if not 1 <= number <= len(self.members):
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, f"Name the cluster, too, such as lab:{own}."))
        return self.members[number - 1], own

    async def _there(self, member: Member) -> LiveBackend:
        """Return the member's backend, with the `look` and the request ids of this backend."""
        backend = await member.backend()
        if self._look is not None:
            # The user wanted to see each command first; a cluster that runs none, such as cockpit's own engine, has
            # nothing to show.
            look, is_required = self._look
            if is_required and (none := backend.capabilities.why_not(Ability.COMMANDS)):
                refuse(none)
            backend.announce(look)
        if self._ids is not None:
            if self._ids.required and not backend.capabilities.has(Ability.REQUEST_IDS):
                refuse(NO_REQUEST_IDS)
            backend.identify(self._ids)
        return backend

    @property
    def _watched(self) -> bool:
        return len(self._tasks) > 0

    def _member_rows(self) -> list[view.ClusterRow]:
        return [member.row() for member in self.members]

    async def _each(self, ask: Callable[[Member], Awaitable[T]]) -> list[T]:
        """Call `ask` for all members at once and return the results of those that answer in time, in their order.

        While the members are watched, those that do not answer are not even asked, and the view shows which. Without
        that, raises `Unreachable` if none answers, and `StoreError` if none can read its store.
        """
        members = [each for each in self.members if each.answers or not self._watched]
        without_store: set[str] = set()

        async def one(member: Member) -> list[T]:
            try:
                # Each member has the limit to itself, so a slow one costs the others nothing but this wait.
                async with asyncio.timeout(PATIENCE_SECONDS):
                    return [await ask(member)]
            except TimeoutError:
                member.note_no_answer(f"It did not answer within {PATIENCE_SECONDS:g} s.")
            except RequestRefused as no:
                # A refusal of one operation says nothing about the connection; only one for the sake of the store does.
                if no.refusal.store and not self._watched:
                    without_store.add(member.name)
                    member.note_no_answer(str(no))
            except CockpitError as error:
                if isinstance(error, StoreError):
                    without_store.add(member.name)
                member.note_no_answer(str(error))
            return []

        answers = await asyncio.gather(*map(one, members))
        silent = self.silent_members
        if members and not any(answers) and not self._watched and len(silent) == len(members):
            # The two have different exit codes: a script retries for an unreachable cluster but not for a damaged
            # store.
            kind = StoreError if len(without_store) == len(members) else Unreachable
            raise kind(" ".join(f"{name} does not answer: {reason}" for name, reason in silent))
        return [result for results in answers for result in results]

    def _notify_listeners(self, delta: JobsDelta) -> None:
        for queue in self._listeners:
            queue.put_nowait(delta)

    def _sum(self) -> view.Overview:
        """Add up the overviews of all members; a member that does not answer counts with its last one."""
        rows = self._member_rows()
        known = [row.overview for row in rows if row.overview is not None]
        states = {state for each in known for state in each.jobs_by_state}
        return view.Overview(
            cluster=self._name,
            jobs_by_state={state: sum(each.jobs_by_state.get(state, 0) for each in known) for state in states},
            held=sum(each.held for each in known),
            nodes=sum(each.nodes for each in known),
            cpus=sum(each.cpus for each in known),
            used_cpus=sum(each.used_cpus for each in known),
            memory_mib=sum(each.memory_mib for each in known),
            used_memory_mib=sum(each.used_memory_mib for each in known),
            card_milli=sum(each.card_milli for each in known),
            used_card_milli=sum(each.used_card_milli for each in known),
            # Rights differ from member to member; the header must not promise those of one of them.
            admin=False,
        )


async def _fleet_rows(backend: Backend, jobs: Sequence[JobId], *, pods: bool) -> FleetShown | None:
    """Return the rows of a cluster's jobs, asked once; None: it is no fleet of several clusters."""
    if not backend.capabilities.has("fleet"):
        return None
    try:
        shown: FleetShown = await backend.fleet(jobs=jobs, pods=pods)
    except RequestRefused as refused:
        if refused.refusal.kind is RefusalKind.UNAVAILABLE:
            return None
        raise
    return shown
