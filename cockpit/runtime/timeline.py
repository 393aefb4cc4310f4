"""The time line as one asker may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.shown import HIDDEN_JOB, jobs_named, shown_body, shown_to
from cockpit.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.engine.access import Actor
    from cockpit.engine.shown import Shown
    from cockpit.model.events import EventRecord
    from cockpit.model.job import Job
    from cockpit.protocol.messages import EventsArgs
    from cockpit.runtime.host import Host

MOST = 10_000
"""Events looked at for one request."""


async def timeline(host: Host, actor: Actor, args: EventsArgs) -> Sequence[EventRecord]:
    """Oldest first: the cluster's events and those of jobs that the actor may see. With `after` < 0 the last `limit` of
    the newest `MOST`; otherwise what is visible of the next `limit`. Of one job only who may see it asks.
    """
    job = None if args.job is None else JobId(args.job)
    limit = max(0, min(args.limit, MOST))
    latest = args.after < 0 and job is None and not actor.admin
    records = await host.journal.events(job=job, after=args.after, limit=MOST if latest else limit)
    if actor.admin:
        return records
    shown = shown_to(actor, await _jobs(host, records))
    seen = list(_seen(shown, records))
    return seen[len(seen) - min(limit, len(seen)) :]


async def _jobs(host: Host, records: Iterable[EventRecord]) -> dict[JobId, Job]:
    """Those that the events name, live or ended."""
    found: dict[JobId, Job] = {}
    for job in {job for record in records for job in jobs_named(record.body)}:
        known = host.machine.state.jobs.get(job) or await host.ended_job(job)
        if known is not None:
            found[job] = known
    return found


def _seen(shown: Shown, records: Iterable[EventRecord]) -> Iterator[EventRecord]:
    for record in records:
        if shown(getattr(record.body, "job", HIDDEN_JOB)) != HIDDEN_JOB or not hasattr(record.body, "job"):
            body = shown_body(shown, record.body)
            yield record if body is record.body else replace(record, body=body)
