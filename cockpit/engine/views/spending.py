"""Computes the usage of jobs for accounting: by attempt, from the start of its first container to the end of its last.

Allocated resources count, used or not, as in `sreport`'s utilization.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import may_see
from cockpit.engine.accounts.coordinators import coordinates
from cockpit.engine.views.rows import job_row
from cockpit.model.accounting import EndedJob, Span, Spending, UsageSum
from cockpit.model.steps import Extra

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.model.attempt import Attempt
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job
    from cockpit.model.node import Allocation

Names = tuple[str, str, str, str]
"""User, account, project, QOS."""


def spans(job: Job, now: Millis) -> Iterator[Span]:
    """Yield the time and size of every attempt of the job, the first one first. A running one counts up to `now`."""
    for attempt in attempts(job):
        began, ended = _life(job, attempt, now)
        cpus, card_milli = _size(attempt, began, ended)
        yield Span(
            job=job.id,
            attempt=attempt.number,
            user=job.submitter.name,
            account=job.account,
            project=job.project,
            qos=job.qos,
            from_at=began,
            until_at=ended,
            cpus=cpus,
            card_milli=card_milli,
            above_min_card_milli=_mean_above_min(job, attempt, began, ended),
        )


def _mean_above_min(job: Job, attempt: Attempt, began: Millis, ended: Millis) -> int:
    """Return the thousandths of a card that the attempt had above its least number of workers, on average."""
    if job.spec.elastic is None or ended <= began:
        return 0
    above = _above_least(job, attempt, began, ended)
    return round(sum(part.card_milli * lasted for part, lasted in above) / (ended - began))


def _size(attempt: Attempt, began: Millis, ended: Millis) -> tuple[int, int]:
    """Return the attempt's CPUs and thousandths of a card; for a resized elastic job the rounded mean over time."""
    if attempt.resized_at is None or ended <= began:
        placement = attempt.placement
        return sum(part.cpus for part in placement), sum(part.card_milli for part in placement)
    parts, lasted = attempt.held(began, ended), ended - began
    return (
        round(sum(part.cpus * held_ms for part, held_ms in parts) / lasted),
        round(sum(part.card_milli * held_ms for part, held_ms in parts) / lasted),
    )


def extra_of(job: Job, now: Millis) -> Extra:
    """Return what an elastic job had above its least number of workers, over all attempts and up to `now`.

    At each moment, the workers beyond the first `min_workers` count, in order of their ranks: these are the ones that
    leave first. What they hold is multiplied by the time, as for card-hours and CPU-hours: the integral of
    max(0, n(t) - min) for workers that are all alike. A job that always has its least size would not have got it.
    """
    parts = [
        each
        for attempt in attempts(job)
        for each in _above_least(job, attempt, *_life(job, attempt, now))
        if job.spec.elastic is not None
    ]
    return Extra(
        card_milli_ms=sum(part.card_milli * lasted for part, lasted in parts),
        cpu_ms=sum(part.cpus * lasted for part, lasted in parts),
    )


def _above_least(job: Job, attempt: Attempt, began: Millis, ended: Millis) -> Iterator[tuple[Allocation, int]]:
    """Yield the workers of an attempt beyond the least number, each with the milliseconds in which it was one."""
    presence = sorted(attempt.presence(began, ended), key=lambda each: each[0].rank)
    edges = sorted({at for _, begins, ends in presence for at in (begins, ends)})
    for begins, ends in pairwise(edges):
        there = [part for part, first, last in presence if first <= begins and ends <= last]
        yield from ((part, ends - begins) for part in there[job.spec.least_nodes :])


def attempts(job: Job) -> tuple[Attempt, ...]:
    """Return all attempts of the job, the first one first."""
    return job.earlier if job.attempt is None else (*job.earlier, job.attempt)


def ended_job(job: Job) -> EndedJob:
    """Return the accounting row of a job that has ended: its allocated and its measured usage."""
    held = list(spans(job, job.state_since))
    used = [
        (each.used, (each.ended_at or span.until_at) - (each.started_at or span.from_at))
        for attempt, span in zip(attempts(job), held, strict=True)
        for each in attempt.replicas
        if each.used is not None
    ]
    cpu = [each.cpu_ms for each, _ in used if each.cpu_ms is not None]
    busy = [(each.card_percent, lasted) for each, lasted in used if each.card_percent is not None]
    # A mean over time: a replica that ran for an hour says more than one that failed in its first second.
    weights = sum(lasted for _, lasted in busy)
    extra = extra_of(job, job.state_since)
    return EndedJob(
        row=job_row(job, None),
        attempts=len(held),
        elapsed_ms=sum(each.until_at - each.from_at for each in held),
        cpu_held_ms=sum(each.cpus * (each.until_at - each.from_at) for each in held),
        card_milli_ms=sum(each.card_milli * (each.until_at - each.from_at) for each in held),
        cpu_ms=sum(cpu) if cpu else None,
        peak_memory_mib=max(
            (each.peak_memory_mib for each, _ in used if each.peak_memory_mib is not None), default=None
        ),
        card_percent=round(sum(percent * lasted for percent, lasted in busy) / weights) if weights else None,
        above_min_card_milli_ms=extra.card_milli_ms,
        above_min_cpu_ms=extra.cpu_ms,
    )


