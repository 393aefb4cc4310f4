"""What jobs hold and held, as accounting counts it: by attempt, from its first container's start to its last one's end.

What is given counts, used or not, as in `sreport`'s utilization.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from cockpit.engine.access import may_see
from cockpit.engine.accounts.coordinators import coordinates
from cockpit.engine.views.rows import job_row
from cockpit.model.accounting import EndedJob, Span, Spending, Spent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.model.attempt import Attempt
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job

Names = tuple[str, str, str, str]
"""User, account, project, QOS."""


def spans(job: Job, now: Millis) -> Iterator[Span]:
    """Every attempt of the job, the first one first; of one that runs, up to now."""
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
        )


def _size(attempt: Attempt, began: Millis, ended: Millis) -> tuple[int, int]:
    """CPUs and thousandths of a card; of an elastic job that grew or shrank, the mean, in whole ones."""
    if attempt.resized_at is None or ended <= began:
        held = attempt.placement
        return sum(part.cpus for part in held), sum(part.card_milli for part in held)
    parts, lasted = attempt.held(began, ended), ended - began
    return (
        round(sum(part.cpus * held_ms for part, held_ms in parts) / lasted),
        round(sum(part.card_milli * held_ms for part, held_ms in parts) / lasted),
    )


def attempts(job: Job) -> tuple[Attempt, ...]:
    """The first one first."""
    return job.earlier if job.attempt is None else (*job.earlier, job.attempt)


def ended_job(job: Job) -> EndedJob:
    """Of a job that has ended."""
    held = list(spans(job, job.state_since))
    used = [
        (each.used, (each.ended_at or span.until_at) - (each.started_at or span.from_at))
        for attempt, span in zip(attempts(job), held, strict=True)
        for each in attempt.replicas
        if each.used is not None
    ]
    cpu = [each.cpu_ms for each, _ in used if each.cpu_ms is not None]
    busy = [(each.card_percent, lasted) for each, lasted in used if each.card_percent is not None]
    weights = sum(lasted for _, lasted in busy)
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
    )


def divided(held: Iterable[Span], edges: Sequence[Millis]) -> list[list[Spent]]:
    """What was held in each stretch between two edges, added up."""
    cards: list[Counter[Names]] = [Counter() for _ in edges[1:]]
    cpus: list[Counter[Names]] = [Counter() for _ in edges[1:]]
    for span in held:
        names = (span.user, span.account, span.project, span.qos)
        first = max(0, bisect_right(edges, span.from_at) - 1)
        for place, (begins, ends) in enumerate(pairwise(edges[first:]), first):
            if begins >= span.until_at:
                break
            shared = max(0, min(ends, span.until_at) - max(begins, span.from_at))
            cards[place][names] += span.card_milli * shared
            cpus[place][names] += span.cpus * shared
    return [list(_sums(*both)) for both in zip(cards, cpus, strict=True)]


def merged(parts: Iterable[Spent]) -> list[Spent]:
    """One sum for all that have their names in common."""
    cards, cpus = Counter[Names](), Counter[Names]()
    for each in parts:
        names = (each.user, each.account, each.project, each.qos)
        cards[names] += each.card_milli_ms
        cpus[names] += each.cpu_ms
    return list(_sums(cards, cpus))


def is_open(job: Job) -> bool:
    """It is not over, and so not in the accounting as it stands."""
    return not job.ended and bool(attempts(job))


def spending(
    state: ClusterState, past: Sequence[Sequence[Spent]], edges: Sequence[Millis], actor: Actor, now: Millis
) -> Spending:
    """What accounting has of jobs that are over, `past`, with what live ones held; as the actor may see it."""
    live = divided((span for job in state.jobs.values() if is_open(job) for span in spans(job, now)), edges)
    stretches = (
        tuple(merged([_shown(state, actor, each) for each in (*before, *running)]))
        for before, running in zip(past, live, strict=True)
    )
    return Spending(tuple(edges), tuple(stretches))


def ended_seen(jobs: Iterable[Job], live: ClusterState, actor: Actor) -> Iterator[EndedJob]:
    """Those that the actor may see; without what was begun anew since."""
    for job in jobs:
        now = live.jobs.get(job.id)
        if may_see(actor, job) and (now is None or now.ended):
            yield ended_job(job)


def _life(job: Job, attempt: Attempt, now: Millis) -> tuple[Millis, Millis]:
    starts = [each.started_at for each in attempt.replicas if each.started_at is not None]
    ends = [each.ended_at for each in attempt.replicas if each.ended_at is not None]
    began = min(starts, default=attempt.placed_at)
    if attempt.ended_at is not None:
        return began, attempt.ended_at
    over = job.ended or attempt is not job.attempt
    return began, max(began, max(ends, default=job.ended_at or began) if over else now)


def _shown(state: ClusterState, actor: Actor, each: Spent) -> Spent:
    """Accounts are everybody's to see, users as in the tree of accounts."""
    if actor.admin or each.user == actor.name or coordinates(state.accounts, actor.name, each.account):
        return each
    return Spent("", each.account, "", each.qos, each.card_milli_ms, each.cpu_ms)


def _sums(cards: Counter[Names], cpus: Counter[Names]) -> Iterator[Spent]:
    return (Spent(*names, cards[names], cpus[names]) for names in cpus)
