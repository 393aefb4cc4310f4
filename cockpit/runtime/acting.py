"""The operations of the socket that change something.

Each one lets the host make one change (`Host.act`), journalled with the user and the request id. A repeated request id
gets the first answer again and changes nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine import configure, decide, evictions, reservations, workers
from cockpit.engine.accounts.changes import change_accounts as decide_accounts
from cockpit.engine.arrays import addressed, on_each
from cockpit.engine.catalogue.changes import change_catalogue as decide_catalogue
from cockpit.engine.nodes import service
from cockpit.engine.priority_changes import set_priority as decide_priority
from cockpit.engine.submission.admission import named_elsewhere
from cockpit.engine.submission.submit import edit as edit_job
from cockpit.engine.submission.submit import submit as decide_submission
from cockpit.engine.timelimits import set_time_limit as decide_limit
from cockpit.errors import RequestRefused
from cockpit.launch.checks import needs_container
from cockpit.model import events
from cockpit.model.ids import JobId, NodeName
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.protocol import messages
from cockpit.runtime.logs import forget_logs
from cockpit.runtime.request_context import RequestContext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventRecord
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec
    from cockpit.runtime.engine import Engine

HOLD_SECONDS = 10.0
"""Longest wait for the removal of one held container."""
STOP_DELAY_SECONDS = 0.05
"""Delay between the answer to `stop` and the stop, so that the answer reaches the client."""


async def submit(engine: Engine, context: RequestContext, args: messages.SubmitArgs) -> bytes:
    """Queue all jobs of the request, and answer when they are on the disk."""
    # Before the change: a decision sees the state only, and must not wait for accounting.
    actor, remembered = context.actor, await _dependencies_in_accounting(engine, args.specs)

    def decision(machine: Machine, now: Millis) -> decide.Decision:
        if engine.plain and (refusal := _no_container_for(args.specs)):
            return refusal
        return decide_submission(machine, args.specs, actor, now=now, remembered=remembered)

    return await _act(engine, context, decision, _encode_job_ids, durable=True)


def _no_container_for(specs: Sequence[JobSpec]) -> Refusal | None:
    """Return why these jobs cannot run on a machine whose jobs are plain processes; None if they can."""
    needs = [need for spec in specs for need in needs_container(spec)]
    if not needs:
        return None
    lines = [*dict.fromkeys(needs), "This machine forbids containers; `cockpit doctor` says by what."]
    return Refusal(RefusalKind.INVALID, "\n".join(lines))


async def _dependencies_in_accounting(engine: Engine, specs: Sequence[JobSpec]) -> list[Job]:
    """Return the jobs that the specs' dependencies name and only accounting has, with all tasks of their arrays."""
    ended: dict[JobId, Job] = {}
    for named in sorted(named_elsewhere(engine.host.machine, specs)):
        job = await engine.host.ended_job(named)
        if job is None:
            continue
        ended[named] = job
        array = job.array if job.array is not None and job.array.array == named else None
        # Only the first task's id names an array; the others have the ids that follow.
        for number in range(named + 1, named + (array.count if array is not None else 1)):
            task = await engine.host.ended_job(JobId(number))
            ended |= {} if task is None else {task.id: task}
    return list(ended.values())


async def cancel(engine: Engine, context: RequestContext, args: messages.CancelArgs) -> bytes:
    """Cancel a job, an array's task, or a whole array."""
    return await _act_on(engine, context, args, lambda job, now: decide.cancel(job, now, args.grace_seconds))


