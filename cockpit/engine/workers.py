"""Elastic jobs grow and shrink (EL-01): workers come, are recalled, and leave, while the job goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.sched.amounts import ONE, thousandths
from cockpit.sched.growth import grows, next_rank
from cockpit.sched.tres import allocated, billed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.model.events import EventBody
    from cockpit.sched.decisions import Eviction, Growth
    from cockpit.sched.plan import Plan


def grown(machine: Machine, plan: Plan) -> Iterator[EventBody]:
    """The plan's growths. What changed since its snapshot wins: such a job is left to the next cycle."""
    for each in plan.growths:
        job = machine.state.jobs.get(each.job)
        if job is not None and job.attempt is not None and grows(job, job.attempt) and _fits_on(job, each):
            yield events.WorkersAdded(job.id, job.attempt.number, each.placement, each.billing)


def _fits_on(job: Job, growth: Growth) -> bool:
    """Whether the ranks are still the next ones."""
    assert job.attempt is not None
    return growth.placement[0].rank == next_rank(job.attempt)


def recalled(job: Job, eviction: Eviction, now: Millis) -> list[EventBody]:
    """Those of the workers to give way that are still there."""
    there = {each.rank for each in job.attempt.there} if job.attempt is not None else set()
    ranks = tuple(sorted(there.intersection(eviction.ranks) - {each.rank for each in job.leaving}))
    kill_at = Millis(now + 1000 * eviction.grace_seconds)
    return [events.WorkersRecalled(job.id, ranks, kill_at, eviction.for_job, eviction.grounds)] if ranks else []


def left(state: ClusterState, job: Job, ranks: Collection[int]) -> list[EventBody]:
    """Recalled workers whose processes are gone."""
    out = tuple(sorted({each.rank for each in job.leaving}.intersection(ranks)))
    return [events.WorkersLeft(job.id, out, _billing_without(state, job, out))] if out else []


def _billing_without(state: ClusterState, job: Job, ranks: Collection[int]) -> float:
    assert job.attempt is not None
    rest = tuple([part for part in job.attempt.placement if part.rank not in ranks])
    return thousandths(billed(allocated(rest, state.nodes), state.cluster, job.attempt.partition)) / ONE


def may_begin_to_grow(machine: Machine, body: EventBody) -> bool:
    """Whether by this event an elastic job has come to run whole, so that more may be added."""
    if not isinstance(body, events.ReplicaStarted):
        return False
    job = machine.state.jobs[body.job]
    return job.spec.elastic is not None and job.attempt is not None and grows(job, job.attempt)
