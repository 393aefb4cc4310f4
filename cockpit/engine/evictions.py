"""Decides the events that evict, suspend, resume or requeue running jobs, for a scheduling plan or a user's request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine import workers
from cockpit.engine.dependencies import DependencyOutcomes, settled, waiter
from cockpit.model import events
from cockpit.model.attempt import EndCause, EvictionMode, Suspension
from cockpit.model.ids import Millis
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.ids import JobId
    from cockpit.sched.decisions import Eviction
    from cockpit.sched.plan import Plan


def carry_out_evictions(machine: Machine, plan: Plan) -> list[EventBody]:
    """Turn the plan's timeslicing switches and evictions into events.

    Events may have been applied since the plan's snapshot: a victim that ends already, or whose queued job was held or
    has left the queue, is skipped.
    """
    bodies = [*_carry_out_switches(machine, plan)]
    done: list[Eviction] = []
    for each in plan.evictions:
        job, taker = machine.state.jobs.get(each.job), machine.queue.get(each.for_job)
        # `machine.queue` has only queued jobs: None if the job that the eviction should serve needs it no longer.
        if job is None or job.state not in OCCUPYING or job.ending is not None or taker is None or taker.held_by:
            continue
        if each.mode is EvictionMode.SHRINK:
            bodies += workers.recall_workers(machine.state, job, each, plan.now)
        else:
            bodies.append(_begin_eviction(each, plan.now))
        done.append(each)
    # Behind the evictions: only those that are carried out are recorded.
    return [*bodies, *_record_victims(done)]


def requeue(machine: Machine, job: Job, now: Millis, grace_seconds: int | None = None) -> list[EventBody] | Refusal:
    """Requeue a job for a user: at once if it has ended, else once its attempt is over.

    `grace_seconds`: how long its replicas have to end; None: the job's own grace period.
    """
    if job.state is JobState.QUEUED:
        return _conflict(f"Job {job.shown_id} is queued already.")
    if job.ended:
        if job.deleted:
            return _conflict(f"Job {job.shown_id} was deleted; `cockpit clone {job.shown_id}` submits it as a new one.")
        # Names are unique among live jobs, since they name output folders; this job would become live again.
        if machine.live_job_named(job.project, job.spec.name) is not None:
            theirs = f"Another job of project {job.project} has the name of job {job.shown_id} now"
            return _conflict(f"{theirs}; `cockpit clone {job.id}` gives it another.")
        # A job that it depends on may have ended while this one was not queued.
        conditions = settled(machine, waiter(job), job.waits_for, DependencyOutcomes())
        return [events.JobRequeued(job.id, EndCause.REQUEUE), *conditions]
    if job.ending is not None:
        return _conflict(f"Job {job.shown_id} is being ended.")
    grace = job.spec.end_grace_seconds if grace_seconds is None else grace_seconds
    return [events.EndingBegan(job.id, EndCause.REQUEUE, Millis(now + 1000 * grace), requeue=True)]


def suspend(job: Job, actor: str) -> list[EventBody] | Refusal:
    """Suspend a running job for a user."""
    if job.state is not JobState.RUNNING:
        state_phrase = f"has ended ({job.state})" if job.ended else f"is {job.state}"
        return _conflict(f"Job {job.shown_id} {state_phrase}; only a running job can be suspended.")
    if job.ending is not None:
        return _conflict(f"Job {job.shown_id} is being ended.")
    return [events.JobSuspended(job.id, Suspension(by=actor))]


def resume(machine: Machine, job: Job) -> list[EventBody] | Refusal:
    """Resume a job that a user suspended. Refused while other jobs occupy its CPUs."""
    if job.below_min_at is not None:
        return _conflict(
            f"Job {job.shown_id} resumes by itself once there are free resources for {job.spec.least_nodes} workers."
        )
    if job.suspension is None:
        return _conflict(f"Job {job.shown_id} is not suspended; it is {job.state}.")
    if job.ending is not None:
        return _conflict(f"Job {job.shown_id} is being ended.")
    # The scheduler decides about this one (`timeslicing`); a user must not take the CPUs from its preemptor.
    if not job.suspension.by:
        return _conflict(
            f"Job {job.shown_id} was preempted by another job and resumes by itself when that job releases its CPUs."
        )
    if short := next(_short_of_cpus(machine, job), ""):
        return _conflict(f"{short}; resume job {job.shown_id} when they are free again.")
    return [events.JobResumed(job.id)]


def _short_of_cpus(machine: Machine, job: Job) -> Iterator[str]:
    """Yield a sentence for each node on which too few CPUs are free to resume the job."""
    assert job.attempt is not None
    # Memory and cards stayed the suspended job's own, so that only CPUs can be missing.
    occupied = [part for placement in machine.occupied.values() for part in placement]
    for own in job.attempt.placement:
        free = machine.state.nodes[own.node].cpus - sum(part.cpus for part in occupied if part.node == own.node)
        if free < own.cpus:
            yield f"Of its {own.cpus} CPUs on {own.node} {max(0, free)} are free"


def _carry_out_switches(machine: Machine, plan: Plan) -> Iterator[EventBody]:
    """Turn the plan's timeslicing switches into events. A switch is skipped where any of its jobs has changed."""
    jobs = machine.state.jobs
    for switch in plan.switches:
        suspended = jobs.get(switch.job)
        running = [jobs[other] for other in switch.others if other in jobs]
        unchanged = suspended is not None and suspended.state is JobState.SUSPENDED and suspended.ending is None
        if not unchanged or any(job.state is not JobState.RUNNING or job.ending is not None for job in running):
            continue
        # Suspend before resuming: at no moment do two jobs occupy the same CPUs.
        for job in running:
            yield events.JobSuspended(job.id, Suspension(for_jobs=switch.instead))
        yield events.JobResumed(switch.job)


def _begin_eviction(eviction: Eviction, now: Millis) -> EventBody:
    """Return the event that begins an eviction, of any mode but SHRINK."""
    if eviction.mode is EvictionMode.SUSPEND:
        suspension = Suspension(for_jobs=(eviction.for_job,), grounds=eviction.grounds)
        return events.JobSuspended(eviction.job, suspension)
    return events.EndingBegan(
        eviction.job,
        EndCause.PREEMPTED,
        Millis(now + 1000 * eviction.grace_seconds),
        for_job=eviction.for_job,
        grounds=eviction.grounds,
        requeue=eviction.mode is EvictionMode.REQUEUE,
    )


def _record_victims(done: Iterable[Eviction]) -> Iterator[EventBody]:
    """Record the victims at each queued job that they are evicted for, with one event for each eviction mode.

    The resources that the victims release are then reserved for that job.
    """
    groups: dict[tuple[JobId, EvictionMode], list[Eviction]] = {}
    for each in done:
        groups.setdefault((each.for_job, each.mode), []).append(each)
    for (job, mode), evictions in groups.items():
        yield events.EvictionsDecided(job, tuple(each.job for each in evictions), mode, evictions[0].grounds)


def _conflict(message: str) -> Refusal:
    return Refusal(RefusalKind.CONFLICT, message)
