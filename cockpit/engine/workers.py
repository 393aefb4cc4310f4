"""Elastic jobs grow and shrink (EL-01): workers come, are recalled, and leave, while the job goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.model.job import Job, JobState
from cockpit.model.spec import WorkerRestart
from cockpit.sched.amounts import ONE, held
from cockpit.sched.growth import grows, next_rank
from cockpit.sched.shrinking import staying
from cockpit.sched.tres import billed

_REPLACING = frozenset({JobState.STARTING, JobState.RESUMING, JobState.RUNNING})
FIRST_TRANSIENT = 128
"""Of exit codes; those below tell of the program itself. Source: the training operators' ExitCode policy."""

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.model.events import EventBody
    from cockpit.model.job import ExitStatus
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
    return without(state, job, out) if out else []


def without(state: ClusterState, job: Job, ranks: tuple[int, ...]) -> list[EventBody]:
    """The job goes on without these, whose processes are gone or never were."""
    return [events.WorkersLeft(job.id, ranks, _billing_without(state, job, ranks))]


def replaced(job: Job, rank: int, status: ExitStatus) -> list[EventBody]:
    """In place of a worker that has failed, if the job wants that and has a retry left."""
    assert job.attempt is not None
    begun = job.ending is None and job.state in _REPLACING
    if not begun or job.retries >= job.spec.most_worker_retries or not _is_worth_it(job, status):
        return []
    by = next_rank(job.attempt)
    return [events.WorkerReplaced(job.id, job.attempt.number, rank, by, job.retries + 1)]


def _is_worth_it(job: Job, status: ExitStatus) -> bool:
    only_some = job.spec.elastic is not None and job.spec.elastic.worker_restart_policy is WorkerRestart.EXIT_CODE
    return not status.ok and (not only_some or status.shell_code >= FIRST_TRANSIENT)


def can_do_without(job: Job, rank: int) -> bool:
    """Whether it is a worker that has not begun of an elastic job that runs, and has enough others."""
    if job.spec.elastic is None or job.attempt is None or job.state is not JobState.RUNNING:
        return False
    not_begun = any(each.rank == rank and each.started_at is None for each in job.attempt.there)
    return not_begun and len(staying(job.attempt.placement, job)) > job.spec.least_nodes


def _billing_without(state: ClusterState, job: Job, ranks: Collection[int]) -> float:
    assert job.attempt is not None
    rest = tuple([part for part in job.attempt.placement if part.rank not in ranks])
    return round(billed(held(rest, state.nodes), state.cluster, job.attempt.partition)) / ONE


def may_begin_to_grow(machine: Machine, body: EventBody) -> bool:
    """Whether by this event an elastic job has come to run whole, so that more may be added."""
    if not isinstance(body, events.ReplicaStarted):
        return False
    job = machine.state.jobs[body.job]
    return job.spec.elastic is not None and job.attempt is not None and grows(job, job.attempt)