def divided(held: Iterable[Span], edges: Sequence[Millis]) -> list[list[UsageSum]]:
    """Return the usage in each interval between two edges, summed up by user, account, project and QOS."""
    cards: list[Counter[Names]] = [Counter() for _ in edges[1:]]
    cpus: list[Counter[Names]] = [Counter() for _ in edges[1:]]
    above: list[Counter[Names]] = [Counter() for _ in edges[1:]]
    for span in held:
        names = (span.user, span.account, span.project, span.qos)
        # The interval in which the span begins: a year has hundreds, and most spans touch one or two.
        first = max(0, bisect_right(edges, span.from_at) - 1)
        for index, (begins, ends) in enumerate(pairwise(edges[first:]), first):
            if begins >= span.until_at:
                break
            overlap_ms = max(0, min(ends, span.until_at) - max(begins, span.from_at))
            cards[index][names] += span.card_milli * overlap_ms
            cpus[index][names] += span.cpus * overlap_ms
            if span.above_min_card_milli:
                above[index][names] += span.above_min_card_milli * overlap_ms
    return [list(_sums(*each)) for each in zip(cards, cpus, above, strict=True)]


def merged(parts: Iterable[UsageSum]) -> list[UsageSum]:
    """Return the parts summed up by user, account, project and QOS."""
    cards, cpus, above = Counter[Names](), Counter[Names](), Counter[Names]()
    for each in parts:
        names = (each.user, each.account, each.project, each.qos)
        cards[names] += each.card_milli_ms
        cpus[names] += each.cpu_ms
        above[names] += each.above_min_card_milli_ms
    return list(_sums(cards, cpus, above))


def is_open(job: Job) -> bool:
    """Tell whether the job has attempts and has not ended, so that the accounting does not have it yet."""
    return not job.ended and bool(attempts(job))


def spending(
    state: ClusterState, past: Sequence[Sequence[UsageSum]], edges: Sequence[Millis], actor: Actor, now: Millis
) -> Spending:
    """Return the usage in each interval between two edges, as the actor may see it.

    `past`: the usage of ended jobs in each interval, from the accounting. That of live jobs is added, up to `now`.
    """
    live = divided((span for job in state.jobs.values() if is_open(job) for span in spans(job, now)), edges)
    stretches = (
        tuple(merged([_redacted(state, actor, each) for each in (*before, *running)]))
        for before, running in zip(past, live, strict=True)
    )
    return Spending(tuple(edges), tuple(stretches))


def visible_ended_jobs(jobs: Iterable[Job], live: ClusterState, actor: Actor) -> Iterator[EndedJob]:
    """Yield the ended jobs that the actor may see, without those that were requeued since and have not ended again."""
    for job in jobs:
        # Accounting has the end before the requeue; until it ends again, the job is among the live ones.
        now = live.jobs.get(job.id)
        if may_see(actor, job) and (now is None or now.ended):
            yield ended_job(job)


def _life(job: Job, attempt: Attempt, now: Millis) -> tuple[Millis, Millis]:
    """Return when the attempt's usage begins and ends. Without a start its placement counts; a running one ends now."""
    starts = [each.started_at for each in attempt.replicas if each.started_at is not None]
    ends = [each.ended_at for each in attempt.replicas if each.ended_at is not None]
    began = min(starts, default=attempt.placed_at)
    if attempt.ended_at is not None:
        return began, attempt.ended_at
    # The last attempt of an ended job has no end of its own: that of its last container counts, else that of the job.
    over = job.ended or attempt is not job.attempt
    return began, max(began, max(ends, default=job.ended_at or began) if over else now)


def _redacted(state: ClusterState, actor: Actor, each: UsageSum) -> UsageSum:
    """Return the usage without user and project, if the actor may not see that user in the account."""
    if actor.admin or each.user == actor.name or coordinates(state.accounts, actor.name, each.account):
        return each
    return replace(each, user="", project="")


def _sums(cards: Counter[Names], cpus: Counter[Names], above: Counter[Names]) -> Iterator[UsageSum]:
    return (UsageSum(*names, cards[names], cpus[names], above[names]) for names in cpus)
