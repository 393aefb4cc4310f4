"""Running jobs that give way, stand still, go on or begin anew: by the scheduler's plan, or for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine import workers
from cockpit.engine.dependencies import DependencyOutcomes, settled, waiter
from cockpit.model import events
from cockpit.model.attempt import EndCause, Suspension
from cockpit.model.eviction import EvictionMode
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


def decided(machine: Machine, plan: Plan) -> list[EventBody]:
    """The plan's turns and evictions. What changed since its snapshot wins: who ends by now is left to it."""
    bodies = [*_turned(machine, plan)]
    done: list[Eviction] = []
    for each in plan.evictions:
        job, taker = machine.state.jobs.get(each.job), machine.queue.get(each.for_job)
        if job is None or job.state not in OCCUPYING or job.ending is not None or taker is None or taker.held_by:
            continue
        if each.mode is EvictionMode.SHRINK:
            bodies += workers.recalled(job, each, plan.now)
        else:
            bodies.append(_evicted(each, plan.now))
        done.append(each)
    return [*bodies, *_made_room(done)]


def requeue(machine: Machine, job: Job, now: Millis, grace_seconds: int | None = None) -> list[EventBody] | Refusal:
    """A person has a job begin anew: at once if it has ended, else once its attempt is over."""
    if job.state is JobState.QUEUED:
        return _conflict(f"Job {job.id} is queued already.")
    if job.ended:
        if job.deleted:
            return _conflict(f"Job {job.id} was deleted; `cockpit clone {job.id}` submits it as a new one.")
        if machine.live_job_named(job.project, job.spec.name) is not None:
            theirs = f"Another job of project {job.project} has the name of job {job.id} now"
            return _conflict(f"{theirs}; `cockpit clone {job.id}` gives it another.")
        return [
            events.JobRequeued(job.id, EndCause.REQUEUE),
            *settled(
                machine, waiter(job), job.waits_for, DependencyOutcomes()
            ),  # what it waited for may have ended since
        ]
    if job.ending is not None:
        return _conflict(f"Job {job.id} is being ended.")
    grace = job.spec.end_grace_seconds if grace_seconds is None else grace_seconds
    return [events.EndingBegan(job.id, EndCause.REQUEUE, Millis(now + 1000 * grace), requeue=True)]


def suspend(job: Job, actor: str) -> list[EventBody] | Refusal:
    """A person has a running job stand still."""
    if job.state is not JobState.RUNNING:
        stands = f"has ended ({job.state})" if job.ended else f"is {job.state}"
        return _conflict(f"Job {job.id} {stands}; only a running job can be suspended.")
    if job.ending is not None:
        return _conflict(f"Job {job.id} is being ended.")
    return [events.JobSuspended(job.id, Suspension(by=actor))]


def resume(machine: Machine, job: Job) -> list[EventBody] | Refusal:
    """The opposite of `suspend`; refused while others have its CPUs."""
    if job.below_min_at is not None:
        return _conflict(f"Job {job.id} goes on by itself once {job.spec.least_nodes} workers have room.")
    if job.suspension is None:
        return _conflict(f"Job {job.id} is not suspended; it is {job.state}.")
    if job.ending is not None:
        return _conflict(f"Job {job.id} is being ended.")
    if not job.suspension.by:
        return _conflict(f"Job {job.id} gave way to another, and goes on by itself when that leaves its CPUs.")
    if short := next(_short_of_cpus(machine, job), ""):
        return _conflict(f"{short}; resume job {job.id} when they are free again.")
    return [events.JobResumed(job.id)]


def _short_of_cpus(machine: Machine, job: Job) -> Iterator[str]:
    """Nodes on which its CPUs are not free."""
    assert job.attempt is not None
    held = [part for placement in machine.occupied.values() for part in placement]
    for own in job.attempt.placement:
        free = machine.state.nodes[own.node].cpus - sum(part.cpus for part in held if part.node == own.node)
        if free < own.cpus:
            yield f"Of its {own.cpus} CPUs on {own.node} {max(0, free)} are free"


def _turned(machine: Machine, plan: Plan) -> Iterator[EventBody]:
    """Who stands still first, so that whoever goes on has the CPUs."""
    jobs = machine.state.jobs
    for switch in plan.switches:
        waits = jobs.get(switch.job)
        others = [jobs[other] for other in switch.others if other in jobs]
        unchanged = waits is not None and waits.state is JobState.SUSPENDED and waits.ending is None
        if not unchanged or any(each.state is not JobState.RUNNING or each.ending is not None for each in others):
            continue
        for each in others:
            yield events.JobSuspended(each.id, Suspension(for_jobs=switch.instead))
        yield events.JobResumed(switch.job)


def _evicted(each: Eviction, now: Millis) -> EventBody:
    if each.mode is EvictionMode.SUSPEND:
        return events.JobSuspended(each.job, Suspension(for_jobs=(each.for_job,), grounds=each.grounds))
    return events.EndingBegan(
        each.job,
        EndCause.PREEMPTED,
        Millis(now + 1000 * each.grace_seconds),
        for_job=each.for_job,
        grounds=each.grounds,
        requeue=each.mode is EvictionMode.REQUEUE,
    )


def _made_room(done: Iterable[Eviction]) -> Iterator[EventBody]:
    """Told of each job that others give way to, for each manner in which they do."""
    found: dict[tuple[JobId, EvictionMode], list[Eviction]] = {}
    for each in done:
        found.setdefault((each.for_job, each.mode), []).append(each)
    for (job, mode), evictions in found.items():
        yield events.RoomMade(job, tuple(each.job for each in evictions), mode, evictions[0].grounds)


def _conflict(message: str) -> Refusal:
    return Refusal(RefusalKind.CONFLICT, message)
