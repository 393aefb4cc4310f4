"""What members have to do, from the effects of the fleet's own engine. Given twice, an order is like given once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.effects import KeepContainer, RemoveContainer, SignalReplica, StartReplica
from cockpit.engine.fleet.parts import job_of, parts_of, spec_of
from cockpit.engine.submit import submit
from cockpit.model import events
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, EndCause, Job, JobState
from cockpit.model.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.fleet import FleetPart

    Decision = Callable[[Machine, Millis], Sequence[EventBody] | Refusal]

ReplicaEffect = StartReplica | SignalReplica | KeepContainer | RemoveContainer


class Ask(NamedTuple):
    """Let the member's engine decide this."""

    member: str
    decision: Decision


class Open(NamedTuple):
    """The member's containers of this job may begin: every part of the gang has its place."""

    member: str
    job: JobId


Order = Ask | Open


def orders(effect: ReplicaEffect, fleet: Machine, members: Mapping[str, Machine]) -> list[Order]:
    """For the member that the effect's replica is bound to; none where its part has been told already, or is over."""
    match effect:
        case StartReplica():
            return _start(effect, fleet, members)
        case SignalReplica():
            return _end(effect, fleet, members)
        case RemoveContainer():
            return _remove(effect, members)
        case _:
            return []  # a member keeps what failed by itself


def _start(effect: StartReplica, fleet: Machine, members: Mapping[str, Machine]) -> list[Order]:
    job = _current(fleet, effect.replica.job, effect.replica.attempt)
    if job is None or job.attempt is None:
        return []
    for name, part in parts_of(job).items():
        if part.ranks[0] != effect.replica.rank:
            continue
        there = job_of(members[name], job, part)
        if there is None:
            return [Ask(name, lambda machine, now: _submitted(machine, job, name, part, now))]
        if not job.attempt.awaits:
            return [Open(name, there.id)]
    return []


def _submitted(
    member: Machine, job: Job, name: str, part: FleetPart, now: Millis
) -> Sequence[EventBody] | Refusal:
    if job_of(member, job, part) is not None:
        return []
    decided = submit(member, [spec_of(job, name, part)], job.submitter, admin=True, now=now)
    if isinstance(decided, Refusal):
        return decided  # the fleet gives it up when its time is over
    return [replace(each, part=part) if isinstance(each, events.JobSubmitted) else each for each in decided]


def _end(effect: SignalReplica, fleet: Machine, members: Mapping[str, Machine]) -> list[Order]:
    job = _current(fleet, effect.replica.job, effect.replica.attempt)
    if job is None or job.ending is None:
        return []
    ending = job.ending
    for name, part in parts_of(job).items():
        there = job_of(members[name], job, part)
        if effect.replica.rank in part.ranks and there is not None:
            found = there.id
            return [Ask(name, lambda machine, _: _ended(machine.state.jobs.get(found), ending.cause, ending.kill_at))]
    return []


def _ended(job: Job | None, cause: EndCause, kill_at: Millis) -> Sequence[EventBody]:
    if job is None or job.ended:
        return []
    if job.state is JobState.QUEUED:
        return [events.JobEnded(job.id, JobState.STOPPED, EndCause.STOP)]
    if job.ending is None:
        return [events.EndingBegan(job.id, cause, kill_at)]
    return [] if job.ending.killed else [events.GraceEnded(job.id)]


def _remove(effect: RemoveContainer, members: Mapping[str, Machine]) -> list[Order]:
    """Whatever is left of the attempt, running or kept."""
    found: list[Order] = []
    for name, machine in members.items():
        for job in machine.state.jobs.values():
            if job.part is not None and (job.part.job, job.part.attempt) == (effect.replica.job, effect.replica.attempt):
                found.append(Ask(name, lambda machine, now, job=job.id: _gone(machine.state.jobs.get(job), now)))  # noqa: PERF401
    return found


def _gone(job: Job | None, now: Millis) -> Sequence[EventBody] | Refusal:
    if job is None:
        return []
    if job.ended:
        return decide.end_hold(job) if job.kept else []
    return _ended(job, EndCause.STOP, now)


def _current(fleet: Machine, job_id: JobId, attempt: int) -> Job | None:
    """The job, while it holds what this attempt was given."""
    job = fleet.state.jobs.get(job_id)
    if job is None or job.attempt is None or job.attempt.number != attempt or job.state not in OCCUPYING:
        return None
    return job
