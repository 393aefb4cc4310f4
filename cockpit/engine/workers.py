"""Elastic jobs grow and shrink (EL-01): workers come, are recalled, and leave, while the job goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.eviction import Grounds
from cockpit.model.ids import Millis
from cockpit.model.job import Job, JobState
from cockpit.model.resilience import WorkerRestart
from cockpit.sched.eviction.shrinking import staying
from cockpit.sched.growth import grows, next_rank
from cockpit.sched.rules.amounts import ONE, held
from cockpit.sched.rules.tres import billed

_REPLACING = frozenset({JobState.STARTING, JobState.RESUMING, JobState.RUNNING})
PRESSED = "its node ran short of memory"
SILENT = "it has not answered"
FIRST_TRANSIENT = 128
"""Of exit codes; those below tell of the program itself. Source: the training operators' ExitCode policy."""

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.events import EventBody
    from cockpit.model.ids import ReplicaId
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
    going = [each for each in job.leaving if each.rank in ranks]
    pressed = any(each.grounds is Grounds.PRESSURE for each in going)
    out = tuple(sorted(each.rank for each in going))
    return without(state, job, out, PRESSED if pressed else "") if out else []


def without(state: ClusterState, job: Job, ranks: tuple[int, ...], because: str = "") -> list[EventBody]:
    """The job goes on without these, whose processes are gone or never were, or (`because`) do not answer."""
    return [events.WorkersLeft(job.id, ranks, _billing_without(state, job, ranks), because)]


def silent(machine: Machine, replica: ReplicaId, silent_ms: int | None, now: Millis) -> list[EventBody]:
    """A worker has not been heard of for so long (None: it never began). After `max_wait_time` it is put on the job's
    block list, and the others go on; where they are too few the job is suspended."""
    job = machine.state.jobs.get(replica.job)
    if job is None or not _is_worker(job, replica) or job.spec.elastic is None or job.attempt is None:
        return []
    since = max(job.attempt.counts_from, now - silent_ms if silent_ms is not None else 0)
    if job.ending is not None or now - since < 1000 * job.spec.elastic.max_wait_seconds:
        return []
    if can_spare(job, replica.rank):
        return without(machine.state, job, (replica.rank,), f"{SILENT} for {(now - since) // 1000} s")
    kill_at = Millis(now + 1000 * max(job.spec.end_grace_seconds, job.spec.checkpoint_seconds))
    return [events.EndingBegan(job.id, EndCause.BELOW_MIN, kill_at, requeue=True)]


def _is_worker(job: Job, replica: ReplicaId) -> bool:
    """Whether it is one of a job that runs, and has not ended."""
    attempt = job.attempt
    if attempt is None or attempt.number != replica.attempt or job.state is not JobState.RUNNING:
        return False
    return any(part.rank == replica.rank and attempt.replicas[part.rank].ended_at is None for part in attempt.placement)


def blocked(machine: Machine, job: Job, rank: int, status: ExitStatus) -> list[EventBody]:
    """A worker that cannot be reached any more is done without, if enough others are left: one whose container is
    lost, or of a job with a launcher one that has failed."""
    unreachable = bool(status.lost) or (job.spec.has_launcher and not status.ok)
    worker = job.spec.suspends and rank >= job.spec.first_worker and job.state is JobState.RUNNING
    if job.ending is not None or not (unreachable and worker and can_spare(job, rank)):
        return []
    why = status.lost or f"it ended with exit {status.shell_code}"
    return without(machine.state, job, (rank,), why)


def can_spare(job: Job, rank: int) -> bool:
    """Whether enough workers are left without this one."""
    return len([other for other in live_workers(job) if other != rank]) >= job.spec.least_nodes


def live_workers(job: Job) -> list[int]:
    """The ranks of those that stay, and have not come to their end."""
    attempt = job.attempt
    assert attempt is not None
    ranks = [part.rank for part in staying(attempt.placement, job)]
    return [rank for rank in ranks if attempt.replicas[rank].ended_at is None]


def replaced(job: Job, rank: int, status: ExitStatus) -> list[EventBody]:
    """In place of a worker that has ended, if the job wants that and has a retry left."""
    assert job.attempt is not None
    begun = job.ending is None and job.state in _REPLACING and rank >= job.spec.first_worker
    if not begun or job.retries >= job.spec.most_worker_retries or not _is_worth_it(job, status):
        return []
    by = next_rank(job.attempt)
    return [events.WorkerReplaced(job.id, job.attempt.number, rank, by, job.retries + 1)]


def _is_worth_it(job: Job, status: ExitStatus) -> bool:
    policy = job.spec.elastic.worker_restart_policy if job.spec.elastic is not None else WorkerRestart.NEVER
    if policy is WorkerRestart.EXIT_CODE:
        return status.shell_code >= FIRST_TRANSIENT
    return policy is WorkerRestart.ALWAYS or not status.ok


def can_do_without(job: Job, rank: int) -> bool:
    """Whether it is a worker that has not begun of an elastic job that runs, and has enough others."""
    if job.spec.elastic is None or job.attempt is None or job.state is not JobState.RUNNING:
        return False
    not_begun = any(each.rank == rank and each.started_at is None for each in job.attempt.there)
    return not_begun and can_spare(job, rank)


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
