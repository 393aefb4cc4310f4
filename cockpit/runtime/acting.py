"""What can be done over the socket: each operation passes the asker and the request's id to the host, which journals
both. Answered once per request id, however often it is asked.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine import decide, evictions, quotas, reservations
from cockpit.engine.accounts.changes import change_accounts as decide_accounts
from cockpit.engine.arrays import addressed, on_each
from cockpit.engine.catalogue.changes import change_catalogue as decide_catalogue
from cockpit.engine.nodes import service
from cockpit.engine.priority_changes import set_priority as decide_priority
from cockpit.engine.submission.admission import named_elsewhere
from cockpit.engine.submission.submit import edit as edit_job
from cockpit.engine.submission.submit import submit
from cockpit.engine.timelimits import set_time_limit as decide_limit
from cockpit.errors import RequestRefused
from cockpit.launch.plain import needs_container
from cockpit.model import events
from cockpit.model.ids import JobId
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
"""How long the removal of one held container is waited for."""
STOP_DELAY_SECONDS = 0.05
"""Between the answer to `stop` and the stop, so that the answer gets out."""


async def submit_jobs(engine: Engine, context: RequestContext, args: messages.SubmitArgs) -> bytes:
    """Queue all jobs of the request; answered when that is on the disk."""
    actor, remembered = context.actor, await _remembered(engine, args.specs)

    def decision(machine: Machine, now: Millis) -> decide.Decision:
        if engine.plain and (refusal := _no_container_for(args.specs)):
            return refusal
        return submit(machine, args.specs, actor, now=now, remembered=remembered)

    return await _act(engine, context, decision, _submitted, durable=True)


def _no_container_for(specs: Sequence[JobSpec]) -> Refusal | None:
    """Why not, on a machine whose jobs are plain processes."""
    needs = [each for spec in specs for each in needs_container(spec)]
    if not needs:
        return None
    lines = [*dict.fromkeys(needs), "This machine forbids containers; `cockpit doctor` says by what."]
    return Refusal(RefusalKind.INVALID, "\n".join(lines))


async def _remembered(engine: Engine, specs: Sequence[JobSpec]) -> list[Job]:
    """The jobs that conditions name and that only accounting has; of an array that is gone, all tasks."""
    found: dict[JobId, Job] = {}
    for named in sorted(named_elsewhere(engine.host.machine, specs)):
        job = await engine.host.ended_job(named)
        if job is None:
            continue
        found[named] = job
        array = job.array if job.array is not None and job.array.array == named else None
        for each in range(named + 1, named + (array.count if array is not None else 1)):
            task = await engine.host.ended_job(JobId(each))
            found |= {} if task is None else {task.id: task}
    return list(found.values())


async def cancel(engine: Engine, context: RequestContext, args: messages.CancelArgs) -> bytes:
    """Stop a job, a task, or an array."""
    return await _act_on(engine, context, args, lambda found, now: decide.cancel(found, now, args.grace_seconds))


async def hold(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Keep a queued job from starting."""
    return await _act_on(engine, context, args, lambda found, _: decide.hold(found, context.actor.name))


