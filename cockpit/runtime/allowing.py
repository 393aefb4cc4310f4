"""Whether the asker may have an operation: asked once, before it begins, whatever the way it came by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.access import RIGHTS, Right, refuse
from cockpit.engine.arrays import addressed
from cockpit.errors import RequestRefused
from cockpit.runtime.asked import asked_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.runtime.asked import Asked
    from cockpit.runtime.engine import Engine

_OF_JOBS = frozenset({Right.LOOK, Right.ACT})


async def allow(engine: Engine, asked: Asked, operation: str, args: object) -> None:
    """Of an array, every task must be open to the asker. Raises `RequestRefused`."""
    job = getattr(args, "job", None)
    if job is None or RIGHTS.get(operation) not in _OF_JOBS:
        refusals = [refuse(asked.actor, operation)]
    else:
        found = await _meant(engine, asked, job, getattr(args, "task", None))
        refusals = [refuse(asked.actor, operation, each) for each in found]
    for refusal in filter(None, refusals):
        raise RequestRefused(refusal)


async def _meant(engine: Engine, asked: Asked, job: JobId, task: int | None) -> Sequence[Job]:
    first = await asked_job(engine, asked.actor, job, task)
    return addressed(engine.host.machine, job, task) or [first]
