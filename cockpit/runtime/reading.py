"""What can be read over the socket: each operation shows the asker what they may see, and changes nothing."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.access import Actor, is_owner, may_see
from cockpit.engine.views.accounts import accounts_shown
from cockpit.engine.views.catalogue import catalogue_shown
from cockpit.engine.views.queues import queues_shown
from cockpit.engine.views.ranking import breakdowns
from cockpit.engine.views.redaction import shown_explanation, shown_job, shown_reason, shown_to
from cockpit.engine.views.rows import hold_row, node_rows, overview
from cockpit.engine.views.rules import shown_cluster
from cockpit.errors import RequestRefused
from cockpit.launch.batch import batch_spec
from cockpit.model import asking
from cockpit.model.catalogue import CatalogueShown
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.jobdetail import JobDetail, ReplicaUse, in_the_end
from cockpit.model.reasons import Waited
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.requests import RequestOutcome
from cockpit.model.spec import JobKind
from cockpit.model.view import AccountsShown, EngineStatus, HoldRow, NodeRow, Overview, QueuesShown
from cockpit.protocol import messages
from cockpit.protocol.frames import MAJOR, MINOR, raw
from cockpit.protocol.pages import LIST_ROWS, AllLoaded, JobsArgs, SubscribeArgs, fits, pieces, start_over
from cockpit.runtime.logs import first_address, left_out, log_path, log_tail, mib_of, read_log
from cockpit.runtime.request_context import RequestContext, asked_job, moved, request_key
from cockpit.runtime.timeline import timeline
from cockpit.sched.explain import explain
from cockpit.sched.growth import why_not

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from cockpit.model.events import EventRecord
    from cockpit.model.growth import NoGrowth
    from cockpit.model.jobrow import JobRow
    from cockpit.runtime.engine import Engine

LOG_TAIL_LINES = 12
DETAIL_EVENTS = 200
MOST_TRIALS = 500
"""On the page of one of them; `cockpit trials` lists any number."""


async def status(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> EngineStatus:
    """What runs here."""
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
        asker=context.actor.name,
    )


async def overview_of(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> Overview:
    """The header's figures. Faces ask every second: for who sees everything they are made once per change."""
    glance = _glance(engine, context.actor)
    troubles = _troubles(engine)
    if not troubles and not engine.plain:
        return glance
    return msgspec.structs.replace(glance, trouble=troubles, plain=engine.plain)


def _glance(engine: Engine, actor: Actor) -> Overview:
    machine = engine.host.machine
    if not actor.admin:
        seen = (job for job in machine.state.jobs.values() if may_see(actor, job))
        return msgspec.structs.replace(overview(machine, engine.cluster, seen), admin=False)
    if engine.glance is None or engine.glance[0] != machine.state.seq:
        engine.glance = machine.state.seq, overview(machine, engine.cluster)
    return engine.glance[1]


def _troubles(engine: Engine) -> tuple[str, ...]:
    return (*engine.host.trouble, *engine.troubles)


async def jobs(engine: Engine, context: RequestContext, args: JobsArgs) -> AsyncIterator[msgspec.Raw]:
    """Live and held jobs in pages; with `ended` also those that have left the live state."""
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
    alone = not actor.admin and not actor.projects
    ended = await engine.host.journal.ended_jobs(limit=100_000, user=actor.name if alone else None)
    seen = (job for job in reversed(ended) if job.id not in live and may_see(actor, job))
    rows = [engine.feed.row(actor, job) for job in seen]
    return rows + engine.feed.rows(actor)


async def subscribe(engine: Engine, context: RequestContext, args: SubscribeArgs) -> AsyncIterator[msgspec.Raw]:
    """All rows in pages, the first one small; then what changes, until the client goes."""
    subscription = engine.feed.subscribe(context.actor, anything=args.anything)
    try:
        for page in engine.feed.first_load(subscription, max(1, args.first), brief=args.brief):
            yield page
        yield raw(AllLoaded())
        async for change in engine.feed.changes(subscription):
            encoded = engine.feed.encoded(change)
            yield encoded if fits(encoded) else raw(start_over(change.version))
            if change.resync or not fits(encoded):
                return
    finally:
        engine.feed.unsubscribe(subscription)


