"""What the fleet hears of its members: the events of its own that follow from what happened there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine import decide
from cockpit.engine.bindings import member_placed
from cockpit.engine.fleet.parts import seen_from_fleet
from cockpit.model.ids import ReplicaId

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.events import EventBody
    from cockpit.model.fleet import FleetPart
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job
    from cockpit.model.usage import Used


def placed(fleet: Machine, member: str, job: Job) -> list[EventBody]:
    """The member's scheduler found room for the job."""
    if job.part is None or job.attempt is None:
        return []
    found = seen_from_fleet(member, job.part, job.attempt.placement)
    return member_placed(fleet, job.part.job, job.part.attempt, member, found)


def started(fleet: Machine, part: FleetPart, rank: int, limits: str) -> list[EventBody]:
    """A replica of the part runs."""
    return decide.replica_started(fleet, replica_of(part, rank), limits)


def ended(
    fleet: Machine, part: FleetPart, rank: int, status: ExitStatus, now: Millis, hold: int, used: Used | None = None
) -> list[EventBody]:
    """A replica of the part has no process left. `hold`: seconds for which a failed container is kept."""
    return decide.replica_ended(fleet, replica_of(part, rank), status, now, hold, used)


def replica_of(part: FleetPart, rank: int) -> ReplicaId:
    """The fleet's name of a member's replica."""
    return ReplicaId(part.job, part.attempt, part.ranks[rank])
