"""Decides which events a request, an observation or a scheduling plan leads to. Reads the machine, changes nothing.

Each function returns the events, or a `Refusal` that says why the request cannot be met. The caller appends the events
to the journal and only then hands them to `Machine.handle`, so that a crash between the two loses nothing:

1. A user's request about one job: `hold`, `release`, `delete`, `cancel`, `extend_hold`, `end_hold`, `open_shell`.
2. The scheduler's plan: `placed`.
3. What the runtime observes of a replica: `replica_staged`, `replica_started`, `replica_ended`.
4. What the runtime observes of the nodes: `nodes_changed`.

Observations may arrive twice or late (the runtime repeats them after a crash). Each function of the third kind
therefore compares with the state first, and returns no events where the state already says what was observed.
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
    from cockpit.model.steps import StepReport
    from cockpit.model.usage import ReplicaTotals
    from cockpit.sched.plan import Plan

DEFAULT_HOLD_SECONDS = 4 * 3600
"""How long a failed container is held where neither the job nor the cluster's configuration says so."""
# A global name, since looking up an enumeration's member takes longer (`model.job`).
_BY_ITSELF: Final = EndCause.EXIT

# The causes that fix the state of the ended job; for every other cause the exit status decides between succeeded and
# error.
_END_STATES = {
    EndCause.STOP: JobState.STOPPED,
    EndCause.PREEMPTED: JobState.STOPPED,
    EndCause.TIME_LIMIT: EXPIRED,
    EndCause.FAULT: ERROR,
    EndCause.SLOW: ERROR,
}

Decision = list[EventBody] | Refusal


def hold(job: Job, actor: str) -> Decision:
    """Hold a queued job, so that the scheduler does not start it."""
    if job.state is not QUEUED:
        return _conflict(f"Job {job.shown_id} {_state_phrase(job)}; only a queued job can be held.")
    if job.held_by:
        return _conflict(f"Job {job.shown_id} is already held by {job.held_by}.")
    return [events.JobHeld(job.id, actor)]


def release(job: Job) -> Decision:
    """Release a held job, so that the scheduler may start it."""
    if job.state is not QUEUED or not job.held_by:
        return _conflict(f"Job {job.shown_id} is not held; it {_state_phrase(job)}.")
    return [events.JobReleased(job.id)]


def delete(job: Job) -> Decision:
    """Remove an ended job from the lists. Its held container is removed with it."""
    if not job.ended:
        return _conflict(f"Job {job.shown_id} is {job.state}; `cockpit cancel {job.shown_id}` ends it first.")
    if job.deleted:
        return only_in_accounting(job.shown_id)
    # the hold first: its end is recorded while the job is still in the lists
    held = [events.HoldEnded(job.id, HoldEndCause.ENDED)] if job.kept else []
    return [*held, events.JobDeleted(job.id)]


def cancel(job: Job, now: Millis, grace_seconds: int | None) -> Decision:
    """Stop a job: a queued one at once, a running one after its grace period.

    `grace_seconds`: the grace period; 0 kills at once, None takes the job's own. A repeated request can only bring the
    kill forward.
    """
    if grace_seconds is not None and (error := GRACE_SECONDS.error(grace_seconds)):
        return _invalid(f"grace: {error}.")
    if job.ended:
        return _conflict(f"Job {job.shown_id} has already ended ({job.state}).")
    # No process of the job exists yet, neither while its nodes are checked nor while a fleet's clusters still look for
    # free resources; there is nothing to wait for.
    # A member over a link to which a part was released may run it.
    is_released = job.attempt is not None and any(each.is_released for each in job.attempt.remote)
    if job.state in {QUEUED, JobState.PRECHECKING} or (given_up_at(job) is not None and not is_released):
        return [events.JobEnded(job.id, JobState.STOPPED, EndCause.STOP)]
    grace = job.spec.end_grace_seconds if grace_seconds is None else grace_seconds
    kill_at = Millis(now + grace * 1000)
    # A job that is being ended to be requeued is stopped for good instead, and its kill is never postponed.
    if job.ending is None or retries.may_wait_again(job):
        latest = kill_at if job.ending is None else min(kill_at, job.ending.kill_at)
        return [events.EndingBegan(job.id, EndCause.STOP, latest)]
    # Only a request without any grace still changes something: the kill that is planned comes at once.
    if grace == 0 and not job.ending.killed:
        return [events.GraceEnded(job.id)]
    return _conflict(
        f"Job {job.shown_id} is already being ended; `cockpit cancel {job.shown_id} --now` does not wait for it."
    )


