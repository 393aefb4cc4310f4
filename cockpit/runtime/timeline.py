"""The time line as one asker may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.access import may_see
from cockpit.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.engine.access import Actor
    from cockpit.model.events import EventRecord
    from cockpit.protocol.messages import EventsArgs
    from cockpit.runtime.host import Host

MOST = 10_000
"""Events looked at for one request."""


async def timeline(host: Host, actor: Actor, args: EventsArgs) -> Sequence[EventRecord]:
    """Oldest first: the cluster's events and those of jobs that the actor may see. With `after` < 0 the last `limit` of
    the newest `MOST`; otherwise what is visible of the next `limit`.
    """
    job = None if args.job is None else JobId(args.job)
    limit = max(0, min(args.limit, MOST))
    if actor.admin or job is not None:
        return await host.journal.events(job=job, after=args.after, limit=limit)
    latest = args.after < 0
    records = await host.journal.events(job=None, after=args.after, limit=MOST if latest else limit)
    hidden = await _hidden_jobs(host, actor, records)
    seen = [record for record in records if _job_of(record) not in hidden]
    return seen[len(seen) - min(limit, len(seen)) :] if latest else seen


async def _hidden_jobs(host: Host, actor: Actor, records: Sequence[EventRecord]) -> set[JobId]:
    jobs = {job for record in records if (job := _job_of(record)) is not None}
    hidden = set()
    for job in jobs:
        found = host.machine.state.jobs.get(job) or await host.ended_job(job)
        if found is None or not may_see(actor, found):
            hidden.add(job)
    return hidden


def _job_of(record: EventRecord) -> JobId | None:
    return getattr(record.body, "job", None)
