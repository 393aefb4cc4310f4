"""Decides how elastic jobs grow and shrink while they run (EL-01): workers are added, recalled, replaced, and leave.

A worker is *recalled* when the engine asks it to end so that others get its resources. It has *left* when the job holds
nothing for it any more, and its rank is never used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.attempt import EndCause, Grounds
from cockpit.model.ids import Millis
from cockpit.model.job import Job, JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.resilience import WorkerRestart
from cockpit.sched.eviction.shrinking import staying
from cockpit.sched.growth import grows, next_rank
from cockpit.sched.rules.tres import ONE, billed, held

_REPLACING = frozenset({JobState.STARTING, JobState.RESUMING, JobState.RUNNING})
"""States of a job in which a failed worker may be replaced."""
PRESSED = "its node ran short of memory"
SILENT = "it has not answered"
FIRST_TRANSIENT = 128
"""The lowest exit code that may be transient, since it stands for a signal; a lower one is the program's own error.
Source: Kubeflow's training operator, restart policy ExitCode."""

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.events import EventBody
    from cockpit.model.ids import NodeName, ReplicaId
    from cockpit.sched.decisions import Eviction, Growth
    from cockpit.sched.plan import Plan


def add_workers(machine: Machine, plan: Plan) -> Iterator[EventBody]:
    """Turn the plan's growths into events. A job that changed since the plan's snapshot is left to the next pass."""
    for each in plan.growths:
        job = machine.state.jobs.get(each.job)
        if job is not None and job.attempt is not None and grows(job, job.attempt) and _continues(job, each):
            yield events.WorkersAdded(job.id, job.attempt.number, each.placement, each.billing)


def _continues(job: Job, growth: Growth) -> bool:
    """Tell whether the growth's ranks are still the next ones of the attempt."""
    assert job.attempt is not None
    return growth.placement[0].rank == next_rank(job.attempt)


def recall_workers(state: ClusterState, job: Job, eviction: Eviction, now: Millis) -> list[EventBody]:
    """Recall the workers that the eviction names, without those that have left or were recalled already. Workers that
    are done leave at once: no end of theirs is to be waited for."""
    # The plan is older than the state: a worker that it takes may have left or been recalled since.
    present = {each.rank: each for each in job.attempt.present_replicas} if job.attempt is not None else {}
    ranks = sorted(set(eviction.ranks).intersection(present) - {each.rank for each in job.leaving})
    done = tuple([rank for rank in ranks if present[rank].ended_at is not None])
    running = tuple([rank for rank in ranks if present[rank].ended_at is None])
    kill_at = Millis(now + 1000 * eviction.grace_seconds)
    decided = remove_workers(state, job, done) if done else []
    if running:
        decided.append(events.WorkersRecalled(job.id, running, kill_at, eviction.for_job, eviction.grounds))
    return decided


def remove_recalled(state: ClusterState, job: Job, ranks: Collection[int]) -> list[EventBody]:
    """Let those of `ranks` leave the job that were recalled; the caller knows that their processes have ended."""
    recalled_workers = [each for each in job.leaving if each.rank in ranks]
    # The block list keeps the job from growing back onto a node that is short of memory.
    pressed = any(each.grounds is Grounds.PRESSURE for each in recalled_workers)
    gone = tuple(sorted(each.rank for each in recalled_workers))
    return remove_workers(state, job, gone, PRESSED if pressed else "") if gone else []


def remove_workers(state: ClusterState, job: Job, ranks: tuple[int, ...], because: str = "") -> list[EventBody]:
    """Let the workers of these ranks leave, while their job keeps running.

    `because`: why their nodes are put on the job's block list; empty: they are not.
    """
    return [events.WorkersLeft(job.id, ranks, _billing_without(state, job, ranks), because)]


def handle_silent_worker(machine: Machine, replica: ReplicaId, silent_ms: int | None, now: Millis) -> list[EventBody]:
    """Decide what follows when a worker does not answer.

    `silent_ms`: time since its last sign of life; None: it has given none. After the job's `max_wait_time` the worker
    leaves and its node is put on the job's block list. If too few others are left, the whole job is suspended instead.
    A recalled worker may be silent while it saves: it ends at the end of its grace period anyway.
    """
    job = machine.state.jobs.get(replica.job)
    if job is None or not _is_worker(job, replica) or job.spec.elastic is None or job.attempt is None:
        return []
    # not before the last change of the workers: a new worker has had no time to give a sign of life
    since = max(job.attempt.counts_from, now - silent_ms if silent_ms is not None else 0)
    if job.ending is not None or any(each.rank == replica.rank for each in job.leaving):
        return []
    if now - since < 1000 * job.spec.elastic.max_wait_seconds:
        return []
    if can_spare(job, replica.rank):
        return remove_workers(machine.state, job, (replica.rank,), f"{SILENT} for {(now - since) // 1000} s")
    # the others get the longer of both times, in which they can write a checkpoint
    kill_at = Millis(now + 1000 * max(job.spec.end_grace_seconds, job.spec.checkpoint_seconds))
    return [events.EndingBegan(job.id, EndCause.BELOW_MIN, kill_at, requeue=True)]