def cancel_all(machine: Machine, now: Millis) -> list[EventBody]:
    """Stop every job, each after its own grace period. Jobs that are being stopped already are skipped."""
    decided: list[EventBody] = []
    for job in machine.state.jobs.values():
        # None of these events is applied yet, so that `jobs` does not change during the loop.
        decision = cancel(job, now, None)
        decided += [] if isinstance(decision, Refusal) else decision
    return decided


def extend_hold(job: Job, now: Millis, seconds: int) -> Decision:
    """Extend the hold of a failed container by a number of seconds."""
    if job.held_until is None:
        return _not_held(job)
    if seconds <= 0:
        return _invalid("by: a hold is extended by a positive time, such as 2h.")
    # From the present end, not from now: two users who extend it by an hour get two hours.
    until = Millis(job.held_until + seconds * 1000)
    # The bound is on the time left, so that a hold may be extended again on every day that it is needed.
    if until > now + WINDOW_SECONDS.high * 1000:
        return _invalid(f"by: a container is held for at most {WINDOW_SECONDS.high // DAY_SECONDS} days from now.")
    return [events.HoldExtended(job.id, until)]


def end_hold(job: Job) -> Decision:
    """Remove a held container before its hold expires."""
    if job.held_until is None:
        return _not_held(job)
    return [events.HoldEnded(job.id, HoldEndCause.ENDED)]


def open_shell(job: Job, rank: int, command: tuple[str, ...], term: str = "") -> Decision:
    """Open a shell in a replica's container, running or held.

    `command` replaces the shell; empty: the default shell. `term` is the value of TERM, empty without a terminal.
    """
    if error := _entry_error(command, term):
        return _invalid(error)
    attempt = job.attempt
    if attempt is None or (job.ended and not job.kept):
        return _conflict(
            f"Job {job.shown_id} {_state_phrase(job)}; there is no container to enter.{_why_not_held(job)}"
        )
    if not 0 <= rank < len(attempt.replicas):
        return Refusal(
            RefusalKind.NOT_FOUND,
            f"Job {job.shown_id} has replicas 0 to {len(attempt.replicas) - 1}; there is no {rank}.",
        )
    # By rank, which is the position: replicas that have left stay in the list, so that ranks never shift.
    replica = attempt.replicas[rank]
    # The container is frozen with all its processes, and a shell started in it would freeze at once.
    if job.suspension is not None:
        return _conflict(f"Job {job.shown_id} is suspended; nothing in its containers runs until it is resumed.")
    if phrase := _absent(job, replica):
        return _conflict(f"Replica {rank} of job {job.shown_id} has {phrase}.")
    return [events.ShellOpened(job.id, rank, command)]


def _absent(job: Job, replica: Replica) -> str:
    """Return why the replica has no container to enter, as the end of "Replica 0 has …"; empty: it has one."""
    if replica.left_at is not None:
        return "left, and its job keeps running without it"
    if job.ended or (replica.started_at is not None and replica.ended_at is None):
        return ""
    phrase = "not started yet" if replica.started_at is None else "ended, and its job is still running"
    return f"{phrase}; try again later"


def carry_out_plan(machine: Machine, plan: Plan) -> list[EventBody]:
    """Turn a scheduling plan into events: first evictions and suspensions, then starts, then added workers.

    The plan was made from a snapshot, and events may have been applied since. A job that has left the queue, was held
    or has missed its deadline meanwhile is skipped; the next pass sees it as it is.
    """
    # evictions first: a job that starts in this plan may take the CPUs of one that it suspends
    decided: list[EventBody] = evictions.carry_out_evictions(machine, plan) if plan.evictions or plan.switches else []
    fleet, jobs = bool(machine.state.cluster.members), machine.state.jobs
    for start in plan.starts:
        job = jobs.get(start.job)
        if job is None or job.state is not QUEUED or job.held_by or too_late(job, plan.now):
            continue
        # Each attempt has a number of its own: `_live_replica` recognises late reports of an earlier one by it.
        number, placement = 1 if job.attempt is None else job.attempt.number + 1, start.placement
        # On a fleet the first part of a node's name is its cluster, which has to start that replica.
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
    # Growth last: it takes what the starts leave.
    return [*decided, *workers.add_workers(machine, plan)] if plan.growths else decided


def replica_staged(machine: Machine, replica: ReplicaId) -> list[EventBody]:
    """Record that all files that a replica needs have been copied to its node.

    Returns no events when that is recorded already, or when the attempt is over.
    """
    job, current = _live_replica(machine, replica)
    # of a job that is being ended, nothing is started any more, so that its staging is of no interest
    if (
        current is None
        or current.staged_at is not None
        or job is None
        or job.state is not JobState.STAGING
        or job.ending
    ):
        return []
    return [events.ReplicaStaged(replica.job, replica.attempt, replica.rank)]


