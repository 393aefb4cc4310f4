"""The operations of the socket that only read. Each one returns what the requesting user may see."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.access import Actor, is_owner, may_see
from cockpit.engine.views.accounts import accounts_shown, shown_cluster
from cockpit.engine.views.catalogue import catalogue_shown
from cockpit.engine.views.queues import queues_shown
from cockpit.engine.views.ranking import breakdowns
from cockpit.engine.views.redaction import (
    HIDDEN_JOB,
    Shown,
    shown_explanation,
    shown_job,
    shown_obstacle,
    shown_reason,
    shown_to,
)
from cockpit.engine.views.rows import hold_row, node_rows
from cockpit.engine.views.rows import overview as overview_shown
from cockpit.engine.views.spending import is_open, visible_ended_jobs
from cockpit.engine.views.spending import spending as spending_shown
from cockpit.engine.views.training import training
from cockpit.errors import RequestRefused
from cockpit.formats import snapshotfile
from cockpit.launch.sweeps import batch_spec
from cockpit.model import asking
from cockpit.model.asking import LogChunk
from cockpit.model.catalogue import CatalogueShown
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.jobdetail import JobDetail, ReplicaUse, in_the_end
from cockpit.model.masking import bytes_without
from cockpit.model.reasons import Waited
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.requests import RequestOutcome
from cockpit.model.spec import JobKind
from cockpit.model.view import AccountsShown, EngineStatus, HoldRow, NodeRow, Overview, QueuesShown
from cockpit.protocol import messages
from cockpit.protocol.frames import MAJOR, MINOR, raw
from cockpit.protocol.pages import LIST_ROWS, PIECE_BYTES, AllLoaded, JobsArgs, SubscribeArgs, fits, pieces, start_over
from cockpit.runtime.logs import first_address, left_out, log_path, log_tail, mib_of, read_log
from cockpit.runtime.logs import search_log as search_log_file
from cockpit.runtime.merged_logs import read_merged, search_merged
from cockpit.runtime.request_context import RequestContext, request_key, visible_job, wait_for_change
from cockpit.runtime.timeline import MOST, shown_records, timeline, withheld
from cockpit.runtime.withheld_logs import search_without_secrets, secrets_withheld, without_secrets
from cockpit.sched.explain import explain
from cockpit.sched.growth import why_not
from cockpit.sched.growth_obstacle import growth_obstacle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

    from cockpit.model.accounting import Spending
    from cockpit.model.attempt import Attempt
    from cockpit.model.events import EventRecord
    from cockpit.model.jobdetail import GrowthObstacle
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import Breakdown
    from cockpit.model.resilience import NoGrowth
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.fleet.linked_replicas import LinkedReplica


LOG_TAIL_LINES = 12
"""Lines of log in a job's details."""
DETAIL_EVENTS = 200
"""Most events in a job's details."""
MOST_TRIALS = 500
"""Largest sweep whose trials are listed in the details of each trial; `cockpit trials` lists any number."""


