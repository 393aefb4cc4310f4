"""What can be asked over the socket: one function per operation, and the table that the server looks them up in.

An acting operation passes the asker and the request's id to the host, which journals both; a reading one never changes
anything. Jobs that the asker may not see do not exist for them.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.engine import decide
from cockpit.engine.access import Actor, may_see, refuse_unseen, shown_explanation
from cockpit.engine.submit import edit as edit_job
from cockpit.engine.submit import submit
from cockpit.engine.views import hold_row, job_row, node_rows, overview
from cockpit.errors import RequestRefused
from cockpit.model import asking, events
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.job import Job, JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.view import EngineStatus, HoldRow, JobDetail, NodeRow, Overview
from cockpit.protocol import messages
from cockpit.protocol.frames import MAJOR, MINOR, raw
from cockpit.protocol.pages import AllLoaded, fits, pieces, start_over
from cockpit.runtime.host import Act
from cockpit.runtime.logs import log_path, log_tail, read_log
from cockpit.runtime.timeline import timeline
from cockpit.sched.explain import explain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventRecord
    from cockpit.model.ids import Millis
    from cockpit.runtime.engine import Engine

LOG_TAIL_LINES = 12
DETAIL_EVENTS = 200
STOP_DELAY_SECONDS = 0.05
"""Between the answer to `stop` and the stop, so that the answer gets out."""


class Asked(msgspec.Struct, frozen=True):
    """Who asks, and the client-made id of an acting request."""

    actor: Actor
    request: str = ""


async def status(engine: Engine, asked: Asked, _args: messages.NoArgs) -> EngineStatus:
    """What runs here."""
    return EngineStatus(
        running=True,
        pid=os.getpid(),
        socket=str(engine.socket),
        state_folder=str(engine.state_folder),
        version=engine.version,
        protocol=f"{MAJOR}.{MINOR}",
        system=engine.system,
        started_at=engine.started_at,
        jobs=sum(may_see(asked.actor, job) for job in engine.host.machine.state.jobs.values()),
        containers=engine.containers,
        trouble=engine.host.trouble,
        asker=asked.actor.name,
    )


async def overview_of(engine: Engine, asked: Asked, _args: messages.NoArgs) -> Overview:
    """The header's figures. Faces ask every second: for who sees everything they are made once per change."""
    machine = engine.host.machine
    if not asked.actor.admin:
        seen = (job for job in machine.state.jobs.values() if may_see(asked.actor, job))
        return overview(machine, engine.cluster, seen)
    if engine.glance is None or engine.glance[0] != machine.state.seq:
        engine.glance = machine.state.seq, overview(machine, engine.cluster, machine.state.jobs.values())
    return engine.glance[1]


async def jobs(engine: Engine, asked: Asked, args: messages.JobsArgs) -> AsyncIterator[msgspec.Raw]:
    """Live and held jobs in pages; with `ended` also those that have left the live state."""
    for page in await _all_pages(engine, asked.actor) if args.ended else engine.feed.live_pages(asked.actor):
        yield page


async def _all_pages(engine: Engine, actor: Actor) -> Iterable[msgspec.Raw]:
    live = engine.host.machine.state.jobs
    ended = await engine.host.journal.ended_jobs(limit=100_000, user=None if actor.admin else actor.name)
    rows = [job_row(job, None) for job in reversed(ended) if job.id not in live and may_see(actor, job)]
    return engine.feed.pages(rows + engine.feed.rows(actor))


async def subscribe(engine: Engine, asked: Asked, args: messages.SubscribeArgs) -> AsyncIterator[msgspec.Raw]:
    """All rows in pages, the first one small; then what changes, until the client goes."""
    subscription = engine.feed.subscribe(asked.actor)
    try:
        for page in engine.feed.pages(list(subscription.sent.values()), max(1, args.first)):
            yield page
        yield raw(AllLoaded())
        async for change in engine.feed.changes(subscription):
            encoded = raw(change)
            yield encoded if fits(encoded) else raw(start_over(change.version))
            if change.resync or not fits(encoded):
                return
    finally:
        engine.feed.unsubscribe(subscription)


async def job(engine: Engine, asked: Asked, args: messages.JobArgs) -> JobDetail:
    """Everything about one job, live or ended."""
    found = await _job(engine, asked.actor, args.job)
    host = engine.host
    explanation = None
    if host.plan is not None and found.id in host.machine.queue:
        explanation = explain(host.machine.peek(host.clock.now()), host.plan, found.id)
        explanation = explanation and shown_explanation(asked.actor, explanation, host.machine.state.jobs)
    return JobDetail(
        row=job_row(found, explanation.reason if explanation is not None else None),
        job=found,
        explanation=explanation,
        events=tuple(await host.journal.events(job=found.id, after=-1, limit=DETAIL_EVENTS)),
        log_tail=_tail(engine, found),
    )


async def nodes(engine: Engine, asked: Asked, _args: messages.NoArgs) -> list[NodeRow]:
    """Every node with what is used of it."""
    return node_rows(engine.host.machine, lambda found: may_see(asked.actor, found))