def replica_started(machine: Machine, replica: ReplicaId, limits: str) -> list[EventBody]:
    """Record that a replica's command runs. `limits` says how the runtime enforces its limits.

    Returns no events when that is recorded already, or when the attempt is over.
    """
    _, current = _live_replica(machine, replica)
    if current is None or current.started_at is not None:
        return []
    return [events.ReplicaStarted(replica.job, replica.attempt, replica.rank, limits)]


def replica_ended(
    machine: Machine,
    replica: ReplicaId,
    status: ExitStatus,
    now: Millis,
    hold_seconds: int = DEFAULT_HOLD_SECONDS,
    used: ReplicaTotals | None = None,
    steps: StepReport | None = None,
) -> list[EventBody]:
    """Record that a replica's command has ended, and decide what follows for its job.

    `hold_seconds`: how long a failed container is held if the job does not say so. `used`: the measured usage, if any.
    `steps`: what the worker has reported of its training, if anything.

    1. A replica whose start was never reported has started nonetheless, unless its container is lost.
    2. A recalled worker of an elastic job leaves the job, which keeps running.
    3. Another worker of an elastic job is replaced, or the job keeps running without it, where the job allows that.
    4. The last replica to end ends the job: it is requeued if that was the reason to end it, else retried if it failed
       and has a retry left, else it has ended.
    5. A replica that fails before the others makes the job end: the others are stopped.
    6. The job also ends once every replica that decides the job's end (such as the primary) has ended.
    """
    job, current = _live_replica(machine, replica)
    if job is None or job.attempt is None or current is None:
        return []
    decided: list[EventBody] = []
    # 1. A command can end before its start was reported; the accounting needs a start before every end.
    if current.started_at is None and not status.lost:
        decided.append(events.ReplicaStarted(replica.job, replica.attempt, replica.rank))
    decided.append(events.ReplicaEnded(replica.job, replica.attempt, replica.rank, status, used, steps))
    # 2. Empty unless this worker was recalled.
    left = workers.remove_recalled(machine.state, job, (replica.rank,)) if job.leaving else []
    decided += left
    # 3. A worker that failed or was lost.
    if not left and job.spec.elastic is not None:
        instead = workers.replace_worker(job, replica.rank, status) or workers.remove_unreachable(
            machine, job, replica.rank, status
        )
        if instead:
            return [*decided, *instead]
    # The test for one replica saves sorting and lists in the most frequent case.
    others = _other_replicas(job.attempt, replica.rank) if len(job.attempt.replicas) > 1 else []
    exits = [(each.rank, each.exit) for each in others if each.exit is not None] if others else []
    # As many exits as other replicas: all others have ended, so that this one is the last.
    if len(exits) == len(others):
        # 4. The exit status of a recalled worker says nothing about the job.
        if not left:
            exits.append((replica.rank, status))
        decisive_exits = counted(job.spec, exits)
        if job.ending is not None and job.ending.requeue:
            decided.append(_job_requeued(job, decisive_exits))
        else:
            decided.append(retries.instead(job, _job_ended(job, decisive_exits, now, hold_seconds)))
    elif not status.ok and job.ending is None and not left and matters(job.spec, replica.rank):
        # 5. Only an attempt of which no command ever ran has failed to start: it may be tried again without a retry.
        never_began = bool(status.lost) and not _ever_started(job)
        cause = EndCause.START_FAILED if never_began else EndCause.EXIT
        decided.append(events.EndingBegan(job.id, cause, retries.others_end_by(job, now)))
    elif job.ending is None and is_decided(job, {replica.rank, *(each.rank for each in others if each.exit)}):
        # 6. Every replica that decides has ended.
        decided.append(events.EndingBegan(job.id, EndCause.EXIT, Millis(now + 1000 * job.spec.end_grace_seconds)))
    return decided


def nodes_changed(machine: Machine, nodes: Iterable[Node]) -> list[EventBody]:
    """Record the nodes that are detected and configured now.

    A node that was drained stays drained. A node that is no longer configured stays, drained, while a job occupies it:
    the job's placement must not name a node that the state does not have.
    """
    configured = {node.name: still_drained(node, machine.state.nodes.get(node.name)) for node in nodes}
    occupied = {part.node for placement in machine.occupied.values() for part in placement}
    gone = [
        replace(node, state=NodeState.DRAINED, state_reason="no longer configured")
        for name, node in machine.state.nodes.items()
        if name not in configured and name in occupied
    ]
    # In the order of the configuration, which is that of the node list; another order is a change too.
    after = (*configured.values(), *gone)
    if after == tuple(machine.state.nodes.values()):
        return []
    return [events.NodesChanged(after)]


