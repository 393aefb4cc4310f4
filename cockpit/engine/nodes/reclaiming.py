"""Reclaims nodes for their provider, and memory from best-effort jobs (EL-02, EL-08). Jobs are notified, get a grace
period, and leave without a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.workers import live_workers
from cockpit.model import events
from cockpit.model.attempt import EndCause, Grounds
from cockpit.model.ids import Millis
from cockpit.model.resilience import RECLAIM_SECONDS
from cockpit.sched.eviction.shrinking import staying

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.ids import NodeName
    from cockpit.model.job import Job


def leave_reclaimed_node(machine: Machine, node: NodeName, gone_at: Millis, now: Millis) -> list[EventBody]:
    """Return the events for a node that its provider reclaims: all jobs leave it by `gone_at`.

    An elastic job continues without its worker if enough workers are left; other jobs are queued again.
    """
    return [each for job in _running_on(machine, node) for each in _leave_reclaimed_node(job, node, gone_at, now)]


def _leave_reclaimed_node(job: Job, node: NodeName, gone_at: Millis, now: Millis) -> Iterator[EventBody]:
    """Yield the events by which one job leaves the node; its own grace period may end before `gone_at`."""
    assert job.attempt is not None
    elastic = job.spec.elastic
    own = elastic.grace_seconds if elastic is not None else None
    # The job's own grace may be shorter than the provider's notice, never longer: the node is gone then.
    kill_at = min(gone_at, Millis(now + 1000 * own)) if own is not None else gone_at
    launches = job.attempt.launcher is not None and job.attempt.launcher.node == node
    # Workers cannot continue without their launcher, so a job whose launcher is there ends as a whole.
    if not job.spec.suspends or launches:
        yield _end_job(job, kill_at, Grounds.RECLAIM)
    else:
        yield from _leave_nodes(job, {node}, kill_at, Grounds.RECLAIM)


def relieve_memory(machine: Machine, node: NodeName, now: Millis) -> list[EventBody]:
    """Recall the best-effort worker placed last on a node short of memory; none while another one is leaving.

    One at a time: its end may free enough memory.
    """
    best_effort_jobs = [job for job in _occupying_jobs(machine) if job.spec.is_best_effort and _runs_on(job, node)]
    if not best_effort_jobs or any(_is_leaving(job, node) for job in best_effort_jobs):
        return []
    # the youngest: it has least work to lose
    job = max(best_effort_jobs, key=lambda each: (each.attempt.placed_at if each.attempt is not None else 0, each.id))
    elastic = job.spec.elastic
    assert elastic is not None
    grace = RECLAIM_SECONDS if elastic.grace_seconds is None else elastic.grace_seconds
    # A job without a supervisor gets no notice, so that a grace period would only prolong the shortage (EL-08).
    kill_at = Millis(now + 1000 * grace * elastic.supervised)
    return list(_leave_nodes(job, {node}, kill_at, Grounds.PRESSURE))


def _running_on(machine: Machine, node: NodeName) -> list[Job]:
    """Return the jobs that hold resources or have their launcher on the node, and are not leaving yet."""
    return [job for job in _occupying_jobs(machine) if _is_on(job, node) and not _is_leaving(job, node)]


def _occupying_jobs(machine: Machine) -> Iterator[Job]:
    jobs = (machine.state.jobs.get(job) for job in machine.occupied)
    return (job for job in jobs if job is not None and not job.ended)


def _is_on(job: Job, node: NodeName) -> bool:
    return job.attempt is not None and any(part.node == node for part in job.attempt.whole_placement)


def _runs_on(job: Job, node: NodeName) -> bool:
    """Return whether a worker of the job on the node has not ended."""
    attempt = job.attempt
    return attempt is not None and any(
        part.node == node and attempt.replicas[part.rank].ended_at is None for part in attempt.placement
    )


def _is_leaving(job: Job, node: NodeName) -> bool:
    """Return whether the part of the job on the node is leaving already."""
    if job.ending is not None or job.attempt is None:
        return True
    return not any(part.node == node for part in staying(job.attempt.whole_placement, job))


def leave_dear_nodes(machine: Machine, prices: Mapping[NodeName, int], now: Millis) -> Iterator[EventBody]:
    """Yield the events by which jobs leave nodes whose present price, in thousandths, is above what they pay; only jobs
    that ask for it do."""
    for job in _occupying_jobs(machine):
        elastic, attempt = job.spec.elastic, job.attempt
        if elastic is None or not elastic.shrink_above_price or elastic.max_price_milli is None or attempt is None:
            continue
        most = elastic.max_price_milli
        dear = {part.node for part in staying(attempt.placement, job) if prices.get(part.node, 0) > most}
        if dear and job.ending is None:
            grace = RECLAIM_SECONDS if elastic.grace_seconds is None else elastic.grace_seconds
            yield from _leave_nodes(job, dear, Millis(now + 1000 * grace), Grounds.PRICE)


def _leave_nodes(job: Job, nodes: Collection[NodeName], kill_at: Millis, grounds: Grounds) -> Iterator[EventBody]:
    """Let the job leave the nodes: only its workers there, if enough others are left; else the job is suspended.

    Yields nothing if all of its workers there are done: nothing of them is taken away.
    """
    assert job.attempt is not None
    # Workers that are leaving anyway are counted neither here nor among those that are left.
    live, places = live_workers(job), job.attempt.places
    ranks = tuple([rank for rank in live if places[rank].node in nodes])
    if not ranks:
        return
    if len(live) - len(ranks) >= job.spec.least_nodes:
        yield events.WorkersRecalled(job.id, ranks, kill_at, None, grounds)
    else:
        yield _end_job(job, kill_at, grounds)


def _end_job(job: Job, kill_at: Millis, grounds: Grounds) -> EventBody:
    return events.EndingBegan(job.id, EndCause.RECLAIMED, kill_at, grounds=grounds, requeue=True)
