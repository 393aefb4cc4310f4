"""What becomes of a job that is bound to clusters of a fleet: each finds room for its part, or the whole comes back."""

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
    """The end of a placement that some cluster has had no room for all the time (`purgeMode: Immediately`): the job is
    scheduled again, in other clusters if that can be. With `suspension.scheduling` it is revoked instead: it goes back
    to its queue, behind those that wait there."""
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
