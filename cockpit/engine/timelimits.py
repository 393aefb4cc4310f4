"""Changes the time limits of queued and running jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.submission.submit import edit
from cockpit.engine.timers import began_at
from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.model.job import Job, JobState
from cockpit.model.quantity import duration_text
from cockpit.model.reasons import InReservation, NodesReserved
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.rules.bounds import TIME_LIMIT_SECONDS
from cockpit.sched.nodes.reservation_windows import closed
from cockpit.sched.rules.rulebook import Rulebook

if TYPE_CHECKING:
    from cockpit.engine.access import Actor
    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.model.asking import WantedLimit
    from cockpit.model.events import EventBody
    from cockpit.model.reasons import Reason


def set_time_limit(
    machine: Machine, job: Job, wanted: WantedLimit, actor: Actor, now: Millis
) -> list[EventBody] | Refusal:
    """Return the events that set the time limit of a job; for a queued job, those of an edit.

    The container of a running job is not touched. Its limit cannot be set to a moment in the past, and only an
    administrator may set it beyond what the cluster's rules allow.
    """
    seconds = wanted.seconds + (job.spec.time_limit_seconds if wanted.beside else 0)
    if error := TIME_LIMIT_SECONDS.error(seconds):
        return Refusal(RefusalKind.INVALID, f"time_limit: {error}.")
    if seconds == job.spec.time_limit_seconds:
        return []
    longer = replace(job, spec=replace(job.spec, time_limit_seconds=seconds, limit_by_default=False))
    if job.state is JobState.QUEUED:
        # As an edit: the limit decides which partitions accept the job.
        return edit(machine, job, longer.spec, actor=actor, now=now)
    return (
        _cannot_change(job, seconds, now)
        or _not_allowed(machine.state, job, longer, actor)
        or [events.TimeLimitSet(job.id, seconds)]
    )


def _cannot_change(job: Job, seconds: int, now: Millis) -> Refusal | None:
    """Return why the limit of this job cannot be set to so many seconds; None: it can."""
    if job.ended:
        return _conflict(f"Job {job.shown_id} has ended ({job.state}); a clone of it can have another time limit.")
    if job.ending is not None:
        return _conflict(f"Job {job.shown_id} is being ended already.")
    if job.attempt is not None and job.attempt.members:
        members = " and ".join(dict.fromkeys(job.attempt.members))
        return _conflict(f"Job {job.shown_id} runs in {members}, where its time limit cannot be changed from here.")
    ran = _ran_seconds(job, now)
    # Else the limit would be over at once: the job would end by a change that was meant to adjust it.
    if ran < seconds:
        return None
    return _conflict(
        f"Job {job.shown_id} has run for {duration_text(ran)}, longer than {duration_text(seconds)}; "
        f"`cockpit cancel {job.id}` ends it."
    )


def _ran_seconds(job: Job, now: Millis) -> int:
    began = began_at(job)
    if job.attempt is None or began is None:
        return 0
    # `suspended_ms` has only the suspensions that are over: the present one is left out by stopping at its beginning.
    until = job.state_since if job.state is JobState.SUSPENDED else now
    return max(0, until - began - job.attempt.suspended_ms) // 1000


def _not_allowed(state: ClusterState, job: Job, longer: Job, actor: Actor) -> Refusal | None:
    """Return the refusal by the first rule that the longer limit breaks and the old one does not."""
    if actor.admin or longer.spec.time_limit_seconds < job.spec.time_limit_seconds or job.attempt is None:
        return None
    reason = _by_rules(state, job, longer, job.attempt.partition) or _by_reservations(state, job, longer)
    if reason is None:
        return None
    return Refusal(RefusalKind.INVALID, "An administrator may go beyond that.", (("time_limit", reason),))


def _by_rules(state: ClusterState, job: Job, longer: Job, partition: str) -> Reason | None:
    rules = Rulebook(state.cluster, state.accounts, 0, state.quota)
    # A rule that the old limit breaks too was set later, or waived by an administrator: the change does not break it.
    return rules.refusal(longer, partition) if rules.refusal(job, partition) is None else None


def _by_reservations(state: ClusterState, job: Job, longer: Job) -> InReservation | NodesReserved | None:
    """Return why a longer limit conflicts with reservations: nodes reserved for others, or the end of the job's own
    reservation."""
    began = began_at(job)
    if began is None or job.attempt is None:
        return None
    ends, then = (began + job.attempt.suspended_ms + 1000 * each.spec.time_limit_seconds for each in (job, longer))
    own = state.reservations.get(job.spec.reservation)
    if own is not None and ends <= own.end_at < then:
        return InReservation(own.name, end_at=Millis(own.end_at))
    nodes = {part.node for part in job.attempt.placement}
    theirs = {name: each for name, each in state.reservations.items() if nodes.intersection(each.nodes)}
    # Only reservations that the longer limit reaches in addition: the scheduler knows those that the old one met.
    met = closed(theirs, job.spec.reservation, began, then) - closed(theirs, job.spec.reservation, began, ends)
    if not met:
        return None
    first = min((theirs[name] for name in met), key=lambda each: (each.start_at, each.name))
    return NodesReserved(first.name, Millis(first.start_at), Millis(first.end_at))


def _conflict(sentence: str) -> Refusal:
    return Refusal(RefusalKind.CONFLICT, sentence)