async def holds(engine: Engine, asked: Asked, _args: messages.NoArgs) -> list[HoldRow]:
    """Kept containers, soonest to end first."""
    kept = [each for each in engine.host.machine.state.jobs.values() if each.kept and may_see(asked.actor, each)]
    return [hold_row(each) for each in sorted(kept, key=lambda each: (each.held_until or 0, each.id))]


async def list_events(engine: Engine, asked: Asked, args: messages.EventsArgs) -> AsyncIterator[list[msgspec.Raw]]:
    """The time line, of one job or of all, in pieces."""
    for piece in pieces(await events_seen(engine, asked, args)):
        yield piece


async def events_seen(engine: Engine, asked: Asked, args: messages.EventsArgs) -> Sequence[EventRecord]:
    """The time line, of one job or of all."""
    if args.job is not None:
        await _job(engine, asked.actor, args.job)
    return await timeline(engine.host, asked.actor, args)


async def submit_jobs(engine: Engine, asked: Asked, args: messages.SubmitArgs) -> bytes:
    """Queue all jobs of the request; answered when that is on the disk."""
    return await _act(
        engine, asked, lambda machine, _: submit(machine, args.specs, asked.actor.who), _submitted, durable=True
    )


async def cancel(engine: Engine, asked: Asked, args: messages.CancelArgs) -> bytes:
    """Stop a job."""
    return await _act_on(engine, asked, args.job, lambda found, now: decide.cancel(found, now, args.grace_seconds))


async def hold(engine: Engine, asked: Asked, args: messages.JobArgs) -> bytes:
    """Keep a queued job from starting."""
    return await _act_on(engine, asked, args.job, lambda found, _: decide.hold(found, asked.actor.name))


async def release(engine: Engine, asked: Asked, args: messages.JobArgs) -> bytes:
    """Let a held job start."""
    return await _act_on(engine, asked, args.job, lambda found, _: decide.release(found))


async def edit(engine: Engine, asked: Asked, args: messages.EditArgs) -> bytes:
    """Let a queued job ask for something else."""
    return await _act(engine, asked, lambda machine, _: _edited(machine, asked, args))


def _edited(machine: Machine, asked: Asked, args: messages.EditArgs) -> decide.Decision:
    found = machine.state.jobs.get(JobId(args.job))
    refused = refuse_unseen(asked.actor, found, args.job)
    if found is None or refused is not None:
        return refused or decide.only_in_accounting(args.job)
    return edit_job(machine, found, args.spec)


async def delete(engine: Engine, asked: Asked, args: messages.JobArgs) -> bytes:
    """Take an ended job off the lists."""
    return await _act_on(engine, asked, args.job, lambda found, _: decide.delete(found))


async def extend_hold(engine: Engine, asked: Asked, args: messages.ExtendArgs) -> bytes:
    """Keep a failed container longer; answers with the new end."""
    return await _act_on(
        engine, asked, args.job, lambda found, now: decide.extend_hold(found, now, args.seconds), _held_until
    )


async def end_hold(engine: Engine, asked: Asked, args: messages.JobArgs) -> bytes:
    """Remove a kept container."""
    return await _act_on(engine, asked, args.job, lambda found, _: decide.end_hold(found))


async def wait(engine: Engine, asked: Asked, args: messages.WaitArgs) -> Job | None:
    """The job once its command has ended, also when its container is kept; None on time-out."""
    try:
        async with asyncio.timeout(args.timeout_seconds):
            while not (found := await _job(engine, asked.actor, args.job)).ended:
                await _moved(engine, found)
            return found
    except TimeoutError:
        return None


async def logs(engine: Engine, asked: Asked, request: asking.LogRequest) -> asking.LogChunk:
    """A piece of a replica's log."""
    found = await _job(engine, asked.actor, request.job)
    while request.wait and found.attempt is None and not found.ended:
        await _moved(engine, found)
        found = await _job(engine, asked.actor, request.job)
    if found.attempt is None:
        return asking.LogChunk(b"", 0, ended=found.ended)
    replica = ReplicaId(found.id, request.attempt or found.attempt.number, request.rank)
    if not 0 <= request.rank < found.spec.nodes or not 1 <= replica.attempt <= found.attempt.number:
        raise RequestRefused(
            Refusal(
                RefusalKind.NOT_FOUND,
                f"Job {found.id} has replicas 0 to {found.spec.nodes - 1} and attempts 1 to {found.attempt.number}.",
            )
        )

    def ended() -> bool:
        live = engine.host.machine.state.jobs.get(found.id)
        current = live.attempt if live is not None else None
        if current is None or current.number != replica.attempt:
            return live is None or live.ended or current is not None
        return current.replicas[request.rank].ended_at is not None

    return await read_log(log_path(engine.logs, replica, request.stream), request, ended)


async def stop(engine: Engine, asked: Asked, args: messages.StopArgs) -> None:
    """End the engine once this is answered; with `jobs` after every job has been stopped. Administrators only."""
    if not asked.actor.admin:
        raise RequestRefused(Refusal(RefusalKind.DENIED, "Only an administrator may stop this engine."))
    await _act(engine, asked, lambda _machine, _now: [events.EngineStopAsked(args.jobs)])
    if args.jobs:
        await _stop_all_jobs(engine, asked)
    asyncio.get_running_loop().call_later(STOP_DELAY_SECONDS, engine.stopping.set)