async def hold(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Keep a queued job from starting."""
    return await _act_on(engine, context, args, lambda job, _: decide.hold(job, context.actor.name))


async def release(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Let a held job start."""
    return await _act_on(engine, context, args, lambda job, _: decide.release(job))


async def suspend(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Suspend a running job."""
    return await _act_on(engine, context, args, lambda job, _: evictions.suspend(job, context.actor.name))


async def resume(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Resume a suspended job."""
    return await _act_on(engine, context, args, lambda job, _: evictions.resume(engine.host.machine, job))


async def requeue(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Requeue a job under its id."""
    return await _act_on(engine, context, args, lambda job, now: evictions.requeue(engine.host.machine, job, now))


async def edit(engine: Engine, context: RequestContext, args: messages.EditArgs) -> bytes:
    """Replace the spec of a queued job."""
    remembered = await _dependencies_in_accounting(engine, [args.spec])

    def decision(machine: Machine, now: Millis) -> decide.Decision:
        job = machine.state.jobs.get(JobId(args.job))
        if job is None:
            return decide.only_in_accounting(args.job)
        if engine.plain and (refusal := _no_container_for([args.spec])):
            return refusal
        return edit_job(machine, job, args.spec, actor=context.actor, now=now, remembered=remembered)

    return await _act(engine, context, decision)


async def delete(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Remove an ended job from the lists, and its logs from the disk, since logs may be what fills it."""
    deleted: list[JobId] = []

    def answer(records: Sequence[EventRecord]) -> bytes:
        deleted.extend(record.body.job for record in records if isinstance(record.body, events.JobDeleted))
        return _done(records)

    answered = await _act_on(engine, context, args, lambda job, _: decide.delete(job), answer)
    # Only when the event is stored: the logs of a job that is still listed must not be gone.
    await asyncio.to_thread(forget_logs, engine.logs, deleted)
    return answered


async def extend_hold(engine: Engine, context: RequestContext, args: messages.ExtendArgs) -> bytes:
    """Extend the hold of a failed container, and answer with its new end."""
    return await _act_on_one(
        engine, context, args.job, lambda job, now: decide.extend_hold(job, now, args.seconds), _encode_hold_end
    )


async def end_hold(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """End the hold of a failed container, which removes it."""
    return await _act_on_one(engine, context, args.job, lambda job, _: decide.end_hold(job))


async def unblock(engine: Engine, context: RequestContext, args: messages.UnblockArgs) -> bytes:
    """Take a node off an elastic job's block list."""
    return await _act_on_one(engine, context, args.job, lambda job, _: workers.unblock(job, NodeName(args.node)))


async def set_priority(engine: Engine, context: RequestContext, args: messages.SetPriorityArgs) -> bytes:
    """Change the priority of queued jobs."""

    def decision(machine: Machine, _now: Millis) -> decide.Decision:
        if jobs := addressed(machine, JobId(args.job), args.task):
            return decide_priority(machine, jobs, args.priority, context.actor)
        return decide.only_in_accounting(args.job)

    return await _act(engine, context, decision)


async def set_time_limit(engine: Engine, context: RequestContext, args: messages.SetTimeLimitArgs) -> bytes:
    """Change a job's time limit."""
    machine, actor = engine.host.machine, context.actor
    return await _act_on(engine, context, args, lambda job, now: decide_limit(machine, job, args.limit, actor, now))


async def make_reservation(engine: Engine, context: RequestContext, args: messages.ReservationArgs) -> bytes:
    """Make a reservation: nodes for certain users over a span of time."""
    return await _act(
        engine,
        context,
        lambda machine, now: reservations.make_reservation(machine, args.reservation, now),
    )


async def end_reservation(engine: Engine, context: RequestContext, args: messages.NameArgs) -> bytes:
    """End a reservation, which frees its nodes for all jobs."""
    return await _act(engine, context, lambda machine, _: reservations.end_reservation(machine, args.name))


async def drain_node(engine: Engine, context: RequestContext, args: messages.DrainArgs) -> bytes:
    """Drain a node: no job starts on it. With `within_seconds` its jobs are also evicted within that time."""
    by, within = context.actor.name, args.within_seconds
    if within is None:
        return await _act(engine, context, lambda machine, _: service.drain(machine, args.name, args.reason, by))
    return await _act(
        engine, context, lambda machine, now: service.take_back(machine, args.name, args.reason, by, now, within)
    )


async def resume_node(engine: Engine, context: RequestContext, args: messages.NameArgs) -> bytes:
    """Return a drained node to service."""
    return await _act(engine, context, lambda machine, _: service.resume(machine, args.name, context.actor.name))


async def change_accounts(engine: Engine, context: RequestContext, args: messages.ChangeAccountsArgs) -> bytes:
    """Change accounts, users or QOS in one step. The decision also checks the user's right to each change."""
    return await _act(engine, context, lambda machine, _: decide_accounts(machine.state, context.actor, args.change))


async def change_catalogue(engine: Engine, context: RequestContext, args: messages.ChangeCatalogueArgs) -> bytes:
    """Add, change and remove catalogue entries, all or none. The decision also checks the user's right to them."""
    return await _act(engine, context, lambda machine, _: decide_catalogue(machine.state, context.actor, args.changes))


async def apply_quota(engine: Engine, context: RequestContext, args: messages.ApplyQuotaArgs) -> bytes:
    """Put a quota tree into force."""
    return await _act(engine, context, lambda machine, _: configure.apply_quota(machine.state, args.tree))


async def remove_quota(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> bytes:
    """Remove the quota tree, so that no quotas are in force."""
    return await _act(engine, context, lambda machine, _: configure.remove_quota(machine.state))


async def stop(engine: Engine, context: RequestContext, args: messages.StopArgs) -> None:
    """Stop the engine after answering. With `jobs` all jobs are cancelled first, with `holds` all holds are ended."""
    await _act(engine, context, lambda _machine, _now: [events.EngineStopAsked(args.jobs)])
    if args.jobs:
        await _stop_all_jobs(engine, context)
    if args.holds:
        await _end_all_holds(engine, context)
    asyncio.get_running_loop().call_later(STOP_DELAY_SECONDS, engine.stopping.set)


async def _stop_all_jobs(engine: Engine, context: RequestContext) -> None:
    # One change for all jobs: otherwise queued jobs would start on what the cancelled ones free.
    # Under no request id: that of this request has its stored answer since `stop` was journalled.
    await _act(engine, RequestContext(context.actor), decide.cancel_all)
    jobs = engine.host.machine.state.jobs
    async with engine.host.changed:
        await engine.host.changed.wait_for(lambda: all(job.ended for job in jobs.values()))


async def _end_all_holds(engine: Engine, context: RequestContext) -> None:
    """End all holds, and return when the containers are gone: they must not outlive the engine."""
    held = [job for job in engine.host.machine.state.jobs.values() if job.kept]
    # Under no request id, as above.
    await _act(
        engine, RequestContext(context.actor), lambda _machine, _now: on_each(held, decide.end_hold) if held else []
    )
    for job in held:
        for replica in job.attempt.replica_ids(job.id) if job.attempt is not None else ():
            await engine.host.settled(replica, HOLD_SECONDS)


def _encode_job_ids(records: Sequence[EventRecord]) -> bytes:
    """Encode the ids of the submitted jobs, one for each spec; an array's id is that of its first task."""
    bodies = [record.body for record in records if isinstance(record.body, events.JobSubmitted)]
    ids = tuple(body.job for body in bodies if body.array is None or body.array.array == body.job)
    return msgspec.msgpack.encode(messages.Submitted(ids))


def _encode_hold_end(records: Sequence[EventRecord]) -> bytes:
    (body,) = (record.body for record in records)
    assert isinstance(body, events.HoldExtended)
    return msgspec.msgpack.encode(messages.HeldUntil(body.held_until))


def _done(_records: Sequence[EventRecord]) -> bytes:
    return msgspec.msgpack.encode(None)


async def _act(
    engine: Engine,
    context: RequestContext,
    decision: Callable[[Machine, Millis], decide.Decision],
    answer: Callable[[Sequence[EventRecord]], bytes] = _done,
    *,
    durable: bool = False,
) -> bytes:
    """Let the host make one change, once per request id. Raises `RequestRefused` if it is refused."""
    outcome = await engine.host.act(decision, context.act(durable=durable), answer)
    if isinstance(outcome, Refusal):
        raise RequestRefused(outcome)
    return outcome


async def _act_on(
    engine: Engine,
    context: RequestContext,
    args: messages.JobArgs | messages.CancelArgs | messages.SetTimeLimitArgs,
    decision: Callable[[Job, Millis], decide.Decision],
    answer: Callable[[Sequence[EventRecord]], bytes] = _done,
) -> bytes:
    """Apply `decision` to the job, the task, or every task of the array that the arguments name, in one change."""

    def decide_on(machine: Machine, now: Millis) -> decide.Decision:
        jobs = addressed(machine, JobId(args.job), args.task)
        return on_each(jobs, lambda job: decision(job, now)) if jobs else decide.only_in_accounting(args.job)

    return await _act(engine, context, decide_on, answer)


async def _act_on_one(
    engine: Engine,
    context: RequestContext,
    job_id: int,
    decision: Callable[[Job, Millis], decide.Decision],
    answer: Callable[[Sequence[EventRecord]], bytes] = _done,
) -> bytes:
    def decide_on(machine: Machine, now: Millis) -> decide.Decision:
        job = machine.state.jobs.get(JobId(job_id))
        return decision(job, now) if job is not None else decide.only_in_accounting(job_id)

    return await _act(engine, context, decide_on, answer)
