"""Check a user's right to an operation, once, before the operation begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.access import refuse
from cockpit.engine.arrays import addressed
from cockpit.errors import RequestRefused
from cockpit.model.operations import Right
from cockpit.protocol.operations import TABLE
from cockpit.runtime.request_context import visible_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.request_context import RequestContext

_OF_JOBS = frozenset({Right.LOOK, Right.ACT})


async def allow(engine: Engine, context: RequestContext, operation: str, args: object) -> None:
    """Check that the user may use the operation, for an array on every task. Raises `RequestRefused`."""
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
