"""Who asks for what: the asker of an operation, and the job that it is about. Jobs that the asker may not see do not
exist for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.access import Actor, refuse_unseen
from cockpit.engine.arrays import task
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.host import Act

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.runtime.engine import Engine


class RequestContext(msgspec.Struct, frozen=True):
    """Who asks, and the client-made id of an acting request."""

    actor: Actor
    request: str = ""
    """The id behind the asker's uid and a colon; empty without an id."""
    op: str = ""
    digest: bytes = b""
    """What is asked, for `KeptAnswer`."""

    def act(self, *, durable: bool = False) -> Act:
        """As the cause of events."""
        return Act(
            actor=self.actor.name,
            origin="socket",
            request=self.request,
            op=self.op,
            digest=self.digest,
            durable=durable,
        )


def request_key(actor: Actor, request: str) -> str:
    """A client's request id as the journal knows it: behind the uid, so that two users' ids never meet."""
    return f"{actor.who.uid}:{request}"


async def asked_job(engine: Engine, actor: Actor, job_id: int, index: int | None = None) -> Job:
    """The job, or with `index` the task of its array, live or ended. Raises `RequestRefused` where the actor sees none
    of that id."""
    found = await _found(engine, JobId(job_id))
    if index is not None and found is not None:
        return await _asked_task(engine, actor, found, index)
    refused = refuse_unseen(actor, found, job_id)
    if found is None or refused is not None:
        raise RequestRefused(refused or Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_id}."))
    return found


async def _asked_task(engine: Engine, actor: Actor, named: Job, index: int) -> Job:
    refused = refuse_unseen(actor, named, named.id)
    array = named.array
    if refused is None and array is not None:
        live = task(engine.host.machine, array.array, index)
        for each in range(array.array, array.array + array.count) if live is None else ():
            ended = await engine.host.ended_job(JobId(each))
            live = ended if ended is not None and ended.array is not None and ended.array.index == index else live
        if live is not None:
            return live
    has = f"array {array.array} has no task {index}" if array is not None else f"job {named.id} is no array"
    raise RequestRefused(refused or Refusal(RefusalKind.NOT_FOUND, f"There is no job {named.id}_{index}: {has}."))


async def _found(engine: Engine, job: JobId) -> Job | None:
    return engine.host.machine.state.jobs.get(job) or await engine.host.ended_job(job)


async def moved(engine: Engine, known: Job) -> None:
    """Wait until something has happened to the job; refused where nothing ever will."""
    host = engine.host
    async with host.changed:
        await host.changed.wait_for(lambda: host.machine.state.jobs.get(known.id) is not known or host.given_up)
    if host.given_up is not None:
        raise RequestRefused(host.given_up)
