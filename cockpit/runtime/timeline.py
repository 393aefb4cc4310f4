"""Read events from the journal, as far as a user may see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import is_owner
from cockpit.engine.views.accounts import shown_rules
from cockpit.engine.views.catalogue import shown_change
from cockpit.engine.views.redaction import HIDDEN_JOB, jobs_named, shown_body, shown_to
from cockpit.model.events import CatalogueChanged, JobEdited, JobSubmitted
from cockpit.model.ids import JobId
from cockpit.model.masking import withheld_spec

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
"""Most events that are read from the journal at once."""


async def timeline(host: Host, actor: Actor, args: EventsArgs) -> Sequence[EventRecord]:
    """Return the cluster's events and those of jobs that the actor may see, oldest first.

    With `after` < 0 these are the last `limit` among the newest `MOST` events; otherwise the next `limit` after that
    sequence number. If `args.job` is set, the caller has checked that the actor may see that job.
    """
    job = None if args.job is None else JobId(args.job)
    limit = max(0, min(args.limit, MOST))
    if actor.admin:
        return await withheld(host, actor, await host.journal.events(job=job, after=args.after, limit=limit))
    after = args.after
    while True:
        records = await host.journal.events(job=job, after=after, limit=MOST if job is None else limit)
        allowed = _of_the_cluster(host.machine.state, actor, records)
        shown = shown_records(shown_to(actor, await _jobs(host, records)), allowed)
        seen = await withheld(host, actor, shown)
        if args.after < 0:
            return seen[max(0, len(seen) - limit) :]
        if seen or job is not None or len(records) < MOST:
            return seen[:limit]
        after = records[-1].seq  # read on: otherwise a follower would never get past a long run of others' events


async def withheld(host: Host, actor: Actor, records: Iterable[EventRecord]) -> list[EventRecord]:
    """Return the events without the secrets in the environment of other users' jobs."""
    return [await _withheld(host, actor, record) for record in records]


async def _withheld(host: Host, actor: Actor, record: EventRecord) -> EventRecord:
    body = record.body
    if not isinstance(body, JobSubmitted | JobEdited) or (spec := withheld_spec(body.spec)) is body.spec:
        return record
    job = host.machine.state.jobs.get(body.job) or await host.ended_job(body.job)
    return record if job is not None and is_owner(actor, job) else replace(record, body=replace(body, spec=spec))


async def _jobs(host: Host, records: Iterable[EventRecord]) -> dict[JobId, Job]:
    """Return the jobs that the events name, live or ended."""
    jobs: dict[JobId, Job] = {}
    for job_id in {job for record in records for job in jobs_named(record.body)}:
        job = host.machine.state.jobs.get(job_id) or await host.ended_job(job_id)
        if job is not None:
            jobs[job_id] = job
    return jobs


def _of_the_cluster(state: ClusterState, actor: Actor, records: Iterable[EventRecord]) -> Iterator[EventRecord]:
    """Reduce events about catalogue, rules and accounts to what the actor may see."""
    for record in records:
        if isinstance(record.body, CatalogueChanged):
            body: EventBody | None = shown_change(actor, record.body)
        else:
            body = shown_rules(state, actor, record.body)
        if body is not None:
            yield record if body is record.body else replace(record, body=body)


def shown_records(shown: Shown, records: Iterable[EventRecord]) -> Iterator[EventRecord]:
    """Yield the events of jobs that the user may see, without the ids of other jobs."""
    for record in records:
        if shown(getattr(record.body, "job", HIDDEN_JOB)) != HIDDEN_JOB or not hasattr(record.body, "job"):
            body = shown_body(shown, record.body)
            yield record if body is record.body else replace(record, body=body)
