"""The context of a request: the user who sends it, its id, the job that it names, and whether the user may do that.

A user who may not see a job gets the same answer as for a job that does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.access import Actor, refuse, refuse_unseen
from cockpit.engine.arrays import addressed, task
from cockpit.errors import RequestRefused
from cockpit.model.access_level import why_not
from cockpit.model.ids import JobId
from cockpit.model.operations import Right
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.protocol.operations import TABLE
from cockpit.runtime.host import Act

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.job import Job
    from cockpit.runtime.engine import Engine


class RequestContext(msgspec.Struct, frozen=True):
    """The user who sends a request, and the id that the client gave it."""

    actor: Actor
    request: str = ""
    """The user's uid, a colon and the request id; empty without an id."""
    op: str = ""
    """The name of the operation."""
    digest: bytes = b""
    """Hash of the operation and its arguments, for `KeptAnswer`."""

    def act(self, *, durable: bool = False) -> Act:
        """Return this request as the cause of events. `durable`: the events must be on the disk before the answer."""
        return Act(
            actor=self.actor.name,
            origin="socket",
            request=self.request,
            op=self.op,
            digest=self.digest,
            durable=durable,
        )


def request_key(actor: Actor, request: str) -> str:
    """Return a request id as the journal stores it: after the uid, so that two users' ids never collide."""
    return f"{actor.who.uid}:{request}"


async def visible_job(engine: Engine, actor: Actor, job_id: int, index: int | None = None) -> Job:
    """Return the job with this id, or with `index` that task of its array, live or ended.

    Raises `RequestRefused` if there is none, or the actor may not see it.
    """
    job = await _live_or_ended(engine, JobId(job_id))
    if index is not None and job is not None:
        return await _visible_task(engine, actor, job, index)
    refused = refuse_unseen(actor, job, job_id)
    if job is None or refused is not None:
        raise RequestRefused(refused or Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_id}."))
    return job


async def _visible_task(engine: Engine, actor: Actor, named: Job, index: int) -> Job:
    refused = refuse_unseen(actor, named, named.id)
    array = named.array
    if refused is None and array is not None:
        member = task(engine.host.machine, array.array, index)
        # Accounting knows tasks by job id only, and a task's index does not follow from its id: look at every id.
        for number in range(array.array, array.array + array.count) if member is None else ():
            ended = await engine.host.ended_job(JobId(number))
            member = ended if ended is not None and ended.array is not None and ended.array.index == index else member
        if member is not None:
            return member
    has = f"array {array.array} has no task {index}" if array is not None else f"job {named.id} is no array"
    raise RequestRefused(refused or Refusal(RefusalKind.NOT_FOUND, f"There is no job {named.id}_{index}: {has}."))


async def _live_or_ended(engine: Engine, job: JobId) -> Job | None:
    return engine.host.machine.state.jobs.get(job) or await engine.host.ended_job(job)


async def wait_for_change(engine: Engine, known: Job) -> None:
    """Wait until the job is no longer as `known`. Raises `RequestRefused` if the engine has given up."""
    host = engine.host
    async with host.changed:
        # Jobs are replaced on a change and never modified, so that identity tells whether one has changed.
        await host.changed.wait_for(lambda: host.machine.state.jobs.get(known.id) is not known or host.given_up)
    if host.given_up is not None:
        raise RequestRefused(host.given_up)


_OF_JOBS = frozenset({Right.LOOK, Right.ACT})


async def allow(engine: Engine, context: RequestContext, operation: str, args: object) -> None:
    """Check that the user may use the operation, for an array on every task. Raises `RequestRefused`."""
    if reason := why_not(context.actor.level, TABLE[operation]):
        raise RequestRefused(Refusal(RefusalKind.DENIED, reason))
    right, job = TABLE[operation].right, getattr(args, "job", None)
    if job is None or right not in _OF_JOBS:
        refusals = [refuse(context.actor, right, operation)]
    else:
        jobs = await _named_jobs(engine, context, job, getattr(args, "task", None))
        refusals = [refuse(context.actor, right, operation, each) for each in jobs]
    for refusal in filter(None, refusals):
        raise RequestRefused(refusal)


async def _named_jobs(engine: Engine, context: RequestContext, job: JobId, task: int | None) -> Sequence[Job]:
    first = await visible_job(engine, context.actor, job, task)
    return addressed(engine.host.machine, job, task) or [first]
