"""Decides what follows for jobs from faults of their nodes. A faulty node is drained, except after the first failed
precheck: that one may be due to the job.

1. Before a job with `resume` starts, its nodes are checked, while the job keeps its placement: `precheck_passed`,
   `precheck_failed` (EL-10). A node that fails is excluded for this job, and drained once the checks of enough
   different jobs failed there.
2. The cluster's scripts run before and after each replica: `prolog_failed`, `epilog_failed` (JT-24).
3. While jobs with `resume` run, their nodes are checked (`faulty`, EL-11), and their logs are read for slow iterations
   (`slow`, EL-13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine import workers
from cockpit.engine.alerting import owner_address
from cockpit.engine.decide import replica_ended
from cockpit.engine.nodes.service import drain_for_fault
from cockpit.model import events
from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import OCCUPYING, JobState
from cockpit.model.node import NodeState
from cockpit.model.resilience import OnSlow
from cockpit.sched.feasible import never_fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.model.attempt import Ending, Slow
    from cockpit.model.events import EventBody
    from cockpit.model.ids import ReplicaId
    from cockpit.model.job import Job


def precheck_passed(machine: Machine, replica: ReplicaId, found: str) -> list[EventBody]:
    """Return the events after checks without findings. `found`: what the nodes have, as text."""
    job = _prechecking(machine, replica)
    if job is None:
        return []
    if job.ending is not None:
        return [_end_before_start(job, job.ending)]
    return [events.PrecheckPassed(job.id, replica.attempt, found)]


def precheck_failed(machine: Machine, replica: ReplicaId, node: NodeName, because: str, now: Millis) -> list[EventBody]:
    """Return the events after a failed check: the node is excluded for the job, so that it starts elsewhere, and the
    job is queued again. The node is drained for all if enough different jobs failed there."""
    job = _prechecking(machine, replica)
    if job is None:
        return []
    rules = machine.state.cluster
    until = Millis(now + 1000 * rules.precheck_exclusion_seconds)
    out: list[EventBody] = [events.NodeExcluded(job.id, node, because, until)]
    known = machine.state.failed_prechecks.get(node, {})
    others = [other for other, ends in known.items() if other != job.id and ends > now]
    if len(others) + 1 >= rules.drain_after_prechecks:
        # first, so that the list of events reads in the order of cause and effect for the node's other jobs
        out = [*drain_for_fault(machine, node, because), *out]
    # Nothing of the job has started during its checks: a user who ended it meanwhile gets the end at once.
    if job.ending is not None:
        return [*out, _end_before_start(job, job.ending)]
    return [*out, events.PrecheckFailed(job.id, replica.attempt, node, because)]


def _prechecking(machine: Machine, replica: ReplicaId) -> Job | None:
    # A result may come late, when the job was stopped or is being checked again as another attempt.
    job = machine.state.jobs.get(replica.job)
    if job is None or job.state is not JobState.PRECHECKING or job.attempt is None:
        return None
    return job if job.attempt.number == replica.attempt else None


def _end_before_start(job: Job, ending: Ending) -> EventBody:
    """Return the end of a job that was to end during its checks, before anything of it had started."""
    if ending.requeue:
        return events.JobRequeued(job.id, ending.cause)
    # The user or a job of higher priority asked for this end, so that it is no error of the job.
    wanted = ending.cause in {EndCause.STOP, EndCause.PREEMPTED}
    return events.JobEnded(job.id, JobState.STOPPED if wanted else JobState.ERROR, ending.cause)


def prolog_failed(machine: Machine, replica: ReplicaId, because: str, now: Millis) -> list[EventBody]:
    """Drain the node and queue the job again, whichever of its replicas run already. A job that is being ended ends,
    and an elastic job continues without the worker that was to start there."""
    job = machine.state.jobs.get(replica.job)
    if job is None or job.attempt is None or job.attempt.number != replica.attempt or job.state not in OCCUPYING:
        return []
    node = next((part.node for part in job.attempt.whole_placement if part.rank == replica.rank), None)
    if node is None:  # a worker that has left since its prolog began
        return []
    out = drain_for_fault(machine, node, because)
    # The replica's command will never run, so that the end that the job waits for is reported here.
    if job.ending is not None:
        return [*out, *replica_ended(machine, replica, ExitStatus(lost=because), now)]
    if workers.can_do_without(job, replica.rank):
        ended = events.ReplicaEnded(job.id, replica.attempt, replica.rank, ExitStatus(lost=because))
        return [*out, ended, *workers.remove_workers(machine.state, job, (replica.rank,))]
    return [*out, events.PrologFailed(job.id, replica.attempt, replica.rank, node, because)]


def epilog_failed(machine: Machine, node: NodeName, because: str) -> list[EventBody]:
    """Drain the node; the end of the job stays as it was recorded."""
    return drain_for_fault(machine, node, because)


def watched_jobs(machine: Machine) -> Iterator[Job]:
    """Yield the jobs whose nodes are checked at intervals: the running ones with `resume`."""
    return (job for each in machine.occupied if (job := machine.state.jobs.get(each)) is not None and _is_watched(job))


def drain_faulty(machine: Machine, node: NodeName, because: str, now: Millis) -> list[EventBody]:
    """Drain the node, and end each watched job on it after its grace period, in which it can save its state.

    The job resumes on other nodes.
    """
    # The node is drained first: the jobs that end below must not be placed on it again.
    out = drain_for_fault(machine, node, because)
    for job in watched_jobs(machine):
        assert job.attempt is not None
        if any(part.node == node for part in job.attempt.placement):
            out += [
                events.FaultFound(job.id, job.attempt.number, node, because),
                _interrupt(job, EndCause.FAULT, now),
            ]
    return out


def report_slow(machine: Machine, replica: ReplicaId, slow_iterations: Slow, now: Millis) -> list[EventBody]:
    """Return the events of slow iterations; none if the job ignores them or they are known already. The job is moved if
    it asks for it, has a resume left, and other nodes exist."""
    job = machine.state.jobs.get(replica.job)
    if job is None or not _is_watched(job) or job.attempt is None or job.attempt.number != replica.attempt:
        return []
    performance = job.spec.resume.performance if job.spec.resume is not None else None
    # Once for each attempt: the log repeats the line in every iteration.
    if performance is None or job.attempt.slow is not None or slow_iterations.part <= performance.threshold:
        return []
    # Without a resume left the job would end in error for being slow, so it is left running.
    moves = performance.action is OnSlow.RESCHEDULE and job.retries < job.spec.most_retries
    elsewhere = _elsewhere(machine.state, job, slow_iterations.rank) if moves else ()
    address = owner_address(machine.state, job.submitter.name)
    fell = events.PerformanceFell(job.id, replica.attempt, slow_iterations, performance.threshold, address, elsewhere)
    return [fell, _interrupt(job, EndCause.SLOW, now)] if elsewhere else [fell]


def _is_watched(job: Job) -> bool:
    return job.state is JobState.RUNNING and job.spec.resume is not None and job.ending is None


def _interrupt(job: Job, cause: EndCause, now: Millis) -> events.EndingBegan:
    return events.EndingBegan(job.id, cause, Millis(now + 1000 * job.spec.end_grace_seconds))


def _elsewhere(state: ClusterState, job: Job, rank: int) -> tuple[NodeName, ...]:
    """Return the nodes in service of the job's pool but for the slow replica's; none if the job cannot fit on these."""
    assert job.attempt is not None
    slow_one = next(part.node for part in job.attempt.placement if part.rank == rank)
    mine = job.spec.pool_nodes or [each.name for each in state.nodes.values() if each.pool == job.spec.pool]
    up = [each for name in mine if (each := state.nodes.get(NodeName(name))) and each.state is NodeState.UP]
    left = tuple(each.name for each in up if each.name != slow_one)
    # A job that cannot fit on the other nodes at all would wait for ever, which is worse than slow iterations.
    fits = left and never_fits(replace(job.spec, pool_nodes=left), state.nodes) is None
    return left if fits else ()