async def _stop_all_jobs(engine: Engine, asked: Asked) -> None:
    """In one act, so that none of those that wait is started in the place of those that end."""
    await _act(engine, Asked(asked.actor), decide.cancel_all)
    jobs = engine.host.machine.state.jobs
    async with engine.host.changed:
        await engine.host.changed.wait_for(lambda: all(found.ended for found in jobs.values()))


def _submitted(records: Sequence[EventRecord]) -> bytes:
    ids = tuple(record.body.job for record in records if isinstance(record.body, events.JobSubmitted))
    return msgspec.msgpack.encode(messages.Submitted(ids))


def _held_until(records: Sequence[EventRecord]) -> bytes:
    (body,) = (record.body for record in records)
    assert isinstance(body, events.HoldExtended)
    return msgspec.msgpack.encode(messages.HeldUntil(body.held_until))


def _done(_records: Sequence[EventRecord]) -> bytes:
    return msgspec.msgpack.encode(None)


async def _act(
    engine: Engine,
    asked: Asked,
    decision: Callable[[Machine, Millis], decide.Decision],
    answer: Callable[[Sequence[EventRecord]], bytes] = _done,
    *,
    durable: bool = False,
) -> bytes:
    """Let the host act, once per request id; raises `RequestRefused`."""
    act = Act(actor=asked.actor.name, origin="socket", request=asked.request, durable=durable)
    outcome = await engine.host.act(decision, act, answer)
    if isinstance(outcome, Refusal):
        raise RequestRefused(outcome)
    return outcome


async def _act_on(
    engine: Engine,
    asked: Asked,
    job_id: int,
    decision: Callable[[Job, Millis], decide.Decision],
    answer: Callable[[Sequence[EventRecord]], bytes] = _done,
) -> bytes:
    def decide_on(machine: Machine, now: Millis) -> decide.Decision:
        found = machine.state.jobs.get(JobId(job_id))
        return decision(found, now) if found is not None else decide.only_in_accounting(job_id)

    await _job(engine, asked.actor, job_id)
    return await _act(engine, asked, decide_on, answer)


async def _job(engine: Engine, actor: Actor, job_id: int) -> Job:
    found = engine.host.machine.state.jobs.get(JobId(job_id)) or await engine.host.ended_job(JobId(job_id))
    refused = refuse_unseen(actor, found, job_id)
    if found is None or refused is not None:
        raise RequestRefused(refused or Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_id}."))
    return found


async def _moved(engine: Engine, known: Job) -> None:
    """Wait until something has happened to the job; refused where nothing ever will."""
    host = engine.host
    async with host.changed:
        await host.changed.wait_for(lambda: host.machine.state.jobs.get(known.id) is not known or host.given_up)
    if host.given_up is not None:
        raise RequestRefused(host.given_up)


def _tail(engine: Engine, found: Job) -> str:
    """The last lines of the replica that decided the job's end, of its stderr if it wrote any."""
    if found.attempt is None or found.state is JobState.QUEUED:
        return ""
    decisive = (each.rank for each in found.attempt.replicas if found.exit is not None and each.exit == found.exit)
    replica = ReplicaId(found.id, found.attempt.number, next(decisive, 0))
    streams = (asking.LogStream.STDERR, asking.LogStream.STDOUT)
    tails = (log_tail(log_path(engine.logs, replica, stream), LOG_TAIL_LINES) for stream in streams)
    return next((tail for tail in tails if tail), "")


Operation = tuple[type[msgspec.Struct], "Callable[..., Coroutine[Any, Any, Any] | AsyncIterator[Any]]"]

OPERATIONS: dict[str, Operation] = {
    "status": (messages.NoArgs, status),
    "overview": (messages.NoArgs, overview_of),
    "jobs": (messages.JobsArgs, jobs),
    "subscribe": (messages.SubscribeArgs, subscribe),
    "job": (messages.JobArgs, job),
    "nodes": (messages.NoArgs, nodes),
    "holds": (messages.NoArgs, holds),
    "events": (messages.EventsArgs, list_events),
    "wait": (messages.WaitArgs, wait),
    "logs": (asking.LogRequest, logs),
    "submit": (messages.SubmitArgs, submit_jobs),
    "cancel": (messages.CancelArgs, cancel),
    "hold": (messages.JobArgs, hold),
    "release": (messages.JobArgs, release),
    "edit": (messages.EditArgs, edit),
    "delete": (messages.JobArgs, delete),
    "extend_hold": (messages.ExtendArgs, extend_hold),
    "end_hold": (messages.JobArgs, end_hold),
    "stop": (messages.StopArgs, stop),
}
"""`shell` is the connection's own: its answer carries file descriptors."""

WAITING = frozenset({"shell", "stop", "subscribe", "wait", "logs"})
"""Operations that may take long and answer little: they are answered beside everything else of their connection."""