async def job(engine: Engine, context: RequestContext, args: messages.JobArgs) -> JobDetail:
    """Everything about one job, live or ended."""
    found = await asked_job(engine, context.actor, args.job, args.task)
    host, own = engine.host, is_owner(context.actor, found)
    shown = shown_to(context.actor, host.machine.state.jobs)
    explanation = None
    if host.plan is not None and found.id in host.machine.queue:
        explanation = explain(host.machine.peek(host.clock.now()), host.plan, found.id)
        explanation = explanation and shown_explanation(shown, explanation, own=own)
        if explanation is not None:
            host.waited.note(host.plan, found, host.clock.now())
    tasks = await _batch(engine, context.actor, found)
    priority = breakdowns(host.plan.priorities, found) if explanation is not None and host.plan is not None else ()
    return JobDetail(
        row=engine.feed.row(context.actor, found),
        job=shown_job(shown, found, own=own),
        explanation=explanation,
        events=tuple(await timeline(host, context.actor, messages.EventsArgs(found.id, -1, DETAIL_EVENTS))),
        log_tail=_tail(engine, found),
        log_left_out_mib=_left_out_mib(engine, found),
        priority=priority,
        waited=tuple(_waited(engine, context.actor, found)),
        use=tuple([use async for use in _use(engine, found)]),
        growth=_no_growth(engine, found),
        address=_address(engine, found),
        tasks=tuple(engine.feed.row(context.actor, each) for each in tasks),
        batch=batch_spec(
            {
                each.array.index: shown_job(shown, each, own=own).spec
                for each in tasks
                if each.array and each.array.batch
            }
        ),
    )


async def _batch(engine: Engine, actor: Actor, found: Job) -> list[Job]:
    """The tasks of the batch, or the trials of the sweep, that it is one of, live or ended; of a sweep that is too long
    to be read none."""
    own = found.array
    if own is None or not (own.batch or (found.spec.sweep is not None and own.count <= MOST_TRIALS)):
        return []
    last = JobId(own.array + own.count - 1)
    known = {each.id: each for each in await engine.host.journal.ended_among(own.array, last)}
    live = engine.host.machine.state.jobs
    known |= {each: live[each] for each in map(JobId, range(own.array, last + 1)) if each in live}
    return [known[each] for each in sorted(known) if may_see(actor, known[each])]


def _no_growth(engine: Engine, found: Job) -> NoGrowth | None:
    if found.spec.elastic is None or found.attempt is None or found.state not in OCCUPYING:
        return None
    plan = engine.host.plan
    return why_not(found, found.attempt) or (plan.scheduling_pass.no_growth.get(found.id) if plan is not None else None)


def _waited(engine: Engine, actor: Actor, found: Job) -> Iterator[Waited]:
    """Without what the asker may not know of others' jobs."""
    host = engine.host
    shown = shown_to(actor, host.machine.state.jobs)
    for each in host.waited.of(found.id):
        reason = shown_reason(shown, each.reason, own=is_owner(actor, found))
        yield each if reason is each.reason or reason is None else Waited(each.since, reason)


async def _use(engine: Engine, found: Job) -> AsyncIterator[ReplicaUse]:
    """While there are containers, as they are measured; afterwards what was kept of it."""
    if found.attempt is None:
        return
    there = frozenset(found.attempt.replica_ids(found.id) if found.state in OCCUPYING or found.kept else ())
    for each in found.attempt.replicas:
        replica = ReplicaId(found.id, found.attempt.number, each.rank)
        use = await engine.host.executor.used(replica) if replica in there else None
        if use is not None:
            yield use
        elif each.used is not None:
            yield in_the_end(each.rank, each.used)


