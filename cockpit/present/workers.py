"""Words for elastic jobs: how many workers they have, can have and must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.model.resilience import NoGrowth, ScalePhase
from cockpit.present import units
from cockpit.present.moments import clock
from cockpit.present.phrases import listed
from cockpit.present.reasons import reason_sentence
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.spec import JobSpec

_NO_GROWTH: Final = {
    NoGrowth.AT_MAXIMUM: "it has its maximum",
    NoGrowth.SCALING_OFF: "it was submitted with allow_scaling off",
    NoGrowth.WORKERS_MISSING: "it grows once all of its workers run",
    NoGrowth.BEING_EVICTED: "it is being evicted or shrunk",
    NoGrowth.NO_FREE_NODE: "no node has enough free resources for one more",
    NoGrowth.RESERVED: "free resources are reserved for jobs that wait",
    NoGrowth.PRICE_TOO_HIGH: "nodes with enough free resources cost more than its max_price now",
    NoGrowth.LIMIT_REACHED: "a limit or quota is reached",
}


_WITH_OBSTACLE: Final = frozenset(
    {NoGrowth.NO_FREE_NODE, NoGrowth.PRICE_TOO_HIGH, NoGrowth.RESERVED, NoGrowth.LIMIT_REACHED}
)
_NAMED_JOBS: Final = 3
"""Number of jobs that a sentence names, those that hold most."""

BEST_EFFORT: Final = "what is left over (best effort)"
"""Words for the resources of a job that requests no CPUs."""


def workers_now(row: JobRow) -> str:
    """Return the number of workers, or for a queued job the requested number, with its bounds: `3 (1–8)`; a dash for a
    job that is not elastic."""
    if row.workers is None:
        return "–"
    return f"{_held_nodes(row)} ({row.workers[0]}–{row.workers[2]})"


def _held_nodes(row: JobRow) -> int:
    """Return the number of the job's nodes; a job that is suspended below its minimum has none."""
    # The row still has the number that the job gave up.
    return 0 if row.waits_until is not None else row.nodes


def short_of_workers(row: JobRow) -> str | None:
    """Return the sentence about an elastic job that runs with fewer workers than requested; None: it is not one."""
    # A job that waits or has ended is short of nothing.
    if row.workers is None or not row.placed_on or row.ended_at is not None or row.nodes >= row.workers[1]:
        return None
    return f"runs with {row.nodes} of {row.workers[1]} workers"


def leaving_words(row: JobRow, now: Millis) -> str:
    """Return how many workers of an elastic job leave, and the time until the first is killed; empty: none does."""
    if row.leaving is None or row.ended_at is not None:
        return ""
    count, kill_at = row.leaving
    verb = "leaves" if count == 1 else "leave"
    seconds = max(0, kill_at - now) // 1000
    return f"{units.counted(count, 'worker')} {verb}, killed in {units.spoken(seconds)}"


def below_min(row: JobRow, now: Millis, zone: tzinfo | None) -> str:
    """Return the sentence about an elastic job that is suspended because it had to release too many workers; empty: it
    is not."""
    if row.waits_until is None or row.workers is None:
        return ""
    least = units.counted(row.workers[0], "worker")
    return f"suspended until {least} can run, at most until {clock(row.waits_until, now, zone)}"


def workers_fact(detail: JobDetail) -> str:
    """Return the job's workers in words: `2, asked for 3, may have 1 to 8; a limit or quota is reached`, or
    `3, of which 1 leaves, may have 1 to 3; it is being evicted or shrunk`."""
    elastic, row = detail.job.spec.elastic, detail.row
    if elastic is None:
        return ""
    held = _held_nodes(row)
    has = f"{held}, asked for {elastic.workers}" if held != elastic.workers else str(held)
    if row.leaving is not None and row.ended_at is None:
        has += f", of which {row.leaving[0]} {'leaves' if row.leaving[0] == 1 else 'leave'}"
    bounds = f"may have {elastic.min_workers} to {elastic.max_workers}"
    return "; ".join(filter(None, (f"{has}, {bounds}", scaling_words(detail), no_growth(detail))))


def scaling_words(detail: JobDetail) -> str:
    """Return the change of the number of workers that is not done or has failed: `2 more by ScaleOut train-x7k2p,
    which waits for them to run`; empty: there is none."""
    each = detail.scaling
    if each is None or detail.row.ended_at is not None:
        return ""
    change = f"{abs(each.change)} {'more' if each.change > 0 else 'fewer'} by {safe(each.name)}"
    match each.phase:
        case ScalePhase.WAITING:
            return f"{change}, which the operator has not begun"
        case ScalePhase.RUNNING:
            return f"{change}, which waits for {'them to run' if each.change > 0 else 'their processes to end'}"
        case ScalePhase.FAILED:
            return f"{change} failed: {safe(each.message)}" if each.message else f"{change} failed"


def no_growth(detail: JobDetail) -> str:
    """Return why a running elastic job takes no further worker, with what is behind it: `no node has enough free
    resources for one more (held by job 12)`; empty: it is not known, or the job is not elastic."""
    if detail.job.spec.elastic is None or detail.growth is None:
        return ""
    cause = _obstacle_words(detail) if detail.growth in _WITH_OBSTACLE else ""
    return _NO_GROWTH[detail.growth] + cause


def _obstacle_words(detail: JobDetail) -> str:
    """Return what keeps the job from one more worker: ` (held by job 12)`; empty: nothing can be named."""
    obstacle, elastic = detail.obstacle, detail.job.spec.elastic
    if obstacle is None or elastic is None:
        return ""
    parts = []
    if obstacle.limit is not None:
        # Limits have no times, so that any moment serves.
        parts.append(reason_sentence(obstacle.limit, detail.row.submitted_at, None))
    if obstacle.reserved_for:
        parts.append(f"for {_jobs_words(obstacle.reserved_for)}")
    if obstacle.held_by:
        parts.append(f"held by {_jobs_words(obstacle.held_by)}")
    if obstacle.too_dear and elastic.max_price_milli is not None:
        price = f"{elastic.max_price_milli / 1000:g}"
        verb = "costs" if len(obstacle.too_dear) == 1 else "cost"
        parts.append(f"{listed(obstacle.too_dear)} {verb} more than its max_price of {price}")
    if obstacle.blocked:
        parts.append(f"{listed(obstacle.blocked)} {'is' if len(obstacle.blocked) == 1 else 'are'} on its block list")
    return f" ({'; '.join(parts)})" if parts else ""


def _jobs_words(jobs: Sequence[JobId]) -> str:
    """Return the first few jobs, with the number of the others: `jobs 3, 5 and 8 and 2 more`."""
    known = [each for each in jobs if each]
    named = [str(each) for each in known[:_NAMED_JOBS]]
    others = len(jobs) - len(named)
    if not named:
        return units.counted(others, "job") + " of other users"
    words = f"{'job' if len(named) == 1 else 'jobs'} {listed(named)}"
    return f"{words} and {others} more" if others else words


def replica_name(spec: JobSpec, rank: int) -> str:
    """Return a replica's role where its job has a launcher: `launcher`, `worker 0`; else empty."""
    if not spec.has_launcher:
        return ""
    return "launcher" if rank < spec.first_worker else f"worker {rank - spec.first_worker}"


def replica_count(job: Job) -> str:
    """Return the number of nodes or workers of the job: `2 nodes`, `3 workers`."""
    return units.counted(job.spec.nodes, "node" if job.spec.elastic is None else "worker")