def _other_replicas(attempt: Attempt, rank: int) -> list[Replica]:
    """Return the attempt's other replicas, ended ones in the order of their ends, without workers that have left."""
    # `present_replicas`: a worker that has left is no longer waited for, and its exit status no longer counts
    others = [each for each in attempt.present_replicas if each.rank != rank]
    return sorted(others, key=lambda each: (each.ended_at or 0, each.rank))


def _job_ended(job: Job, exits: Sequence[tuple[int, ExitStatus]], now: Millis, hold_seconds: int) -> events.JobEnded:
    """Build the event that ends a job.

    `exits`: rank and status of the replicas that count, in the order in which they ended. The state follows from the
    cause of the end, else from the decisive exit status. A failed container is held if the job wants a terminal.
    """
    decisive = _decisive(exits)
    failed = not decisive.ok
    cause = job.ending.cause if job.ending is not None else _cause_of(job, decisive)
    state = _END_STATES.get(cause) or (ERROR if failed else SUCCEEDED)
    # A job of which nothing ran has not used up its time limit; it failed to start in time.
    if state is EXPIRED and not _ever_started(job):
        state = ERROR
    # a container that could not be started has nothing to look at
    held = job.spec.terminal and state in (ERROR, EXPIRED) and cause is not EndCause.START_FAILED
    window = job.spec.debug_hold.window_seconds or hold_seconds
    return events.JobEnded(job.id, state, cause, decisive, Millis(now + window * 1000) if held else None)


def _job_requeued(job: Job, exits: Sequence[tuple[int, ExitStatus]]) -> events.JobRequeued:
    """Build the event that requeues a job which was ended for that purpose.

    The exit statuses make no difference: the job was asked to end, and may have written a checkpoint from which it
    resumes.
    """
    assert job.ending is not None
    below_min = job.spec.suspends and job.ending.cause in BELOW_MIN_CAUSES
    return events.JobRequeued(job.id, job.ending.cause, _decisive(exits), below_min=below_min)


def _decisive(exits: Sequence[tuple[int, ExitStatus]]) -> ExitStatus:
    """Return the exit status of the first replica that failed, else of the lowest rank."""
    if len(exits) == 1:
        return exits[0][1]
    # The first failure is the cause; the others often follow from it, as when a peer of a collective operation is gone.
    return next((status for _, status in exits if not status.ok), min(exits)[1])


def _cause_of(job: Job, status: ExitStatus) -> EndCause:
    """Return why a job ended that was not asked to: its command ended, its container was lost, or was never made."""
    if not status.lost:
        return _BY_ITSELF
    return EndCause.LOST if _ever_started(job) else EndCause.START_FAILED


def _ever_started(job: Job) -> bool:
    return job.attempt is not None and job.attempt.ran


def _live_replica(machine: Machine, replica: ReplicaId) -> tuple[Job | None, Replica | None]:
    """Return the job, and the replica if it belongs to the job's current attempt and has not ended."""
    # Reports of the runtime come late or twice, so every part of the id is compared with the state.
    job = machine.state.jobs.get(replica.job)
    attempt = job.attempt if job is not None and job.state in OCCUPYING else None
    if attempt is None or attempt.number != replica.attempt or replica.rank >= len(attempt.replicas):
        return job, None
    current = attempt.replicas[replica.rank]
    return job, None if current.ended_at is not None else current


def only_in_accounting(job_id: int | str) -> Refusal:
    """Refuse a request about a job that only the accounting still has."""
    return _conflict(f"Job {job_id} ended some time ago; only its record is left.")


def _state_phrase(job: Job) -> str:
    """Return the job's state as a verb phrase: "is queued", "has ended (succeeded)"."""
    return f"has ended ({job.state})" if job.ended else f"is {job.state}"


def _entry_error(command: tuple[str, ...], term: str) -> str | None:
    """Return what is wrong with the arguments of `open_shell`; None: nothing."""
    if command and (error := text_error(" ".join(command), COMMAND_BYTES)):
        return f"command: {error}."
    error = text_error(term, LABEL_LENGTH, least=0)
    return f"term: {error}." if error else None


def _invalid(message: str) -> Refusal:
    return Refusal(RefusalKind.INVALID, message)


def _conflict(message: str) -> Refusal:
    return Refusal(RefusalKind.CONFLICT, message)


def _not_held(job: Job) -> Refusal:
    return _conflict(f"Job {job.shown_id} {_state_phrase(job)} and has no held container.{_why_not_held(job)}")


def _why_not_held(job: Job) -> str:
    """Return a sentence, after a blank, that says why an ended job has no held container; empty: it has not ended."""
    if not job.ended:
        return ""
    if job.state in (ERROR, EXPIRED):
        if not job.spec.terminal:
            return " It was submitted without `terminal: true`."
        return " Its container was not held, or the hold has ended."
    return " Containers are held only after a failure or a time-out."
