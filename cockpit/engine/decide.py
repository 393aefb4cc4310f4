"""From a request or an observation to events, or to a Refusal. Reads the machine, changes nothing.

Every function returns the events that would make it so; the caller appends them to the journal and only then hands
them to `Machine.handle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cockpit.engine import evictions, retries, workers
from cockpit.engine.completion_policy import counted, is_decided, matters
from cockpit.engine.due import too_late
from cockpit.engine.nodes.service import still_drained
from cockpit.engine.timers import given_up_at
from cockpit.model import events
from cockpit.model.attempt import BELOW_MIN_CAUSES, EndCause, ExitStatus
from cockpit.model.events import EventBody, HoldEndCause
from cockpit.model.fleet import member_of
from cockpit.model.ids import Millis
from cockpit.model.job import ERROR, EXPIRED, OCCUPYING, QUEUED, SUCCEEDED, Job, JobState
from cockpit.model.node import NodeState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.rules.bounds import GRACE_SECONDS, LABEL_LENGTH, WINDOW_SECONDS
from cockpit.model.rules.text import COMMAND_BYTES, text_error
from cockpit.model.spec import DAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.attempt import Attempt, Replica
    from cockpit.model.ids import ReplicaId
    from cockpit.model.node import Node
    from cockpit.model.usage import Used
    from cockpit.sched.plan import Plan

DEFAULT_HOLD_SECONDS = 4 * 3600
_BY_ITSELF: Final = EndCause.EXIT

_END_STATES = {
    EndCause.STOP: JobState.STOPPED,
    EndCause.PREEMPTED: JobState.STOPPED,
    EndCause.TIME_LIMIT: EXPIRED,
    EndCause.FAULT: ERROR,
    EndCause.SLOW: ERROR,
}

Decision = list[EventBody] | Refusal


def hold(job: Job, actor: str) -> Decision:
    """A person keeps a queued job from starting."""
    if job.state is not QUEUED:
        return _conflict(f"Job {job.id} {_stands(job)}; only a queued job can be held.")
    if job.held_by:
        return _conflict(f"Job {job.id} is already held by {job.held_by}.")
    return [events.JobHeld(job.id, actor)]


def release(job: Job) -> Decision:
    """The opposite of `hold`."""
    if job.state is not QUEUED or not job.held_by:
        return _conflict(f"Job {job.id} is not held; it {_stands(job)}.")
    return [events.JobReleased(job.id)]


def delete(job: Job) -> Decision:
    """Take an ended job off the lists; what is kept of it goes."""
    if not job.ended:
        return _conflict(f"Job {job.id} is {job.state}; `cockpit cancel {job.id}` ends it first.")
    if job.deleted:
        return only_in_accounting(job.id)
    held = [events.HoldEnded(job.id, HoldEndCause.ENDED)] if job.kept else []
    return [*held, events.JobDeleted(job.id)]


def cancel(job: Job, now: Millis, grace_seconds: int | None) -> Decision:
    """Stop a job: a queued one at once, a running one after its grace period (0: at once)."""
    if grace_seconds is not None and (error := GRACE_SECONDS.error(grace_seconds)):
        return _invalid(f"grace: {error}.")
    if job.ended:
        return _conflict(f"Job {job.id} has already ended ({job.state}).")
    if job.state in {QUEUED, JobState.PRECHECKING} or given_up_at(job) is not None:  # nothing of it has begun
        return [events.JobEnded(job.id, JobState.STOPPED, EndCause.STOP)]
    grace = job.spec.end_grace_seconds if grace_seconds is None else grace_seconds
    kill_at = Millis(now + grace * 1000)
    if job.ending is None or retries.may_wait_again(job):
        latest = kill_at if job.ending is None else min(kill_at, job.ending.kill_at)
        return [events.EndingBegan(job.id, EndCause.STOP, latest)]
    if grace == 0 and not job.ending.killed:
        return [events.GraceEnded(job.id)]
    return _conflict(f"Job {job.id} is already being ended; `cockpit cancel {job.id} --now` does not wait for it.")


def cancel_all(machine: Machine, now: Millis) -> list[EventBody]:
    """Stop every job; those that are being ended already are left to it."""
    decided: list[EventBody] = []
    for job in machine.state.jobs.values():
        decision = cancel(job, now, None)
        decided += [] if isinstance(decision, Refusal) else decision
    return decided


def extend_hold(job: Job, now: Millis, seconds: int) -> Decision:
    """Keep a failed container longer."""
    if job.held_until is None:
        return _not_kept(job)
    if seconds <= 0:
        return _invalid("by: a hold is extended by a positive time, such as 2h.")
    until = Millis(job.held_until + seconds * 1000)
    if until > now + WINDOW_SECONDS.high * 1000:
        return _invalid(f"by: a container is kept for at most {WINDOW_SECONDS.high // DAY_SECONDS} days from now.")
    return [events.HoldExtended(job.id, until)]


def end_hold(job: Job) -> Decision:
    """Remove a kept container before its window is over."""
    if job.held_until is None:
        return _not_kept(job)
    return [events.HoldEnded(job.id, HoldEndCause.ENDED)]


def open_shell(job: Job, rank: int, command: tuple[str, ...], term: str = "") -> Decision:
    """Enter a replica's container, running or kept. `term`: the terminal's kind, where there is one."""
    if error := _entry_error(command, term):
        return _invalid(error)
    attempt = job.attempt
    if attempt is None or (job.ended and not job.kept):
        return _conflict(f"Job {job.id} {_stands(job)}; there is no container to enter.{_why_not_kept(job)}")
    if not 0 <= rank < len(attempt.replicas):
        return Refusal(
            RefusalKind.NOT_FOUND, f"Job {job.id} has replicas 0 to {len(attempt.replicas) - 1}; there is no {rank}."
        )
    replica = attempt.replicas[rank]
    if job.suspension is not None:
        return _conflict(f"Job {job.id} is suspended; nothing in its containers runs until it goes on.")
    if word := _absent(job, replica):
        return _conflict(f"Replica {rank} of job {job.id} has {word}.")
    return [events.ShellOpened(job.id, rank, command)]


def _absent(job: Job, replica: Replica) -> str:
    """Why there is nothing of it to enter; empty: there is."""
    if replica.left_at is not None:
        return "left, and its job went on without it"
    if job.ended or (replica.started_at is not None and replica.ended_at is None):
        return ""
    word = "not started yet" if replica.started_at is None else "ended, and its job is still running"
    return f"{word}; try again later"


def placed(machine: Machine, plan: Plan) -> list[EventBody]:
    """What the plan says: who gives way, and who starts. What changed since its snapshot wins: such a job is left to
    the next cycle."""
    decided: list[EventBody] = evictions.decided(machine, plan) if plan.evictions or plan.switches else []
    fleet, jobs = bool(machine.state.cluster.members), machine.state.jobs
    for start in plan.starts:
        job = jobs.get(start.job)
        if job is None or job.state is not QUEUED or job.held_by or too_late(job, plan.now):
            continue
        number, placement = 1 if job.attempt is None else job.attempt.number + 1, start.placement
        members = tuple([member_of(part.node) for part in placement]) if fleet else ()
        decided.append(
            events.JobPlaced(
                job.id,
                number,
                start.spec_index,
                placement,
                start.partition,
                start.billing,
                members,
                start.launcher,
            )
        )
    return [*decided, *workers.grown(machine, plan)] if plan.growths else decided


def replica_staged(machine: Machine, replica: ReplicaId) -> list[EventBody]:
    """What it needs to have copied is there; nothing when that is known already, or the attempt is over."""
    job, seen = _live_replica(machine, replica)
    if seen is None or seen.staged_at is not None or job is None or job.state is not JobState.STAGING or job.ending:
        return []
    return [events.ReplicaStaged(replica.job, replica.attempt, replica.rank)]


def replica_started(machine: Machine, replica: ReplicaId, limits: str) -> list[EventBody]:
    """The command runs; nothing when that is known already, or the attempt is over."""
    _, seen = _live_replica(machine, replica)
    if seen is None or seen.started_at is not None:
        return []
    return [events.ReplicaStarted(replica.job, replica.attempt, replica.rank, limits)]


def replica_ended(
    machine: Machine,
    replica: ReplicaId,
    status: ExitStatus,
    now: Millis,
    hold_seconds: int = DEFAULT_HOLD_SECONDS,
    used: Used | None = None,
) -> list[EventBody]:
    """A replica's container has no process left. The last one ends the job; a failed one ends the others first, and so
    does the last of those that decide."""
    job, seen = _live_replica(machine, replica)
    if job is None or job.attempt is None or seen is None:
        return []
    decided: list[EventBody] = []
    if seen.started_at is None and not status.lost:
        decided.append(events.ReplicaStarted(replica.job, replica.attempt, replica.rank))
    decided.append(events.ReplicaEnded(replica.job, replica.attempt, replica.rank, status, used))
    left = workers.left(machine.state, job, (replica.rank,)) if job.leaving else []
    decided += left
    if not left and job.spec.elastic is not None:
        instead = workers.replaced(job, replica.rank, status) or workers.blocked(machine, job, replica.rank, status)
        if instead:
            return [*decided, *instead]
    others = _there_beside(job.attempt, replica.rank) if len(job.attempt.replicas) > 1 else []
    exits = [(each.rank, each.exit) for each in others if each.exit is not None] if others else []
    if len(exits) == len(others):
        if not left:  # a worker that was recalled ends as it likes
            exits.append((replica.rank, status))
        all_that_count = counted(job.spec, exits)
        if job.ending is not None and job.ending.requeue:
            decided.append(_job_requeued(job, all_that_count))
        else:
            decided.append(retries.instead(job, _job_ended(job, all_that_count, now, hold_seconds)))
    elif not status.ok and job.ending is None and not left and matters(job.spec, replica.rank):
        never_began = bool(status.lost) and not _ever_started(job)
        cause = EndCause.START_FAILED if never_began else EndCause.EXIT
        decided.append(events.EndingBegan(job.id, cause, retries.others_end_by(job, now)))
    elif job.ending is None and is_decided(job, {replica.rank, *(each.rank for each in others if each.exit)}):
        decided.append(events.EndingBegan(job.id, EndCause.EXIT, Millis(now + 1000 * job.spec.end_grace_seconds)))
    return decided


def nodes_changed(machine: Machine, nodes: Iterable[Node]) -> list[EventBody]:
    """The nodes as found and configured now. One that is gone but still occupied stays, drained, until it is free; one
    that was taken out of service stays so."""
    found = {node.name: still_drained(node, machine.state.nodes.get(node.name)) for node in nodes}
    occupied = {each.node for placement in machine.occupied.values() for each in placement}
    gone = [
        replace(node, state=NodeState.DRAINED, state_reason="no longer configured")
        for name, node in machine.state.nodes.items()
        if name not in found and name in occupied
    ]
    now_known = (*found.values(), *gone)
    if now_known == tuple(machine.state.nodes.values()):
        return []
    return [events.NodesChanged(now_known)]


def _there_beside(attempt: Attempt, rank: int) -> list[Replica]:
    """The other replicas; those that have ended in the order in which they did."""
    others = [each for each in attempt.there if each.rank != rank]
    return sorted(others, key=lambda each: (each.ended_at or 0, each.rank))


def _job_ended(job: Job, exits: Sequence[tuple[int, ExitStatus]], now: Millis, hold_seconds: int) -> events.JobEnded:
    """`exits`: rank and status of every replica, in the order in which they ended."""
    decisive = _decisive(exits)
    failed = not decisive.ok
    cause = job.ending.cause if job.ending is not None else _cause_of(job, decisive)
    state = _END_STATES.get(cause) or (ERROR if failed else SUCCEEDED)
    if state is EXPIRED and not _ever_started(job):
        state = ERROR
    kept = job.spec.terminal and state in (ERROR, EXPIRED) and cause is not EndCause.START_FAILED
    window = job.spec.debug_hold.window_seconds or hold_seconds
    return events.JobEnded(job.id, state, cause, decisive, Millis(now + window * 1000) if kept else None)


def _job_requeued(job: Job, exits: Sequence[tuple[int, ExitStatus]]) -> events.JobRequeued:
    """However its replicas ended: it was told to, and may have saved what it needs to go on from."""
    assert job.ending is not None
    below_min = job.spec.suspends and job.ending.cause in BELOW_MIN_CAUSES
    return events.JobRequeued(job.id, job.ending.cause, _decisive(exits), below_min=below_min)


def _decisive(exits: Sequence[tuple[int, ExitStatus]]) -> ExitStatus:
    """That of the first replica that failed, else of rank 0."""
    if len(exits) == 1:
        return exits[0][1]
    return next((status for _, status in exits if not status.ok), min(exits)[1])


def _cause_of(job: Job, status: ExitStatus) -> EndCause:
    if not status.lost:
        return _BY_ITSELF
    return EndCause.LOST if _ever_started(job) else EndCause.START_FAILED


def _ever_started(job: Job) -> bool:
    return job.attempt is not None and job.attempt.ran


def _live_replica(machine: Machine, replica: ReplicaId) -> tuple[Job | None, Replica | None]:
    """The job, and the replica as it stands, while its attempt is the current one and it has not ended."""
    job = machine.state.jobs.get(replica.job)
    attempt = job.attempt if job is not None and job.state in OCCUPYING else None
    if attempt is None or attempt.number != replica.attempt or replica.rank >= len(attempt.replicas):
        return job, None
    found = attempt.replicas[replica.rank]
    return job, None if found.ended_at is not None else found


def only_in_accounting(job_id: int) -> Refusal:
    """Nothing can be done to a job that has left the live state."""
    return _conflict(f"Job {job_id} ended some time ago; only its record is left.")


def _stands(job: Job) -> str:
    """`is queued`, `has ended (succeeded)`."""
    return f"has ended ({job.state})" if job.ended else f"is {job.state}"


def _entry_error(command: tuple[str, ...], term: str) -> str | None:
    if command and (error := text_error(" ".join(command), COMMAND_BYTES)):
        return f"command: {error}."
    error = text_error(term, LABEL_LENGTH, least=0)
    return f"term: {error}." if error else None


def _invalid(message: str) -> Refusal:
    return Refusal(RefusalKind.INVALID, message)


def _conflict(message: str) -> Refusal:
    return Refusal(RefusalKind.CONFLICT, message)


def _not_kept(job: Job) -> Refusal:
    return _conflict(f"Job {job.id} {_stands(job)} and has no kept container.{_why_not_kept(job)}")


def _why_not_kept(job: Job) -> str:
    if not job.ended:
        return ""
    if job.state in (ERROR, EXPIRED):
        if not job.spec.terminal:
            return " It was submitted without `terminal: true`."
        return " Its container was not kept, or the hold is over."
    return " Containers are kept only after a failure or a time-out."
