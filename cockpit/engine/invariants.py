"""What must hold after every event (TR-02). Checked in tests always, in production when the setting says so."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cockpit.engine.machine import Machine, occupation
from cockpit.model import events
from cockpit.model.job import OCCUPYING, JobState
from cockpit.model.quota import JOBS
from cockpit.sched.invariants import resource_violations
from cockpit.sched.rules.amounts import ONE, held
from cockpit.sched.rules.quotas import NO_LEAF, Quotas

if TYPE_CHECKING:
    from cockpit.model.attempt import Attempt
    from cockpit.model.events import EventBody
    from cockpit.model.job import Job


def violations(machine: Machine, body: EventBody | None = None) -> list[str]:
    """One sentence per broken promise; empty when all hold. `body`: what has just happened."""
    found = [sentence for job in machine.state.jobs.values() for sentence in _job_violations(job)]
    known = {job: held for job, held in machine.occupied.items() if not _is_bound_only(machine.state.jobs[job])}
    found += resource_violations(machine.state.nodes, known)
    found += _index_violations(machine)
    if isinstance(body, events.JobPlaced | events.WorkersAdded):
        found += _quota_violations(machine, machine.state.jobs[body.job])
    return found


def _job_violations(job: Job) -> list[str]:
    rules = {
        "occupies nodes without an attempt": job.state in OCCUPYING and job.attempt is None,
        "has ended without a moment": job.ended and job.ended_at is None,
        "is kept but has not failed": job.kept and job.state not in {JobState.ERROR, JobState.EXPIRED},
        "has ended while a replica runs": job.ended and _runs(job),
        "is being ended but does not run": job.ending is not None and job.state not in OCCUPYING,
        "stands still without a reason, or does not and has one": (job.state is JobState.SUSPENDED)
        != (job.suspension is not None),
        "is promised room but does not wait": bool(job.clears) and job.state is not JobState.QUEUED,
        "has attempts out of order": [each.number for each in _attempts(job)]
        != list(range(1, len(_attempts(job)) + 1)),
        "is queued with a running replica": job.state is JobState.QUEUED and _runs(job),
        "is below its min but does not wait": job.below_min_at is not None and job.state is not JobState.QUEUED,
        "is ready but still said to wait for another job": job.never is not None and not job.waits_for,
        "has a gang that is neither whole nor absent": job.attempt is not None
        and job.state is not JobState.QUEUED  # by an edit it may ask for another size next time
        and not job.spec.least_nodes <= len(job.attempt.placement) <= job.spec.most_nodes,
        "has no first replica": job.attempt is not None
        and job.state is not JobState.QUEUED
        and job.spec.elastic is None
        and job.attempt.placement[0].rank != 0,
        "has given up more workers than it can": job.attempt is not None
        and job.state is not JobState.QUEUED
        and len(job.attempt.placement) - len(job.leaving) < job.spec.least_nodes,
        "gives up workers that it does not have": job.attempt is not None
        and not {each.rank for each in job.leaving} <= {part.rank for part in job.attempt.placement},
    }
    return [f"job {job.id} {sentence}" for sentence, broken in rules.items() if broken]


def _is_bound_only(job: Job) -> bool:
    """A fleet knows of some of its replicas which cluster they are in, and not where."""
    return job.attempt is not None and bool(job.attempt.awaits)


def _attempts(job: Job) -> tuple[Attempt, ...]:
    return job.earlier if job.attempt is None else (*job.earlier, job.attempt)


def _quota_violations(machine: Machine, placed: Job) -> list[str]:
    """No max is passed of what somebody was given just now; others may pass one that was lowered meanwhile."""
    quotas = Quotas(machine.state.quota)
    leaf = quotas.leaf(placed.project)
    given = held(machine.occupied.get(placed.id, ()), machine.state.nodes)
    found = []
    for path in quotas.shares[leaf].line if leaf != NO_LEAF else ():
        used = _used_below(machine, quotas, path)
        found += [
            f"job {placed.id}: quota {path} has {used[resource]} thousandths of {resource}, at most {most} are allowed"
            for resource, most in quotas.shares[path].max.items()
            if used[resource] > most and (resource == JOBS or given.get(resource))
        ]
    return found


def _used_below(machine: Machine, quotas: Quotas, path: str) -> Counter[str]:
    """By everybody whose leaf is there or below, counted anew."""
    used: Counter[str] = Counter()
    for number, placement in machine.occupied.items():
        job = machine.state.jobs[number]
        leaf = quotas.leaf(job.project)
        if leaf != NO_LEAF and path in quotas.shares[leaf].line:
            used.update(held(placement, machine.state.nodes))
            used[JOBS] += ONE if job.state in OCCUPYING else 0
    return used


def _runs(job: Job) -> bool:
    return job.attempt is not None and any(
        each.started_at is not None and each.ended_at is None for each in job.attempt.replicas
    )


def _index_violations(machine: Machine) -> list[str]:
    """The incremental indices equal those that are built from nothing."""
    fresh = Machine(machine.state)
    found = []
    if dict(machine.occupied) != dict(fresh.occupied):
        found.append("who occupies what differs from a recount")
    if dict(machine.queue) != dict(fresh.queue):
        found.append("the queue differs from a recount")
    if machine.timers.next_at() != fresh.timers.next_at():
        found.append("the timers differ from a recount")
    if list(machine.indices.comparable()) != list(fresh.indices.comparable()):
        found.append("who waits for whom, or which names are taken, differs from a recount")
    expected = {job.id: held for job in machine.state.jobs.values() if (held := occupation(job)) is not None}
    if dict(machine.occupied) != expected:
        found.append("occupied resources belong to jobs that hold none")
    return found