async def release(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Let a held job start."""
    return await _act_on(engine, context, args, lambda found, _: decide.release(found))


async def suspend(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Have a running job stand still."""
    return await _act_on(engine, context, args, lambda found, _: evictions.suspend(found, context.actor.name))


async def resume(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Let it go on."""
    return await _act_on(engine, context, args, lambda found, _: evictions.resume(engine.host.machine, found))


async def requeue(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Have a job begin anew under its id."""
    return await _act_on(engine, context, args, lambda found, now: evictions.requeue(engine.host.machine, found, now))


async def edit(engine: Engine, context: RequestContext, args: messages.EditArgs) -> bytes:
    """Let a queued job ask for something else."""
    remembered = await _remembered(engine, [args.spec])

    def decision(machine: Machine, now: Millis) -> decide.Decision:
        found = machine.state.jobs.get(JobId(args.job))
        if found is None:
            return decide.only_in_accounting(args.job)
        if engine.plain and (refusal := _no_container_for([args.spec])):
            return refusal
        return edit_job(machine, found, args.spec, actor=context.actor, now=now, remembered=remembered)

    return await _act(engine, context, decision)


async def delete(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Take an ended job off the lists, its logs too: they may be what fills the disk."""
    deleted: list[JobId] = []

    def answer(records: Sequence[EventRecord]) -> bytes:
        deleted.extend(record.body.job for record in records if isinstance(record.body, events.JobDeleted))
        return _done(records)

    answered = await _act_on(engine, context, args, lambda found, _: decide.delete(found), answer)
    await asyncio.to_thread(forget_logs, engine.logs, deleted)
    return answered


async def extend_hold(engine: Engine, context: RequestContext, args: messages.ExtendArgs) -> bytes:
    """Keep a failed container longer; answers with the new end."""
    return await _act_on_one(
        engine, context, args.job, lambda found, now: decide.extend_hold(found, now, args.seconds), _held_until
    )


async def end_hold(engine: Engine, context: RequestContext, args: messages.JobArgs) -> bytes:
    """Remove a kept container."""
    return await _act_on_one(engine, context, args.job, lambda found, _: decide.end_hold(found))


async def set_priority(engine: Engine, context: RequestContext, args: messages.SetPriorityArgs) -> bytes:
    """Make queued jobs more or less urgent."""

    def decision(machine: Machine, _now: Millis) -> decide.Decision:
        found = addressed(machine, JobId(args.job), args.task)
        return (
            decide_priority(machine, found, args.priority, context.actor)
            if found
            else decide.only_in_accounting(args.job)
        )

    return await _act(engine, context, decision)


async def set_time_limit(engine: Engine, context: RequestContext, args: messages.SetTimeLimitArgs) -> bytes:
    """Let a job run for longer, or not for so long."""
    machine, actor = engine.host.machine, context.actor
    return await _act_on(engine, context, args, lambda found, now: decide_limit(machine, found, args.limit, actor, now))


async def make_reservation(engine: Engine, context: RequestContext, args: messages.ReservationArgs) -> bytes:
    """Keep nodes for somebody over a span of time."""
    return await _act(
        engine,
        context,
        lambda machine, now: reservations.make_reservation(machine, args.reservation, now),
    )


async def end_reservation(engine: Engine, context: RequestContext, args: messages.NameArgs) -> bytes:
    """Give the nodes back."""
    return await _act(engine, context, lambda machine, _: reservations.end_reservation(machine, args.name))


async def drain_node(engine: Engine, context: RequestContext, args: messages.DrainArgs) -> bytes:
    """Let nothing more start on a node, and whoever runs there go, if it is taken back."""
    by, within = context.actor.name, args.within_seconds
    if within is None:
        return await _act(engine, context, lambda machine, _: service.drain(machine, args.name, args.reason, by))
    return await _act(
        engine, context, lambda machine, now: service.take_back(machine, args.name, args.reason, by, now, within)
    )


async def resume_node(engine: Engine, context: RequestContext, args: messages.NameArgs) -> bytes:
    """Give a drained node back."""
    return await _act(engine, context, lambda machine, _: service.resume(machine, args.name, context.actor.name))


async def change_accounts(engine: Engine, context: RequestContext, args: messages.ChangeAccountsArgs) -> bytes:
    """Change accounts, users or QOS at once; who may, is decided with the change."""
    return await _act(engine, context, lambda machine, _: decide_accounts(machine.state, context.actor, args.change))


async def change_catalogue(engine: Engine, context: RequestContext, args: messages.ChangeCatalogueArgs) -> bytes:
    """Add, change and remove entries, all or none; who may, is decided with the changes."""
    return await _act(engine, context, lambda machine, _: decide_catalogue(machine.state, context.actor, args.changes))


async def apply_quota(engine: Engine, context: RequestContext, args: messages.ApplyQuotaArgs) -> bytes:
    """Let a quota tree hold from now on."""
    return await _act(engine, context, lambda machine, _: quotas.apply_quota(machine.state, args.tree))


async def remove_quota(engine: Engine, context: RequestContext, _args: messages.NoArgs) -> bytes:
    """No quotas from now on."""
    return await _act(engine, context, lambda machine, _: quotas.remove_quota(machine.state))


async def stop(engine: Engine, context: RequestContext, args: messages.StopArgs) -> None:
    """End the engine once this is answered; with `jobs` after every job has been stopped."""
    await _act(engine, context, lambda _machine, _now: [events.EngineStopAsked(args.jobs)])
    if args.jobs:
        await _stop_all_jobs(engine, context)
    if args.holds:
        await _end_all_holds(engine, context)
    asyncio.get_running_loop().call_later(STOP_DELAY_SECONDS, engine.stopping.set)


async def _stop_all_jobs(engine: Engine, context: RequestContext) -> None:
    """In one act, so that none of those that wait is started in the place of those that end."""
    await _act(engine, RequestContext(context.actor), decide.cancel_all)
    jobs = engine.host.machine.state.jobs
    async with engine.host.changed:
        await engine.host.changed.wait_for(lambda: all(found.ended for found in jobs.values()))


async def _end_all_holds(engine: Engine, context: RequestContext) -> None:
    """Answered once the containers are gone: they do not outlive the engine."""
    held = [found for found in engine.host.machine.state.jobs.values() if found.kept]
    await _act(
        engine, RequestContext(context.actor), lambda _machine, _now: on_each(held, decide.end_hold) if held else []
    )
    for found in held:
        for replica in found.attempt.replica_ids(found.id) if found.attempt is not None else ():
            await engine.host.settled(replica, HOLD_SECONDS)


def _submitted(records: Sequence[EventRecord]) -> bytes:
    """One id for each spec: an array's is that of its first task."""
    bodies = [record.body for record in records if isinstance(record.body, events.JobSubmitted)]
    ids = tuple(body.job for body in bodies if body.array is None or body.array.array == body.job)
    return msgspec.msgpack.encode(messages.Submitted(ids))


def _held_until(records: Sequence[EventRecord]) -> bytes:
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
    """Let the host act, once per request id; raises `RequestRefused`."""
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
    """On the job, the task, or every task of the array that is asked for."""

    def decide_on(machine: Machine, now: Millis) -> decide.Decision:
        found = addressed(machine, JobId(args.job), args.task)
        return on_each(found, lambda job: decision(job, now)) if found else decide.only_in_accounting(args.job)

    return await _act(engine, context, decide_on, answer)


async def _act_on_one(
    engine: Engine,
    context: RequestContext,
    job_id: int,
    decision: Callable[[Job, Millis], decide.Decision],
    answer: Callable[[Sequence[EventRecord]], bytes] = _done,
) -> bytes:
    def decide_on(machine: Machine, now: Millis) -> decide.Decision:
        found = machine.state.jobs.get(JobId(job_id))
        return decision(found, now) if found is not None else decide.only_in_accounting(job_id)

    return await _act(engine, context, decide_on, answer)
