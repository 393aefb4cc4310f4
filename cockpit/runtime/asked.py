"""Who asks for what: the asker of an operation, and the job that it is about. Jobs that the asker may not see do not
exist for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.access import Actor, refuse_unseen
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.runtime.engine import Engine


class Asked(msgspec.Struct, frozen=True):
    """Who asks, and the client-made id of an acting request."""

    actor: Actor
    request: str = ""


async def asked_job(engine: Engine, actor: Actor, job_id: int) -> Job:
    """The job, live or ended. Raises `RequestRefused` where the actor sees none of that id."""
    found = engine.host.machine.state.jobs.get(JobId(job_id)) or await engine.host.ended_job(JobId(job_id))
    refused = refuse_unseen(actor, found, job_id)
    if found is None or refused is not None:
        raise RequestRefused(refused or Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_id}."))
    return found


async def moved(engine: Engine, known: Job) -> None:
    """Wait until something has happened to the job; refused where nothing ever will."""
    host = engine.host
    async with host.changed:
        await host.changed.wait_for(lambda: host.machine.state.jobs.get(known.id) is not known or host.given_up)
    if host.given_up is not None:
        raise RequestRefused(host.given_up)