async def status(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> EngineStatus:
    """Return the state of the engine process: version, folders, number of jobs, problems."""
    jobs = engine.host.machine.state.jobs.values()
    return EngineStatus(
        running=True,
        pid=os.getpid(),
        socket=str(engine.socket),
        state_folder=str(engine.state_folder),
        version=engine.version,
        protocol=f"{MAJOR}.{MINOR}",
        system=engine.system,
        started_at=engine.started_at,
        jobs=sum(may_see(context.actor, job) for job in jobs) if not context.actor.admin else len(jobs),
        containers=engine.containers,
        trouble=_troubles(engine),
        user=context.actor.name,
    )


async def overview(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> Overview:
    """Return the figures of the header.

    Clients request them every second, so for administrators, who see every job, they are computed once per change.
    """
    glance = _overview_for(engine, context.actor)
    troubles = _troubles(engine)
    if not troubles and not engine.plain:
        return glance
    return msgspec.structs.replace(glance, trouble=troubles, plain=engine.plain)


def _overview_for(engine: Engine, actor: Actor) -> Overview:
    machine = engine.host.machine
    if not actor.admin:
        seen = (job for job in machine.state.jobs.values() if may_see(actor, job))
        glance = overview_shown(machine, engine.cluster, seen)
        return msgspec.structs.replace(glance, admin=False, pass_ms=engine.host.pass_ms)
    if engine.glance is None or engine.glance[0] != machine.state.seq:
        engine.glance = machine.state.seq, overview_shown(machine, engine.cluster)
    # A pass may change nothing, so that its duration is all that is new.
    if engine.glance[1].pass_ms != engine.host.pass_ms:
        engine.glance = engine.glance[0], msgspec.structs.replace(engine.glance[1], pass_ms=engine.host.pass_ms)
    return engine.glance[1]


def _troubles(engine: Engine) -> tuple[str, ...]:
    return (*engine.host.trouble, *engine.troubles, *engine.outages.sentences)


async def jobs(engine: Engine, context: RequestContext, args: JobsArgs) -> AsyncIterator[msgspec.Raw]:
    """Return the rows of live and held jobs in pages; with `ended` also those that only accounting has."""
    feed, actor = engine.feed, context.actor
    pages = (
        feed.pages(await _all_rows(engine, actor), LIST_ROWS, brief=args.brief)
        if args.ended
        else feed.live_pages(actor, brief=args.brief)
    )
    for page in pages:
        yield page


async def _all_rows(engine: Engine, actor: Actor) -> list[JobRow]:
    live = engine.host.machine.state.jobs
    # Only their own jobs: then the database picks them out. Members of projects see jobs of other users too, so that
    # every row is looked at.
    alone = not actor.admin and not actor.projects
    ended = await engine.host.journal.ended_jobs(limit=100_000, user=actor.name if alone else None)
    seen = (job for job in reversed(ended) if job.id not in live and may_see(actor, job))
    rows = [engine.feed.row(actor, job) for job in seen]
    return rows + engine.feed.rows(actor)


async def subscribe(engine: Engine, context: RequestContext, args: SubscribeArgs) -> AsyncIterator[msgspec.Raw]:
    """Return all job rows in pages, the first one small; then the changes, until the client disconnects."""
    subscription = engine.feed.subscribe(context.actor, anything=args.anything)
    try:
        for page in engine.feed.first_load(subscription, max(1, args.first), brief=args.brief):
            yield page
        yield raw(AllLoaded())
        async for change in engine.feed.changes(subscription):
            encoded = engine.feed.encoded(change)
            # A change that does not fit a frame cannot be sent, but the rows can, in pages: the client starts over.
            yield encoded if fits(encoded) else raw(start_over(change.version))
            if change.resync or not fits(encoded):
                return
    finally:
        engine.feed.unsubscribe(subscription)


async def job(engine: Engine, context: RequestContext, args: messages.JobArgs) -> JobDetail:
    """Return the details of one job, live or ended."""
    job = await visible_job(engine, context.actor, args.job, args.task)
    host, own = engine.host, is_owner(context.actor, job)
    shown = shown_to(context.actor, host.machine.state.jobs)
    explanation = None
    priority: tuple[Breakdown, ...] = ()
    if host.plan is not None and job.id in host.machine.queue:
        explanation = explain(host.machine.peek(host.clock.now()), host.plan, job.id)
        explanation = explanation and shown_explanation(shown, explanation, own=own)
        if explanation is not None:
            # The page shows a reason that is newer than the history, which looks at each job only now and then.
            host.waited.note(host.plan, job, host.clock.now())
            priority = breakdowns(host.plan.priorities, job)
    tasks = await _batch(engine, context.actor, job)
    return JobDetail(
        row=engine.feed.row(context.actor, job),
        job=shown_job(shown, job, own=own),
        explanation=explanation,
        events=tuple(await timeline(host, context.actor, messages.EventsArgs(job.id, -1, DETAIL_EVENTS))),
        log_tail=_tail(engine, job, secrets_withheld(job, own=own)),
        log_left_out_mib=_left_out_mib(engine, job),
        priority=priority,
        waited=tuple(_pending_reasons(engine, context.actor, job)),
        use=tuple([use async for use in _use(engine, job)]),
        growth=_no_growth(engine, job),
        obstacle=_obstacle(engine, job, shown, own=own),
        training=training(job, host.steps, host.clock.now()),
        address=_address(engine, job),
        tasks=tuple(engine.feed.row(context.actor, each) for each in tasks),
        batch=batch_spec(
            {
                each.array.index: shown_job(shown, each, own=own).spec
                for each in tasks
                if each.array and each.array.batch
            }
        ),
    )


async def _batch(engine: Engine, actor: Actor, job: Job) -> list[Job]:
    """Return all tasks of the job's batch, or all trials of its sweep, live and ended; none of a very large sweep."""
    own = job.array
    if own is None or not (own.batch or (job.spec.sweep is not None and own.count <= MOST_TRIALS)):
        return []
    last = JobId(own.array + own.count - 1)
    tasks = {task.id: task for task in await engine.host.journal.ended_among(own.array, last)}
    live = engine.host.machine.state.jobs
    # What lives is newer than what accounting may have of the same task.
    tasks |= {number: live[number] for number in map(JobId, range(own.array, last + 1)) if number in live}
    return [tasks[number] for number in sorted(tasks) if may_see(actor, tasks[number])]


def _no_growth(engine: Engine, job: Job) -> NoGrowth | None:
    if job.spec.elastic is None or job.attempt is None or job.state not in OCCUPYING:
        return None
    plan = engine.host.plan
    return why_not(job, job.attempt) or (plan.scheduling_pass.no_growth.get(job.id) if plan is not None else None)


def _obstacle(engine: Engine, job: Job, shown: Shown, *, own: bool) -> GrowthObstacle | None:
    plan = engine.host.plan
    # What lies in the job itself comes first: then nothing else keeps it from growing.
    if plan is None or job.attempt is None or why_not(job, job.attempt) is not None:
        return None
    found = growth_obstacle(plan, job)
    return None if found is None else shown_obstacle(shown, found, own=own)


def _pending_reasons(engine: Engine, actor: Actor, job: Job) -> Iterator[Waited]:
    """Return the reasons why the job has waited, without what the user may not know about other users' jobs."""
    host = engine.host
    shown = shown_to(actor, host.machine.state.jobs)
    for note in host.waited.of(job.id):
        reason = shown_reason(shown, note.reason, own=is_owner(actor, job))
        yield Waited(note.since, reason, tuple(each for each in note.ahead if shown(each) != HIDDEN_JOB))


async def _use(engine: Engine, job: Job) -> AsyncIterator[ReplicaUse]:
    """Return the usage of each replica: measured now while it has a container, else as recorded at its end."""
    if job.attempt is None:
        return
    with_container = frozenset(job.attempt.replica_ids(job.id) if job.state in OCCUPYING or job.kept else ())
    for each in job.attempt.replicas:
        replica = ReplicaId(job.id, job.attempt.number, each.rank)
        use = await engine.host.executor.used(replica) if replica in with_container else None
        if use is not None:
            yield use
        elif each.used is not None:
            yield in_the_end(each.rank, each.used)


async def nodes(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> list[NodeRow]:
    """Return a row for every node, with what is allocated of it."""
    rows = node_rows(engine.host.machine, lambda job: may_see(context.actor, job), engine.host.clock.now())
    return [msgspec.structs.replace(row, plain=True) for row in rows] if engine.plain else rows


async def rules(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> Cluster:
    """Return the cluster's rules as they are in force, with those projects that the user is in."""
    return shown_cluster(context.actor, engine.host.machine.state.cluster)


async def accounts(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> AccountsShown:
    """Return the tree of accounts, with the usage of each."""
    return accounts_shown(engine.host.machine.state, context.actor)


async def catalogue(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> CatalogueShown:
    """Return the catalogue: the images, datasets and other entries that job files refer to by name."""
    return catalogue_shown(engine.host.machine.state, context.actor)


async def queues(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> QueuesShown:
    """Return the quota tree and the partitions, with what is queued and running in each, counted over all users."""
    return queues_shown(engine.host.machine, context.actor)


async def holds(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> list[HoldRow]:
    """Return a row for each job with held containers, the first to expire first."""
    held = [job for job in engine.host.machine.state.jobs.values() if job.kept and may_see(context.actor, job)]
    return [hold_row(job) for job in sorted(held, key=lambda job: (job.held_until or 0, job.id))]


async def reservations(engine: Engine, _context: RequestContext, _args: messages.NoArgs) -> list[Reservation]:
    """Return all reservations, by start. Every user sees them, since they explain why nodes stay free."""
    return sorted(engine.host.machine.state.reservations.values(), key=lambda entry: (entry.start_at, entry.name))


async def events(
    engine: Engine, context: RequestContext, args: messages.EventsArgs
) -> AsyncIterator[list[msgspec.Raw]]:
    """Return the events of one job, or of all jobs that the user may see, in pieces that fit a frame."""
    for piece in pieces(await _events(engine, context.actor, args)):
        yield piece


async def _events(engine: Engine, actor: Actor, args: messages.EventsArgs) -> Sequence[EventRecord]:
    if args.job is not None and args.rank is not None and engine.members is not None:
        job = await visible_job(engine, actor, args.job)
        if job.attempt is not None:
            _replica_of_log(job, job.attempt, asking.LogRequest(job=job.id, rank=args.rank))
        limit = max(0, min(args.limit, MOST))
        records = await engine.members.events(job, args.rank, after=args.after, limit=limit)
        return await withheld(engine.host, actor, shown_records(shown_to(actor, {job.id: job}), records))
    return await timeline(engine.host, actor, args)


async def wait(engine: Engine, context: RequestContext, args: messages.WaitArgs) -> Job | None:
    """Return the job as soon as its command has ended, even if its container is held; None on time-out."""
    try:
        async with asyncio.timeout(args.timeout_seconds):
            while not (job := await visible_job(engine, context.actor, args.job)).ended:
                await wait_for_change(engine, job)
            shown = shown_to(context.actor, engine.host.machine.state.jobs)
            return shown_job(shown, job, own=is_owner(context.actor, job))
    except TimeoutError:
        return None


async def request(engine: Engine, context: RequestContext, args: messages.RequestArgs) -> RequestOutcome:
    """Return the outcome of one of the user's own requests, by its id."""
    return await engine.requests.outcome(request_key(context.actor, args.request))


async def logs(engine: Engine, context: RequestContext, request: asking.LogRequest) -> LogChunk:
    """Return a piece of a replica's log; with `wait`, wait for more output."""
    job = await visible_job(engine, context.actor, request.job)
    # Its log exists only once it has an attempt, and on a member over a link once that has accepted its part.
    while request.wait and not job.ended and not _may_have_log(engine, job, request):
        await wait_for_change(engine, job)
        job = await visible_job(engine, context.actor, request.job)
    if job.attempt is None:
        return LogChunk(b"", 0, ended=job.ended)
    replica = _replica_of_log(job, job.attempt, request)
    secrets = secrets_withheld(job, own=is_owner(context.actor, job))
    return await without_secrets(_log_reader(engine, job, replica), request, secrets)


async def search_log(engine: Engine, context: RequestContext, request: asking.LogSearch) -> asking.LogMatches:
    """Search a part of a replica's log."""
    job = await visible_job(engine, context.actor, request.job)
    if job.attempt is None:
        return asking.LogMatches((), 0, 0, 0, 0)
    replica = _replica_of_log(job, job.attempt, request)
    linked = _linked(engine, job, replica)
    if linked is not None and not linked.own:
        return asking.LogMatches((), 0, 0, 0, 0)

    async def search(request: asking.LogSearch) -> asking.LogMatches:
        if linked is not None:
            return await linked.search_log(request)
        # One at a time: a search uses the disk and two processors, and the next one waits for a fraction of a second.
        async with engine.searching:
            if request.stream is asking.LogStream.MERGED:
                over = _has_ended(engine.host.machine.state.jobs, replica)
                return await search_merged(engine.logs, replica, request, over=over)
            return await search_log_file(log_path(engine.logs, replica, request.stream), request)

    secrets = secrets_withheld(job, own=is_owner(context.actor, job))
    return await search_without_secrets(search, _log_reader(engine, job, replica), request, secrets)


def _log_reader(engine: Engine, job: Job, replica: ReplicaId) -> Callable[[asking.LogRequest], Awaitable[LogChunk]]:
    """Return the function that reads pieces of a replica's log, here or on the member that has it."""
    linked = _linked(engine, job, replica)

    def ended() -> bool:
        return _has_ended(engine.host.machine.state.jobs, replica)

    async def read(request: asking.LogRequest) -> LogChunk:
        if linked is not None:
            return await linked.logs(request) if linked.own else LogChunk(b"", 0, ended=job.ended)
        if request.stream is asking.LogStream.MERGED:
            return await read_merged(engine.logs, replica, request, ended)
        return await read_log(log_path(engine.logs, replica, request.stream), request, ended)

    return read


def _may_have_log(engine: Engine, job: Job, request: asking.LogRequest) -> bool:
    if job.attempt is None:
        return False
    linked = _linked(engine, job, _replica_of_log(job, job.attempt, request))
    return linked is None or bool(linked.own)


def _linked(engine: Engine, job: Job, replica: ReplicaId) -> LinkedReplica | None:
    """Return where a replica of any attempt is or was on a member over a link; None: it is on no such member."""
    attempts = (*job.earlier, job.attempt) if job.attempt is not None else job.earlier
    attempt = next((each for each in attempts if each.number == replica.attempt), None)
    if engine.members is None or attempt is None:
        return None
    return engine.members.linked(attempt, replica.rank)


def _replica_of_log(job: Job, last: Attempt, request: asking.LogRequest | asking.LogSearch) -> ReplicaId:
    """Return the replica whose log is meant. Refused for a replica or an attempt that the job does not have."""
    replica = ReplicaId(job.id, request.attempt or last.number, request.rank)
    # An elastic job may have had another number of replicas in an earlier attempt.
    attempts = {each.number: len(each.replicas) for each in (*job.earlier, last)}
    replicas = attempts.get(replica.attempt, len(last.replicas))
    if not 0 <= request.rank < replicas or not 1 <= replica.attempt <= last.number:
        raise RequestRefused(
            Refusal(
                RefusalKind.NOT_FOUND,
                f"Job {job.shown_id} has replicas 0 to {replicas - 1} and attempts 1 to {last.number}.",
            )
        )
    return replica


def _has_ended(jobs: Mapping[JobId, Job], replica: ReplicaId) -> bool:
    """Return whether the replica writes nothing more: it has ended, its job is gone, or a later attempt runs."""
    job = jobs.get(replica.job)
    if job is None or job.attempt is None:
        return job is None or job.ended
    return job.attempt.number != replica.attempt or job.attempt.replicas[replica.rank].ended_at is not None


def _address(engine: Engine, job: Job) -> str:
    """Return the URL that a running interactive job, such as a notebook, has printed; empty without one."""
    notebook = job.kind is JobKind.INTERACTIVE and job.spec.command
    if not notebook or job.attempt is None or job.state is not JobState.RUNNING:
        return ""
    replica = ReplicaId(job.id, job.attempt.number, 0)
    return first_address(log_path(engine.logs, replica, stream) for stream in asking.WRITTEN_STREAMS)


def _left_out_mib(engine: Engine, job: Job) -> int:
    """Return how many MiB of output were dropped from the logs of the last attempt, over all replicas and streams."""
    if job.attempt is None:
        return 0
    started = [replica.rank for replica in job.attempt.replicas if replica.started_at is not None]
    replicas = [ReplicaId(job.id, job.attempt.number, rank) for rank in started]
    sizes = [left_out(log_path(engine.logs, replica, stream)) for replica in replicas for stream in asking.LogStream]
    return mib_of(sum(sizes))


def _tail(engine: Engine, job: Job, secrets: Sequence[str]) -> str:
    """Return the last lines of the replica whose exit code became the job's: of stderr, or of stdout if it is empty.

    `secrets`: values that are masked.
    """
    if job.attempt is None or job.state is JobState.QUEUED:
        return ""
    decisive = (each.rank for each in job.attempt.replicas if job.exit is not None and each.exit == job.exit)
    replica = ReplicaId(job.id, job.attempt.number, next(decisive, 0))
    streams = (asking.LogStream.STDERR, asking.LogStream.STDOUT)
    tails = (log_tail(log_path(engine.logs, replica, stream), LOG_TAIL_LINES) for stream in streams)
    tail = next((tail for tail in tails if tail), "").encode("utf-8", "surrogateescape")
    return bytes_without(tail, secrets).decode("utf-8", "surrogateescape")


def snapshot_of(engine: Engine) -> snapshotfile.Snapshot:
    """Return the cluster's current state, without secrets."""
    host = engine.host
    return snapshotfile.Snapshot(
        cluster=engine.cluster, at=host.clock.now(), state=snapshotfile.without_secrets(host.machine.state)
    )


async def snapshot(engine: Engine, _context: RequestContext, _args: messages.NoArgs) -> AsyncIterator[bytes]:
    """Return the encoded snapshot, in pieces that fit a frame."""
    encoded = msgspec.msgpack.encode(snapshot_of(engine))
    for start in range(0, len(encoded), PIECE_BYTES):
        yield encoded[start : start + PIECE_BYTES]


MOST_JOBS = 100_000
"""Most ended jobs in one answer of `accounting`."""


async def accounting(
    engine: Engine, context: RequestContext, args: messages.AccountingArgs
) -> AsyncIterator[list[msgspec.Raw]]:
    """Return the ended jobs that the user may see, newest first, in pieces."""
    since, until = (None if at is None else Millis(at) for at in (args.since, args.until))
    alone = not context.actor.admin and not context.actor.projects
    user = args.user or (context.actor.name if alone else None)
    jobs = await engine.host.journal.ended_jobs(limit=MOST_JOBS, user=user, since=since, until=until)
    for piece in pieces(visible_ended_jobs(jobs, engine.host.machine.state, context.actor)):
        yield piece


async def spending(engine: Engine, context: RequestContext, args: messages.SpendingArgs) -> Spending:
    """Return the allocated resources per time span: by account for all users, by name for those the user may see."""
    edges, state = [Millis(at) for at in sorted(args.edges)], engine.host.machine.state
    live = [job.id for job in state.jobs.values() if is_open(job)]
    past = await engine.host.journal.spent(edges, live)
    return spending_shown(state, past, edges, context.actor, engine.host.clock.now())