async def nodes(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> list[NodeRow]:
    """Every node with what is used of it."""
    rows = node_rows(engine.host.machine, lambda found: may_see(context.actor, found), engine.host.clock.now())
    return [msgspec.structs.replace(row, plain=True) for row in rows] if engine.plain else rows


async def rules(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> Cluster:
    """The cluster's rules as they are in force; of the projects those that the asker is in."""
    return shown_cluster(context.actor, engine.host.machine.state.cluster)


async def accounts(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> AccountsShown:
    """The tree of accounts with what each part of it uses."""
    return accounts_shown(engine.host.machine.state, context.actor)


async def catalogue(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> CatalogueShown:
    """What names in job files stand for."""
    return catalogue_shown(engine.host.machine.state, context.actor)


async def queues(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> QueuesShown:
    """The quota tree and the partitions with what waits and runs in each: figures of all, whoever asks."""
    return queues_shown(engine.host.machine, admin=context.actor.admin)


async def holds(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> list[HoldRow]:
    """Kept containers, soonest to end first."""
    kept = [each for each in engine.host.machine.state.jobs.values() if each.kept and may_see(context.actor, each)]
    return [hold_row(each) for each in sorted(kept, key=lambda each: (each.held_until or 0, each.id))]


async def reservations(engine: Engine, _asked: RequestContext, _args: messages.NoArgs) -> list[Reservation]:
    """Everybody sees them, the first to begin first: they say why nodes stay free."""
    return sorted(engine.host.machine.state.reservations.values(), key=lambda each: (each.start_at, each.name))


async def list_events(
    engine: Engine, context: RequestContext, args: messages.EventsArgs
) -> AsyncIterator[list[msgspec.Raw]]:
    """The time line, of one job or of all, in pieces."""
    for piece in pieces(await events_seen(engine, context, args)):
        yield piece


async def events_seen(engine: Engine, context: RequestContext, args: messages.EventsArgs) -> Sequence[EventRecord]:
    """The time line, of one job or of all."""
    return await timeline(engine.host, context.actor, args)


async def wait(engine: Engine, context: RequestContext, args: messages.WaitArgs) -> Job | None:
    """The job once its command has ended, also when its container is kept; None on time-out."""
    try:
        async with asyncio.timeout(args.timeout_seconds):
            while not (found := await asked_job(engine, context.actor, args.job)).ended:
                await moved(engine, found)
            shown = shown_to(context.actor, engine.host.machine.state.jobs)
            return shown_job(shown, found, own=is_owner(context.actor, found))
    except TimeoutError:
        return None


async def request(engine: Engine, context: RequestContext, args: messages.RequestArgs) -> RequestOutcome:
    """What became of a request of the asker's own, by its id."""
    return await engine.requests.outcome(request_key(context.actor, args.request))


async def logs(engine: Engine, context: RequestContext, request: asking.LogRequest) -> asking.LogChunk:
    """A piece of a replica's log."""
    found = await asked_job(engine, context.actor, request.job)
    while request.wait and found.attempt is None and not found.ended:
        await moved(engine, found)
        found = await asked_job(engine, context.actor, request.job)
    if found.attempt is None:
        return asking.LogChunk(b"", 0, ended=found.ended)
    replica = ReplicaId(found.id, request.attempt or found.attempt.number, request.rank)
    attempts = {each.number: len(each.replicas) for each in (*found.earlier, found.attempt)}
    replicas = attempts.get(replica.attempt, len(found.attempt.replicas))
    if not 0 <= request.rank < replicas or not 1 <= replica.attempt <= found.attempt.number:
        raise RequestRefused(
            Refusal(
                RefusalKind.NOT_FOUND,
                f"Job {found.id} has replicas 0 to {replicas - 1} and attempts 1 to {found.attempt.number}.",
            )
        )

    def ended() -> bool:
        live = engine.host.machine.state.jobs.get(found.id)
        current = live.attempt if live is not None else None
        if current is None or current.number != replica.attempt:
            return live is None or live.ended or current is not None
        return current.replicas[request.rank].ended_at is not None

    return await read_log(log_path(engine.logs, replica, request.stream), request, ended)


def _address(engine: Engine, found: Job) -> str:
    notebook = found.kind is JobKind.INTERACTIVE and found.spec.command
    if not notebook or found.attempt is None or found.state is not JobState.RUNNING:
        return ""
    replica = ReplicaId(found.id, found.attempt.number, 0)
    return first_address(log_path(engine.logs, replica, stream) for stream in asking.LogStream)


def _left_out_mib(engine: Engine, found: Job) -> int:
    """Of all logs of the last attempt together."""
    if found.attempt is None:
        return 0
    begun = [each.rank for each in found.attempt.replicas if each.started_at is not None]
    replicas = [ReplicaId(found.id, found.attempt.number, rank) for rank in begun]
    sizes = [left_out(log_path(engine.logs, each, stream)) for each in replicas for stream in asking.LogStream]
    return mib_of(sum(sizes))


def _tail(engine: Engine, found: Job) -> str:
    """The last lines of the replica that decided the job's end, of its stderr if it wrote any."""
    if found.attempt is None or found.state is JobState.QUEUED:
        return ""
    decisive = (each.rank for each in found.attempt.replicas if found.exit is not None and each.exit == found.exit)
    replica = ReplicaId(found.id, found.attempt.number, next(decisive, 0))
    streams = (asking.LogStream.STDERR, asking.LogStream.STDOUT)
    tails = (log_tail(log_path(engine.logs, replica, stream), LOG_TAIL_LINES) for stream in streams)
    return next((tail for tail in tails if tail), "")
