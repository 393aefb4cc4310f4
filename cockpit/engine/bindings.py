"""Follows a job that is bound to clusters of a fleet: all clusters place their parts, or the whole job is
queued again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.job import OCCUPYING

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.model.node import Placement


def member_placed(machine: Machine, job_id: JobId, attempt: int, member: str, placement: Placement) -> list[EventBody]:
    """The member found room, by ranks and nodes as the fleet calls them; nothing when that is known, or all is over."""
    job = machine.state.jobs.get(job_id)
    if job is None or job.attempt is None or job.state not in OCCUPYING or job.attempt.number != attempt:
        return []
    return [events.MemberPlaced(job_id, attempt, member, placement)] if member in job.attempt.awaits else []


def given_up(job: Job) -> events.BindingGivenUp:
    """Return the events that end a placement which a cluster could not start for all of its toleration (`purgeMode:
    Immediately`). The job is scheduled again, in other clusters if possible. With `suspension.scheduling` it is revoked
    instead: it returns to its queue behind the jobs that wait there."""
    attempt = job.attempt
    assert attempt is not None
    others = [name for name in job.partitions if name not in {*attempt.awaits, attempt.partition}]
    failed = [name for name in job.partitions if name not in others]
    return events.BindingGivenUp(
        job.id,
        attempt.number,
        attempt.awaits,
        (*others, *failed),
        revoked=job.spec.suspension.scheduling,
    )
