"""Translates the effects of the fleet's engine into orders to its members. An order that is given twice has no second
effect."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.effects import (
    FreezeReplica,
    RemoveContainer,
    SignalReplica,
    StartReplica,
    ThawReplica,
)
from cockpit.engine.fleet.parts import job_of, parts_of, spec_of
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.attempt import EndCause, Ending, Suspension
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.fleet import FleetPart
    from cockpit.model.spec import JobSpec

    Decision = Callable[[Machine, Millis], Sequence[EventBody] | Refusal]
    PartDecision = Callable[[JobId, Ending | None, Machine, Millis], Sequence[EventBody]]

FLEET = "fleet"
"""The name under which members know the fleet."""

ReplicaEffect = StartReplica | SignalReplica | FreezeReplica | ThawReplica | RemoveContainer


class MemberDecision(NamedTuple):
    """Let the member's engine decide this."""

    member: str
    decision: Decision


class Open(NamedTuple):
    """The member's containers of this job may begin: every part of the gang has its place."""

    member: str
    job: JobId


Order = MemberDecision | Open


def orders(effect: ReplicaEffect, fleet: Machine, members: Mapping[str, Machine]) -> list[Order]:
    """Return the orders to the member that the effect's replica is bound to; none if its part has the order already, or
    is over."""
    match effect:
        case StartReplica():
            return _start(effect, fleet, members)
        case SignalReplica():
            return _on_part(effect, fleet, members, _end_part)
        case FreezeReplica():
            return _on_part(effect, fleet, members, _suspend_part)
        case ThawReplica():
            return _on_part(effect, fleet, members, _resume_part)
        case RemoveContainer():
            return _end_all_parts(effect, members)


def _start(effect: StartReplica, fleet: Machine, members: Mapping[str, Machine]) -> list[Order]:
    """Return the order that submits a part to its member, or that lets its containers begin once all parts are
    placed."""
    job = _current(fleet, effect.replica.job, effect.replica.attempt)
    if job is None or job.attempt is None:
        return []
    for name, part in parts_of(job).items():
        # One submission starts all replicas of a part: the effect of its first replica is enough.
        # A member over a link is told by its courier.
        if part.ranks[0] != effect.replica.rank or name not in members:
            continue
        member_job = job_of(members[name], job, part)
        if member_job is None:
            return [MemberDecision(name, partial(_submit_part, job, name, part))]
        # The gang starts together: no member's containers begin before every part has its place.
        if not job.attempt.awaits:
            return [Open(name, member_job.id)]
    return []


def _submit_part(job: Job, name: str, part: FleetPart, member: Machine, now: Millis) -> Sequence[EventBody] | Refusal:
    # Tested again when the order is carried out: it may have been given twice.
    if job_of(member, job, part) is not None:
        return []
    spec = spec_of(job, name, part)
    # As an administrator of the member: the fleet has checked the user's rights by its own rules.
    decided = submit(member, [spec], Actor(job.submitter, admin=True), now=now, part=True)
    if isinstance(decided, Refusal):
        return decided  # the fleet gives it up when its time is over
    return [_of_part(each, part, spec) if isinstance(each, events.JobSubmitted) else each for each in decided]


def _of_part(submitted: events.JobSubmitted, part: FleetPart, spec: JobSpec) -> events.JobSubmitted:
    """Return the submitted part with the image that the fleet's catalogue resolved, which the member's catalogue does
    not know."""
    return replace(submitted, part=part, spec=replace(submitted.spec, image_mpi=spec.image_mpi))


def _on_part(
    effect: SignalReplica | FreezeReplica | ThawReplica,
    fleet: Machine,
    members: Mapping[str, Machine],
    decide_part: PartDecision,
) -> list[Order]:
    """Return orders that do to the parts what happens to the fleet's job."""
    job = _current(fleet, effect.replica.job, effect.replica.attempt)
    for name, part in parts_of(job).items() if job is not None else ():
        member_job = job_of(members[name], job, part) if job is not None and name in members else None
        if effect.replica.rank in part.ranks and member_job is not None:
            return [MemberDecision(name, partial(decide_part, member_job.id, job.ending if job is not None else None))]
    return []


def _end_part(job_id: JobId, ending: Ending | None, member: Machine, _now: Millis) -> Sequence[EventBody]:
    """End a part as the fleet ends the whole job; a part that is still queued ends at once."""
    job = member.state.jobs.get(job_id)
    if job is None or job.ended or ending is None:
        return []
    if job.state is JobState.QUEUED:
        return [events.JobEnded(job.id, JobState.STOPPED, EndCause.STOP)]
    if job.ending is None:
        return [events.EndingBegan(job.id, ending.cause, ending.kill_at)]
    return [] if job.ending.killed or not ending.killed else [events.GraceEnded(job.id)]


def _suspend_part(job_id: JobId, _ending: Ending | None, member: Machine, _now: Millis) -> Sequence[EventBody]:
    job = member.state.jobs.get(job_id)
    runs = job is not None and job.state is JobState.RUNNING and job.ending is None
    return [events.JobSuspended(job_id, Suspension(by=FLEET))] if runs else []


def _resume_part(job_id: JobId, _ending: Ending | None, member: Machine, _now: Millis) -> Sequence[EventBody]:
    job = member.state.jobs.get(job_id)
    return [events.JobResumed(job_id)] if job is not None and job.suspension is not None else []


def _end_all_parts(effect: RemoveContainer, members: Mapping[str, Machine]) -> list[Order]:
    """Return orders that end all parts of the effect's attempt, and the holds of their containers."""
    key = effect.replica.job, effect.replica.attempt
    # All members are searched: the fleet's job may be gone by now, or in an attempt with other members.
    targets = [(name, job) for name, machine in members.items() for job in machine.state.jobs.values()]
    return [
        MemberDecision(name, partial(_end_part_and_hold, job.id))
        for name, job in targets
        if job.part is not None and (job.part.job, job.part.attempt) == key
    ]


def _end_part_and_hold(job_id: JobId, member: Machine, now: Millis) -> Sequence[EventBody] | Refusal:
    job = member.state.jobs.get(job_id)
    if job is not None and job.ended:
        return decide.end_hold(job) if job.kept else []
    return _end_part(job_id, Ending(cause=EndCause.STOP, at=now, kill_at=now), member, now)


def _current(fleet: Machine, job_id: JobId, attempt: int) -> Job | None:
    """Return the job while this attempt of it occupies resources; None: the attempt is over."""
    job = fleet.state.jobs.get(job_id)
    if job is None or job.attempt is None or job.attempt.number != attempt or job.state not in OCCUPYING:
        return None
    return job
