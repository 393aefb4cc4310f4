"""The time line as one asker may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.views.catalogue import shown_change
from cockpit.engine.views.redaction import HIDDEN_JOB, jobs_named, shown_body, shown_to
from cockpit.engine.views.rules import shown_rules
from cockpit.model.events import CatalogueChanged
from cockpit.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.engine.views.redaction import Shown
    from cockpit.model.events import EventBody, EventRecord
    from cockpit.model.job import Job
    from cockpit.protocol.messages import EventsArgs
    from cockpit.runtime.host import Host

MOST = 10_000
"""Events looked at together."""


async def timeline(host: Host, actor: Actor, args: EventsArgs) -> Sequence[EventRecord]:
    """Oldest first: the cluster's events and those of jobs that the actor may see. With `after` < 0 the last `limit` of
    the newest `MOST`; otherwise the next `limit`. Of one job only who may see it asks.
    """
    job = None if args.job is None else JobId(args.job)
    limit = max(0, min(args.limit, MOST))
    if actor.admin:
        return await host.journal.events(job=job, after=args.after, limit=limit)
    after = args.after
    while True:
        records = await host.journal.events(job=job, after=after, limit=MOST if job is None else limit)
        allowed = _of_the_cluster(host.machine.state, actor, records)
        seen = list(_seen(shown_to(actor, await _jobs(host, records)), allowed))
        if args.after < 0:
            return seen[max(0, len(seen) - limit) :]
        if seen or job is not None or len(records) < MOST:
            return seen[:limit]
        after = records[-1].seq  # else who follows would never get past what others do


async def _jobs(host: Host, records: Iterable[EventRecord]) -> dict[JobId, Job]:
    """Those that the events name, live or ended."""
    found: dict[JobId, Job] = {}
    for job in {job for record in records for job in jobs_named(record.body)}:
        known = host.machine.state.jobs.get(job) or await host.ended_job(job)
        if known is not None:
            found[job] = known
    return found


def _of_the_cluster(state: ClusterState, actor: Actor, records: Iterable[EventRecord]) -> Iterator[EventRecord]:
    """Of catalogue, rules and accounts only what the actor may see of them."""
    for record in records:
        if isinstance(record.body, CatalogueChanged):
            body: EventBody | None = shown_change(actor, record.body)
        else:
            body = shown_rules(state, actor, record.body)
        if body is not None:
            yield record if body is record.body else replace(record, body=body)


def _seen(shown: Shown, records: Iterable[EventRecord]) -> Iterator[EventRecord]:
    for record in records:
        if shown(getattr(record.body, "job", HIDDEN_JOB)) != HIDDEN_JOB or not hasattr(record.body, "job"):
            body = shown_body(shown, record.body)
            yield record if body is record.body else replace(record, body=body)