def unblock(job: Job, node: NodeName) -> list[EventBody] | Refusal:
    """Take a node off the job's block list, so that its workers may run there again."""
    if job.ended:
        return Refusal(
            RefusalKind.CONFLICT, f"Job {job.shown_id} has ended ({job.state}); its block list ended with it."
        )
    blocked = sorted(job.attempt.blocked) if job.attempt is not None else []
    if node not in blocked:
        others = f"; on it: {', '.join(blocked)}" if blocked else ", which is empty"
        return Refusal(RefusalKind.CONFLICT, f"Node {node} is not on the block list of job {job.shown_id}{others}.")
    return [events.NodeUnblocked(job.id, node)]


def _is_worker(job: Job, replica: ReplicaId) -> bool:
    """Tell whether the replica is a worker of a running job and has not ended."""
    attempt = job.attempt
    if attempt is None or attempt.number != replica.attempt or job.state is not JobState.RUNNING:
        return False
    return any(part.rank == replica.rank and attempt.replicas[part.rank].ended_at is None for part in attempt.placement)


def remove_unreachable(machine: Machine, job: Job, rank: int, status: ExitStatus) -> list[EventBody]:
    """Let an unreachable worker leave if enough others are left, else return no events.

    A worker is unreachable if its container is lost or, in a job with a launcher, if it has failed.
    """
    # With a launcher, which starts the programs in them, workers only keep their containers open: none ends by itself.
    unreachable = bool(status.lost) or (job.spec.has_launcher and not status.ok)
    worker = job.spec.suspends and rank >= job.spec.first_worker and job.state is JobState.RUNNING
    if job.ending is not None or not (unreachable and worker and can_spare(job, rank)):
        return []
    why = status.lost or f"it ended with exit {status.shell_code}"
    return remove_workers(machine.state, job, (rank,), why)


def can_spare(job: Job, rank: int) -> bool:
    """Tell whether the job still has its least number of workers without this one."""
    return len([other for other in live_workers(job) if other != rank]) >= job.spec.least_nodes


def live_workers(job: Job) -> list[int]:
    """Return the ranks of the workers that were not recalled and have not ended."""
    attempt = job.attempt
    assert attempt is not None
    # Recalled workers still run, but a decision must not count on them.
    ranks = [part.rank for part in staying(attempt.placement, job)]
    return [rank for rank in ranks if attempt.replicas[rank].ended_at is None]


def replace_worker(job: Job, rank: int, status: ExitStatus) -> list[EventBody]:
    """Replace a worker that has ended, if the job's restart policy says so and it has a retry left."""
    assert job.attempt is not None
    replaceable = job.ending is None and job.state in _REPLACING and rank >= job.spec.first_worker
    if not replaceable or job.retries >= job.spec.most_worker_retries or not _restarts_after(job, status):
        return []
    # Not the old rank: reports, logs and container of the worker that failed are kept under that one.
    by = next_rank(job.attempt)
    return [events.WorkerReplaced(job.id, job.attempt.number, rank, by, job.retries + 1)]


def _restarts_after(job: Job, status: ExitStatus) -> bool:
    """Tell whether the job's restart policy replaces a worker that ended with this status."""
    policy = job.spec.elastic.worker_restart_policy if job.spec.elastic is not None else WorkerRestart.NEVER
    if policy is WorkerRestart.EXIT_CODE:
        return status.shell_code >= FIRST_TRANSIENT
    return policy is WorkerRestart.ALWAYS or not status.ok


def can_do_without(job: Job, rank: int) -> bool:
    """Tell whether the replica is a worker that never started of a running elastic job with enough other workers."""
    if job.spec.elastic is None or job.attempt is None or job.state is not JobState.RUNNING:
        return False
    not_begun = any(each.rank == rank and each.started_at is None for each in job.attempt.present_replicas)
    return not_begun and can_spare(job, rank)


def _billing_without(state: ClusterState, job: Job, ranks: Collection[int]) -> float:
    """Return the job's billing weight without the workers of these ranks."""
    assert job.attempt is not None
    # By the present weights, as for a job that is placed now: a resized job is billed like a new one of its size.
    rest = tuple([part for part in job.attempt.placement if part.rank not in ranks])
    return round(billed(held(rest, state.nodes), state.cluster, job.attempt.partition)) / ONE


def may_begin_to_grow(machine: Machine, body: EventBody) -> bool:
    """Tell whether this event completes the start of an elastic job, so that the scheduler may add workers."""
    if not isinstance(body, events.ReplicaStarted):
        return False
    job = machine.state.jobs[body.job]
    return job.spec.elastic is not None and job.attempt is not None and grows(job, job.attempt)
