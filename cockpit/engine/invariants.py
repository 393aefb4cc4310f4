"""Checks the invariants that hold after every event (TR-02): always in tests, in production if a setting says so."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cockpit.engine.machine import Machine, occupation
from cockpit.model import events
from cockpit.model.job import OCCUPYING, JobState
from cockpit.model.quota import JOBS
from cockpit.sched.invariants import resource_violations
from cockpit.sched.rules.quotas import NO_LEAF, Quotas
from cockpit.sched.rules.tres import ONE, held

if TYPE_CHECKING:
    from cockpit.model.attempt import Attempt
    from cockpit.model.events import EventBody
    from cockpit.model.job import Job


def violations(machine: Machine, body: EventBody | None = None) -> list[str]:
    """Return a sentence for each violated invariant; empty: all hold. `body`: the event that was just applied."""
    sentences = [sentence for job in machine.state.jobs.values() for sentence in _job_violations(job)]
    # Bound to a cluster only: their placements name no nodes that could be counted up.
    known = {job: held for job, held in machine.occupied.items() if not _is_bound_only(machine.state.jobs[job])}
    sentences += resource_violations(machine.state.nodes, known)
    sentences += _index_violations(machine)
    # Only these allocate something; a quota that was lowered may be exceeded until jobs end.
    if isinstance(body, events.JobPlaced | events.WorkersAdded):
        sentences += _quota_violations(machine, machine.state.jobs[body.job])
    return sentences


def _job_violations(job: Job) -> list[str]:
    """Return a sentence for each invariant that the job's record violates."""
    rules = {
        "occupies nodes without an attempt": job.state in OCCUPYING and job.attempt is None,
        "has ended without a moment": job.ended and job.ended_at is None,
        "is held for debugging but has not failed": job.kept and job.state not in {JobState.ERROR, JobState.EXPIRED},
        "has ended while a replica runs": job.ended and _runs(job),
        "is being ended but does not run": job.ending is not None and job.state not in OCCUPYING,
        "is suspended without a reason, or has one and is not": (job.state is JobState.SUSPENDED)
        != (job.suspension is not None),
        "has resources reserved but is not queued": bool(job.clears) and job.state is not JobState.QUEUED,
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
    """Tell whether some replicas of a fleet's job have a cluster but no node yet, so that they occupy no known node."""
    attempt = job.attempt
    if attempt is None:
        return False
    # A member over a link chooses nodes by itself: its parts stay bound to the cluster.
    return bool(attempt.awaits or attempt.remote)


def _attempts(job: Job) -> tuple[Attempt, ...]:
    return job.earlier if job.attempt is None else (*job.earlier, job.attempt)


def _quota_violations(machine: Machine, placed: Job) -> list[str]:
    """Return a sentence for each quota maximum that is exceeded by resources which were just allocated to the job.

    Maxima that were lowered may be exceeded by jobs that started before, which is no violation.
    """
    quotas = Quotas(machine.state.quota)
    leaf = quotas.leaf(placed.project)
    allocated = held(machine.occupied.get(placed.id, ()), machine.state.nodes)
    sentences = []
    for path in quotas.shares[leaf].line if leaf != NO_LEAF else ():
        used = _used_below(machine, quotas, path)
        sentences += [
            f"job {placed.id}: quota {path} has {used[resource]} thousandths of {resource}, at most {most} are allowed"
            for resource, most in quotas.shares[path].max.items()
            if used[resource] > most and (resource == JOBS or allocated.get(resource))
        ]
    return sentences


def _used_below(machine: Machine, quotas: Quotas, path: str) -> Counter[str]:
    """Return what all jobs of the queue and those below it occupy, recounted from their placements."""
    used: Counter[str] = Counter()
    for number, placement in machine.occupied.items():
        job = machine.state.jobs[number]
        leaf = quotas.leaf(job.project)
        if leaf != NO_LEAF and path in quotas.shares[leaf].line:
            used.update(held(placement, machine.state.nodes))
            used[JOBS] += ONE if job.state in OCCUPYING else 0
    return used


def _runs(job: Job) -> bool:
    """Tell whether the command of a present replica runs. The end of one that left unresponsive is never reported."""
    return job.attempt is not None and any(
        each.started_at is not None and each.ended_at is None for each in job.attempt.present_replicas
    )


def _index_violations(machine: Machine) -> list[str]:
    """Return a sentence for each collection of the machine that differs from a newly built one."""
    # What is updated event by event must equal what is built from the state at once, as a restart does.
    fresh = Machine(machine.state)
    sentences = []
    if dict(machine.occupied) != dict(fresh.occupied):
        sentences.append("the occupied resources differ from a recount")
    if dict(machine.queue) != dict(fresh.queue):
        sentences.append("the queue differs from a recount")
    if machine.timers.next_at() != fresh.timers.next_at():
        sentences.append("the timers differ from a recount")
    if list(machine.indices.comparable()) != list(fresh.indices.comparable()):
        sentences.append("the dependencies or the names of jobs differ from a recount")
    expected = {job.id: held for job in machine.state.jobs.values() if (held := occupation(job)) is not None}
    if dict(machine.occupied) != expected:
        sentences.append("occupied resources belong to jobs that occupy none")
    return sentences
